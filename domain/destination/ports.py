"""Ports of the destination handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from domain.destination.targets import Target


class TargetTrial(Protocol):
    """Tries targets."""

    async def fault(self, target: Target, config: Mapping[str, Any]) -> str | None:
        """Reaches the target as publishing would, and leaves nothing there. None when all is well, else one sentence: what is
        wrong and what is to be done, without secrets. `config` has the secrets. Ends within a bound."""
        ...

    def refusal(self, target: Target) -> str | None:
        """Why there can be no destination of this target here; None where there can."""
        ...
