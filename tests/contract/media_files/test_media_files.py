"""The behaviour of every store of published files."""

from __future__ import annotations

from datetime import UTC

import pytest

from tests.contract.media_files.conftest import Stage

_NOT_THERE = [
    "",
    "/",
    "match",
    "match/",
    "match/none.mp4",
    "match//match.mp4",
    "/match/match.mp4",
    "match/match.mp4/",
    "match/match.mp4/more",
    "match/./match.mp4",
    "match/../match/match.mp4",
    ".jobs/7/files/kept.mp4",
    "match/.hidden",
    "match/\0",
    "match/\udc80",
    "m" * 300,
    "x/" * 5000 + "x",
]


@pytest.fixture
def filled(stage: Stage) -> Stage:
    stage.put("match/match.mp4", b"12345")
    stage.put("match/assets/goal.jpg", b"123")
    stage.put("match/.hidden", b"1")
    stage.put("match-2/match.mp4", b"1")
    stage.put(".jobs/7/files/kept.mp4", b"1")
    return stage


async def paths(stage: Stage, folder: str, limit: int = 100) -> list[str]:
    return [file.path for file in await stage.files.list(folder, limit=limit)]


async def test_a_file_is_found_with_its_size_and_time(filled: Stage) -> None:
    match = await filled.files.find("match/match.mp4")
    assert match is not None
    assert (match.path, match.size) == ("match/match.mp4", 5)
    assert match.modified.tzinfo is UTC
    assert [file.modified for file in await filled.files.list("match", limit=10) if file.path == match.path] == [match.modified]


@pytest.mark.parametrize("path", _NOT_THERE, ids=range(len(_NOT_THERE)))
async def test_what_is_no_published_file_is_not_there(filled: Stage, path: str) -> None:
    assert await filled.files.find(path) is None
    assert await filled.files.read(path, limit=100) is None
    await filled.files.remove(path)
    assert await paths(filled, "match") == ["match/assets/goal.jpg", "match/match.mp4"]


async def test_a_list_has_all_files_below_the_folder_by_path(filled: Stage) -> None:
    filled.put("match/assets-2/goal.jpg", b"1")
    assert await paths(filled, "match") == ["match/assets-2/goal.jpg", "match/assets/goal.jpg", "match/match.mp4"]
    assert await paths(filled, "match/assets") == ["match/assets/goal.jpg"]


async def test_a_list_of_the_root_has_all_but_hidden_files(filled: Stage) -> None:
    assert await paths(filled, "") == ["match-2/match.mp4", "match/assets/goal.jpg", "match/match.mp4"]


@pytest.mark.parametrize("folder", ["none", "match/match.mp4", ".jobs", "match/..", "/match", "match/", "..", "match/\0"])
async def test_a_list_of_what_is_no_published_folder_is_empty(filled: Stage, folder: str) -> None:
    assert await paths(filled, folder) == []


async def test_a_list_has_one_more_than_its_limit_at_most(filled: Stage) -> None:
    for number in range(5):
        filled.put(f"many/{number}", b"")
    assert await paths(filled, "many", limit=5) == [f"many/{number}" for number in range(5)]
    assert await paths(filled, "many", limit=3) == ["many/0", "many/1", "many/2", "many/3"]


async def test_a_file_is_read_up_to_the_limit(filled: Stage) -> None:
    assert await filled.files.read("match/match.mp4", limit=5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        await filled.files.read("match/match.mp4", limit=4)


async def test_an_empty_file_is_there(filled: Stage) -> None:
    filled.put("match/empty", b"")
    file = await filled.files.find("match/empty")
    assert file is not None
    assert file.size == 0
    assert await filled.files.read("match/empty", limit=0) == b""


async def test_a_removed_file_is_not_there_and_others_are(filled: Stage) -> None:
    await filled.files.remove("match/match.mp4")
    await filled.files.remove("match/match.mp4")
    assert await filled.files.find("match/match.mp4") is None
    assert await paths(filled, "") == ["match-2/match.mp4", "match/assets/goal.jpg"]


async def test_a_file_that_was_replaced_is_not_removed_instead(filled: Stage) -> None:
    file = await filled.files.find("match/match.mp4")
    filled.put("match/match.mp4", b"of somebody else")
    await filled.files.remove("match/match.mp4", only=file)
    assert await filled.files.read("match/match.mp4", limit=100) == b"of somebody else"
    await filled.files.remove("match/match.mp4", only=await filled.files.find("match/match.mp4"))
    assert await filled.files.find("match/match.mp4") is None


async def test_names_may_have_any_other_characters(filled: Stage) -> None:
    for name in ("a b", "ä", "a%2Fb", "a+b", "a?b#c", "a\\b", "-rf", "a..b", "*"):
        filled.put(f"odd/{name}", name.encode())
        assert await filled.files.read(f"odd/{name}", limit=100) == name.encode()
    assert len(await paths(filled, "odd")) == 9


async def test_a_file_is_replaced_unless_it_has_changed(filled: Stage) -> None:
    file = await filled.files.find("match/match.mp4")
    assert file is not None
    assert await filled.files.replace(file, b"another")
    assert await filled.files.read("match/match.mp4", limit=10) == b"another"
    assert not await filled.files.replace(file, b"too late")
    assert await filled.files.read("match/match.mp4", limit=10) == b"another"
    await filled.files.remove("match/match.mp4")
    assert not await filled.files.replace(file, b"gone")
    assert await paths(filled, "match") == ["match/assets/goal.jpg"]
