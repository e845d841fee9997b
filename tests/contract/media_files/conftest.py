"""Each store of media files, empty, and how a file gets into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from domain.kernel.media_files import MediaFiles
from tests.domain.media_files import MemoryMediaFiles
from workers.adapters.media_directory import MediaDirectory


@dataclass(frozen=True)
class Stage:
    files: MediaFiles
    put: Callable[[str, bytes], None]
    """Also under a name that begins with a dot."""


def in_directory(root: Path) -> Stage:
    def put(path: str, content: bytes) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)

    return Stage(MediaDirectory(root), put)


def in_memory() -> Stage:
    files = MemoryMediaFiles()
    return Stage(files, files.put)


@pytest.fixture(params=["memory", "directory"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return in_memory() if request.param == "memory" else in_directory(tmp_path)
