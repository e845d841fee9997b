"""Shortages of the machine: errors of the system that say nothing about the receiver, the host or the step for which something was
to be opened. What met one is tried again soon, and counts as no attempt."""

from __future__ import annotations

import errno
from typing import Final

SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN})
"""No free descriptor, memory or process."""
