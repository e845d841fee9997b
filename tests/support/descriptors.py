"""A process without a free file descriptor."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def descriptors_left(free: int) -> Iterator[None]:
    """This process can open so many more files and connections, and no other."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_ones = [os.open(os.devnull, os.O_RDONLY) for _ in range(free + 1)]
    for descriptor in next_ones:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_ones[-1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
