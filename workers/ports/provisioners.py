"""Provisioners: what a reconciliation needs of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from domain.provision.desired import Desired, Provided
from domain.provision.values import Deployment


class ProvisionProgress(Protocol):
    """The progress messages of a provisioner: entries of the log store about the Events that wait for it, without secrets."""

    async def info(self, message: str) -> None: ...


HALT_SECONDS: Final = 300.0
"""Seconds for which a provisioner may continue after a halt, so that a program can write down what it has made."""


class Halt(asyncio.Event):
    """An event that is set when a run is to end soon, even in the middle of a step. `ours` returns True while the run may begin a
    step; once this is uncertain, the run ends before the next step."""

    def __init__(self, ours: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self._ours = ours
        self._forbade = False

    @property
    def forbids(self) -> bool:
        """True once the run may not begin another step. It stays True: a run that gave up a lease for good does not resume when the
        lease is renewed a moment too late."""
        self._forbade = self._forbade or self.is_set() or not self._ours()
        return self._forbade


class Provisioner(Protocol):
    """Brings about the desired state of one infrastructure key. Two calls for the same key never overlap in any process."""

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        """Make what is missing, and release what is not desired. Existing resources are changed only if `allow_updates` says so.
        Repeating the call with the same state changes nothing. When `halt` is set, the call ends soon, with the result so far. A
        fault is returned as a `reason`, not raised."""
        ...

    async def plan(self, desired: Desired) -> str:
        """Return what `provide` would do now, in readable text: a line for each change, without secrets. Nothing is changed."""
        ...

    async def local_keys(self) -> Sequence[str]:
        """Return the keys that have local state on this machine."""
        ...

    async def forget(self, key: str) -> None:
        """Remove the local state of a key for which nothing exists or is desired any more."""
        ...


@dataclass(frozen=True, slots=True)
class Provisioners:
    """The provisioners of this machine. `hurry` has the service that provisions an Event asked at once."""

    by_deployment: Mapping[Deployment, Provisioner]
    hurry: Callable[[str], None]
