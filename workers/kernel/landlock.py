"""Landlock of the Linux kernel (5.13 and newer): a process gives up all files but those that it names, and so do the programs that
it starts. It needs no rights, and nothing gives them back.

A process with Landlock also reads neither memory nor environment of one without it, and signals none. ADR 0094.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on all architectures."""
_VERSION: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (
    1 << bit for bit in range(4, 13)
)
_REFER: Final = 1 << 13
"""Move and link between directories; since version 2, and forbidden before."""
_TRUNCATE: Final = 1 << 14
"""Since version 3; allowed everywhere before."""
_FIRST: Final = (1 << 13) - 1
_LOOK: Final = _READ_FILE | _READ_DIR
_RUN: Final = _LOOK | _EXECUTE
_CHANGE: Final = (
    _LOOK
    | (_WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM)
    | (_REFER | _TRUNCATE)
)
_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
"""The rights that a rule for a file may name."""
_TCP: Final = 0b11
"""Bind and connect; since version 4."""
_SCOPES: Final = 0b11
"""Abstract sockets, and signals to others; since version 6."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version of Landlock that this kernel has switched on; 0 where there is none."""
    return max(_call(_CREATE_RULESET, None, 0, _VERSION), 0)


def restrict(
    *,
    run: Iterable[str],
    read: Iterable[str],
    write: Iterable[str],
    hidden: Sequence[str],
    network: bool,
) -> bool:
    """Keep the rights to `run` programs and read files below these paths, to only `read`, and to `write`. What lies below one of
    the `hidden` paths is kept only where another path that lies there names it. Without `network`, TCP is given up as well.
    False where the kernel has no Landlock. Needs `no_new_privs`, and no second thread. Raises `OSError`."""
    found = version()
    if not found:
        return False
    handled = _FIRST | (_REFER if found >= 2 else 0) | (_TRUNCATE if found >= 3 else 0)
    ruleset = _Ruleset(handled, _TCP if found >= 4 and not network else 0, _SCOPES if found >= 6 else 0)
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    rules = _checked(_call(_CREATE_RULESET, ctypes.byref(ruleset), size, 0))
    try:
        for paths, rights in ((run, _RUN), (read, _LOOK), (write, _CHANGE)):
            for path in paths:
                for place, allowed in visible(path, hidden, rights=rights):
                    _allow(rules, place, allowed & handled)
        _checked(_call(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)
    return True


def visible(path: str, hidden: Sequence[str], *, rights: int = _RUN) -> Iterator[tuple[str, int]]:
    """The path with its rights, or what lies below it where something there is hidden. Of the directory itself the names alone stay
    readable, there and everywhere below: Python finds modules by them."""
    real = os.path.realpath(path)
    below = [place for place in map(os.path.realpath, hidden) if _is_below(place, real)]
    if not below:
        yield real, rights
        return
    if real in below:
        return
    yield real, _READ_DIR
    try:
        names = os.listdir(real)
    except OSError:
        return
    for name in names:
        child = Path(real, name)
        if not child.is_symlink():
            yield from visible(str(child), below, rights=rights)


def _is_below(path: str, other: str) -> bool:
    return path == other or path.startswith(other.rstrip("/") + "/")


def _allow(rules: int, path: str, rights: int) -> None:
    """What is not there, or out of reach, needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & _FILES
        if allowed:
            beneath = _Beneath(allowed, place)
            _checked(_call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), 0))
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    """The result, or the negative number of the error."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = library.syscall(ctypes.c_long(number), *given)
    return result if result >= 0 else -ctypes.get_errno()


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(-result, f"Landlock: {os.strerror(-result)}" if -result != errno.E2BIG else "Landlock: too many directories")
    return result
