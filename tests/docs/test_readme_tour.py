"""The README's tour and the auditor's tutorial work: their blocks are run unchanged in bash against a real `medialedger up`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.waiting import ROOT, until
from workers.adapters.embedded_postgres import EmbeddedPostgres

_BLOCK = r"^```bash {}\n(.*?)^```$"
_SET_BY_PAGES = frozenset(("BASE", "KEY", "URL", "EVENT", "ROOM"))
_GUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Running:
    """`medialedger up` in its own directory with the settings of a new user; `stop` stops it as a supervisor would."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / ".medialedger"
        self.environment = {name: value for name, value in os.environ.items() if name not in _SET_BY_PAGES}
        self.environment = {name: value for name, value in self.environment.items() if not name.startswith("MEDIALEDGER_")}
        self.environment["PATH"] = _path(directory / "bin")
        self._screen, self._log = directory / "screen", directory / "log"
        with self._screen.open("w") as screen, self._log.open("w") as log:
            self.process = subprocess.Popen(
                [directory / "bin" / "medialedger", "up"],
                cwd=directory,
                env=self.environment | {"MEDIALEDGER_PORT": "0"},
                stdout=screen,
                stderr=log,
            )

    def address(self) -> str:
        """Return the address of the product once it answers."""
        until(lambda: self.process.poll() is not None or "media API" in self._screen.read_text())
        match = re.search(r"media API +(http://\S+)/api\n", self._screen.read_text())
        assert match is not None, self._log.read_text()
        until(lambda: httpx.get(match[1] + "/readyz", verify=False).status_code == 200)
        return match[1]

    def stop(self) -> tuple[int, str]:
        """Stop the product and return its exit code and its last line."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120), self._screen.read_text().splitlines()[-1]


def _path(binaries: Path) -> str:
    """A PATH that begins with this source tree's `medialedger`, installed or not, and with this interpreter: the `python3` of a
    version manager is a shell script, which takes longer than what the tour does with it."""
    binaries.mkdir()
    (binaries / "python3").symlink_to(sys.executable)
    command = binaries / "medialedger"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m api.cli.main "$@"\n')
    command.chmod(0o755)
    return f"{binaries}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    started = Running(tmp_path)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
            started.process.wait()
        EmbeddedPostgres(started.home).stop()


def pasted(page: str, mark: str, *, running: Running, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the blocks of a page together as a user who has set nothing. Only the address is given, because the port of a test is
    arbitrary."""
    blocks = re.findall(_BLOCK.format(mark), (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    environment = running.environment | {"BASE": running.address(), "TMPDIR": str(folder)}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def test_the_tutorial_of_an_audit_finds_out_who_changed_a_title(running: Running, tmp_path: Path) -> None:
    audit = pasted("docs/tutorial/an-audit.md", "audit", running=running, folder=tmp_path)
    assert (audit.returncode, audit.stderr) == (0, "")
    lines = audit.stdout.splitlines()
    for line, expected in zip(lines, _AUDITED, strict=False):
        assert re.match(expected, line), f"{line!r} is not {expected!r}"
    assert lines[-1] == "exit code 3"
    assert re.match(r"is damaged at position \d+: the bytes of the events", lines[-2])
    assert running.stop() == (0, "stopped")


_MICROS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
_AUDITED = (
    f"medialedger/{_GUID}$",
    "WARNING: no checkpoint is stored outside the database",
    rf"fits: one history; position \d+ at {_MICROS}, then position \d+ at {_MICROS}$",
    rf"fits: these are all 2 events of event:{_GUID} in the log {_GUID} up to position \d+, signed at {_MICROS}; none is missing",
    rf'\d+  {_MICROS}  event\.registered  by alice  .*"title":"Cup final"',
    rf'\d+  {_MICROS}  event\.described  by alice  .*"title":"Cup final, replayed"',
    rf"fits: (\d+) events, positions 1 to \1 of the log {_GUID}, each in its position; chain hash [0-9a-f]{{64}}$",
    rf"signed up to position \d+, at {_MICROS}, epoch 1$",
    "2 given checkpoints are of this log$",
)


_TYPES = ("registered", "state_changed", "described", "state_changed")


def test_the_tour_runs_when_pasted(running: Running, tmp_path: Path) -> None:
    tour = pasted("README.md", "tour", running=running, folder=tmp_path)
    assert (tour.returncode, tour.stderr) == (0, "")
    lines = [line.strip() for line in tour.stdout.splitlines()]
    for line, expected in zip(lines, _EXPECTED, strict=False):
        assert re.fullmatch(expected, line), f"{line!r} is not {expected!r}"
    assert "40 rooms and 1000 Events in" in tour.stdout
    assert len([line for line in lines[-5:] if '"title"' in line and "final" in line.lower()]) == 5
    assert running.stop() == (0, "stopped")


_EXPECTED = (
    '"title": "Cup final",',
    '"room": "Studio 1",',
    '"stateString": "PRE_LIVE",',
    r'"scheduledStart": "2031-05-01T16:00:00\.000Z",',
    '"title": "Cup final",',
    '"title": "Cup final",',
    rf"\"detail\": \"cannot delete: it is used by event {_GUID} 'Cup final'\",",
    '"stateString": "LIVE_PUBLISHED",',
    rf'"actualLiveStart": "{_INSTANT}",',
    '"title": "Cup final, extra time",',
    '"status": 412,',
    r'"detail": "Changed meanwhile: the current version is 3\.",',
    '"stateString": "STOPPED",',
    *(line for type in _TYPES for line in (rf'"type": "event\.{type}",', '"actor": "admin",')),
    '"title": "Cup final",',
    '"stateString": "LIVE_PUBLISHED",',
    rf"http://127\.0\.0\.1:\d+/media/{_GUID}/clear/master\.m3u8",
    "200  image/gif",
    "200  video/mp4",
    "200  image/jpeg",
    rf"{_INSTANT}  INFO   api  .*",
    rf"{_INSTANT}  INFO   controller  The job is started in slot 1",
    rf"{_INSTANT}  INFO   worker  task 1  .* started the task probe, attempt 1",
    rf"{_INSTANT}  INFO   worker  task 1  .*",
    rf"{_INSTANT}  INFO   worker  task 1  The task probe is completed: .*",
    rf"{_INSTANT}  INFO   worker  The job is completed",
    r"watch http://127\.0\.0\.1:\d+/origin/live/news/master\.m3u8 or http://\S+/manifest\.mpd",
    '"stateString": "VOD_PUBLIC",',
    '"mp4StateString": "AVAILABLE",',
    r"200  application/vnd\.apple\.mpegurl",
    '"valid": true,',
    r'"checked": \d+,',
)
"""The tour's first lines, down to the sample."""
