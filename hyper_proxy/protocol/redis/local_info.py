"""INFO: the proxy about itself, in the sections and names by which clients and tools read a server.

What only the servers know (persistence, keys, memory of the data) is not made up: names that must be there for clients
to work say what is true of a proxy, which stores nothing, and the rest is absent. One worker answers for itself; the
whole fleet is at /stats.
"""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import struct
import time
from collections.abc import Callable, Mapping

import psutil

from hyper_proxy import __version__

from . import encode
from .commands import VERSION
from .session_view import Handler, SessionView

Section = Callable[[SessionView], Mapping[str, object]]

_DAY_S = 86400


def _human(size: int) -> str:
    """A number of bytes as redis shows it: 512B, 1.50K, 12.00M."""
    number = float(size)
    for unit in "BKMG":
        if number < 1024 or unit == "G":
            break
        number /= 1024
    return f"{size}B" if unit == "B" else f"{number:.2f}{unit}"


def _run_id(started: float) -> str:
    """40 hexadecimal digits that are the same as long as this worker lives."""
    identity = f"{platform.node()} {os.getpid()} {started}"
    return hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest()


def server(session: SessionView) -> Mapping[str, object]:
    started = psutil.Process().create_time()
    uptime = max(0, int(time.time() - started))
    port = session.laddr.rpartition(":")[2]
    return {
        "redis_version": VERSION,
        "redis_mode": "standalone",
        "hyper_proxy_version": __version__,
        "hyper_proxy_instance": session.instance.name,
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "arch_bits": struct.calcsize("P") * 8,
        "process_id": os.getpid(),
        "run_id": _run_id(started),
        "tcp_port": port if port.isdigit() else 0,
        "server_time_usec": time.time_ns() // 1000,
        "uptime_in_seconds": uptime,
        "uptime_in_days": uptime // _DAY_S,
    }


def clients(session: SessionView) -> Mapping[str, object]:
    return {"connected_clients": len(session.front.clients), "maxclients": session.instance.limits.max_clients}


def memory(session: SessionView) -> Mapping[str, object]:
    resident = psutil.Process().memory_info().rss
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "used_memory": resident,
        "used_memory_human": _human(resident),
        "used_memory_rss": resident,
        "used_memory_rss_human": _human(resident),
        "used_memory_peak": peak,
        "used_memory_peak_human": _human(peak),
        "maxmemory": 0,
        "maxmemory_human": "0B",
        "maxmemory_policy": "noeviction",
    }


def persistence(session: SessionView) -> Mapping[str, object]:
    # Clients wait while a server says that it is loading.
    return {"loading": 0, "rdb_bgsave_in_progress": 0, "aof_enabled": 0}


def stats(session: SessionView) -> Mapping[str, object]:
    counts, present = session.front.stats.snapshot(), session.front.clients
    return {
        "total_connections_received": counts["accepted"],
        "total_commands_processed": sum(counts["requests"].values()),
        "total_net_input_bytes": counts["bytes_in"] + sum(client.bytes_in for client in present),
        "total_net_output_bytes": counts["bytes_out"] + sum(client.bytes_out for client in present),
        "total_error_replies": sum(counts["errors"].values()),
    }


def replication(session: SessionView) -> Mapping[str, object]:
    return {"role": "master", "connected_slaves": 0}


def cpu(session: SessionView) -> Mapping[str, object]:
    times = os.times()
    return {"used_cpu_sys": f"{times.system:.6f}", "used_cpu_user": f"{times.user:.6f}"}


def cluster(session: SessionView) -> Mapping[str, object]:
    return {"cluster_enabled": 0}


def proxy(session: SessionView) -> Mapping[str, object]:
    levels = session.instance.levels
    return {
        "levels": len(levels),
        **{f"level{number}_storage": level.storage for number, level in enumerate(levels)},
        **{f"level{number}_shards": len(level.servers) for number, level in enumerate(levels)},
    }


# By the name that clients ask for, in the order of the reply.
SECTIONS: dict[str, Section] = {
    "server": server,
    "clients": clients,
    "memory": memory,
    "persistence": persistence,
    "stats": stats,
    "replication": replication,
    "cpu": cpu,
    "cluster": cluster,
    "proxy": proxy,
}

_TITLES = {"cpu": "CPU"}
_EVERYTHING = frozenset({"default", "all", "everything"})


def info(session: SessionView, argv: list[bytes]) -> bytes:
    """INFO [section ...]: all sections, or those that are named; an unknown name adds nothing, as in redis."""
    asked = {word.decode("utf-8", "replace").lower() for word in argv[1:]} or _EVERYTHING
    parts = []
    for name, section in SECTIONS.items():
        if name in asked or asked & _EVERYTHING:
            lines = "".join(f"{field}:{value}\r\n" for field, value in section(session).items())
            parts.append(f"# {_TITLES.get(name, name.capitalize())}\r\n{lines}")
    return encode.verbatim("\r\n".join(parts), session.resp)


HANDLERS: dict[bytes, Handler] = {b"info": info}
