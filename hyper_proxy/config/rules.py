"""The rules across keys: one small function a code, all in one table; codes.py says what a finding of each code means.

A rule sees a configuration in which whatever was noted as faulty is blank or a default, and must not stumble over it.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from hyper_proxy.config.ask import catalogue
from hyper_proxy.config.build import BLANK_LISTEN, BLANK_SERVER
from hyper_proxy.config.key_space_rules import key_space_faults
from hyper_proxy.config.model import MAIN, Config, Level, Listen, Server
from hyper_proxy.config.move_rules import keys_can_move, shares_server
from hyper_proxy.config.notes import Notes, Path, show_path
from hyper_proxy.config.policy_rules import policy_faults
from hyper_proxy.config.room_rules import room_faults
from hyper_proxy.config.route_rules import route_faults, unused_pools
from hyper_proxy.config.settings import CACHES, KNOWING, LOCAL, NETWORK, PLACED, STORAGES
from hyper_proxy.config.table_split import split_faults, years_faults
from hyper_proxy.config.topology_rules import topology_faults


@dataclass(frozen=True, slots=True)
class Say:
    """Notes a finding of the rule's code at a path."""

    code: str
    notes: Notes

    def __call__(self, path: Path, message: str) -> None:
        self.notes.add(path, self.code, message)

    def written(self, path: Path) -> bool:
        """Does the file itself say this, or is it a default?"""
        return path in self.notes.lines


MEMCACHE_KEY_BYTES = 250
"""The longest key of memcached's protocol (KEY_MAX_LENGTH)."""
SPARE_FILES = 64
"""Files of a worker that are neither clients nor servers: logs, pipe, loop, libraries."""

_EVERYWHERE = frozenset(("0.0.0.0", "::"))
_LOOPBACK_NAMES = frozenset(("localhost", "::1"))


def _levels(config: Config) -> Iterator[tuple[Path, Level]]:
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels):
            yield ("instance", i, "level", j), level


def _servers(level: Level, path: Path) -> Iterator[tuple[Path, Server]]:
    """The usable servers of both rooms, writers, and servers of other pools."""
    pools = [((*path, "pool", i, "servers"), pool.servers, pool.peers) for i, pool in enumerate(level.pools)]
    own = (*path, "servers"), level.servers, level.peers
    for years, era in level.years:
        at = (*path, "years", years)
        pools += [((*at, "servers"), era.servers, ()), ((*at, "writers"), era.writers, ())]
    for place, servers, peers in own, ((*path, "writers"), level.writers, ()), *pools:
        for index, server in enumerate((*servers, BLANK_SERVER, *peers)):  # in the file '----' is in the middle
            if server != BLANK_SERVER:
                yield (*place, index), server


def _listeners(config: Config) -> Iterator[tuple[Path, Listen]]:
    yield ("admin", "listen"), config.admin
    for i, instance in enumerate(config.instances):
        for j, listen in enumerate(instance.listen):
            if listen != BLANK_LISTEN:
                yield ("instance", i, "listen", j), listen


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in _LOOPBACK_NAMES


def _overlap(one: Listen | Server, other: Listen | Server) -> bool:
    """Do two addresses meet at one socket of this machine, as far as that can be told without asking anybody?"""
    if one.path or other.path:
        return one.path == other.path
    if one.port != other.port:
        return False
    same = one.host == other.host or {one.host, other.host} == {"localhost", "127.0.0.1"}
    return same or one.host in _EVERYWHERE or other.host in _EVERYWHERE


def _repeats(rows: list[tuple[Path, Hashable]]) -> Iterator[tuple[Path, Path, Hashable]]:
    """Each row whose value came before, with the first row that had it."""
    first: dict[Hashable, Path] = {}
    for path, value in rows:
        if first.setdefault(value, path) != path:
            yield path, first[value], value


def names_are_unique(config: Config, say: Say) -> None:
    """HP201"""
    rows: list[tuple[Path, Hashable]] = [
        (("instance", i, "name"), instance.name) for i, instance in enumerate(config.instances) if instance.name
    ]
    for path, first, name in _repeats(rows):
        say(path, f"'{name}' is already the name of {show_path(first[:-1])}")


def listeners_are_unique(config: Config, say: Say) -> None:
    """HP202"""
    seen: list[tuple[Path, Listen]] = []
    for path, listen in _listeners(config):
        clash = next((before for before, other in seen if _overlap(listen, other)), None)
        if clash:
            say(path, f"{listen.address} is already taken by {show_path(clash)}")
        seen.append((path, listen))


