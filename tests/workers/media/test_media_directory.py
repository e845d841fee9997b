"""The directory of published files: features that only a file system has, such as links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.adapters.media_directory import MediaDirectory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "other.mp4").write_text("o")
    root = tmp_path / "media"
    (root / "match").mkdir(parents=True)
    (root / "match" / "match.mp4").write_text("m")
    return root


async def test_a_link_is_not_followed(root: Path) -> None:
    (root / "match" / "file").symlink_to(root.parent / "secret")
    (root / "match" / "folder").symlink_to(root.parent / "outside")
    files = MediaDirectory(root)
    for path in ("match/file", "match/folder/other.mp4"):
        assert await files.find(path) is None
        assert await files.read(path, limit=10) is None
        await files.remove(path)
    assert await files.list("match/folder", limit=10) == ()
    assert [file.path for file in await files.list("", limit=10)] == ["match/match.mp4"]
    assert (root.parent / "secret").exists()
    assert (root.parent / "outside" / "other.mp4").exists()


async def test_a_pipe_or_folder_is_no_file(root: Path) -> None:
    os.mkfifo(root / "match" / "pipe")
    files = MediaDirectory(root)
    for path in ("match/pipe", "match"):
        assert await files.find(path) is None
        assert await files.read(path, limit=10) is None
        await files.remove(path)
    assert [file.path for file in await files.list("", limit=10)] == ["match/match.mp4"]


async def test_a_root_that_is_a_link_is_followed(root: Path) -> None:
    linked = root.parent / "linked"
    linked.symlink_to(root)
    assert await MediaDirectory(linked).read("match/match.mp4", limit=10) == b"m"


async def test_a_root_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert await MediaDirectory(tmp_path / "none").list("", limit=10) == ()
