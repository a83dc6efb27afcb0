"""What may stand together: instances, levels, rooms and routes, and in which words `check` says that they may not."""

from __future__ import annotations

import pytest

from hyper_proxy.config.codes import ERROR
from tests.config.texts import (
    FILE,
    LEVELS,
    MORE,
    PLAIN,
    POOLED,
    ROOMED,
    ROUTE,
    SERVERS,
    change,
    codes,
    findings,
    line_of,
)


def test_instances_with_the_same_levels_see_what_each_other_writes() -> None:
    above = '[[instance.level]]\nstorage = "redis"\nservers = ["10.0.0.2:6379 b", "10.0.0.1:6379 a"]\n'
    assert codes(f"{LEVELS}{MORE}{above}{change(FILE, 'other.db', 'keys.db')}") == []
    for said in 'write = "around"', "read_only = true":
        silent = change(LEVELS, 'storage = "redis"', f'storage = "redis"\n{said}')
        assert "HP408" not in dict(codes(f"{silent}{MORE}{change(FILE, 'other.db', 'keys.db')}"))


def test_more_clients_than_files_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    large = change(PLAIN, 'name = "user"', 'name = "user"\nlimits.max_clients = 5000')
    small = change(change(large, "5000", "4000"), "user", "more").replace("6380", "6390")
    text, needed = large + small, 5000 + 4000 + 2 + 2 + 64
    monkeypatch.setattr("resource.getrlimit", lambda which: (256, needed - 1))
    assert codes(text) == [("HP304", line_of(text, "5000"))]
    monkeypatch.setattr("resource.getrlimit", lambda which: (256, needed))
    assert codes(text) == []
    monkeypatch.setattr("resource.getrlimit", lambda which: (256, -1))
    assert codes(text) == []


def test_what_nobody_has_asked_for_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda which: (256, 256))
    assert codes(PLAIN) == []


def test_a_protocol_that_is_not_served_yet_is_refused_by_name() -> None:
    (found,) = findings(change(PLAIN, 'protocol = "redis"', 'protocol = "mysql"'))
    assert found.code == "HP108"
    assert "not served by this version yet" in found.message


def test_rooms_must_have_the_same_number_of_servers() -> None:
    uneven = findings(change(PLAIN, SERVERS, f'{SERVERS}, "----", "10.1.0.1:6379"'))
    assert {finding.code for finding in uneven} == {"HP110"}
    three = findings(change(PLAIN, SERVERS, '"a:1", "----", "b:1", "----", "c:1"'))
    assert "there are 3 rooms" in "".join(map(str, three))


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("127.0.0.1:7000", "127.0.0.1:7000", True),
        ("0.0.0.0:7000", "127.0.0.1:7000", True),
        ("127.0.0.1:7000", "[::]:7000", False),
        ("0.0.0.0:7000", "[::]:7000", False),
        ("[::1]:7000", "[::]:7000", True),
        ("localhost:7000", "[::]:7000", True),
        ("localhost:7000", "127.0.0.1:7000", True),
        ("unix:/tmp/a", "unix:/tmp/a", True),
        ("127.0.0.1:22122", "unix:/tmp/a", True),
        ("127.0.0.1:7000", "127.0.0.2:7000", False),
        ("127.0.0.1:7000", "127.0.0.1:7001", False),
        ("unix:/tmp/a", "unix:/tmp/b", False),
    ],
)
def test_listeners_clash_when_they_meet_at_one_socket(one: str, other: str, clash: bool) -> None:
    found = codes(change(PLAIN, '"127.0.0.1:6380"', f'"{one}", "{other}"'))
    assert found == ([("HP202", 4)] if clash else [])


