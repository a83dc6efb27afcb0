"""Tables of SQL with several columns for a value, and many tables for one level: what is read, and what is refused."""

from __future__ import annotations

from datetime import date

import pytest

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.load import load_text
from hyper_proxy.config.model import IdDate, Level, Server, Table
from hyper_proxy.config.table_split import (
    day_of,
    pattern_of,
    placed,
    read_day,
    server_at,
    slot_count,
    table_at,
)
from tests.config.texts import FULL, change, findings

OLD = '{ name = "user.profile", key = "uid", value = "body", expires = "until" }'
ONE = '["10.0.0.7:3306 r"]\n  writers = ["10.0.0.8:3306 w"]'
TWO = '["10.0.0.7:3306 r", "10.0.0.9:3306 s"]'
BASE = 'key = "uid", value = "body", expires = "until"'
DATE = "date = { shift = 22, epoch = 515483463 }"


def text(table: str, servers: str = ONE) -> str:
    return change(change(FULL, OLD, table), ONE, servers)


@pytest.mark.parametrize("table", [
    '{ name = "user.profile", key = "uid", value = ["name", "age"], expires = "until" }',
    f'{{ name = "user_{{db:02}}.profile_{{table:03}}", databases = 4, tables = 8, {BASE} }}',
    f'{{ name = "user.profile_{{slot}}", tables = 8, {BASE} }}',
    f'{{ name = "user.profile", databases = 2, {BASE} }}',
    f'{{ name = "user.p_{{table}}_{{yyyy}}{{mm}}{{dd}}", tables = 3, id = "uid", {BASE}, {DATE} }}',
    f'{{ name = "user.p_{{yy}}", {BASE}, date = {{ shift = 22, epoch = 1, per_second = 1000, utc_offset_h = -3 }} }}',
])  # fmt: skip
def test_good_ones(table: str) -> None:
    assert findings(text(table, TWO)) == []


DATED = f'{{ name = "feed_{{db}}.p_{{yy}}", databases = 4, {BASE}, {DATE} }}'
OLDER = '"2009-2012" = { servers = ["10.0.0.1:3306"] }'


@pytest.mark.parametrize(("table", "years", "code", "says"), [
    (DATED, f"{{ {OLDER}, 2013 = {{ servers = ['10.0.0.2:3306', '10.0.0.1:3306'] }} }}", "", ""),
    (DATED, "{ 2013 = { servers = ['10.0.0.2:3306 o'], writers = ['10.0.0.3:3306 ow'] } }", "", ""),
    (OLD, f"{{ {OLDER} }}", "HP222", "table has no date"),
    (DATED, f"{{ {OLDER}, 2010 = {{ servers = ['10.0.0.2:3306'] }} }}", "HP222", "2010 is also one of 2009-2012"),
    (DATED, f"{{ 2013 = {{ servers = {[f'10.0.0.{n}:3306' for n in range(3)]} }} }}", "HP222", "must be a multiple of"),
    (DATED.replace("databases = 4, ", "").replace("feed_{db}.", ""),
     "{ 2013 = { servers = ['10.0.0.2:3306', '10.0.0.3:3306'] } }", "HP222", "there are 2 servers, not 1"),
    (DATED, '{ "2012-2009" = { servers = ["10.0.0.2:3306"] } }', "HP106", "is no year"),
    (DATED, '{ "1999" = { servers = ["10.0.0.2:3306"] } }', "HP106", "is no year"),
    (DATED, '{ "2013" = { servers = [] } }', "HP107", "servers missing"),
    (DATED, '{ "2013" = { servers = ["10.0.0.2"] } }', "HP110", "has no port"),
    (DATED, '{ "2013" = { servers = ["10.0.0.2:1"], writers = ["10.0.0.3:1", "10.0.0.4:1"] } }', "HP106", "2 writers"),
    (DATED, '{ "2013" = { server = ["10.0.0.2:3306"] } }', "HP104", "unknown key"),
    (DATED, '{ "2013" = { servers = ["10.0.0.2:3306 r"] } }', "HP203", "the alias 'r' is already"),
    (DATED, '["2013"]', "HP105", "a table is wanted here"),
])  # fmt: skip
def test_years(table: str, years: str, code: str, says: str) -> None:
    said = change(text(table), "where = { deleted = 0 }", f"where = {{ deleted = 0 }}\n  years = {years}")
    found = findings(said)
    assert ([one.code for one in found][:1] or [""]) == [code], found
    assert not found or says in found[0].message


