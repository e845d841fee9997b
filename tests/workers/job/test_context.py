"""The context of a step without a process: files, log lines, progress and programs."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from domain.job.values import Output, Result, Severity
from tests.support.step_hosts import Listener, order
from tests.support.steps import Trial
from workers.adapters.ffmpeg import find
from workers.adapters.outbound_http import GuardedClient
from workers.job.cancellation import Cancellation
from workers.job.context import MOST_METADATA, StepContext, StepEnvironment, StepFailed

Context = StepContext[Trial]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def context(tmp_path: Path, listener: Listener) -> Context:
    return made(tmp_path, listener)


def made(root: Path, listener: Listener, *, run: int = 1, previous_run: int | None = None) -> Context:
    means = StepEnvironment(root / "media", GuardedClient, find)
    return StepContext(
        order("nothing", run=run, previous_run=previous_run), Trial(content_id="film"), means, listener, Cancellation()
    )


def write(context: Context, name: str, content: str = "abc") -> Path:
    path = context.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


# -- places ---------------------------------------------------------------------------------------------------------------


def test_a_workspace_is_empty_at_first(context: Context, tmp_path: Path) -> None:
    leftover = tmp_path / "media/.jobs/17/2/1/left"
    leftover.parent.mkdir(parents=True)
    leftover.touch()
    assert list(context.workspace.iterdir()) == []


def test_the_workspace_of_the_previous_run_is_readable(tmp_path: Path, listener: Listener) -> None:
    assert made(tmp_path, listener, run=2, previous_run=1).previous is None
    first = made(tmp_path, listener)
    write(first, "part")
    previous = made(tmp_path, listener, run=2, previous_run=1).previous
    assert previous == first.workspace
    assert list(made(tmp_path, listener, run=2).workspace.iterdir()) == [], "this one leaves nothing"
    assert made(tmp_path, listener, run=4, previous_run=3).previous == first.workspace
    assert made(tmp_path, listener, run=3).previous is None


def test_files_below_the_media_root_are_found(context: Context, tmp_path: Path) -> None:
    media = tmp_path.resolve() / "media"
    assert context.path("film/a/b.mp4") == media / "film/a/b.mp4"
    kept_file = media / ".jobs/17/files/two.txt"
    with pytest.raises(
        StepFailed, match=r"^The file two\.txt, which an earlier step kept, no longer exists\. Run the job again\.$"
    ):
        context.job_file("two.txt")
    kept_file.parent.mkdir(parents=True)
    kept_file.touch()
    assert context.job_file("two.txt") == kept_file


@pytest.mark.parametrize("name", ["", "/etc/passwd", "..", "film/../../x", ".jobs/18/files/x", "film/.x", "a\\b", "a\0"])
def test_a_path_out_of_the_media_root_is_refused(context: Context, name: str) -> None:
    with pytest.raises(ValueError, match="the path"):
        context.path(name)
    with pytest.raises(ValueError, match="the path"):
        context.publish(write(context, "one"), name)


@pytest.mark.parametrize("name", ["", "..", "a/b", "/a", ".a"])
def test_a_kept_file_has_one_plain_name(context: Context, name: str) -> None:
    with pytest.raises(ValueError, match="the name"):
        context.job_file(name)
    with pytest.raises(ValueError, match="the name"):
        context.keep(write(context, "one"), name)


def test_a_symlink_is_followed_within_the_media_root_only(context: Context, tmp_path: Path) -> None:
    film = tmp_path / "media/film"
    film.mkdir(parents=True)
    (film / "inside").symlink_to(film)
    (film / "outside").symlink_to(tmp_path)
    assert context.path("film/inside/x") == film.resolve() / "x"
    with pytest.raises(StepFailed, match="outside the media root"):
        context.path("film/outside/x")


# -- outputs --------------------------------------------------------------------------------------------------------------


def test_declared_files_are_in_the_result(context: Context) -> None:
    digest = sha256(b"abc").hexdigest()
    context.publish(write(context, "one"), "deep/one.mp4")
    context.keep(write(context, "a/two"), "two", sha256="given")
    finished = context.finished(Result(message="done", files=("other",), metadata={"a": [1, None]}))
    assert finished.result == Result(message="done", files=("other", "film/deep/one.mp4"), metadata={"a": [1, None]})
    assert finished.outputs == (
        Output(path="one", name="film/deep/one.mp4", size=3, sha256=digest),
        Output(path="a/two", name=".jobs/17/files/two", size=3, sha256="given"),
    )


def test_only_a_file_of_the_workspace_can_be_declared(context: Context, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    (context.workspace / "link").symlink_to(outside)
    (context.workspace / "folder").symlink_to(tmp_path)
    (context.workspace / "real").mkdir()
    for path in (outside, Path("link"), Path("folder/outside"), Path("real"), Path("missing"), Path("../1/../../x"), Path(".")):
        with pytest.raises(ValueError, match="in the workspace"):
            context.publish(path, "x")
    assert context.finished(None).outputs == ()


def test_a_file_and_a_name_are_declared_once(context: Context) -> None:
    context.publish(write(context, "one"), "x")
    for path, name in (("one", "y"), ("two", "x")):
        with pytest.raises(ValueError, match="already been declared"):
            context.publish(write(context, path), name)


@pytest.mark.parametrize(
    "metadata",
    [{"a": "\0"}, {"a": "\ud800"}, {"a": float("nan")}, {"a": object()}, {"a": "x" * MOST_METADATA}],
    ids=["NUL", "half a pair", "NaN", "no JSON", "too much"],
)
def test_metadata_that_cannot_be_stored_fails_the_step(context: Context, metadata: dict[str, Any]) -> None:
    with pytest.raises(StepFailed) as failed:
        context.finished(Result(metadata=metadata))
    assert failed.value.final


# -- telling --------------------------------------------------------------------------------------------------------------


def test_lines_can_be_stored_and_are_bounded(context: Context, listener: Listener) -> None:
    context.log("a\0b\ud800", Severity.WARN)
    context.log("x" * 100_000)
    assert listener.lines[0] == (Severity.WARN, "a\ufffdb?")
    assert len(listener.lines[1][1]) == 65_536


def test_the_number_of_log_lines_is_limited(context: Context, listener: Listener) -> None:
    for number in range(20_000):
        context.log(str(number))
    assert len(listener.lines) == 10_000
    assert listener.lines[-1] == (Severity.WARN, "The step has written 10000 lines; the rest is left out.")


def test_progress_is_throttled_except_at_the_end(context: Context, listener: Listener) -> None:
    for number in range(1, 1001):
        context.progress(number / 500)
    assert listener.fractions[0] == (0.002, "")
    assert listener.fractions[-1] == (1.0, "")
    assert all(fraction <= 1 for fraction, _ in listener.fractions)


def test_a_program_is_run_in_the_workspace(context: Context) -> None:
    ended = context.run("sh", "-c", "pwd; echo wrong >&2; exit 3", seconds=10)
    assert (ended.status, ended.output.decode().strip(), ended.errors) == (3, str(context.workspace), b"wrong\n")


def test_long_output_of_a_program_is_cut(context: Context) -> None:
    """The output is read to its end; otherwise the program would block."""
    command = "head -c 9000000 /dev/zero; (head -c 200000 /dev/zero; echo the end) >&2"
    ended = context.run("sh", "-c", command, seconds=30)
    assert (ended.status, len(ended.output), len(ended.errors)) == (0, 4_194_304, 65_536)
    assert ended.errors.endswith(b"the end\n")


def test_the_lines_of_a_program_are_followed_while_it_runs(context: Context) -> None:
    lines: list[str] = []

    def follow(line: str) -> bool:
        lines.append(line)
        return False

    ended = context.run("sh", "-c", "echo one; echo two; printf three", seconds=10, on_line=follow)
    assert (lines, ended.output) == (["one", "two"], b"one\ntwo\nthree")


def test_a_program_that_does_not_get_further_is_ended(context: Context) -> None:
    """The program writes all the time, but always the same line."""
    repeats = "while true; do echo frame=1; sleep 0.05; done"
    seen: set[str] = set()

    def further(line: str) -> bool:
        fresh = line not in seen
        seen.add(line)
        return fresh

    with pytest.raises(StepFailed, match=r"The program sh made no progress for 0\.5 s\."):
        context.run("sh", "-c", repeats, seconds=60, stall=0.5, on_line=further)


def test_a_program_that_gets_further_may_take_longer_than_the_limit_of_a_stall(context: Context) -> None:
    counts = "for n in 1 2 3 4 5 6; do echo frame=$n; sleep 0.4; done"
    assert context.run("sh", "-c", counts, seconds=60, stall=2.0, on_line=lambda line: True).status == 0
