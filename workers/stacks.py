"""What the greenlets of a worker do just now, as text. Bounded in its length and time: it holds up the event loop."""

from __future__ import annotations

import gc
import traceback
from collections import Counter
from types import FrameType

from greenlet import greenlet

from workers.main import main

# Of thousands of clients most wait in the same line; so many are looked at, which takes some milliseconds.
MOST = 300
DEEPEST = 24


def describe_greenlets() -> str:
    """The stacks, innermost call last, each with how many greenlets have it, the most frequent first."""
    frames: list[FrameType] = [one.gr_frame for one in gc.get_objects() if isinstance(one, greenlet) and one.gr_frame]
    stacks = Counter(_own_calls(frame) for frame in frames[:MOST])
    left = f"\n{len(frames) - MOST} more greenlets were not looked at\n" if len(frames) > MOST else ""
    return "\n".join(f"{count} x\n{stack}" for stack, count in stacks.most_common()) + left


def _own_calls(frame: FrameType) -> str:
    """Without what stands above the worker's birth: the master's calls, in the midst of which it was forked."""
    calls = enumerate(traceback.walk_stack(frame), 1)
    depth = next((depth for depth, (call, _) in calls if call.f_code is main.__code__), DEEPEST)
    return "".join(traceback.format_stack(frame, min(depth, DEEPEST)))