def test_instances_must_not_lead_to_each_other_in_a_circle() -> None:
    more = PLAIN.replace('"user"', '"next"').replace("6380", "6390").replace("10.0.0.1:6379", "127.0.0.1:6380")
    chain = PLAIN.replace("10.0.0.1:6379", "127.0.0.1:7000") + more
    assert findings(chain) == []
    circle = findings(chain.replace("127.0.0.1:7000", "127.0.0.1:6390"))
    assert [(one.code, one.line) for one in circle] == [("HP209", 8), ("HP209", 16)]
    assert "127.0.0.1:6390 is where instance 'next' listens, which leads back here" in circle[0].message


@pytest.mark.parametrize(
    ("listen", "server", "circle"),
    [
        ("0.0.0.0:7000", "127.0.0.1:7000", True),
        ("[::]:7000", "localhost:7000", True),
        ("[::]:7000", "[::1]:7000", True),
        ("[::]:7000", "127.0.0.1:7000", False),
        ("127.0.0.1:7000", "localhost:7000", True),
        ("unix:/tmp/a", "unix:/tmp/a", True),
        ("0.0.0.0:7000", "10.0.0.1:7000", False),
        ("0.0.0.0:7000", "unix:/tmp/a", False),
        ("127.0.0.1:7000", "127.0.0.2:7000", False),
    ],
)
def test_an_instance_must_not_be_its_own_server(listen: str, server: str, circle: bool) -> None:
    text = change(change(PLAIN, "127.0.0.1:6380", listen), SERVERS, f'"{server}:1 a"')
    assert codes(text) == ([("HP209", 8)] if circle else [])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (PLAIN, "instance = 3\n", "HP105 instance: is written [[instance]]: a list of tables, not an integer"),
        (PLAIN, 'instance = ["user"]\n', "HP105 instance[0]: a table is wanted here, not a string"),
        (PLAIN.partition("[[instance.level]]")[2], "", "HP105 instance[0].level"),
        ("[[instance.level]]", "[instance.level]", "HP105 instance[0].level: is written [[instance.level]]"),
        ('name = "user"', 'name = "user"\nlimits = 3', "HP105 instance[0].limits: a table is wanted here"),
        (PLAIN, "", "HP107 there is no [[instance]]: a front: a protocol on some addresses, and the storage behind it"),
    ],
)
def test_what_is_no_table_is_one_finding(old: str, new: str, said: str) -> None:
    text = change(PLAIN, old, new)
    if new == "" and old != PLAIN:
        text = change(text, "[[instance.level]]", 'level = "redis"\n')
    found = findings(text)
    assert len(found) == 1, found
    assert said in str(found[0])


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("limits.idle_timeout_s", "a number of seconds is wanted here, not a string"),
        ("write_back.jitter", "a number is wanted here, not a string"),
    ],
)
def test_a_number_is_asked_for_in_its_unit(key: str, wanted: str) -> None:
    (found,) = findings(change(LEVELS, "[[instance.level]]", f'{key} = "1"\n[[instance.level]]'))
    assert (found.code, found.message) == ("HP105", f"instance[0].{key}: {wanted}")


def test_levels_are_caches_above_one_that_knows() -> None:
    assert findings(LEVELS) == []
    assert findings(change(LEVELS, 'storage = "redis"', 'storage = "memcache"')) == []
    for old, new, says in (
        ('storage = "redis"\nservers = ["10.0.0.1:6379:1 a", "10.0.0.2:6379:1 b"]',
         'storage = "sqlite"\nservers = ["a.db"]', "sqlite cannot be a level above another; redis"),
        ('storage = "sqlite"\nservers = ["keys.db"]', 'storage = "lushan"\nservers = ["10.0.0.3:6379"]\nlushan_db = 1',
         "lushan cannot be the last of several levels; redis, memcache, sqlite, mysql can"),
    ):  # fmt: skip
        (found,) = findings(change(LEVELS, old, new))
        assert found.code == "HP213" and says in found.message


