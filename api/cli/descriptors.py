"""The limit on open files of this process and its children. Each connection counts as one file."""

from __future__ import annotations

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
