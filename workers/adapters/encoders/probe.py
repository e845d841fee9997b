"""What a source holds: ffprobe, confined as the encode is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from workers.adapters.encoders.process import EncodeProcess, Pipes
from workers.adapters.ffmpeg import find
from workers.kernel.confinement import Confinement
from workers.media.file import highest_programme, is_picture, rank_of
from workers.ports import EncoderFailed

_SECONDS: Final = 30.0
_MOST: Final = 1_000_000


async def probed(
    program: Path, *, confinement: Confinement, descriptor: int | None = None, given: bytes = b""
) -> Mapping[str, Any]:
    """Its streams as ffprobe shows them. Reads `descriptor`, which it takes, or what is `given`. Raises `EncoderFailed`."""
    output = bytearray()
    pipes = Pipes()
    shown = pipes.open(lambda piece: output.extend(piece[: _MOST - len(output)]))
    if descriptor is not None:
        pipes.hand(descriptor)
    source = ("-fd", str(descriptor), "fd:") if descriptor is not None else ("pipe:0",)
    beside = program.with_name(program.name.replace("ffmpeg", "ffprobe", 1))
    ffprobe = str(beside if beside.exists() else find("ffprobe") or beside)
    command = [
        ffprobe,
        "-v",
        "error",
        "-show_streams",
        "-show_format",
        "-show_programs",
        "-of",
        "json",
        "-o",
        shown,
        "-protocol_whitelist",
        "fd,pipe",
        *source,
    ]
    try:
        process = await EncodeProcess.start(command, pipes=pipes, confinement=confinement, feeds=bool(given))
    except OSError:
        raise EncoderFailed("ffprobe cannot be started.") from None
    try:
        async with asyncio.timeout(_SECONDS):
            if process.input is not None:
                with suppress(ConnectionError):
                    process.input.write(given)
                    await process.input.drain()
                process.input.close()
            status = await process.wait()
    except TimeoutError:
        raise EncoderFailed("ffprobe does not come to an end with the source.") from None
    finally:
        await process.kill()
    with suppress(ValueError):
        found = json.loads(output if status == 0 else b"")
        if isinstance(found, dict):
            return found
    said = process.last_line.rstrip(".")
    raise EncoderFailed(f"The source cannot be read{': ' + said if said else ''}.")


def tracks_of(found: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The streams of the programme with the highest picture, that picture first; all where there are no programmes. Pictures that
    are attached to sound are left out."""
    streams = [each for each in found.get("streams", ()) if isinstance(each, dict)]
    programme = highest_programme(found)
    chosen = [each for each in streams if programme is None or each.get("index") in programme.tracks]
    pictures = sorted(filter(is_picture, chosen), key=rank_of, reverse=True)
    return [*pictures, *(each for each in chosen if each.get("codec_type") != "video")]


def quotient(said: object) -> float | None:
    """`a/b` or `a:b`, where it is above zero."""
    parts = re.split("[:/]", str(said))
    with suppress(ValueError, ZeroDivisionError):
        value = int(parts[0]) / int(parts[1]) if len(parts) == 2 else 0.0
        return value if value > 0 else None
    return None
