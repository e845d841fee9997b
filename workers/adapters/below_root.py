"""Opening of a file below a folder by a path from a caller, without following links or entering hidden folders."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotThere(Exception):
    """Raised when there is no such file. The message is the end of a sentence, without the path."""


def open_below(root: Path, name: str) -> int:
    """Return the descriptor of a regular file. Raises `NotThere`."""
    *folders, last = name.split("/")
    if not name or any(not part or part.startswith(".") or "\0" in part for part in (*folders, last)):
        raise NotThere("must be the path of a file below the media root")
    folder_descriptor = -1
    try:
        folder_descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder_descriptor)
            os.close(folder_descriptor)
            folder_descriptor = inner
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_descriptor)
    except (OSError, ValueError):
        raise NotThere("there is no such file that can be read below the media root") from None
    finally:
        if folder_descriptor >= 0:
            os.close(folder_descriptor)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotThere("it is not a regular file")
    return descriptor
