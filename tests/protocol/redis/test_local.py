"""What the proxy answers itself: as a server answers where it can be compared, else as redis-py reads it."""

from __future__ import annotations

import time

import pytest
from redis._parsers.helpers import parse_client_info, parse_info

from hyper_proxy import __version__
from hyper_proxy.protocol.redis import encode
from hyper_proxy.protocol.redis.command import REFUSED
from hyper_proxy.protocol.redis.commands import COMMANDS, VERSION, resolve, subcommands_of
from hyper_proxy.protocol.redis.local import LOCAL
from hyper_proxy.protocol.redis.local_command import is_served
from hyper_proxy.protocol.redis.wording import ErrorReply
from hyper_proxy.storage.redis_reply import parse
from tests.protocol.raw import Raw
from tests.protocol.redis.talker import Talker

SERVED_ALONE = [name for name, row in COMMANDS.items() if row.subcommands is None and row.treatment != REFUSED]


def answer(talker: Talker, *argv: bytes) -> bytes:
    """The reply, as the session would find it."""
    try:
        return LOCAL[resolve(list(argv)).name](talker, list(argv))
    except ErrorReply as error:
        return error.reply


def ask(line: str, resp: int = 2) -> bytes:
    return answer(Talker(resp=resp), *line.encode().split())


def text_of(reply: bytes) -> str:
    data = parse(reply)
    assert isinstance(data, bytes)
    return data.decode()


def bulk_words(line: str) -> list[str]:
    words = parse(ask(line))
    assert isinstance(words, list)
    return [word.decode() for word in words]


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize(
    "line",
    [
        "ping", "ping hi", "ping a b", "echo hi", "echo", "time x", "role", "readonly", "readwrite", "asking",
        "module list", "acl whoami", "acl cat", "acl cat nothing", "client getname", "client getredir",
        "client trackinginfo", "client tracking off", "client tracking x", "client no-evict on", "client no-evict off",
        "client no-evict x", "client setname", "client setname ok", "client setname \x7f", "command count x",
        "command docs nothing", "command info nothing get", "command list x", "command list filterby module x",
        "command list filterby x y", "command list filterby pattern z[au]*", "config get nothing", "config get",
        "config get databases save", "config get cluster-enable[a-d] APPENDONLY", "debug", "command docs get|x",
    ],
)  # fmt: skip
def test_small_answers_are_the_servers(server: Raw, line: str, resp: int) -> None:
    server.redis(b"hello", str(resp).encode())
    expected, got = server.redis(*line.encode().split()), ask(line, resp)
    if expected[:1] in b"*%" and expected != got:  # of sets and maps the order is free
        assert sorted(expected.split(b"\r\n")) == sorted(got.split(b"\r\n"))
    else:
        assert got == expected


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("word", [b"info", b"docs"])
def test_commands_are_described_as_by_a_server(server: Raw, word: bytes, resp: int) -> None:
    server.redis(b"hello", str(resp).encode())
    for name in SERVED_ALONE:
        assert answer(Talker(resp=resp), b"command", word, name) == server.redis(b"command", word, name), name
    for name in (b"client|id", b"XGroup|Create", b"object|freq"):
        assert answer(Talker(resp=resp), b"command", word, name) == server.redis(b"command", word, name), name


def test_only_what_is_served_is_listed() -> None:
    names = bulk_words("command list")
    assert "client|setname" in names
    assert "module|list" in names
    assert not {"monitor", "cluster", "slowlog", "latency", "client|kill", "module|load"} & set(names)
    count = parse(ask("command count"))
    assert count == sum(1 for name in names if "|" not in name)
    table = parse(ask("command"))
    assert isinstance(table, list)
    assert [row[0].decode() for row in table] == [name for name in names if "|" not in name]
    assert ask("command info") == ask("command")
    assert ask("command info monitor client|kill cluster") == b"*3\r\n" + b"$-1\r\n" * 3


def test_subcommands_are_listed_in_their_container() -> None:
    rows = parse(ask("command info client"))
    assert isinstance(rows, list)
    subcommands = {sub[0] for sub in rows[0][9]}
    assert b"client|setinfo" in subcommands
    assert b"client|kill" not in subcommands
    docs = parse(ask("command docs client"))
    assert isinstance(docs, list)
    assert b"client|kill" not in docs[1]


def test_categories_list_commands() -> None:
    assert {"hget", "hset"} <= set(bulk_words("acl cat hash"))
    assert "client|setname" in bulk_words("command list filterby aclcat connection")
    assert "hget" in bulk_words("command list filterby aclcat HASH")


def test_the_whole_documentation_can_be_read() -> None:
    for resp in (2, 3):
        docs = parse(ask("command docs", resp))
        assert isinstance(docs, list)
        assert len(docs) // 2 == parse(ask("command count"))


