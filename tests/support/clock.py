"""A clock that a test moves by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOON = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)