def test_servers_of_several_levels_have_names_of_their_own() -> None:
    head = '[[instance.level]]\nstorage = "redis"'
    above = f'[[instance.level]]\nstorage = "memcache"\nservers = ["10.0.0.9:11211 a"]\n\n{head}'
    (found,) = findings(change(LEVELS, head, above))
    assert found.code == "HP213"
    assert "'a' is also" in found.message and "give one of them another alias" in found.message


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        ('storage = "redis"', 'storage = "redsi"\ndb = 1\nhash = "md5"', "HP106", "did you mean 'redis'?"),
        ('storage = "redis"\nservers = ["10.0.0.1:6379:1 a", "10.0.0.2:6379:1 b"]',
         'storage = "local"\n\n[instance.write_back]\nttl = 9', "HP204", "add that level, one of redis, "),
        ('storage = "redis"', 'storage = "redis"\ntopology = "sentinel"', "HP224", "masters is missing"),
        ('storage = "redis"', 'storage = "redis"\nroute = { failover = ["main", "main"] }',
         "HP214", "'main' stands twice"),
        ('storage = "redis"', 'storage = "redis"\nroute = { shadow = "main", of = "main" }',
         "HP214", "twice in shadow"),
        ('storage = "redis"',
         'storage = "redis"\nroute = { class = { read = { any = ["main", "main"] }, write = "main" } }',
         "HP214", "twice in any"),
        ('storage = "redis"', 'storage = "redis"\nroute = { failover = ["main", 3] }', "HP105", "not an integer"),
        ('storage = "redis"', 'storage = "redis"\nroute = { shadow = "main" }', "HP107", "of is missing"),
        ('storage = "redis"', 'storage = "lushan"', "HP204", "lushan cannot serve redis"),
        (":1 b", ":1 a", "HP203", "the alias 'a' is already"),
        ("10.0.0.1:6379:1 a", "redis://10.0.0.1:6379", "HP110", "write '10.0.0.1:6379' without 'redis://'"),
        (":1 a", ":1\\ta", "HP110", "'10.0.0.1:6379:1\\ta': a blank stands between address and alias, no tab"),
        ("10.0.0.1:6379", "10.0.0.1\u00a0:6379", "HP110", "'10.0.0.1\\xa0:6379:1' does not begin with"),
        ("10.0.0.1:6379:1 a", "10.0.0.1:1 a", "HP401", "the port is 1: is it missing, and this the weight?"),
        ("10.0.0.1:6379:1 a", "redis://:pw@10.0.0.1:6379/0 a", "HP110", "write '10.0.0.1:6379' without 'redis://'"),
        ("10.0.0.1:6379:1 a", ":pw@10.0.0.1:6379 a", "HP110", "keys of their own, username and password"),
        ("10.0.0.1:6379:1 a", "10.0.0.1:6379, 10.0.0.1:6380", "HP110", "each is a string of its own in the list"),
        (":1 a", ":a", "HP110", "the weight 'a' is not a number from 1 to 1000000; an alias stands behind a blank"),
        ("10.0.0.1:6379:1 a", "10.0.0.300:6379 a", "HP110", "'10.0.0.300' is no address: four numbers up to 255 are"),
        ("10.0.0.1:6379:1 a", "::1:6379 a", "HP110", "an IPv6 address in brackets, as [::1]:6380 does"),
        ("127.0.0.1:6380", "fd00:0:0:0:0:0:0:1:6380", "HP109", "an IPv6 address in brackets, as [::1]:6380 does"),
        ("127.0.0.1:6380", "10.0.0.1.5:6380", "HP109", "'10.0.0.1.5' is no address: four numbers up to 255 are"),
        ("127.0.0.1:6380", "127.0.0.1 6380", "HP109", "has a blank: host:port is wanted"),
        ("127.0.0.1:6380", "${HOST}:6380", "HP109", "nothing is expanded: host:port is wanted"),
        ("127.0.0.1:6380", "{{ host }}:6380", "HP109", "'{{ host }}:6380' would stay as it is, for nothing"),
        ("127.0.0.1:6380", "unix:/run/{{ name }}.sock", "HP109", "for nothing is expanded: an address is wanted"),
        ("10.0.0.1:6379:1 a", "{{ host }}:6379:1 a", "HP110", "'{{ host }}:6379:1 a' would stay as it is, "),
        ("10.0.0.1:6379:1 a", "10.0.0.1:{{port}} a", "HP110", "'10.0.0.1:{{port}} a' would stay as it is, "),
        ("127.0.0.1:6380", "/run/user.sock", "HP109", "write a unix socket as 'unix:/run/user.sock'"),
        ("127.0.0.1:6380", ":6380", "HP109", "for all of this machine write 0.0.0.0:6380"),
        ("127.0.0.1:6380", "*:6380", "HP109", "for all of this machine write 0.0.0.0:6380"),
        ("127.0.0.1:6380", "6380", "HP109", "for all of this machine write 0.0.0.0:6380"),
        ('storage = "redis"', 'storage = "redis"\nredis_db = 1', "HP104", "unknown key; of twemproxy; here: db of the"),
        ('storage = "redis"', 'storage = "redis"\nuser = "x"',
         "HP104", "unknown key; it belongs in [proxy], or did you mean 'username'?"),
        ('storage = "redis"', 'storage = "redis"\nfile = "x"',
         "HP104", "unknown key; it belongs in [log], or did you mean 'servers'?"),
        ('storage = "redis"', 'storage = "redis"\nport = 1', "HP104", "unknown key; did you mean 'servers'?"),
        ('protocol = "redis"', 'protocol = "redis"\nport = 1', "HP104", "unknown key; did you mean 'listen'?"),
        ('protocol = "redis"', 'protocol = "redis"\nrequirepass = "x"', "HP104", "did you mean 'password'?"),
        ('storage = "redis"', 'storage = "redis"\nread_ms = 1',
         "HP104", "unknown key; it belongs in [instance.level.timeout]"),
        ('storage = "redis"', 'storage = "redis"\nbacklog = 1', "HP104", "here: nothing: as long as the system allows"),
        ('storage = "redis"', 'storage = "redis"\nreds = 1', "HP104", "unknown key"),
        ('storage = "redis"', 'storage = "redis"\ntimeout = 400',
         "HP105", "not an integer: [instance.level.timeout] with connect_ms, read_ms, queue_ms"),
        ('storage = "redis"', 'storage = "redis"\nhash = "crc32"\ndistribution = "consistent"',
         "HP106", "unknown distribution 'consistent'; did you mean 'ketama' or 'libmemcached_ketama'?"),
        ('"user"', "user", "HP103", 'Invalid value: a string is written in "straight quotes"'),
        ('name = "user"', 'name = "user"\nname = "other"', "HP103", "name is set twice"),
        ("[[instance]]", "\ufeff[[instance]]", "HP103", "save it as UTF-8 without BOM"),
    ],
)  # fmt: skip
def test_one_mistake_is_one_finding(old: str, new: str, code: str, says: str) -> None:
    (found,) = findings(change(PLAIN, old, new))
    assert found.code == code and says in found.message


