"""Wakes the sender of this process after new deliveries are written. A process without a sender has nobody to wake."""

from __future__ import annotations

from collections.abc import Callable


class SenderWakeup:
    """Made before the sender; `connect` is called when there is one."""

    def __init__(self) -> None:
        self._wake: Callable[[], None] | None = None

    def connect(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def __call__(self) -> None:
        if self._wake is not None:
            self._wake()
