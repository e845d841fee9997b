"""Twins in memory of the ports of the asset handlers: look-ups, and workflows of assets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from uuid import UUID

from domain.asset.aggregate import Asset
from domain.asset.ports import UNASKED, AssetFilter
from domain.asset.row import AssetRow
from domain.asset.values import CaptionKind
from domain.job.ports import CheckedJob
from domain.job.values import TaskPlan
from tests.domain.memory import MemoryLog

TASKS = (TaskPlan(id=1, name="make"),)


class MemoryAssets:
    """The twin of the look-ups over the view of assets."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def _all(self) -> list[Asset]:
        matches = [root for root in self._log.all(Asset.KIND) if isinstance(root, Asset)]
        return sorted(matches, key=lambda asset: (asset.created_on, UUID(asset.key)))

    async def find(self, key: UUID) -> AssetRow | None:
        return next((AssetRow.of(row) for row in self._all() if row.key == str(key) and not row.removed), None)

    async def matching(self, wanted: AssetFilter, *, limit: int) -> Sequence[AssetRow]:
        rows = [AssetRow.of(root) for root in self._all() if not root.removed]
        return [row for row in rows if _matches(row, wanted)][: limit + 1]

    async def of_event(self, event_id: UUID) -> Sequence[AssetRow]:
        return [AssetRow.of(row) for row in self._all() if row.event_id == event_id and row.holds_path]

    async def caption(self, event_id: UUID, *, language: str, kind: CaptionKind, name: str) -> AssetRow | None:
        wanted = (event_id, language, kind, name)
        added = (row for row in self._all() if row.jobs and not row.removed)
        matching = (row for row in added if (row.event_id, row.language, row.kind, row.name) == wanted)
        return next(map(AssetRow.of, matching), None)

    async def is_taken(self, path: str) -> bool:
        return any(row.path == path and row.holds_path for row in self._all())


class AssetWorkflows:
    """The twin of the workflows: they take any parameters."""

    def checked_job(self, name: str, parameters: object) -> CheckedJob:
        assert isinstance(parameters, dict)
        return CheckedJob(name, parameters["content_id"], parameters, (), TASKS)


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(17)

    async def draw(self) -> int:
        return next(self._numbers)


def _matches(row: AssetRow, wanted: AssetFilter) -> bool:
    given = [
        (wanted.event_id, row.event_id),
        (wanted.content_id, str(row.event_id)),
        (wanted.job, row.job),
        (wanted.name, row.name),
    ]
    suffixes = tuple(extension.lower() for extension in wanted.extensions)
    return (
        all(value is None or value == has for value, has in given)
        and (not wanted.states or row.state in wanted.states)
        and row.type in (wanted.types or UNASKED)
        and (not suffixes or row.path.lower().endswith(suffixes))
    )