@pytest.mark.parametrize("path", ["127.0.0.1:6379", ":memory:", "file:a.db", "unix:/run/a.sock", "sqlite:///tmp/a.db"])
def test_what_is_no_file_is_not_made_one(path: str) -> None:
    (found,) = findings(change(LEVELS, "keys.db", path))
    assert (found.code, found.message.partition(": ")[2]) == (
        "HP110",
        f"'{path}' is not the path of a file; if it is meant, write './{path}'",
    )
    assert findings(change(LEVELS, "keys.db", f"./{path}")) == []
    (found,) = findings(f'[log]\nfile = "{path}"\n{PLAIN}')
    assert found.code == "HP106" and "is not the path of a file" in found.message


@pytest.mark.parametrize("path", ["~/a.db", "$HOME/a.db", "/var/${NAME}.db", "{{ dir }}/a.db"])
def test_a_path_that_a_shell_or_a_template_would_expand_is_refused(path: str) -> None:
    for text in (change(LEVELS, "keys.db", path), f'[proxy]\npidfile = "{path}"\n{PLAIN}'):
        (found,) = findings(text)
        assert f"'{path}' would stay as it is, for nothing is expanded: write the whole path" in found.message


@pytest.mark.parametrize("text", ["${PASSWORD}", "$REDIS_PASSWORD", "{{ redis.password }}", "%PASSWORD%"])
@pytest.mark.parametrize("key", ["username", "password"])
def test_a_secret_that_looks_like_a_variable_is_not_told_and_warned_of(text: str, key: str) -> None:
    others = f'{key} = "{text}"\n' + ('password = "x"\n' if key == "username" else "")
    for old in ('listen = ["127.0.0.1:6380"]', 'storage = "redis"'):
        (found,) = findings(change(PLAIN, old, f"{old}\n{others}"))
        assert (found.code, text in found.message) == ("HP411", False)
    (found,) = findings(f'[admin]\ntoken = "{text}"\n{PLAIN}')
    assert (found.code, found.line) == ("HP411", 2)


