"""Circuit breaker of an endpoint. While it is open no attempts are made, and none are counted."""

from __future__ import annotations

from typing import Final

FAILURES: Final = 10
OPEN_SECONDS: Final = 30.0


class CircuitBreaker:
    """Opens after `FAILURES` failures in a row. After `OPEN_SECONDS` one attempt is allowed: it closes the breaker or opens it
    again."""

    def __init__(self) -> None:
        self.failures = 0
        self.open_until: float | None = None

    def allows(self, now: float, *, in_flight: int) -> bool:
        """After `OPEN_SECONDS` only while nothing is in flight."""
        return self.open_until is None or (now >= self.open_until and in_flight == 0)

    def succeeded(self) -> None:
        self.failures = 0
        self.open_until = None

    def failed(self, now: float) -> bool:
        """Returns whether the breaker opens now. Attempts that were in flight when it opened do not open it again."""
        self.failures += 1
        if self.failures < FAILURES or (self.open_until is not None and now < self.open_until):
            return False
        self.open_until = now + OPEN_SECONDS
        return True