def test_servers_of_years_are_servers_of_the_level() -> None:
    said = change(text(DATED), "where = { deleted = 0 }", f"where = {{ deleted = 0 }}\n  years = {{ {OLDER} }}")
    levels = [level for instance in load_text(said, "x.toml").instances for level in instance.levels]
    everyone = {server.address for level in levels for server in level.everyone}
    assert {"10.0.0.1:3306", "10.0.0.7:3306", "10.0.0.8:3306"} <= everyone


@pytest.mark.parametrize(("said", "code", "says"), [
    ('{ name = "b", time = "t" }', "", ""),
    ('{ name = "a.b", time = "t", where = { server_id = 1, kind = "x" } }', "", ""),
    ('{ name = "b" }', "HP107", "time missing"),
    ('"b"', "HP105", "a table is wanted here"),
    ('{ name = "b", time = "t;" }', "HP106", "'t;' is not a name"),
    ('{ name = "b_{db}", time = "t" }', "HP106", "no numbers stand in its name"),
    ('{ name = "b", time = "t", wher = {} }', "HP104", "unknown key"),
    ('{ name = "b", time = "t", where = 1 }', "HP105", "a table is wanted here"),
    ('{ name = "b", time = "t", where = { "a b" = 1 } }', "HP106", "'a b' is not a name"),
    ('{ name = "b", time = "t", where = { a = 1.5 } }', "HP106", "a string or an integer"),
])  # fmt: skip
def test_heartbeats(said: str, code: str, says: str) -> None:
    found = findings(change(FULL, "where = { deleted = 0 }", f"max_lag_s = 2\n  heartbeat = {said}"))
    assert [one.code for one in found] == ([code] if code else []), found
    assert all(says in one.message for one in found)


@pytest.mark.parametrize(("table", "code", "says"), [
    ('{ name = "u.t", key = "uid", value = [], expires = "e" }', "HP106", "the list is empty"),
    ('{ name = "u.t", key = "uid", value = ["a", "b c"], expires = "e" }', "HP106", "'b c' is not a name"),
    ('{ name = "u.t", key = "uid", value = ["a", 5], expires = "e" }', "HP105", "a string is wanted here"),
    ('{ name = "u.t", key = "uid", value = ["a", "UID"], expires = "e" }', "HP106", "the column 'uid' is named"),
    ('{ name = "u.t", key = "uid", value = ["a", "A"], expires = "e" }', "HP106", "the column 'a' is named"),
    ('{ name = "u.t", key = "uid", value = ["a", "deleted"], expires = "e" }', "HP212", "one of table.value"),
    (f'{{ name = "u.t_{{tabel}}", tables = 2, {BASE} }}', "HP106", "'t_{tabel}' is not a name"),
    (f'{{ name = "u.t`; --{{table}}", tables = 2, {BASE} }}', "HP106", "is not a name"),
    (f'{{ name = "u.t_{{table}}", {BASE} }}', "HP222", "{table} stands for a number where there are several"),
    (f'{{ name = "u.t", tables = 2, {BASE} }}', "HP222", "the name must tell tables apart"),
    (f'{{ name = "u.t_{{db}}", databases = 4, tables = 2, {BASE} }}', "HP222", "u.t_0 would be two of them"),
    (f'{{ name = "u{{db}}.t", databases = 3, {BASE} }}', "HP222", "databases (3) must be a multiple"),
    (f'{{ name = "u.t", databases = 4096, tables = 4096, {BASE} }}', "HP106", "are more than 4096 tables"),
    (f'{{ name = "u.t", databases = 0, {BASE} }}', "HP106", "not between 1 and 4096"),
    (f'{{ name = "u.t_{{yy}}", {BASE} }}', "HP222", "date goes with {yyyy} or {yy}"),
    (f'{{ name = "u.t", {BASE}, {DATE} }}', "HP222", "date goes with {yyyy} or {yy}"),
    (f'{{ name = "u.t_{{mm}}", {BASE}, {DATE} }}', "HP222", "a date begins with {yyyy} or {yy}"),
    (f'{{ name = "u.t_{{yy}}{{dd}}", {BASE}, {DATE} }}', "HP222", "{dd} takes {mm}"),
    (f'{{ name = "u_{{yy}}.t_{{mm}}", {BASE}, {DATE} }}', "HP222", "not in that of its database"),
    (f'{{ name = "u.t_{{yy}}", id = "n", {BASE}, {DATE} }}', "HP222", "id must be its column"),
    (f'{{ name = "u.t_{{yy}}", {BASE}, date = {{ shift = 22 }} }}', "HP107", "epoch missing"),
    (f'{{ name = "u.t_{{yy}}", {BASE}, date = {{ shift = 99, epoch = 0 }} }}', "HP106", "not between 0 and 62"),
    (f'{{ name = "u.t_{{yy}}", {BASE}, date = {{ shift = 9, epoch = 0, zone = 8 }} }}', "HP104", "unknown key"),
    (f'{{ name = "u.t_{{yy}}", {BASE}, date = 5 }}', "HP105", "a table is wanted here"),
])  # fmt: skip
def test_faults(table: str, code: str, says: str) -> None:
    found = findings(text(table, TWO))
    assert [one.code for one in found] == [code]
    assert says in found[0].message


