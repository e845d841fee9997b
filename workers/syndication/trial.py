"""Trials of publishing targets, for the activation of destinations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from domain.destination.targets import Target
from workers.target_ports import (
    Details,
    PublicationOrder,
    PublishingTarget,
    TargetFailed,
    Targets,
    UploadProgress,
    UploadSource,
    UploadState,
)

SECONDS: Final = 30.0
"""How long a trial may take, with all that it writes and removes."""
_CLOSE_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class TargetTrials:
    """The port `domain.destination.ports.TargetTrial`. `refused` has the targets that this installation does not take, and why."""

    def __init__(self, targets: Targets, *, refused: Mapping[Target, str], seconds: float = SECONDS) -> None:
        self._targets = targets
        self._refused = refused
        self._seconds = seconds

    def refusal(self, target: Target) -> str | None:
        return self._refused.get(target)

    async def fault(self, target: Target, config: Mapping[str, Any]) -> str | None:
        opened = self._targets(target, config)
        try:
            async with asyncio.timeout(self._seconds):
                await opened.check()
        except TargetFailed as failure:
            return str(failure)
        except TimeoutError:
            return f"The target did not answer within {self._seconds:g} seconds; see whether it is up and can be reached from here."
        finally:
            await closed(opened)
        return None


async def closed(target: PublishingTarget) -> None:
    """Close a target, within a bound. What it has done is done, so a failure is only noted."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await target.close()
    except (TargetFailed, TimeoutError, OSError) as failure:
        _log.info("a publishing target was not closed in order: %s", type(failure).__name__)


class NoTarget:
    """A target that nothing here can publish to: every call says so."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self, target: Target) -> None:
        self._target = target

    async def check(self) -> None:
        raise TargetFailed("destination", f"Nothing that is installed here can publish to {self._target.name}.")

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        await self.check()
        return {}

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        await self.check()
        return None

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        await self.check()

    unpublish = update = publish

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        await self.check()

    async def close(self) -> None:
        """It has nothing open."""


def no_targets(target: int, config: Mapping[str, Any]) -> PublishingTarget:
    """The port `Targets` of an installation without adapters."""
    return NoTarget(Target(target))
