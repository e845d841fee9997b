"""Memory that a process returns to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
from pathlib import Path
from api.cli.run.limits import return_large_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if {tuned}:
    return_large_memory()
before, stays = resident(), []
for _ in range(3):
    bodies = []
    for _ in range(60):
        bodies.append(b"x" * 1_000_000)
        stays.append(bytes(1_000))
    del bodies
print((resident() - before) // 1_000_000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and other C libraries have no such parameters")
def test_large_bodies_leave_nothing_behind_although_small_objects_between_them_stay() -> None:
    untuned, tuned = (
        int(subprocess.check_output([sys.executable, "-c", _PROGRAM.format(tuned=tuned)], text=True)) for tuned in (False, True)
    )
    assert tuned < 10 < untuned
