"""The findings of `medialedger doctor` about other packages, and about privileges that steps cannot give up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from api.cli.command import NEEDS_ATTENTION
from tests.support.waiting import ROOT
from workers.kernel import landlock


def findings(home: Path, *, by: tuple[str, ...] = (), path: str = "") -> dict[str, dict[str, Any]]:
    environment = {"MEDIALEDGER_HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{path}"}
    command = [sys.executable, "-m", *by, "api.cli.main", "doctor", "--json"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert ran.returncode in (0, NEEDS_ATTENTION), ran.stderr
    return {each["name"]: each for each in json.loads(ran.stdout)}


def test_a_distribution_with_a_package_of_ours_is_named(tmp_path: Path) -> None:
    metadata = tmp_path / "plugin_of_theirs-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-of-theirs\nVersion: 1.0\n")
    (metadata / "RECORD").write_text("workers/__init__.py,,\nworkers/theirs.py,,\nplugin_of_theirs-1.0.dist-info/RECORD,,\n")
    finding = findings(tmp_path / "home", path=str(tmp_path))["packages"]
    assert "plugin-of-theirs also contains a package workers" in finding["attention"]
    assert not findings(tmp_path / "home")["packages"]["attention"]


def test_a_kernel_without_landlock_is_named(tmp_path: Path) -> None:
    finding = findings(tmp_path / "home", by=("tests.support.without_landlock",))["steps of jobs"]
    assert "use a kernel with Landlock" in finding["attention"]
    if landlock.version():
        assert "Landlock" not in findings(tmp_path / "home")["steps of jobs"]["attention"]
