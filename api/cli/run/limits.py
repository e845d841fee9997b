"""Limits and thresholds of a process: its open files, its garbage collector, and the memory that it keeps."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

_ENOUGH: Final = 65_536
"""Open files; each connection counts as one."""
_LARGE: Final = 256 * 1024
_ARENAS: Final = 2
_CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Parameters of mallopt(3) in the GNU C library."""


def usable_cores(groups: Path = _CONTROL_GROUPS, *, membership: Path = Path("/proc/self/cgroup")) -> int:
    """Return the number of cores that this process may use: those of its affinity, or fewer if a control group limits its processor
    time, as a container does. Only version 2 of control groups is read."""
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        group = Path(membership.read_text().rpartition("::")[2].strip())
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):
                quota, period = (groups / folder.relative_to("/") / "cpu.max").read_text().split()
                cores = min(cores, max(int(quota) // int(period), 1))
    return cores


def raise_descriptor_limit() -> None:
    """Raise the soft limit on open files. Its usual value of 1,024 exists for programs that use select(2); a process may raise its
    own limit up to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def collect_seldom() -> None:
    """Raise the thresholds of the garbage collector. Imports and requests create few reference cycles, and with Python's default
    thresholds the collector repeatedly walks all that is loaded (measured: a fifth of a start, 8 % of a write). But it frees
    everything it finds in one pause: 50,000 objects of failed HTTP requests took 80 ms. Therefore it visits young objects more
    often than the older generations."""
    gc.set_threshold(10_000, 10, 500)


def tune_garbage_collector() -> None:
    """Freeze the loaded objects, which stay until the end, and collect the others seldom. Young objects are collected in small
    steps, because requests wait during a step: with 10,000 young objects of failed requests it took 7 ms, with 2,000 it takes 1 to
    2 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 10, 2_500)


def return_large_memory() -> None:
    """Let the GNU C library return large blocks to the system as soon as they are free. By default it raises its threshold for such
    blocks up to 32 MiB, and bodies and lists of megabytes then leave gaps in the heap that stay for the life of the process
    (measured: 150 MiB after a flood of large Events). Other C libraries have no such parameters."""
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:
        adjust(_M_MMAP_THRESHOLD, _LARGE)
        adjust(_M_ARENA_MAX, _ARENAS)
