"""The transfer of steps' inputs to this machine."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.clock import NOON
from workers.job.inputs import Inputs
from workers.ports.buckets import ObjectStore, StoredObject

NAME, CONTENT = "match/film.mp4", b"x" * 100_000


class Store:
    """A store with a single object, in a single piece."""

    async def head(self, key: str) -> StoredObject:
        return StoredObject(key, len(CONTENT), NOON, '"1"', "")

    async def pieces(self, key: str, *, etag: str, start: int, size: int) -> AsyncGenerator[bytes, None]:
        yield CONTENT


def _files(root: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in root.rglob("*") if path.is_file()}


async def test_what_is_still_written_for_a_stopped_step_gets_into_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor of its file may belong to another file by then."""
    in_progress, ended = asyncio.Event(), asyncio.Event()
    resume, loop, to_thread = threading.Event(), asyncio.get_running_loop(), asyncio.to_thread

    async def slowly(act: Callable[..., Any], *given: Any) -> Any:
        def blocked_write() -> Any:
            loop.call_soon_threadsafe(in_progress.set)
            try:
                resume.wait()
                return act(*given)
            finally:
                loop.call_soon_threadsafe(ended.set)

        return await to_thread(blocked_write if CONTENT in given else act, *(() if CONTENT in given else given))

    monkeypatch.setattr(asyncio, "to_thread", slowly)
    fetch = asyncio.create_task(Inputs(tmp_path, cast("ObjectStore", Store())).fetch(1, NAME, progress=lambda _: None))
    await in_progress.wait()
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch
    other = tmp_path / "other"
    descriptors = [os.open(other, os.O_RDWR | os.O_CREAT) for _ in range(8)]
    resume.set()
    await ended.wait()
    for descriptor in descriptors:
        os.close(descriptor)
    assert _files(tmp_path) == {"other": 0}
