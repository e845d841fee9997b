"""How seldom the garbage collector of Python runs in a process of the product."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Imports and requests create few reference cycles, and with Python's default thresholds the collector walks all that is loaded
    again and again (measured: a fifth of a start, 8 % of a write)."""
    gc.set_threshold(50_000, 20, 100)
