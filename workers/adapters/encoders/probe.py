"""Inspection of a source by ffprobe, which is confined like the encode."""

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
from workers.ports.encoders import EncoderFailed

_SECONDS: Final = 30.0
_MOST: Final = 1_000_000


async def probe_source(
    program: Path, *, confinement: Confinement, descriptor: int | None = None, given: bytes = b""
) -> Mapping[str, Any]:
    """Return the output of ffprobe for a source. It reads `descriptor`, which it takes over, or the bytes in `given`. Raises
    `EncoderFailed`."""
    output = bytearray()
    pipes = Pipes()
    shown = pipes.open(lambda piece: output.extend(piece[: _MOST - len(output)]))
    if descriptor is not None:
        pipes.hand(descriptor)
    source = ("-fd", str(descriptor), "fd:") if descriptor is not None else ("pipe:0",)
    neighbour = program.with_name(program.name.replace("ffmpeg", "ffprobe", 1))
    ffprobe = str(neighbour if neighbour.exists() else find("ffprobe") or neighbour)
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
        raise EncoderFailed("ffprobe did not finish reading the source in time.") from None
    finally:
        await process.kill()
    with suppress(ValueError):
        document = json.loads(output if status == 0 else b"")
        if isinstance(document, dict):
            return document
    last_line = process.last_line.rstrip(".")
    raise EncoderFailed(f"The source cannot be read{': ' + last_line if last_line else ''}.")


def tracks_of(probe: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the streams of the programme with the highest picture, that picture first; all streams if there are no programmes.
    Pictures that are attached to sound are excluded."""
    streams = [each for each in probe.get("streams", ()) if isinstance(each, dict)]
    programme = highest_programme(probe)
    chosen = [each for each in streams if programme is None or each.get("index") in programme.tracks]
    pictures = sorted(filter(is_picture, chosen), key=rank_of, reverse=True)
    return [*pictures, *(each for each in chosen if each.get("codec_type") != "video")]


def quotient(text: object) -> float | None:
    """Return the value of `a/b` or `a:b`; None if it is not above zero."""
    parts = re.split("[:/]", str(text))
    with suppress(ValueError, ZeroDivisionError):
        value = int(parts[0]) / int(parts[1]) if len(parts) == 2 else 0.0
        return value if value > 0 else None
    return None
