"""Past states: each kind of aggregate as a GET of its resource shows it today. Modules of the resources provide the renderers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from domain.kernel.aggregate import AggregateRoot


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of the past. `position` is its position in the log; names of linked records and owned records are read as of it."""

    position: int
    base_url: str


Renderer = Callable[[Any, Moment], Awaitable[dict[str, Any]]]


class PastStates:
    """The renderers of past states, by the kind of aggregate."""

    def __init__(self, renderers: Mapping[str, Renderer]) -> None:
        self._renderers = renderers

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(self._renderers)

    async def shown(self, root: AggregateRoot, *, position: int, base_url: str) -> dict[str, Any]:
        return await self._renderers[root.KIND](root, Moment(position, base_url))
