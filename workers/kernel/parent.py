"""Ties the life of a child process to its parent, however the parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends. Exit if the parent has already ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
