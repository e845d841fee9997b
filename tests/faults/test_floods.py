"""The floods of the fault matrix in short: what is answered, and the memory of all Python processes. Times are the matrix's."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.floods import MEMORY, Effort, run_floods


@pytest.mark.long
async def test_the_memory_of_all_processes_stays_bounded_in_floods(tmp_path: Path) -> None:
    results = await run_floods(tmp_path, effort=Effort(jobs=5, events=10, listing=4, unread=30, heads=2, seconds=1))
    assert [result.faults for result in results] == [[]] * len(results)
    assert max(result.memory for result in results) <= MEMORY
    assert min(result.memory for result in results) > 50, "it was measured"
