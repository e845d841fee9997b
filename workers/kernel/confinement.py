"""The restrictions of a process before it runs steps or an encoder: it gives up the account of root, new privileges, the network,
the files that it does not need, and unlimited resources.

It reads untrusted files, and so do the programs that it starts. They inherit all restrictions, which cannot be undone.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from workers.kernel import landlock

GIB: Final = 1024**3
MEMORY: Final = 4 * GIB
"""Bytes of address space of each process."""
FILE: Final = 256 * GIB
DESCRIPTORS: Final = 1024
PROCESSES: Final = 512
"""The limit of processes of the account, which is used by steps only."""
NICE: Final = 10
"""The increment of the nice value: the API, the workers and the database of this machine take precedence."""
PROCESSOR_SECONDS: Final = 24 * 3600
"""Seconds of processor time for one step in the process itself. Programs have less: see `workers.job.programs`."""

OPEN_NETWORK: Final = "steps have the network, also where they do not need it: this system allows no network namespace"
OPEN_FILES: Final = "steps can read what their user can, the master key too if that is the product's: this kernel has no Landlock"
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
"""The directories of programs and libraries."""
_FACTS: Final = (
    *("/proc", "/sys/devices/system", "/dev/zero", "/dev/random", "/dev/urandom"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/mime.types"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs"),
    *("/etc/pki/ca-trust", "/etc/ca-certificates", "/run/systemd/resolve", "/run/resolvconf"),
)
"""The paths at which programs read about the machine. In /proc they see no processes but those that are confined with them."""
_SINKS: Final = ("/dev/null", "/dev/full")
_PR_SET_DUMPABLE: Final = 4  # prctl(2)
_PR_SET_NO_NEW_PRIVS: Final = 38
_CLONE_NEWUSER: Final = 0x10000000  # unshare(2)
_CLONE_NEWNET: Final = 0x40000000
_CAPABILITIES_3: Final = 0x20080522  # capset(2)


@dataclass(frozen=True, slots=True)
class Places:
    """Paths on this machine. Everything below a `hidden` path is secret, unless another path names it. `run` has programs for media
    and their libraries; `read` and `write` are open to steps in addition to what they need. `programs` are the chosen programs for
    media by name."""

    hidden: Sequence[str] = ()
    run: Sequence[str] = ()
    read: Sequence[str] = ()
    write: Sequence[str] = ()
    programs: Mapping[str, str] = field(default_factory=dict)


NO_PLACES: Final = Places()


@dataclass(frozen=True, slots=True)
class Confinement:
    """The restrictions of one process. `uid`, `gid` and `groups` are those of its account; the user does not change if `uid` is
    None. `network` is True if it keeps the network. `run`, `read` and `write` are the paths that it keeps in addition to programs,
    their libraries and facts about the system; nothing below a `hidden` path stays, unless another path names it."""

    network: bool
    uid: int | None = None
    gid: int = 0
    groups: Sequence[int] = ()
    run: Sequence[str] = ()
    read: Sequence[str] = ()
    write: Sequence[str] = ()
    hidden: Sequence[str] = ()


def confine(to: Confinement, *, nice: int = NICE, memory: int = MEMORY, file: int = FILE) -> Sequence[str]:
    """Confine this process, before it has a second thread. Return a sentence for each right that it could not give up. Raise
    `OSError`."""
    library = ctypes.CDLL(None, use_errno=True)
    os.umask(0o077)
    isolated = to.network or _without_network(library)
    if to.uid is not None:
        os.setgroups(to.groups)
        os.setresgid(to.gid, to.gid, to.gid)
        os.setresuid(to.uid, to.uid, to.uid)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    closed = landlock.restrict(
        run=(*_SYSTEM, *_python(), *os.get_exec_path(), *to.run),
        read=(*_FACTS, *to.read),
        write=(*_SINKS, *to.write),
        hidden=to.hidden,
        network=to.network,
    )
    conceal()
    os.nice(nice)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, file)
    _limit(resource.RLIMIT_NOFILE, DESCRIPTORS)
    if to.uid is not None:
        _limit(resource.RLIMIT_NPROC, PROCESSES)
    return [*([] if isolated else [OPEN_NETWORK]), *([] if closed else [OPEN_FILES])]


def conceal() -> None:
    """Protect the memory, the environment and the open files of this process from other processes of its user, until it becomes
    another program. Root can still read them."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the process cannot be concealed")


def _python() -> Sequence[str]:
    """Return the directories of Python, its installed packages and the product."""
    paths = (sys.prefix, sys.exec_prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable)), *sys.path)
    return [path for path in dict.fromkeys(paths) if os.path.isabs(path)]


def environment() -> dict[str, str]:
    """Return the environment of a Python process that starts confined ones: the module path of the worker and none of its
    settings."""
    return {
        "PATH": os.pathsep.join(os.get_exec_path()),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
    }


def allow_processor_time() -> None:
    """Extend the limit of processor time for the next step."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = int(used.ru_utime + used.ru_stime) + PROCESSOR_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard == resource.RLIM_INFINITY else min(seconds, hard), hard))


def _limit(kind: int, most: int) -> None:
    """Set a limit of this process. A lower limit of the system stays."""
    _, hard = resource.getrlimit(kind)
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (value, value))


def _without_network(library: ctypes.CDLL) -> bool:
    """Move this process to a network namespace of its own, which reaches nothing. Return False if the system does not allow it.
    Root can make a namespace; other users need a user namespace too."""
    if library.unshare(_CLONE_NEWNET) == 0:
        return True
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 or library.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        return False
    with suppress(OSError):  # without the maps, only the names of users are unknown in the process
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _drop_capabilities(library)
    return True


def _drop_capabilities(library: ctypes.CDLL) -> None:
    """Drop the capabilities that this process got by making the namespace."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    none = (ctypes.c_uint32 * 6)()
    if library.capset(header, none):
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")
