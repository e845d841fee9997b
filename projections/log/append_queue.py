"""The commands that wait for the next append, and the batch that it takes of them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from projections.kernel.sizes import MIB
from projections.log.statement import WriteSet


@dataclass(frozen=True, slots=True)
class AppendLimits:
    """Limits of a statement in events and in bytes, of the waiting commands in number, in bytes and in the seconds that the oldest
    may have waited, and the seconds after which a silent connection is closed (the server itself gives up waiting for the lock
    of the log sooner). One command may be larger than a statement or the queue: then it is alone there."""

    batch: int = 512
    batch_bytes: int = 8 * MIB
    waiting: int = 10_000
    waiting_bytes: int = 64 * MIB
    age: float = 5.0
    patience: float = 10.0


@dataclass(slots=True)
class Waiting:
    """`committed` gets the position of the command's last event, or its error."""

    append: WriteSet
    committed: asyncio.Future[int]
    size: int
    sent: bool = False
    since: float = field(default_factory=time.monotonic)


class AppendQueue:
    """First come, first written."""

    def __init__(self, limits: AppendLimits) -> None:
        self._limits = limits
        self._commands: deque[Waiting] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._commands)

    @property
    def oldest(self) -> float:
        """Seconds that the oldest command has waited; 0 when none does."""
        return time.monotonic() - self._commands[0].since if self._commands else 0.0

    def full(self, size: int) -> bool:
        """Whether there is no place for a command of so many bytes."""
        commands, limits = self._commands, self._limits
        too_large = bool(commands) and self._bytes + size > limits.waiting_bytes
        return too_large or len(commands) >= limits.waiting or self.oldest > limits.age

    def add(self, command: Waiting) -> None:
        self._commands.append(command)
        self._bytes += command.size

    def take(self) -> list[Waiting]:
        """The next batch. One statement releases before it claims, so a command that releases what an earlier one claims waits for
        the next batch: else the log would show two owners at a time."""
        batch: list[Waiting] = []
        claimed = set[tuple[str, str]]()
        events = size = 0
        while self._commands:
            waiting = self._commands[0]
            events += len(waiting.append.events)
            size += waiting.size
            if batch and (events > self._limits.batch or size > self._limits.batch_bytes):
                break
            if claimed and any((claim.scope, claim.value) in claimed for claim in waiting.append.releases):
                break
            claimed.update((claim.scope, claim.value) for claim in waiting.append.claims)
            self._bytes -= waiting.size
            batch.append(self._commands.popleft())
        return batch
