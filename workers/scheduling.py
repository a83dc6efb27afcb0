"""How the kernel shares out the cores to this worker: `[proxy] scheduling`.

    batch   woken up, it lets who runs go on to the end of its slice, and then has a longer slice itself; having asked
            servers it lets who waits for its core go first (hyper_proxy/common/load.py)
    normal  as any program

A worker that is woken by every request serves that one request; one that comes a little later serves all that have come
meanwhile, in fewer system calls. Only where the cores are busy is there a difference: an idle core runs it at once.
"""

from __future__ import annotations

import ctypes
import os
import platform

from hyper_proxy.common import log
from hyper_proxy.common.load import LOAD

POLICIES = {"batch": os.SCHED_BATCH, "normal": os.SCHED_OTHER}

# sched(7): since Linux 6.12 the scheduler (EEVDF) takes sched_runtime of an ordinary task as the slice it asks for, and
# this is the longest. A worker gives way before. Of two workers on two cores each does more at a turn than with 10 ms.
SLICE_NS = 100_000_000
# The C library has no wrapper for sched_setattr, and its number is that of the machine's system call table.
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}


class _Attributes(ctypes.Structure):
    """struct sched_attr of linux/sched/types.h, its first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("sched_policy", ctypes.c_uint32),
        ("sched_flags", ctypes.c_uint64),
        ("sched_nice", ctypes.c_int32),
        ("sched_priority", ctypes.c_uint32),
        ("sched_runtime", ctypes.c_uint64),
        ("sched_deadline", ctypes.c_uint64),
        ("sched_period", ctypes.c_uint64),
    )


def schedule(name: str) -> None:
    """Use this policy from now on. A system that forbids it is no reason not to serve: that is logged."""
    LOAD.generous = name == "batch"
    try:
        os.sched_setscheduler(0, POLICIES[name], os.sched_param(0))
        if name == "batch":
            _ask_for_long_slices()
    except OSError as error:
        log.warning("worker.scheduling_refused", scheduling=name, error=error)


def _ask_for_long_slices() -> None:
    number = SCHED_SETATTR.get(platform.machine())
    if number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wanted = _Attributes(ctypes.sizeof(_Attributes), os.SCHED_BATCH, 0, nice, 0, SLICE_NS, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, 0, ctypes.byref(wanted), 0):
        code = ctypes.get_errno()
        raise OSError(code, f"sched_setattr: {os.strerror(code)}")
