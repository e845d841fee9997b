"""Finds programs that steps run: the operator's own, else those that came with the product. ADR 0014."""

from __future__ import annotations

import shutil
from pathlib import Path

from workers.adapters.ffmpeg import installed
from workers.kernel.media_programs import MEDIA_PROGRAMS


def find(program: str, *, path: str | None = None) -> Path | None:
    """On PATH (or `path`), else in the wheel with ffmpeg and Shaka Packager."""
    own = shutil.which(program, path=path)
    if own is not None:
        return Path(own)
    came = installed(path="") if program in MEDIA_PROGRAMS else None
    return None if came is None else came.with_name(came.name.replace("ffmpeg", program, 1))
