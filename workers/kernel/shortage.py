"""Shortages of the machine: errors of the system that say nothing about the receiver, the host or the step for which something was
to be opened. Work that meets a shortage is retried soon, and this does not count as an attempt."""

from __future__ import annotations

import errno
from typing import Final

SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN})
"""The error numbers for a lack of descriptors, memory or processes."""
