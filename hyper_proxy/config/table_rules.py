"""The rules about storages of tables, files and numbered databases: what they need, and what an item loses there."""

from __future__ import annotations

from hyper_proxy.config.model import Config
from hyper_proxy.config.notes import Path
from hyper_proxy.config.rule import Say, levels_of
from hyper_proxy.config.table_split import split_faults, years_faults


def needed_keys_are_there(config: Config, say: Say) -> None:
    """HP206"""
    for path, level in levels_of(config):
        instance = config.instances[int(path[1])]
        fits = instance.protocol == "memcache" and (len(instance.levels) == 1 or level is not instance.levels[-1])
        if level.storage == "lushan" and level.lushan_db is None and fits:
            say(path, "lushan_db is missing: the rule by which the database of a key is found")
        if level.storage == "mysql":
            if level.table is None and not say.is_default_for((*path, "table")):
                say(path, "table is missing: which table holds the keys, and in which columns")
            elif level.table is not None and not level.table.schema and not level.database and level.table.name:
                say((*path, "table"), "database is missing: the one of the connections, or before the table's name")
            if not level.username and not say.is_default_for((*path, "username")):
                say(path, "username is missing: every connection to a MySQL server has a user")


def sqlite_has_one_file(config: Config, say: Say) -> None:
    """HP210"""
    for path, level in levels_of(config):
        if level.storage == "sqlite" and len(level.servers) > 1:
            say((*path, "servers", 1), "one file holds the whole key space of an sqlite level")


def writers_match_servers(config: Config, say: Say) -> None:
    """HP211"""
    for path, level in levels_of(config):
        if level.writers and len(level.writers) != len(level.servers):
            text = f"there are {len(level.servers)} servers and {len(level.writers)} writers"
            say((*path, "writers"), f"{text}: each server has its writer at the same place of the list")


def columns_are_fixed_or_kept(config: Config, say: Say) -> None:
    """HP212"""
    for path, level in levels_of(config):
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
    for path, level in levels_of(config):
        for fault in split_faults(level) if level.servers else ():
            say((*path, "table"), fault)
        for years, fault in years_faults(level) if level.servers else ():
            say((*path, "years", years), fault)


def lag_is_behind_writers(config: Config, say: Say) -> None:
    """HP223"""
    for path, level in levels_of(config):
        writers = level.writers or any(era.writers for _, era in level.years)
        if level.max_lag_s and not writers and level.reads == "master":
            what = "reads go to masters" if level.storage == "redis" else "there are no writers"
            say((*path, "max_lag_s"), f"{what}, so nothing that is read from is behind another server")
        elif level.heartbeat and not level.max_lag_s:
            say((*path, "heartbeat"), "nobody looks there: max_lag_s is 0, so no lag is too great")


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