def aliases_are_unique(config: Config, say: Say) -> None:
    """HP203"""
    for path, level in _levels(config):
        named: dict[str, tuple[Path, Server]] = {}
        for at, server in _servers(level, path):
            first, other = named.setdefault(server.name, (at, server))
            # One that reads and writes stands in both lists, under its one name.
            both = first[4] != at[4] and other.address == server.address
            both = both or ("years" in at and other.address == server.address)
            if server.name and first != at and not both and "pool" not in at:
                say(at, f"the alias '{server.name}' is already that of {show_path(first)}")


def storage_serves_protocol(config: Config, say: Say) -> None:
    """HP204"""
    for i, instance in enumerate(config.instances):
        usable = STORAGES.get(instance.protocol)
        for j, level in enumerate(instance.levels):
            if usable and level.storage and level.storage not in usable and len(instance.levels) == 1:
                text = f"{level.storage} cannot serve {instance.protocol} clients; possible are {', '.join(usable)}"
                if level.storage == LOCAL:
                    text = f"it keeps copies of what a level below has: add that level, one of {', '.join(KNOWING)}"
                say(("instance", i, "level", j, "storage"), text)


def levels_fit(config: Config, say: Say) -> None:
    """HP213"""
    for i, instance in enumerate(config.instances):
        path: Path = ("instance", i)
        alone = len(instance.levels) == 1 and instance.levels[0].storage not in ("", LOCAL)  # else a fault already
        if alone and say.written((*path, "write_back")):
            say((*path, "write_back"), "there is one level, so nothing is kept above another")
        for j, level in enumerate(instance.levels if len(instance.levels) > 1 else ()):
            last = j == len(instance.levels) - 1
            possible = KNOWING if last else CACHES if j else (*CACHES, LOCAL)
            if level.storage and level.storage not in possible:
                place = "the last of several levels" if last else "a level above another"
                say((*path, "level", j, "storage"), f"{level.storage} cannot be {place}; {', '.join(possible)} can")
        for number, key, text in key_space_faults(config, instance) if instance.levels else ():
            say((*path, "level", number, key), text)
        labels: list[tuple[Path, Hashable]] = [
            (at, server.label)
            for j, level in enumerate(instance.levels)
            for at, server in _servers(level, (*path, "level", j))
            if at[-2] == "servers" and not ("pool" in at and shares_server(level, server.label, server.address))
        ]
        for at, first, label in _repeats(labels):
            if at[:-1] != first[:-1] and not ("years" in at and at[:4] == first[:4]):
                say(at, f"'{label}' is also {show_path(first)}: give one of them an alias, statistics go by it")


def policies_can_be_kept(config: Config, say: Say) -> None:
    """HP218"""
    for path, text in policy_faults(config, say.written):
        say(path, text)


def lushan_has_a_rule(config: Config, say: Say) -> None:
    """HP206"""
    for path, level in _levels(config):
        if level.storage == "lushan" and level.lushan_db is None:
            say(path, "lushan_db is missing: the rule by which the database of a key is found")
        if level.storage == "mysql":
            if level.table is None:
                say(path, "table is missing: which table holds the keys, and in which columns")
            elif not level.table.schema and not level.database and level.table.name:
                say((*path, "table"), "database is missing: the one of the connections, or before the table's name")
            if not level.username:
                say(path, "username is missing: every connection to a MySQL server has a user")


def keys_can_be_placed(config: Config, say: Say) -> None:
    """HP207"""
    for path, level in _levels(config):
        if _placeable(level):
            fault = catalogue().placement_fault(level)
            if fault:
                say((*path, "route" if level.route else "distribution"), fault)


def rooms_can_be_served(config: Config, say: Say) -> None:
    """HP225"""
    for path, text in room_faults(config, say.written):
        say(path, text)


def routes_lead_to_pools(config: Config, say: Say) -> None:
    """HP214"""
    for path, level in _levels(config):
        for at, fault in route_faults(level, path):
            say(at, fault)


def pools_are_used(config: Config, say: Say) -> None:
    """HP406"""
    for path, level in _levels(config):
        for at, fault in unused_pools(level, path):
            say(at, fault)


def users_have_passwords(config: Config, say: Say) -> None:
    """HP208"""
    for i, instance in enumerate(config.instances):
        if instance.username and not instance.password:
            say(("instance", i, "username"), "a username is only asked for together with a password")
    for path, level in _levels(config):
        if level.username and not level.password and level.storage != "mysql":
            say((*path, "username"), "a username is only given together with a password")


