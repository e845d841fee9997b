"""The floods of the fault matrix in short: what is answered, and the memory of all Python processes. Times are the matrix's."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.floods import MEMORY, Effort, flooded


@pytest.mark.long
async def test_the_memory_of_all_processes_stays_bounded_in_floods(tmp_path: Path) -> None:
    found = await flooded(tmp_path, effort=Effort(jobs=5, events=10, listing=4, unread=30, heads=2, seconds=1))
    assert [one.faults for one in found] == [[]] * len(found)
    assert max(one.memory for one in found) <= MEMORY
    assert min(one.memory for one in found) > 50, "it was measured"
