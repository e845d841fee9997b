"""Publishing what a run made: carried out by anybody, any number of times, and never by one who was overtaken. ADR 0021."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.job.values import Output
from projections.queue.claims import Run
from workers.jobs.places import Outside, Places
from workers.jobs.workspaces import OutputMissing, Workspaces

FIRST, SECOND = Run(17, 2, 1), Run(17, 2, 2)


def made(root: Path, run: Run, text: str, *, name: str = "match/a.txt") -> Output:
    folder = Places(root, run.job).workspace(run.task, run.run)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a").write_text(text)
    return Output(path="a", name=name, size=len(text), sha256="0")


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


async def test_it_may_be_carried_out_twice(workspaces: Workspaces, tmp_path: Path) -> None:
    output = made(tmp_path, FIRST, "one")
    await workspaces.publish(FIRST, [output])
    await workspaces.publish(FIRST, [output])
    assert (tmp_path / "match/a.txt").read_text() == "one"


async def test_what_is_in_neither_place_is_missed(workspaces: Workspaces, tmp_path: Path) -> None:
    with pytest.raises(OutputMissing):
        await workspaces.publish(FIRST, [Output(path="a", name="match/a.txt", size=3, sha256="0")])


async def test_a_file_of_another_size_is_not_taken_for_it(workspaces: Workspaces, tmp_path: Path) -> None:
    await workspaces.publish(FIRST, [made(tmp_path, FIRST, "one")])
    with pytest.raises(OutputMissing):
        await workspaces.publish(FIRST, [Output(path="a", name="match/a.txt", size=4, sha256="0")])


async def test_one_who_was_overtaken_finds_nothing_to_move(workspaces: Workspaces, tmp_path: Path) -> None:
    old, new = made(tmp_path, FIRST, "one"), made(tmp_path, SECOND, "three")
    await workspaces.publish(SECOND, [new])
    with pytest.raises(OutputMissing):
        await workspaces.publish(FIRST, [old])
    assert (tmp_path / "match/a.txt").read_text() == "three"


@pytest.mark.parametrize("name", ["../a.txt", "/etc/a.txt", "match/../../a.txt"])
async def test_nothing_is_put_outside_of_the_media_root(workspaces: Workspaces, tmp_path: Path, name: str) -> None:
    with pytest.raises(Outside):
        await workspaces.publish(FIRST, [made(tmp_path, FIRST, "one", name=name)])


async def test_a_link_that_leads_out_is_not_followed(workspaces: Workspaces, tmp_path: Path) -> None:
    inside = Workspaces(tmp_path / "media")
    inside.root.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (inside.root / "match").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Outside):
        await inside.publish(FIRST, [made(inside.root, FIRST, "one")])


async def test_folders_of_jobs_are_found_and_removed(workspaces: Workspaces, tmp_path: Path) -> None:
    assert await workspaces.jobs() == []
    made(tmp_path, FIRST, "one")
    made(tmp_path, Run(18, 1, 1), "one")
    (tmp_path / ".jobs" / "notes").mkdir()
    assert sorted(await workspaces.jobs()) == [17, 18]
    await workspaces.remove([17])
    assert await workspaces.jobs() == [18]