def no_instance_serves_itself(config: Config, say: Say) -> None:
    """HP209"""
    for path, level in _levels(config):
        own = [listen for listen in config.instances[int(path[1])].listen if listen != BLANK_LISTEN]
        for at, server in _servers(level, path):
            if not server.file and any(_reaches(server, listen) for listen in own):
                say(at, f"{server.address} is where this instance itself listens: its requests would run in a circle")


def _reaches(server: Server, listen: Listen) -> bool:
    """Does a connection to this server surely end at this listener?"""
    if listen.host in _EVERYWHERE:
        return server.port == listen.port and not server.path and _is_loopback(server.host)
    return _overlap(server, listen)


def sqlite_has_one_file(config: Config, say: Say) -> None:
    """HP210"""
    for path, level in _levels(config):
        if level.storage == "sqlite" and len(level.servers) > 1:
            say((*path, "servers", 1), "one file holds the whole key space of an sqlite level")


def writers_match_servers(config: Config, say: Say) -> None:
    """HP211"""
    for path, level in _levels(config):
        if level.writers and len(level.writers) != len(level.servers):
            text = f"there are {len(level.servers)} servers and {len(level.writers)} writers"
            say((*path, "writers"), f"{text}: each server has its writer at the same place of the list")


def columns_are_fixed_or_kept(config: Config, say: Say) -> None:
    """HP212"""
    for path, level in _levels(config):
        table = level.table
        used = {} if table is None else {
            column.lower(): key
            for key in ("key", "value", "flags", "expires", "version", "id")
            for column in (table.values if key == "value" else (getattr(table, key),))
            if column
        }
        for column, _ in level.where:
            if column.lower() in used:
                say((*path, "where", column), f"the column is also the one of table.{used[column.lower()]}")


def tables_can_be_told_apart(config: Config, say: Say) -> None:
    """HP222"""
    for path, level in _levels(config):
        for fault in split_faults(level) if level.servers else ():
            say((*path, "table"), fault)
        for years, fault in years_faults(level) if level.servers else ():
            say((*path, "years", years), fault)


def lag_is_behind_writers(config: Config, say: Say) -> None:
    """HP223"""
    for path, level in _levels(config):
        writers = level.writers or any(era.writers for _, era in level.years)
        if level.max_lag_s and not writers and level.reads == "master":
            what = "reads go to masters" if level.storage == "redis" else "there are no writers"
            say((*path, "max_lag_s"), f"{what}, so nothing that is read from is behind another server")
        elif level.heartbeat and not level.max_lag_s:
            say((*path, "heartbeat"), "nobody looks there: max_lag_s is 0, so no lag is too great")


def topologies_fit(config: Config, say: Say) -> None:
    """HP224"""
    for path, text in topology_faults(config, say.written):
        say(path, text)


def pauses_grow(config: Config, say: Say) -> None:
    """HP301"""
    for path, level in _levels(config):
        if level.backoff.max_ms < level.backoff.base_ms:
            text = f"max_ms ({level.backoff.max_ms}) is smaller than base_ms ({level.backoff.base_ms})"
            say((*path, "backoff", "max_ms"), text)


def keys_fit_the_protocol(config: Config, say: Say) -> None:
    """HP302"""
    for i, instance in enumerate(config.instances):
        if instance.protocol == "memcache" and instance.limits.max_key_bytes > MEMCACHE_KEY_BYTES:
            say(("instance", i, "limits", "max_key_bytes"), f"memcached keys have at most {MEMCACHE_KEY_BYTES} bytes")


def reading_may_outlast_connecting(config: Config, say: Say) -> None:
    """HP303"""
    for path, level in _levels(config):
        times = level.timeout
        if times.connect_ms > times.read_ms and level.storage in NETWORK:
            text = f"connect_ms ({times.connect_ms}) is more than read_ms ({times.read_ms})"
            say((*path, "timeout", "connect_ms"), f"{text}: usually it is the other way round")


