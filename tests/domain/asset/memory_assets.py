"""In-memory twins of what the handlers of assets need: look-ups, and workflows of assets."""

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
        found = [root for root in self._log.all(Asset.KIND) if isinstance(root, Asset)]
        return sorted(found, key=lambda asset: (asset.created_on, UUID(asset.key)))

    async def find(self, key: UUID) -> AssetRow | None:
        return next((AssetRow.of(one) for one in self._all() if one.key == str(key) and not one.removed), None)

    async def matching(self, wanted: AssetFilter, *, limit: int) -> Sequence[AssetRow]:
        rows = [AssetRow.of(one) for one in self._all() if not one.removed]
        return [row for row in rows if _matches(row, wanted)][: limit + 1]

    async def of_event(self, event_id: UUID) -> Sequence[AssetRow]:
        return [AssetRow.of(one) for one in self._all() if one.event_id == event_id and one.holds_path]

    async def caption(self, event_id: UUID, *, language: str, kind: CaptionKind, name: str) -> AssetRow | None:
        wanted = (event_id, language, kind, name)
        added = (one for one in self._all() if one.jobs and not one.removed)
        found = (one for one in added if (one.event_id, one.language, one.kind, one.name) == wanted)
        return next(map(AssetRow.of, found), None)

    async def is_taken(self, path: str) -> bool:
        return any(one.path == path and one.holds_path for one in self._all())


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
    suffixes = tuple(one.lower() for one in wanted.extensions)
    return (
        all(value is None or value == has for value, has in given)
        and (not wanted.states or row.state in wanted.states)
        and row.type in (wanted.types or UNASKED)
        and (not suffixes or row.path.lower().endswith(suffixes))
    )
