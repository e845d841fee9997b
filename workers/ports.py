"""What the product needs of the world outside, in its own words. Adapters do it; only the composition roots know which."""

from __future__ import annotations

from typing import Protocol


class Transcoder(Protocol):
    """Cuts and converts media."""

    async def check(self) -> str | None:
        """Why it cannot be run, in words that name no host, path or secret; `None` when it can."""
        ...
