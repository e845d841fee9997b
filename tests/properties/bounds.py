"""Bounds of time and memory for an input of at most a few MiB. What they are for takes minutes or hours, or gigabytes."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

MIB = 1024 * 1024
SECONDS, BYTES = 10.0, 64 * MIB


def bounded(what: Callable[[], object]) -> None:
    tracemalloc.start()
    began = time.process_time()
    try:
        what()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < SECONDS
    assert most < BYTES
