"""The limit of open files of this process and of those that it starts: a connection is one."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_ENOUGH: Final = 65_536


def raise_descriptor_limit() -> None:
    """The usual soft limit of 1,024 is for programs that use select(2). A process may raise its own up to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
