"""The error of every reader of this package."""

from __future__ import annotations


class Unreadable(ValueError):
    """Media, or a text that describes media, cannot be read. The message is a clause without a full stop, such as
    `a box has no end`; it repeats nothing of what was read."""
