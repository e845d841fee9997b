"""The queue of commands that wait for the next append, and the batches that an append takes from it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from projections.kernel.sizes import MIB
from projections.log.statement import WriteSet


@dataclass(frozen=True, slots=True)
class AppendLimits:
    """Limits of one statement (events and bytes) and of the queue (commands, bytes, and seconds that the oldest command may have
    waited).

    `patience` is the number of seconds after which a silent connection is closed; the server itself gives up waiting for the lock
    of the log sooner. One command may be larger than a statement or the queue: it is then alone in it.
    """

    batch: int = 512
    batch_bytes: int = 8 * MIB
    waiting: int = 10_000
    waiting_bytes: int = 64 * MIB
    age: float = 5.0
    patience: float = 10.0


@dataclass(slots=True)
class WaitingCommand:
    """A command in the queue. `committed` receives the position of the command's last event, or its error; `size` is in bytes."""

    write_set: WriteSet
    committed: asyncio.Future[int]
    size: int
    sent: bool = False
    since: float = field(default_factory=time.monotonic)


class AppendQueue:
    """A first-in, first-out queue of commands."""

    def __init__(self, limits: AppendLimits) -> None:
        self._limits = limits
        self._commands: deque[WaitingCommand] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._commands)

    @property
    def oldest(self) -> float:
        """The number of seconds that the oldest command has waited; 0 if the queue is empty."""
        return time.monotonic() - self._commands[0].since if self._commands else 0.0

    def full(self, size: int) -> bool:
        """Return True if the queue cannot accept a command of `size` bytes."""
        commands, limits = self._commands, self._limits
        too_large = bool(commands) and self._bytes + size > limits.waiting_bytes
        return too_large or len(commands) >= limits.waiting or self.oldest > limits.age

    def add(self, command: WaitingCommand) -> None:
        self._commands.append(command)
        self._bytes += command.size

    def take(self) -> list[WaitingCommand]:
        """Remove and return the next batch.

        A statement releases claims before it takes new ones, so a command that releases what an earlier command claims waits for
        the next batch. Otherwise the log would show two owners at a time.
        """
        batch: list[WaitingCommand] = []
        claimed = set[tuple[str, str]]()
        events = size = 0
        while self._commands:
            command = self._commands[0]
            events += len(command.write_set.events)
            size += command.size
            if batch and (events > self._limits.batch or size > self._limits.batch_bytes):
                break
            if claimed and any((claim.scope, claim.value) in claimed for claim in command.write_set.releases):
                break
            claimed.update((claim.scope, claim.value) for claim in command.write_set.claims)
            self._bytes -= command.size
            batch.append(self._commands.popleft())
        return batch
