"""The places of a process for attempts, and who may use them."""

from __future__ import annotations

import asyncio
from enum import IntEnum
from typing import Final

PLACES: Final = 512


class Risk(IntEnum):
    """The risk that an attempt hangs. Greater ones may use fewer places."""

    PROVEN = 0
    """The last attempt at the endpoint succeeded."""
    NEW = 1
    """There was no attempt at the endpoint yet."""
    FAILING = 2
    """The last attempt at the endpoint failed, or the delivery is a retry."""


class Places:
    """Places for attempts. At most three quarters are used for endpoints without a success, and a quarter where the last attempt
    failed: these may hang. Whoever waits for a place gets it in the order of arrival."""

    def __init__(self, places: int = PLACES) -> None:
        self._gates = [asyncio.Semaphore(max(number, 1)) for number in (places, places * 3 // 4, places // 4)]
        self.taken = 0

    async def take(self, risk: Risk) -> None:
        passed = []
        try:
            for gate in self._gates[risk::-1]:
                await gate.acquire()
                passed.append(gate)
        except BaseException:
            for gate in passed:
                gate.release()
            raise
        self.taken += 1

    def give_back(self, risk: Risk) -> None:
        self.taken -= 1
        for gate in self._gates[: risk + 1]:
            gate.release()
