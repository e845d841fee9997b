"""Opening a file below a folder by a path that somebody else gave: along no link, and out of no hidden folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotThere(Exception):
    """There is no such file. The end of a sentence, without the path."""


def opened_below(root: Path, name: str) -> int:
    """The descriptor of a regular file. Raises `NotThere`."""
    *folders, last = name.split("/")
    if not name or any(not part or part.startswith(".") or "\0" in part for part in (*folders, last)):
        raise NotThere("must be the path of a file below the media root")
    held = -1
    try:
        held = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = inner
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=held)
    except (OSError, ValueError):
        raise NotThere("there is no such file that can be read below the media root") from None
    finally:
        if held >= 0:
            os.close(held)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise NotThere("it is no regular file")
    return found
