"""Sizes in bytes."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB


def shown(size: int) -> str:
    """A size for people."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
