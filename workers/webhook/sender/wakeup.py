"""Wakes the sender of this process after new deliveries are written. In a process without a sender it does nothing."""

from __future__ import annotations

from collections.abc import Callable


class SenderWakeup:
    """A wake-up that is made before the sender; `connect` is called when there is one."""

    def __init__(self) -> None:
        self._wake: Callable[[], None] | None = None

    def connect(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def __call__(self) -> None:
        if self._wake is not None:
            self._wake()
