"""The log as it is read to be sealed and verified: in slices that are bounded in bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.wiring.core import Core
from projections.audit.sealing import seal
from projections.audit.stored_log import StoredLog
from projections.audit.verify import verify
from projections.kernel.database.page import MOST_BYTES
from tests.projections.audit.sealed import SealedLog
from tests.support.feeding import event

_LARGE = 900_000
_COUNT = 12


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of what each query has answered."""
    numbers: list[int] = []
    rows = StoredLog.rows

    def weighed(self: StoredLog, question: str, *parameters: Any) -> list[tuple[Any, ...]]:
        answer = rows(self, question, *parameters)
        numbers.append(sum(len(value) for row in answer for value in row if isinstance(value, bytes)))
        return answer

    monkeypatch.setattr(StoredLog, "rows", weighed)
    return numbers


async def test_large_events_are_sealed_and_verified_a_few_at_a_time(
    inner: Core, database_url: str, tmp_path: Path, slices: list[int]
) -> None:
    for number in range(1, _COUNT + 1):
        await event(inner, number, title=f"Match {number}", description="x" * _LARGE)
    most = MOST_BYTES + 2 * _LARGE
    with SealedLog.opened(database_url, tmp_path) as log:
        sealed = seal(log.stored, log.vault)
        assert sealed is not None
        assert sealed.checkpoint.events >= _COUNT
        assert MOST_BYTES <= max(slices) < most < sum(slices)
        slices.clear()
        verification = verify(database_url)
        assert verification.reason is None
        assert MOST_BYTES <= max(slices) < most < sum(slices)
