"""Trials of publishing targets, for the activation of destinations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from domain.destination.targets import Target
from workers.target_ports import PublishingTarget, TargetFailed, Targets

SECONDS: Final = 30.0
"""The longest duration of a trial, including everything that it writes and removes."""
_CLOSE_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class TargetTrials:
    """Trials of targets: implements `domain.destination.ports.TargetTrial`. `refused` maps the targets that this installation does
    not accept to the reason."""

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
            await close_target(opened)
        return None


async def close_target(target: PublishingTarget) -> None:
    """Close a target within a bounded time. Its work is already done, so a failure is only logged."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await target.close()
    except (TargetFailed, TimeoutError, OSError) as failure:
        _log.info("a publishing target was not closed in order: %s", type(failure).__name__)