def test_dashes_divide_the_rooms_however_many_they_are() -> None:
    found = [one for one in findings(change(ROOMED, '"----"', '"---"')) if one.level == ERROR]
    assert [(one.code, one.message.partition(": ")[2]) for one in found] == [
        ("HP110", "what stands between two rooms is '----': four dashes")
    ]


def test_of_rooms_whose_writes_are_misspelt_nothing_more_is_said() -> None:
    (found,) = findings(change(ROOMED, 'writes = "single"', 'writes = "mirrored"'))
    assert (found.code, "did you mean 'mirror'?" in found.message) == ("HP106", True)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ('topology = "cluster"', "HP224"),
        ('route = { failovr = ["main", "spare"] }', "HP106"),
        ('route = { failover = ["main", { any = 3 }] }', "HP105"),
    ],
)
def test_of_the_pools_of_a_faulty_route_nothing_is_said(new: str, code: str) -> None:
    (found,) = findings(change(POOLED, ROUTE, new))
    assert found.code == code


def test_a_route_of_a_file_is_refused_once_with_its_pool() -> None:
    old, new = f'"redis"\n{ROUTE}\nservers = [{SERVERS}]', f'"sqlite"\n{ROUTE}\nservers = ["a.db"]'
    file = change(POOLED, f"storage = {old}", f"storage = {new}")
    assert [(found.code, found.line) for found in findings(file)] == [
        ("HP205", line_of(file, ROUTE)), ("HP205", line_of(file, 'name = "spare"')),
    ]  # fmt: skip


def test_write_back_needs_something_above() -> None:
    (found,) = findings(change(PLAIN, "[[instance.level]]", "[instance.write_back]\nttl = 9\n\n[[instance.level]]"))
    assert (found.code, found.line) == ("HP213", line_of(PLAIN, "[[instance.level]]"))


@pytest.mark.parametrize(
    ("route", "says"),
    [
        ('{ migrate = "spare", of = "main", begins = "tomorrow", hours = 24 }', "HP105 begins"),
        ('{ migrate = "spare", of = "main", begins = 2030-01-31T02:00:00Z }', "HP107 hours is missing"),
        ('{ migrate = "spare", of = "main", begins = 2030-01-31T02:00:00Z, hours = "9" }', "HP105 a number of hours"),
        ('{ migrate = "spare", of = "main", hours = 24 }', "HP107 begins is missing"),
        ('{ move = "spare", of = "main", back = 2030-01-31T02:00:00Z }', "HP107 begins is missing"),
        ('{ prefx = { "" = "spare" } }', "HP106 none of them stands here; did you mean 'prefix'?"),
    ],
)
def test_an_option_of_a_route_that_is_wrong_is_a_finding_like_any_other(route: str, says: str) -> None:
    code, *words = says.split(" ", 1)
    errors = [finding for finding in findings(change(POOLED, ROUTE, f"route = {route}")) if finding.level == ERROR]
    assert [finding.code for finding in errors] == [code]
    assert words[0] in errors[0].message
