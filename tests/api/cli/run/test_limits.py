"""Cores that a process may use, and memory that it returns to the system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.cli.run.limits import usable_cores

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


def test_the_quota_of_a_control_group_and_of_those_above_it_limits_the_cores(tmp_path: Path) -> None:
    cores, membership = len(os.sched_getaffinity(0)), tmp_path / "cgroup"
    assert usable_cores(tmp_path, membership=membership) == cores, "no control groups"
    group = tmp_path / "machine" / "product"
    group.mkdir(parents=True)
    membership.write_text("0::/machine/product\n")
    (group / "cpu.max").write_text("max 100000\n")
    assert usable_cores(tmp_path, membership=membership) == cores
    (group.parent / "cpu.max").write_text("150000 100000\n")
    assert usable_cores(tmp_path, membership=membership) == 1
    (group.parent / "cpu.max").write_text("6400000 100000\n")
    (group / "cpu.max").write_text("50000 100000\n")
    assert usable_cores(tmp_path, membership=membership) == 1, "less than a core"
