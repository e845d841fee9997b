"""A permission with a clock that is moved by hand: with ticks, as in a running process, or without, as in a frozen one."""

from __future__ import annotations

from typing import Self

from workers.session.worker import TICKS, SendPermit


class Ticking:
    """A permission for a `lease` in seconds."""

    def __init__(self, lease: float) -> None:
        self.now = 1000.0
        self.lease = lease
        self.permit = SendPermit(lease, clock=lambda: self.now)

    def renewed(self, *, alone: bool) -> Self:
        self.permit.renew(self.lease, alone=alone)
        return self

    def after(self, seconds: float) -> SendPermit:
        for _ in range(int(seconds * TICKS / self.lease)):
            self.now += self.lease / TICKS
            self.permit.tick()
        self.now += seconds % (self.lease / TICKS)
        return self.permit

    def frozen(self, seconds: float) -> SendPermit:
        self.now += seconds
        return self.permit
