"""The rules across keys: one small function a code, here and in files of their own; one table has all of them, and
codes.py says what a finding of each code means.

A rule sees a configuration in which whatever was noted as faulty is blank or a default, and must not stumble over it.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Hashable

from hyper_proxy.config.address_rules import (
    admin_is_private,
    aliases_are_unique,
    listeners_are_unique,
    names_are_unique,
    no_instance_serves_itself,
    servers_are_different,
)
from hyper_proxy.config.ask import catalogue
from hyper_proxy.config.build import BLANK_SERVER
from hyper_proxy.config.copies import unreached_copies
from hyper_proxy.config.key_space_rules import key_space_faults, unseen_writes
from hyper_proxy.config.kinds import CACHES, KNOWING, LOCAL, NETWORK, PLACED, STORAGES
from hyper_proxy.config.model import MAIN, Config, Level
from hyper_proxy.config.move_rules import keys_can_move, shares_server
from hyper_proxy.config.notes import Notes, Path, show_path
from hyper_proxy.config.policy_rules import policy_faults
from hyper_proxy.config.room_rules import room_faults, unsaid_returns
from hyper_proxy.config.route_rules import route_faults, unused_pools
from hyper_proxy.config.rule import Say, levels_of, pools_of, repeats, servers_of
from hyper_proxy.config.secret_rules import secrets_are_filled_in
from hyper_proxy.config.system_rules import log_has_a_place, the_system_has_it
from hyper_proxy.config.table_rules import (
    columns_are_fixed_or_kept,
    items_are_whole,
    lag_is_behind_writers,
    needed_keys_are_there,
    sqlite_has_one_file,
    tables_can_be_told_apart,
    writers_match_servers,
)
from hyper_proxy.config.topology_rules import topology_faults

MEMCACHE_KEY_BYTES = 250
"""The longest key of memcached's protocol (KEY_MAX_LENGTH)."""
LEAST_PORT = 10
"""No server listens below; a weight is usually as small."""
SPARE_FILES = 64
"""Files of a worker that are neither clients nor servers: logs, pipe, loop, libraries."""


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
                place = "a level above another" if level.storage != LOCAL else "between two levels"
                place = "the last of several levels" if last else place
                say((*path, "level", j, "storage"), f"{level.storage} cannot be {place}; {', '.join(possible)} can")
        for number, key, text in key_space_faults(config, instance) if instance.levels else ():
            say((*path, "level", number, key), text)
        labels: list[tuple[Path, Hashable]] = [
            (at, server.label)
            for j, level in enumerate(instance.levels)
            for at, server in servers_of(level, (*path, "level", j))
            if at[-2] == "servers" and not ("pool" in at and shares_server(level, server.label, server.address))
        ]
        for at, first, label in repeats(labels):
            if at[:-1] != first[:-1] and not ("years" in at and at[:4] == first[:4]):
                say(at, f"'{label}' is also {show_path(first)}: statistics go by it, so give one of them another alias")


def policies_can_be_kept(config: Config, say: Say) -> None:
    """HP218"""
    for path, text in policy_faults(config, say.written):
        say(path, text)


def keys_can_be_placed(config: Config, say: Say) -> None:
    """HP207"""
    for path, level in levels_of(config):
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
    for path, level in levels_of(config):
        for at, fault in route_faults(level, path):
            say(at, fault)


def copies_see_writes(config: Config, say: Say) -> None:
    """HP408"""
    for path, text in unseen_writes(config):
        say(path, text)


def writes_reach_copies(config: Config, say: Say) -> None:
    """HP227"""
    for path, text in unreached_copies(config):
        say(path, text)


def returns_are_chosen(config: Config, say: Say) -> None:
    """HP409"""
    for path, text in unsaid_returns(config, say.written):
        if not say.is_default_for((*path[:-1], "writes")):
            say(path, text)


def pools_are_used(config: Config, say: Say) -> None:
    """HP406"""
    for path, level in levels_of(config):
        for at, fault in unused_pools(level, path):
            say(at, fault)


def users_have_passwords(config: Config, say: Say) -> None:
    """HP208"""
    for i, instance in enumerate(config.instances):
        if instance.username and not instance.password:
            say(("instance", i, "username"), "a username is only asked for together with a password")
    for path, level in levels_of(config):
        if level.username and not level.password and level.storage != "mysql":
            say((*path, "username"), "a username is only given together with a password")


def topologies_fit(config: Config, say: Say) -> None:
    """HP224"""
    for path, text in topology_faults(config, say.written):
        say(path, text)


def pauses_grow(config: Config, say: Say) -> None:
    """HP301"""
    for path, level in levels_of(config):
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
    for path, level in levels_of(config):
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
    servers = sum(level.usual_connections for _, level in levels_of(config))
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
    for path, level in levels_of(config):
        repeated = any(len({one.label for one in pool}) < len(pool) for pool in pools_of(level))  # noted already
        for at, server in servers_of(level, path):
            if 0 < server.port < LEAST_PORT:
                say(at, f"the port is {server.port}: is it missing, and this the weight?")
        replaced = any(say.is_default_for((*path, key)) for key in ("hash", "distribution"))
        if _placeable(level) and not repeated and not replaced and catalogue().placement_fault(level) is None:
            for trap in catalogue().placement_traps(level):
                say((*path, "distribution"), trap)


def allowances_have_effect(config: Config, say: Say) -> None:
    """HP402"""
    for i, instance in enumerate(config.instances):
        for name in sorted(instance.allow) if instance.protocol in STORAGES else ():
            idle = catalogue().command_idle(instance.protocol, name)
            if idle:
                say(("instance", i, "allow"), idle)


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
    "HP206": needed_keys_are_there,
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
    "HP227": writes_reach_copies,
    "HP228": log_has_a_place,
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
    "HP408": copies_see_writes,
    "HP409": returns_are_chosen,
    "HP410": the_system_has_it,
    "HP411": secrets_are_filled_in,
}


def apply_rules(config: Config, notes: Notes) -> None:
    """Lets every rule look at a configuration; it may have gaps where faults have been noted already."""
    for code, rule in RULES.items():
        rule(config, Say(code, notes))
