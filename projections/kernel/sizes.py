"""Sizes in bytes."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB


def shown(size: int) -> str:
    """Return a size in a form for people, such as `1.5 MiB`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
