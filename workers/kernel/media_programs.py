"""The programs for media, which are installed by the extra `media` or by the operator. See ADR 0082."""

from __future__ import annotations

from typing import Final

MEDIA_PROGRAMS: Final = ("ffmpeg", "ffprobe", "packager")


def missing(program: str) -> str:
    """Return the sentence for a program that is not installed, with what to do."""
    release = "" if program == "packager" else " 8"
    remedy = f": install medialedger[media], or {program}{release} on PATH" if program in MEDIA_PROGRAMS else ""
    return f"The program {program} is not installed on this machine{remedy}."
