"""Which client published a file: no job replaces what a job of another client has published.

    .published/<hash of the path>     the name of the client

It is noted before the file is moved to its place, so a file that a job published is never there without. A note whose file was
removed counts for nothing. Files that no job published have none, and may be replaced. The account of steps may write in the media
root where its owner allows that, so no link is followed there.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from domain.kernel.ids import new_id
from workers.jobs import folders

_FOLDER: Final = ".published"
_LONGEST: Final = 4096
"""Bytes of a client's name, and more."""


class PublishedByAnother(Exception):
    """A job of another client has published this file."""

    def __init__(self, name: str) -> None:
        super().__init__(f"A job of another client has published {name}; it is not replaced.")


class Publishers:
    """The notes below one media root. `client` claims `place`, which is below the root."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def claim(self, place: Path, client: str, *, name: str) -> None:
        """Raises `PublishedByAnother` with the `name` under which the file was to be published."""
        note = sha256(os.fsencode(place.relative_to(self._root))).hexdigest()
        made = f"{note}.{new_id().hex}"
        with folders.folder(self._root, (_FOLDER, note[:2]), make=True) as notes:
            _write(notes, made, client)
            try:
                os.link(made, note, src_dir_fd=notes, dst_dir_fd=notes, follow_symlinks=False)
            except FileExistsError:
                if _read(notes, note) != client:
                    if place.exists():
                        raise PublishedByAnother(name) from None
                    os.replace(made, note, src_dir_fd=notes, dst_dir_fd=notes)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(made, dir_fd=notes)


def _write(notes: int, name: str, client: str) -> None:
    with open(os.open(name, folders.NEW_FILE, 0o600, dir_fd=notes), "w") as file:
        file.write(client)


def _read(notes: int, name: str) -> str | None:
    """None: it is no note."""
    file = os.open(name, folders.FILE, dir_fd=notes)
    try:
        ours = stat.S_ISREG(os.fstat(file).st_mode)
        return os.read(file, _LONGEST).decode(errors="replace") if ours else None
    finally:
        os.close(file)
