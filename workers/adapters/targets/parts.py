"""Parts of a file to upload, read in pieces so that no part is in memory as a whole."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from workers.ports.targets import TargetFailed, UploadSource

PIECE: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class UploadPart:
    """A part. `number` counts from 1. The sums are in hexadecimal digits; MD5 is S3's name for a part, not a protection."""

    number: int
    start: int
    size: int
    sha256: str
    md5: str


def count(source: UploadSource, size: int) -> int:
    return -(-source.size // size)


async def sum_part(source: UploadSource, number: int, *, size: int) -> UploadPart:
    """Return the part with its sums, computed in another thread."""
    start = (number - 1) * size
    return await asyncio.to_thread(_sum_part, source.path, number, start, min(size, source.size - start))


async def pieces(path: Path, *, start: int, size: int, sent: Callable[[int], None] = lambda _: None) -> AsyncGenerator[bytes, None]:
    """Yield the pieces; the next one is read while one is sent. `sent` is called with the number of bytes taken since the start."""
    with await asyncio.to_thread(path.open, "rb") as file:
        file.seek(start)
        done, following = 0, _read(file, min(PIECE, size))
        try:
            while done < size:
                piece = await following
                if not piece:
                    raise TargetFailed("media", "The file became shorter while it was uploaded.")
                done += len(piece)
                if done < size:
                    following = _read(file, min(PIECE, size - done))
                yield piece
                sent(done)
        finally:
            await asyncio.gather(following, return_exceptions=True)  # before the file is closed


def _read(file: BinaryIO, size: int) -> asyncio.Future[bytes]:
    return asyncio.get_running_loop().run_in_executor(None, file.read, size)


def _sum_part(path: Path, number: int, start: int, size: int) -> UploadPart:
    sha256, md5, remaining = hashlib.sha256(), hashlib.md5(usedforsecurity=False), size
    with path.open("rb") as file:
        file.seek(start)
        while remaining:
            piece = file.read(min(PIECE, remaining))
            if not piece:
                raise TargetFailed("media", "The file became shorter while it was uploaded.")
            sha256.update(piece)
            md5.update(piece)
            remaining -= len(piece)
    return UploadPart(number, start, size, sha256.hexdigest(), md5.hexdigest())
