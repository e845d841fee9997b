"""Publishing the files of a run: by any worker, any number of times, and never by a stale run. ADR 0021."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from domain.job.values import Output
from projections.job.queue import QueuedRun
from tests.projections.log.helpers import until
from tests.support.descriptors import descriptors_left
from workers.job import folders
from workers.job.media_paths import MediaPaths, PathEscape
from workers.job.publishers import PublishedByAnother, Publishers
from workers.job.workspaces import OutputMissing, Workspaces

FIRST, SECOND = QueuedRun(17, 2, 1), QueuedRun(17, 2, 2)


def made(root: Path, run: QueuedRun, text: str, *, name: str = "match/a.txt", path: str = "a") -> Output:
    folder = MediaPaths(root, run.job).workspace(run.task, run.run)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    return Output(path=path, name=name, size=len(text), sha256="0")


def parts(run: QueuedRun, output: Output) -> tuple[str, ...]:
    """Return the path of an output below the media root, in its workspace."""
    return (".jobs", str(run.job), str(run.task), str(run.run), output.path)


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


async def test_publishing_twice_changes_nothing(workspaces: Workspaces, tmp_path: Path) -> None:
    output = made(tmp_path, FIRST, "one")
    await workspaces.publish(FIRST, [output], client="studio")
    await workspaces.publish(FIRST, [output], client="studio")
    assert (tmp_path / "match/a.txt").read_text() == "one"


async def test_a_file_in_neither_place_is_an_error(workspaces: Workspaces, tmp_path: Path) -> None:
    with pytest.raises(OutputMissing):
        await workspaces.publish(FIRST, [Output(path="a", name="match/a.txt", size=3, sha256="0")], client="studio")


async def test_a_file_of_another_size_is_an_error(workspaces: Workspaces, tmp_path: Path) -> None:
    await workspaces.publish(FIRST, [made(tmp_path, FIRST, "one")], client="studio")
    with pytest.raises(OutputMissing):
        await workspaces.publish(FIRST, [Output(path="a", name="match/a.txt", size=4, sha256="0")], client="studio")


async def test_a_stale_run_finds_nothing_to_publish(workspaces: Workspaces, tmp_path: Path) -> None:
    old, new = made(tmp_path, FIRST, "one"), made(tmp_path, SECOND, "three")
    await workspaces.publish(SECOND, [new], client="studio")
    with pytest.raises(OutputMissing):
        await workspaces.publish(FIRST, [old], client="studio")
    assert (tmp_path / "match/a.txt").read_text() == "three"


@pytest.mark.parametrize("name", ["../a.txt", "/etc/a.txt", "match/../../a.txt"])
async def test_nothing_is_published_outside_of_the_media_root(workspaces: Workspaces, tmp_path: Path, name: str) -> None:
    with pytest.raises(PathEscape):
        await workspaces.publish(FIRST, [made(tmp_path, FIRST, "one", name=name)], client="studio")


async def test_a_link_that_leads_out_is_not_followed(workspaces: Workspaces, tmp_path: Path) -> None:
    inside = Workspaces(tmp_path / "media")
    inside.root.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (inside.root / "match").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathEscape):
        await inside.publish(FIRST, [made(inside.root, FIRST, "one")], client="studio")


@pytest.mark.parametrize("planted", ["the folder of notes", "a folder in it", "a note", "a pipe"])
async def test_links_among_the_notes_of_publishers_are_not_followed(workspaces: Workspaces, tmp_path: Path, planted: str) -> None:
    root, elsewhere = tmp_path / "media", tmp_path / "elsewhere"
    inside, name = Workspaces(root), sha256(b"match/a.txt").hexdigest()
    elsewhere.mkdir()
    (elsewhere / "note").write_text("studio")
    output, place = made(root, FIRST, "one"), root / ".published" / name[:2] / name
    for folder in (root / "match", place.parent):
        folder.mkdir(parents=True)
    (root / "match/a.txt").write_text("of another")
    if planted == "a note":
        place.symlink_to(elsewhere / "note")
    elif planted == "a pipe":
        os.mkfifo(place)
    else:
        place.parent.rmdir()
        folder = place.parent
        if planted == "the folder of notes":
            folder = folder.parent
            folder.rmdir()
        folder.symlink_to(elsewhere)
    with pytest.raises((OSError, PublishedByAnother)):
        await inside.publish(FIRST, [output], client="studio")
    assert [path.name for path in elsewhere.rglob("*")] == ["note"]
    assert (root / "match/a.txt").read_text() == "of another"


async def test_folders_of_jobs_are_found_and_removed(workspaces: Workspaces, tmp_path: Path) -> None:
    assert await workspaces.jobs() == []
    made(tmp_path, FIRST, "one")
    made(tmp_path, QueuedRun(18, 1, 1), "one")
    (tmp_path / ".jobs" / "notes").mkdir()
    assert sorted(await workspaces.jobs()) == [17, 18]
    await workspaces.remove([17])
    assert await workspaces.jobs() == [18]


async def test_what_another_client_has_published_is_not_replaced(workspaces: Workspaces, tmp_path: Path) -> None:
    await workspaces.publish(FIRST, [made(tmp_path, FIRST, "one")], client="studio")
    other = QueuedRun(18, 2, 1)
    outputs = [made(tmp_path, other, "three", name="match/b.txt"), made(tmp_path, QueuedRun(18, 2, 1), "three")]
    with pytest.raises(PublishedByAnother, match=r"^A job of another client has published match/a.txt; it is not replaced\.$"):
        await workspaces.publish(other, outputs, client="playout")
    assert (tmp_path / "match/a.txt").read_text() == "one"
    assert not (tmp_path / "match/b.txt").exists(), "none of its files is published"
    await workspaces.publish(QueuedRun(19, 2, 1), [made(tmp_path, QueuedRun(19, 2, 1), "new")], client="studio")
    assert (tmp_path / "match/a.txt").read_text() == "new"


async def test_files_that_were_removed_or_that_no_job_published_are_anybodys(workspaces: Workspaces, tmp_path: Path) -> None:
    await workspaces.publish(FIRST, [made(tmp_path, FIRST, "one")], client="studio")
    (tmp_path / "match/a.txt").unlink()
    (tmp_path / "match/b.txt").write_text("by hand")
    for number, name in ((18, "match/a.txt"), (19, "match/b.txt")):
        run = QueuedRun(number, 2, 1)
        await workspaces.publish(run, [made(tmp_path, run, "two", name=name)], client="playout")
        assert (tmp_path / name).read_text() == "two"
    with pytest.raises(PublishedByAnother):
        await workspaces.publish(SECOND, [made(tmp_path, SECOND, "one")], client="studio")
    assert names(tmp_path, "*") == [".jobs", ".published", "match"]
    notes = [sha256(f"match/{name}.txt".encode()).hexdigest() for name in "ab"]
    assert names(tmp_path, ".published/*/*") == sorted([*notes, f"{notes[0]}.1"])


async def test_a_file_that_another_client_is_about_to_publish_is_not_taken_from_it(workspaces: Workspaces, tmp_path: Path) -> None:
    first, second, third = (QueuedRun(job, 2, 1) for job in (17, 18, 19))
    outputs = [made(tmp_path, first, "one")]
    Publishers(tmp_path).claim(tmp_path / "match/a.txt", "studio", source=parts(first, outputs[0]), name="match/a.txt")
    theirs = [made(tmp_path, second, "three")]
    with pytest.raises(PublishedByAnother):
        await workspaces.publish(second, theirs, client="playout")
    await workspaces.publish(third, [made(tmp_path, third, "five")], client="studio")
    (tmp_path / "match/a.txt").unlink()
    with pytest.raises(PublishedByAnother):  # the first run may still move its file
        await workspaces.publish(second, theirs, client="playout")
    await workspaces.publish(first, outputs, client="studio")
    assert (tmp_path / "match/a.txt").read_text() == "one"


async def test_a_path_that_a_removed_job_claimed_is_anybodys(workspaces: Workspaces, tmp_path: Path) -> None:
    output, run = made(tmp_path, FIRST, "one"), QueuedRun(18, 2, 1)
    Publishers(tmp_path).claim(tmp_path / "match/a.txt", "studio", source=parts(FIRST, output), name="match/a.txt")
    await workspaces.remove([17])
    await workspaces.publish(run, [made(tmp_path, run, "three")], client="playout")
    assert (tmp_path / "match/a.txt").read_text() == "three"


async def test_a_claim_that_came_too_late_bars_nobody(workspaces: Workspaces, tmp_path: Path) -> None:
    for job in (17, 18, 19):  # the note that counts is the third one
        run = QueuedRun(job, 2, 1)
        await workspaces.publish(run, [made(tmp_path, run, "one")], client="studio")
    late = QueuedRun(20, 2, 1)
    output, note = made(tmp_path, late, "late"), sha256(b"match/a.txt").hexdigest()
    (tmp_path / ".published" / note[:2] / f"{note}.1").write_text(f"playout\n{'/'.join(parts(late, output))}")
    again = QueuedRun(21, 2, 1)
    await workspaces.publish(again, [made(tmp_path, again, "again")], client="studio")
    assert (tmp_path / "match/a.txt").read_text() == "again"
    with pytest.raises(PublishedByAnother):
        await workspaces.publish(late, [output], client="playout")


async def test_a_worker_that_was_frozen_does_not_delete_what_was_published_since(
    workspaces: Workspaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_over = folders._take_over

    def frozen(target: int, **given: Any) -> None:
        monkeypatch.undo()
        folders.publish(tmp_path, parts(SECOND, other), target_parts=("match", "a.txt"))
        taken_over(target, **given)

    output, other = made(tmp_path, FIRST, "one"), made(tmp_path, SECOND, "other")
    monkeypatch.setattr(folders, "_take_over", frozen)
    with pytest.raises(folders.ForeignFile):
        await workspaces.publish(FIRST, [output], client="studio")
    assert (tmp_path / "match/a.txt").read_text() == "other"


async def test_a_shortage_after_the_move_deletes_nothing(
    workspaces: Workspaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, opened = made(tmp_path, FIRST, "one"), os.open

    def short(path: Any, flags: int, *given: Any, **named: Any) -> int:
        if path == "a.txt":
            monkeypatch.undo()
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path, flags, *given, **named)

    monkeypatch.setattr(os, "open", short)
    await workspaces.publish(FIRST, [output], client="studio")
    assert (tmp_path / "match/a.txt").read_text() == "one"


async def test_of_clients_that_publish_at_the_same_time_one_does(workspaces: Workspaces, tmp_path: Path) -> None:
    paths, number = ("match/a.txt", "match/b.txt", "match/c.txt"), 20
    for turn in range(50):
        tries = {}
        for client in range(4):
            number += 1
            run = QueuedRun(number, 2, 1)
            outputs = [made(tmp_path, run, f"client-{client}", name=name, path=name[-5:]) for name in random.sample(paths, 3)]
            tries[f"client-{client}"] = workspaces.publish(run, outputs, client=f"client-{client}")
        ends = dict(zip(tries, await asyncio.gather(*tries.values(), return_exceptions=True), strict=True))
        done = [name for name, end in ends.items() if end is None]
        assert [type(end) for end in ends.values() if end is not None] == [PublishedByAnother] * 3
        assert [(tmp_path / name).read_text() for name in paths] == done * 3
        for name in paths[turn % 2 :]:
            (tmp_path / name).unlink()
        await workspaces.remove(range(20, number + 1))
        if turn % 2:
            await workspaces.publish(
                QueuedRun(number, 3, 1), [made(tmp_path, QueuedRun(number, 3, 1), "more", name=paths[0])], client=done[0]
            )
            (tmp_path / paths[0]).unlink()
    assert len(names(tmp_path, ".published/*/*")) <= 6, "superseded notes are deleted"


async def test_without_a_free_descriptor_publishing_waits(
    workspaces: Workspaces, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = made(tmp_path, FIRST, "one")
    await asyncio.to_thread(int)  # the thread that publishes is there
    with descriptors_left(0):
        publishing = asyncio.create_task(workspaces.publish(FIRST, [output], client="studio"))
        await until(lambda: publishing.done() or "Too many open files" in caplog.text)
        assert not publishing.done()
    await publishing
    assert (tmp_path / "match/a.txt").read_text() == "one"
