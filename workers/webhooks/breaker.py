"""Leaves an endpoint alone that answers nothing any more. Issue 5, "Delivery".

What is skipped meanwhile stays as it was: no try is used up.
"""

from __future__ import annotations

from typing import Final

FAILURES: Final = 10
OPEN_SECONDS: Final = 30.0


class Breaker:
    """Opens after so many failures in a row. After a while one probe is let through: it closes the breaker or opens it again."""

    def __init__(self) -> None:
        self.failures = 0
        self.open_until: float | None = None

    def allows(self, now: float, *, flying: int) -> bool:
        """Half-open, only while nothing else is under way."""
        return self.open_until is None or (now >= self.open_until and flying == 0)

    def succeeded(self) -> None:
        self.failures = 0
        self.open_until = None

    def failed(self, now: float) -> bool:
        """Whether it opens by this. A failure of what was under way when it opened changes nothing."""
        self.failures += 1
        if self.failures < FAILURES or (self.open_until is not None and now < self.open_until):
            return False
        self.open_until = now + OPEN_SECONDS
        return True
