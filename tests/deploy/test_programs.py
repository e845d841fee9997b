"""A test that was skipped because its program is not installed is named at the end of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.waiting import ROOT


def test_the_last_lines_say_what_was_not_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from tests.support.programs import program\n\n"
        "def test_one(): program('no-such-program')\n"
        "def test_two(): program('no-such-program')\n"
        "def test_shell(): assert program('sh').endswith('/sh')\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.support.programs",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
    ]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "tests not run: 2. not found: no-such-program (apt-get install no-such-program)" in done.stdout
    assert "1 passed, 2 skipped" in done.stdout
