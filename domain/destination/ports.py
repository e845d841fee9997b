"""Ports of the destination handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from domain.destination.targets import Target


class TargetTrial(Protocol):
    """Tests targets."""

    async def fault(self, target: Target, config: Mapping[str, Any]) -> str | None:
        """Reach the target as publishing would, and leave nothing there. Return None on success, else one sentence about the
        error and its remedy, without secrets. `config` contains the secrets. The test ends within a time limit."""
        ...

    def refusal(self, target: Target) -> str | None:
        """Return the reason for which this installation cannot have destinations of this target; None if it can."""
        ...
