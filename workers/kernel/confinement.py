"""What a process gives up before it runs steps or an encoder: the account of root, new privileges, the network, and unlimited
resources.

It reads files of strangers, and so do the programs that it starts. All of this is inherited by them and cannot be taken back.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

GIB: Final = 1024**3
MEMORY: Final = 4 * GIB
"""Address space of each process."""
FILE: Final = 256 * GIB
DESCRIPTORS: Final = 1024
PROCESSES: Final = 512
"""Of the account, which only steps have."""
NICE: Final = 10
"""Added to the priority's number: the API, the workers and the database of this machine come first."""
PROCESSOR_SECONDS: Final = 24 * 3600
"""For one step in the process itself. Programs have less: `workers.jobs.programs`."""

_PR_SET_NO_NEW_PRIVS: Final = 38  # prctl(2)
_CLONE_NEWUSER: Final = 0x10000000  # unshare(2)
_CLONE_NEWNET: Final = 0x40000000
_CAPABILITIES_3: Final = 0x20080522  # capset(2)


@dataclass(frozen=True, slots=True)
class Confinement:
    """`uid` and `gid` of the account and its further `groups`; None: the user stays. `network`: whether it keeps the network."""

    network: bool
    uid: int | None = None
    gid: int = 0
    groups: Sequence[int] = ()


def confine(to: Confinement, *, nice: int = NICE, memory: int = MEMORY, file: int = FILE) -> bool:
    """Before the process has a second thread. Gives whether it is without network, where it should be. Raises `OSError`."""
    library = ctypes.CDLL(None, use_errno=True)
    os.umask(0o077)
    isolated = to.network or _without_network(library)
    if to.uid is not None:
        os.setgroups(to.groups)
        os.setresgid(to.gid, to.gid, to.gid)
        os.setresuid(to.uid, to.uid, to.uid)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    os.nice(nice)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, file)
    _limit(resource.RLIMIT_NOFILE, DESCRIPTORS)
    if to.uid is not None:
        _limit(resource.RLIMIT_NPROC, PROCESSES)
    return isolated


def environment() -> dict[str, str]:
    """Of a Python process that starts confined ones: the module path of the worker and none of its settings."""
    return {
        "PATH": os.pathsep.join(os.get_exec_path()),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
    }


def allow_processor_time() -> None:
    """For the next step."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(used.ru_utime + used.ru_stime) + PROCESSOR_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _limit(kind: int, most: int) -> None:
    """A lower limit of the system stays."""
    _, hard = resource.getrlimit(kind)
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (value, value))


def _without_network(library: ctypes.CDLL) -> bool:
    """A network namespace of its own, which reaches nothing. Root makes one; others need one of users too, if that is allowed."""
    if library.unshare(_CLONE_NEWNET) == 0:
        return True
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 or library.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        return False
    with suppress(OSError):  # without the maps the names of users are unknown in the process, and nothing else
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _drop_capabilities(library)
    return True


def _drop_capabilities(library: ctypes.CDLL) -> None:
    """Those of the namespace, which it has got by making it."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    none = (ctypes.c_uint32 * 6)()
    if library.capset(header, none):
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")
