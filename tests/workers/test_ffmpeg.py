"""The transcoder is really run: missing parts, failures and hangs are reported in words that name no path."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import uvloop

from workers.adapters.ffmpeg import FRESH, Ffmpeg, find, libraries, version
from workers.adapters.program_verdicts import Verdicts
from workers.adapters.step_account import NAME, program_account
from workers.job.transcoder_check import TranscoderCheck
from workers.ports.media import Transcoder

MISSING = "The program ffmpeg is not installed on this machine: install medialedger[media], or ffmpeg 8 on PATH."
ENCODERS = " V....D libx264  H.264\\n A....D aac  AAC\\n"
"""The list of encoders in the format of ffmpeg."""


class HandTime:
    """A clock that only moves when a test moves it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def script(place: Path, *lines: str, name: str = "ffmpeg", mode: int = 0o755) -> Path:
    program = place / name
    program.write_text("\n".join(["#!/bin/sh", f"printf '{ENCODERS}'", *lines, ""]))
    program.chmod(mode)
    return program


def alive(pid: int) -> bool:
    """Return True if the process is alive. A zombie is not: only its parent can remove it."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_what_came_with_the_product_runs() -> None:
    transcoder: Transcoder = Ffmpeg(find("ffmpeg", path="/nowhere"))
    assert await transcoder.check() is None


def test_it_runs_on_the_loop_of_the_product() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(Ffmpeg(find("ffmpeg", path="/nowhere"), account=program_account).check()) is None


async def test_the_operators_own_is_preferred(tmp_path: Path) -> None:
    own = script(tmp_path, "exit 0")
    assert find("ffmpeg", path=f"/nowhere:{tmp_path}") == own
    bundled = find("ffmpeg", path="/nowhere")
    assert bundled is not None
    assert bundled.name in ("ffmpeg-linux-x64", "ffmpeg-linux-arm64"), "the builds for Ubuntu need libraries of the system"


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that every account can reach, unlike those of this test run."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("name", ["ffmpeg", "ffprobe"])
@pytest.mark.parametrize(
    ("library", "taken"), [("57. 28.100", False), ("59. 39.100", False), ("60.  8.100", True), ("61.  2.100", False)]
)
def test_the_operators_own_is_left_aside_where_it_is_not_of_release_8(public: Path, name: str, library: str, taken: bool) -> None:
    """Debian 12 has release 5.1 and Debian 13 release 7.1."""
    own = script(public, f"echo 'libavutil      {library} / {library}'", name=name)
    assert find(name, path=str(public)) == (own if taken else find(name, path="/nowhere"))


@pytest.mark.parametrize("library", ["57. 28.100", "60.  8.100"])
def test_a_verdict_counts_more_than_the_release(public: Path, tmp_path: Path, library: str) -> None:
    """The verdict is about the very program that was tried."""
    own, verdicts = script(public, f"echo 'libavutil      {library}'"), Verdicts(tmp_path)
    others = find("ffmpeg", path="/nowhere")
    verdicts.note(own, version=version(own), faults=[])
    assert find("ffmpeg", path=str(public), verdicts=verdicts) == own
    verdicts.note(own, version=version(own), faults=["clips: no frame"])
    assert find("ffmpeg", path=str(public), verdicts=verdicts) == others
    script(public, f"echo 'libavutil      {library} and another one'")
    untried = find("ffmpeg", path=str(public))
    assert find("ffmpeg", path=str(public), verdicts=verdicts) == untried


def test_a_verdict_that_cannot_be_read_is_none(public: Path, tmp_path: Path) -> None:
    own, verdicts = script(public, "echo 'libavutil      57. 28.100'"), Verdicts(tmp_path)
    for text in ("", "[]", "{", f'{{"{own.resolve()}": 5}}', f'{{"{own.resolve()}": {{"faults": 1}}}}'):
        (tmp_path / "media-programs.json").write_text(text)
        assert find("ffmpeg", path=str(public), verdicts=verdicts) == find("ffmpeg", path="/nowhere")
    assert verdicts.of(own, version="") is None


def test_the_folders_of_libraries_are_known() -> None:
    assert any(folder.name.endswith(("linux-gnu", "lib", "lib64")) for folder in libraries(Path("/bin/ls")))
    bundled = find("ffmpeg", path="/nowhere")
    assert bundled is not None
    assert not libraries(bundled), "it is static"


def test_another_version_in_its_place_is_looked_at_anew(public: Path) -> None:
    own = script(public, "echo 'libavutil      57. 28.100'")
    assert find("ffmpeg", path=str(public)) != own
    script(public, "echo 'libavutil      60.  1.100'")
    assert find("ffmpeg", path=str(public)) == own


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other accounts")
def test_root_asks_for_its_version_as_nobody(public: Path) -> None:
    own = script(public, '[ "$(id -u)" = 0 ] || echo "libavutil      57. 28.100"')
    assert find("ffmpeg", path=str(public)) != own


async def test_it_is_asked_for_its_encoders(tmp_path: Path) -> None:
    assert await Ffmpeg(script(tmp_path, '[ "$*" = "-hide_banner -encoders" ]')).check() is None


async def test_one_that_was_built_without_an_encoder_is_no_transcoder(tmp_path: Path) -> None:
    program = script(tmp_path)
    program.write_text("#!/bin/sh\necho ' V....D mjpeg  MJPEG, not libx264 or aac'\n")
    assert await Ffmpeg(program).check() == "the transcoder was built without the encoder libx264 and aac"


async def test_what_is_missing_is_logged_when_the_workers_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for program in (script(tmp_path), None):
        check = TranscoderCheck(Ffmpeg(program))
        await check.start()
        assert check.looking is not None
        await check.looking
        await check.stop()
    [line] = [record.getMessage() for record in caplog.records]
    assert line == f"Jobs and encoders that need ffmpeg will fail here: {MISSING}"


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["exit 1"], "the transcoder ends with status 1"),
        (["echo no libva >&2", "exit 127"], "the transcoder ends with status 127"),
        (["kill -9 $$"], "the transcoder ends with status -9"),
    ],
)
async def test_a_failed_program_is_reported_with_its_status(tmp_path: Path, lines: list[str], fault: str) -> None:
    assert await Ffmpeg(script(tmp_path, *lines)).check() == fault


async def test_one_that_is_not_there_or_no_program_cannot_be_started(tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"\x7fELF\x00\xff")
    noise.chmod(0o755)
    for program in (tmp_path / "missing", tmp_path, noise):
        fault = await Ffmpeg(program).check()
        assert fault == "the transcoder cannot be started"
    assert await Ffmpeg(None).check() == MISSING


async def test_a_hanging_program_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    hangs = script(tmp_path, "sleep 600 &", f"echo $! > {pids}", "wait")
    asked = asyncio.create_task(Ffmpeg(hangs, seconds=0.2).check())
    child = int(await asyncio.to_thread(pids.read_text))
    assert await asked == "the transcoder does not answer"
    while alive(child):
        await asyncio.to_thread(os.sched_yield)


async def test_an_answer_holds_for_a_while(tmp_path: Path) -> None:
    time = HandTime()
    runs = tmp_path / "runs"
    transcoder = Ffmpeg(script(tmp_path, f"echo run >> {runs}", f"[ ! -e {tmp_path}/broken ]"), now=time)
    assert await asyncio.gather(*(transcoder.check() for _ in range(5))) == [None] * 5
    (tmp_path / "broken").touch()
    time.seconds = FRESH - 0.1
    assert await transcoder.check() is None
    assert runs.read_text() == "run\n"
    time.seconds = FRESH
    assert await transcoder.check() == "the transcoder ends with status 1"
    (tmp_path / "broken").unlink()
    assert await transcoder.check() == "the transcoder ends with status 1"
    time.seconds = 2 * FRESH
    assert await transcoder.check() is None
    assert runs.read_text() == "run\n" * 3


async def test_it_is_given_none_of_our_environment(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    await Ffmpeg(script(tmp_path, f"env > {seen}")).check()
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert names <= {"PATH", "LC_ALL", "PWD", "_", "SHLVL", "OLDPWD"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other accounts")
async def test_root_asks_it_as_the_account_of_steps(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir(mode=0o777)
    seen.chmod(0o777)
    asked = Ffmpeg(script(tmp_path, f"id -u > {seen}/user", f"id -G > {seen}/groups"), account=program_account)
    assert await asked.check() is None
    account = pwd.getpwnam(NAME)
    assert (seen / "user").read_text().split() == [str(account.pw_uid)]
    assert (seen / "groups").read_text().split() == [str(account.pw_gid)]
