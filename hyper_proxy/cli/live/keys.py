"""The keyboard: a terminal that gives each key at once, and what each key changes."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable
from types import TracebackType

from hyper_proxy.cli.live.columns import VIEWS
from hyper_proxy.cli.live.screen import Choice

ENTER, ESCAPE, ERASE = ("\r", "\n"), "\x1b", ("\x7f", "\b")
_READ_BYTES = 1024


class Keyboard:
    """Standard input without line editing and echo, while in use; as it was afterwards, whatever happens."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()

    def __enter__(self) -> Keyboard:
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """The keys that were pressed, as soon as there are any; "" when time is up. An end of input counts as q."""
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return ""
        data = os.read(self._fd, _READ_BYTES)
        return _without_sequences(data.decode(errors="replace")) if data else "q"


def _without_sequences(text: str) -> str:
    """Arrows and function keys are more than one character, the first of which is Esc: they mean nothing here."""
    return "" if text.startswith(ESCAPE) and len(text) > 1 else text


def press(choice: Choice, key: str) -> bool:
    """Changes what is shown; False when `top` is to end."""
    if choice.typing:
        _type(choice, key)
    elif key == "q":
        return False
    elif key in VIEWS or key == "a":
        choice.view, choice.order = key.replace("a", ""), None
    elif key in ACTIONS:
        ACTIONS[key](choice)
    return True


def _type(choice: Choice, key: str) -> None:
    if key in ENTER:
        choice.typing = False
    elif key == ESCAPE:
        choice.typing, choice.text = False, ""
    elif key in ERASE:
        choice.text = choice.text[:-1]
    elif key.isprintable():
        choice.text += key


def _order(choice: Choice) -> None:
    choice.order = 0 if choice.order is None else choice.order + 1


def _reverse(choice: Choice) -> None:
    choice.reverse = not choice.reverse


def _filter(choice: Choice) -> None:
    choice.typing, choice.text = True, ""


def _freeze(choice: Choice) -> None:
    choice.frozen = not choice.frozen


def _help(choice: Choice) -> None:
    choice.help = not choice.help


def _all_rows(choice: Choice) -> None:
    choice.text = ""


ACTIONS: dict[str, Callable[[Choice], None]] = {
    "o": _order,
    "r": _reverse,
    "/": _filter,
    " ": _freeze,
    "?": _help,
    ESCAPE: _all_rows,
}
