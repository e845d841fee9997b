"""The limit on the content keys of a client: docs/reference/api/job-engine.md#settings.

Keys are never deleted, so a count is cached and increased. Other processes issue keys too, so the limit may be exceeded
slightly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from domain.content_key.aggregate import TooManyKeys
from projections.content_keys.queries import ContentKeyQueries
from projections.job.settings import EngineSettingsQueries

_HOLDS: Final = 3600.0
_REFUSES: Final = 10.0
"""Seconds after which a count that refuses is read again, because admitted keys may have failed. Other counts are valid for
`_HOLDS` seconds."""


@dataclass(slots=True)
class _Counted:
    keys: int
    at: float


class ContentKeyCeiling:
    """An implementation of the port `KeyCeiling`."""

    def __init__(
        self, keys: ContentKeyQueries, settings: EngineSettingsQueries, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys = keys
        self._settings = settings
        self._now = now
        self._counted: dict[str, _Counted] = {}

    async def admit(self, client: str, new: int) -> None:
        most = (await self._settings.of([client]))[client].max_content_keys
        counted = self._counted.get(client)
        age = 0.0 if counted is None else self._now() - counted.at
        if counted is None or age > _HOLDS or (age > _REFUSES and counted.keys + new > most):
            counted = _Counted(await self._keys.count_of(client, most=most), self._now())
            self._counted[client] = counted
        if counted.keys + new > most:
            raise TooManyKeys(most)
        counted.keys += new