def test_weights_have_no_effect_over_tables() -> None:
    table = f'{{ name = "u.t_{{table}}", tables = 2, {BASE} }}'
    found = findings(text(table, '["10.0.0.7:3306:2 r", "10.0.0.9:3306 s"]'))
    assert [(one.code, "weights have no effect" in one.message) for one in found] == [("HP222", True)]


def test_slots() -> None:
    table = Table("t_{table:03}", "k", "v", "user_{db:02}", databases=4, tables=5)
    level = Level("mysql", (Server("a", 1), Server("b", 1)), table=table)
    assert slot_count(table, 2) == 20
    assert [server.name for server in placed(level)] == [str(slot) for slot in range(20)]
    assert [server_at(level, slot) for slot in (0, 9, 10, 19)] == [0, 0, 1, 1]
    assert table_at(table, 13).label == "user_02.t_003"
    each = Table("t", "k", "v", "user")
    assert placed(Level("mysql", level.servers, table=each)) == level.servers


def test_dates() -> None:
    table = Table("t_{yy}{mm}", "k", "v", date=IdDate(22, 515483463, utc_offset_h=8))
    # The first second of 2024 in Beijing, and the one before.
    first = (1704038400 - 515483463) << 22
    assert day_of(table, b"%d" % first) == date(2024, 1, 1)
    assert day_of(table, b"%d" % (first - 1)) == date(2023, 12, 1)
    assert table_at(table, 0, date(2024, 1, 1)).name == "t_2401"
    snowflake = Table("t_{yyyy}_{mm}_{dd}", "k", "v", date=IdDate(22, 1288834974657, 1000))
    assert day_of(snowflake, b"1212092628029698048") == date(2019, 12, 31)
    assert table_at(snowflake, 0, date(2019, 12, 31)).name == "t_2019_12_31"
    for key in (b"", b"x", b"-5", b"007", b"1" * 20, b"5", b"9223372036854775807"):
        with pytest.raises(ClientError, match="chosen by the date in the key"):
            day_of(table, key)


def test_names_of_dated_tables_are_recognized() -> None:
    like, names = pattern_of("a.%_{yy}{mm}")
    assert like == r"a.\%\_____"
    for name, day in (("a.%_2401", date(2024, 1, 1)), ("a.%_2413", None)):
        found = names.fullmatch(name)
        assert found is not None
        assert read_day(found) == day
    for name in ("a.%_24011", "a.%_240x", "ab%_2401"):
        assert names.fullmatch(name) is None


def test_what_is_read() -> None:
    config = load_text(text(f'{{ name = "u_{{db}}.t_{{yy}}", databases = 2, {BASE}, {DATE} }}', TWO), "/etc/x.toml")
    table = config.instances[-1].levels[0].table
    assert table == Table(
        "t_{yy}", "uid", "body", "u_{db}", expires="until", databases=2, date=IdDate(22, 515483463)
    )  # fmt: skip


@pytest.mark.parametrize(("old", "new"), [(OLD, '"profile"'), ('username = "reader"', "username = 5")])
def test_what_has_the_wrong_type_is_not_said_to_be_missing(old: str, new: str) -> None:
    (found,) = findings(change(FULL, old, new))
    assert found.code == "HP105"
