"""Landlock of the Linux kernel (5.13 and newer): a process gives up all files except those that it names, and so do the programs
that it starts. It needs no privileges, and cannot be undone.

A process with Landlock also reads neither memory nor environment of a process without it, and cannot signal it. See ADR 0094.
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
"""The right to move and link between directories; since version 2, forbidden before."""
_TRUNCATE: Final = 1 << 14
"""The right to truncate; since version 3, allowed everywhere before."""
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
"""The rights to bind and connect; since version 4."""
_SCOPES: Final = 0b11
"""Abstract sockets and signals to other processes; since version 6."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the version of Landlock that this kernel has enabled; 0 if it has none."""
    return max(_call(_CREATE_RULESET, None, 0, _VERSION), 0)


def restrict(
    *,
    run: Iterable[str],
    read: Iterable[str],
    write: Iterable[str],
    hidden: Sequence[str],
    network: bool,
) -> bool:
    """Restrict this process to running programs and reading files below the paths `run`, only reading below `read`, and writing
    below `write`. Paths below a `hidden` one stay accessible only if another path names them. Without `network`, TCP is given up as
    well.

    Return False if the kernel has no Landlock. It needs `no_new_privs`, and no second thread. Raise `OSError`.
    """
    abi = version()
    if not abi:
        return False
    handled = _FIRST | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    ruleset = _Ruleset(handled, _TCP if abi >= 4 and not network else 0, _SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    rules = _check_result(_call(_CREATE_RULESET, ctypes.byref(ruleset), size, 0))
    try:
        for paths, rights in ((run, _RUN), (read, _LOOK), (write, _CHANGE)):
            for path in paths:
                for place, allowed in visible(path, hidden, rights=rights):
                    _allow(rules, place, allowed & handled)
        _check_result(_call(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)
    return True


def visible(path: str, hidden: Sequence[str], *, rights: int = _RUN) -> Iterator[tuple[str, int]]:
    """Yield the path with its rights, or the paths below it if something there is hidden. Of a directory that contains hidden paths
    only the names stay readable, there and everywhere below: Python finds modules by them."""
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
    """Add a rule for a path. A path that does not exist or is inaccessible needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & _FILES
        if allowed:
            beneath = _Beneath(allowed, place)
            _check_result(_call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), 0))
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    """Return the result of a system call, or the negative number of its error."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    parameters = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = library.syscall(ctypes.c_long(number), *parameters)
    return result if result >= 0 else -ctypes.get_errno()


def _check_result(result: int) -> int:
    if result < 0:
        raise OSError(-result, f"Landlock: {os.strerror(-result)}" if -result != errno.E2BIG else "Landlock: too many directories")
    return result
