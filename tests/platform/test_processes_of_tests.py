"""The behaviour of `make test` if tests fail, end their process or break a fixture: it reports this, and runs all other tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import ROOT

_TESTS = """
import os
import sys
import warnings
import pytest

@pytest.fixture(scope="session")
def shared():
    yield os.getpid()
    raise ValueError("the end of a fixture")

@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")

def test_passes(shared, folder):
    print("said by a test that passes")

def test_finds_its_folder(folder):
    assert folder.is_dir()

def test_fails(shared):
    print("said by a test that fails", shared)
    warnings.warn("a warning")
    assert [1, 2] == [1, 3]

def test_ends_its_process():
    os._exit(7)

@pytest.mark.parametrize("number", range(3))
def test_after_it(number):
    if number == 1:
        pytest.skip("a reason")
"""

_ENDS = "import os\ndef test_ends_its_process(): os._exit(7)"


_STUCK = """
import os
import signal
import time

def test_never_ends():
    if not os.fork():  # it holds the channel of its parent open
        signal.alarm(25)
        signal.pause()
    time.sleep(300)

def test_after_it():
    pass
"""


def pytest_of(folder: Path, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Run these test files in two processes."""
    (folder / "pytest.ini").touch()
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--processes=2",
        "-p",
        "tests.support.processes",
        "-p",
        "no:cacheprovider",
        "-rs",
        *arguments,
        str(folder),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_every_test_is_run_once_and_every_failure_is_reported(tmp_path: Path) -> None:
    done = pytest_of(tmp_path, zero=_ENDS, also_zero=_ENDS, first=_TESTS, second=_TESTS, third=_TESTS)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "8 failed, 12 passed, 3 skipped, 3 warnings" in done.stdout, done.stdout
    assert done.stdout.count("the process of the test ended with 7") == 5
    assert len(set(re.findall(r"said by a test that fails (\d+)", done.stdout))) == 3
    assert "said by a test that passes" not in done.stdout
    assert done.stdout.count("UserWarning: a warning") == 3
    assert "a reason" in done.stdout


def test_a_fixture_of_the_session_that_breaks_at_its_end_is_an_error(tmp_path: Path) -> None:
    done = pytest_of(tmp_path, alone=_TESTS[: _TESTS.index("def test_fails")])
    assert done.returncode == 1
    assert "ValueError: the end of a fixture" in done.stdout


def test_a_test_that_never_ends_is_aborted_and_shown(tmp_path: Path) -> None:
    done = pytest_of(tmp_path, "--silence=10", stuck=_STUCK, passing="def test_passes(): pass")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "the process of the test ended with -6" in done.stdout
    assert re.search(r'test_stuck\.py", line \d+ in test_never_ends', done.stderr), done.stderr