def files_suffice(config: Config, say: Say) -> None:
    """HP304"""
    # A default is a bound that nobody has asked for. Clients share the connections to servers: each takes one file.
    asked: dict[Path, int] = {
        path: instance.limits.max_clients
        for i, instance in enumerate(config.instances)
        if say.written(path := ("instance", i, "limits", "max_clients"))
    }
    clients = sum(asked.values())
    servers = sum(level.usual_connections for _, level in _levels(config))
    needed = clients + servers + SPARE_FILES
    given = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if asked and given != resource.RLIM_INFINITY and needed > given:
        say(
            max(asked, key=lambda path: asked[path]),
            f"a worker may need {needed} files ({clients} clients, {servers} connections to servers, {SPARE_FILES} "
            f"others), the hard limit here is {given}; raise it (LimitNOFILE=) or lower max_clients",
        )


def placement_is_sound(config: Config, say: Say) -> None:
    """HP401"""
    for path, level in _levels(config):
        if _placeable(level) and catalogue().placement_fault(level) is None:
            for trap in catalogue().placement_traps(level):
                say((*path, "distribution"), trap)


def allowances_have_effect(config: Config, say: Say) -> None:
    """HP402"""
    for i, instance in enumerate(config.instances):
        for name in sorted(instance.allow) if instance.protocol in STORAGES else ():
            idle = catalogue().command_idle(instance.protocol, name)
            if idle:
                say(("instance", i, "allow"), idle)


def admin_is_private(config: Config, say: Say) -> None:
    """HP403"""
    if not config.admin.path and not _is_loopback(config.admin.host):
        say(("admin", "listen"), f"{config.admin.address} is open to other machines, and asks no password of who reads")


def items_are_whole(config: Config, say: Say) -> None:
    """HP405"""
    refused = {
        "flags": "a value with flags, as most clients of memcache set, is refused",
        "expires": "a time of expiry is refused",
        "version": "gets and cas are refused",
    }
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels):
            asked = [key for key in refused if instance.protocol == "memcache" or key == "expires"]
            path: Path = ("instance", i, "level", j)
            if level.table is not None and level.table.name:
                lacking = [key for key in asked if not getattr(level.table, key)]
                if lacking:
                    say((*path, "table"), "; ".join(f"without {key}, {refused[key]}" for key in lacking))
            elif level.storage == "redis" and not instance.forwards and j == len(instance.levels) - 1:
                lacking = [key for key in asked if key != "expires"]
                if lacking:
                    texts = "; ".join(f"redis has no {key}: {refused[key]}" for key in lacking)
                    say((*path, "storage"), texts)


def servers_are_different(config: Config, say: Say) -> None:
    """HP404"""
    for path, level in _levels(config):
        for key in ("servers", "writers"):
            rows: list[tuple[Path, Hashable]] = [
                (at, server.address) for at, server in _servers(level, path) if at[4] == key
            ]
            for at, first, address in _repeats(rows):
                say(at, f"{address} is also {show_path(first)}")


def _placeable(level: Level) -> bool:
    """Is there enough of the level to place keys with?"""
    known = {MAIN, *(pool.name for pool in level.pools)}
    found = level.storage in PLACED and bool(level.servers) and BLANK_SERVER not in level.all_servers
    found = found and (level.topology != "sentinel" or bool(level.masters))
    return found and all(pool.servers for pool in level.pools) and (level.route is None or level.route.pools <= known)


RULES: dict[str, Callable[[Config, Say], None]] = {
    "HP201": names_are_unique,
    "HP202": listeners_are_unique,
    "HP203": aliases_are_unique,
    "HP204": storage_serves_protocol,
    "HP206": lushan_has_a_rule,
    "HP207": keys_can_be_placed,
    "HP208": users_have_passwords,
    "HP209": no_instance_serves_itself,
    "HP210": sqlite_has_one_file,
    "HP211": writers_match_servers,
    "HP212": columns_are_fixed_or_kept,
    "HP213": levels_fit,
    "HP214": routes_lead_to_pools,
    "HP218": policies_can_be_kept,
    "HP222": tables_can_be_told_apart,
    "HP223": lag_is_behind_writers,
    "HP224": topologies_fit,
    "HP225": rooms_can_be_served,
    "HP226": keys_can_move,
    "HP301": pauses_grow,
    "HP302": keys_fit_the_protocol,
    "HP303": reading_may_outlast_connecting,
    "HP304": files_suffice,
    "HP401": placement_is_sound,
    "HP402": allowances_have_effect,
    "HP403": admin_is_private,
    "HP404": servers_are_different,
    "HP405": items_are_whole,
    "HP406": pools_are_used,
}


def apply_rules(config: Config, notes: Notes) -> None:
    """Lets every rule look at a configuration; it may have gaps where faults have been noted already."""
    for code, rule in RULES.items():
        rule(config, Say(code, notes))
