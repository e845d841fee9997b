"""The limit on open files of this process and its children. Each connection counts as one file."""

from __future__ import annotations

import gc
import resource
from contextlib import suppress
from typing import Final

_ENOUGH: Final = 65_536


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