@pytest.mark.parametrize("container", [name for name, row in COMMANDS.items() if b"help" in subcommands_of(row)])
def test_help_names_what_is_served(container: bytes) -> None:
    row = subcommands_of(COMMANDS[container])[b"help"]
    if row.treatment == REFUSED:
        assert not is_served(COMMANDS[container])
        return
    lines = parse(answer(Talker(), container.upper(), b"HELP"))
    assert isinstance(lines, list)
    assert lines[0] == container.upper() + b" <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    if is_served(COMMANDS[container]):
        assert b"HELP" in lines


def test_time_is_now() -> None:
    seconds, microseconds = bulk_words("time")
    assert abs(int(seconds) - time.time()) < 5
    assert 0 <= int(microseconds) < 1_000_000


def test_a_client_names_itself() -> None:
    talker = Talker()
    assert answer(talker, b"client", b"setname", b"me") == encode.OK
    assert answer(talker, b"client", b"getname") == b"$2\r\nme\r\n"
    assert answer(talker, b"CLIENT", b"SETINFO", b"LIB-NAME", b"redis-py(x)") == encode.OK
    assert answer(talker, b"client", b"setinfo", b"lib-ver", b"5.3.1") == encode.OK
    info = parse_client_info(text_of(answer(talker, b"client", b"info")))
    assert (int(info["id"]), info["addr"], info["laddr"]) == (42, "127.0.0.1:50000", "127.0.0.1:7000")
    assert (info["name"], info["lib-name"], info["lib-ver"]) == ("me", "redis-py(x)", "5.3.1")
    assert (info["db"], info["user"], str(info["resp"]), info["cmd"]) == (3, "default", "2", "client|info")
    assert info["qbuf"] == info["tot-mem"] == 0
    assert answer(talker, b"client", b"setname", b"") == encode.OK
    assert answer(talker, b"client", b"getname") == b"$-1\r\n"


def test_client_info_is_one_line_in_resp3_too(server: Raw) -> None:
    reply = answer(Talker(resp=3), b"client", b"info")
    assert reply.startswith(b"=")
    assert reply.endswith(b"\n\r\n")
    assert b"resp=3" in reply


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("client setinfo lib-x 1", "ERR Unrecognized option 'lib-x'"),
        ("client setinfo lib-ver \x7f", "ERR lib-ver cannot contain spaces, newlines or special characters."),
        ("client no-touch x", "ERR syntax error"),
        ("client tracking on", "ERR client-side caching is not offered by this proxy: tracking stays off"),
        ("debug sleep 1", "ERR 'debug' is not served by this proxy, but for DEBUG ERROR: it acts on one server"),
        ("debug error WRONGPASS", "WRONGPASS"),
        ("acl cat a b", "ERR unknown subcommand 'cat'. Try ACL HELP."),
    ],
)
def test_wrong_or_unserved_words_are_answered(line: str, text: str) -> None:
    assert ask(line) == encode.error(text)


def test_info_is_read_by_redis_py() -> None:
    info = parse_info(text_of(ask("info")))
    assert info["redis_version"] == VERSION
    assert info["hyper_proxy_version"] == __version__
    assert (info["redis_mode"], info["role"]) == ("standalone", "master")
    assert (info["cluster_enabled"], info["loading"]) == (0, 0)
    assert info["arch_bits"] in (32, 64)
    assert info["tcp_port"] == 7000
    assert info["uptime_in_seconds"] >= 0
    assert info["connected_clients"] == 2
    assert info["total_connections_received"] == 5
    assert info["total_commands_processed"] == 7
    assert info["total_net_input_bytes"] == 114
    assert info["total_net_output_bytes"] == 218
    assert info["total_error_replies"] == 3
    assert info["used_memory"] > 1_000_000
    assert info["used_memory_human"].endswith("M")
    assert (info["level0_storage"], info["level0_shards"]) == ("redis", 3)
    assert len(info["run_id"]) == 40


def test_info_gives_the_sections_that_are_asked_for() -> None:
    text = text_of(ask("info Clients SERVER nothing"))
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Server", "# Clients"]
    assert text_of(ask("info nothing")) == ""
    assert text_of(ask("info everything")).count("# ") == text_of(ask("info")).count("# ")
    assert ask("info cpu", 3).startswith(b"=")


def test_settings_are_the_instances_own() -> None:
    flat = bulk_words("config get max* timeout proto-max-bulk-len port maxclients")
    settings = dict(zip(flat[::2], flat[1::2], strict=True))
    limits = Talker().instance.limits
    assert settings == {
        "maxclients": str(limits.max_clients),
        "maxmemory": "0",
        "maxmemory-policy": "noeviction",
        "port": "7000",
        "proto-max-bulk-len": str(limits.max_value_bytes),
        "timeout": str(int(limits.idle_timeout_s)),
    }


def test_lolwut_names_a_version() -> None:
    assert text_of(ask("lolwut version 5 6 7 8")).endswith(f"Redis ver. {VERSION}\n")
