"""A worker: a part of a process that runs until it is stopped."""

from __future__ import annotations

from typing import Protocol


class Worker(Protocol):
    """A worker that runs from `start` to `stop`. A fault does not end it: it retries."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class SharedWorker:
    """Base class of a worker of which a process has one for all its roles. It starts before the workers of the roles."""

    async def start(self) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError
