"""Which client published a file: no job replaces what a job of another client has published.

    .published/<hash of the path>     the name of the client

It is noted before the file is moved to its place, so a file that a job published is never there without. A note whose file was
removed counts for nothing. Files that no job published have none, and may be replaced.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Final

from domain.kernel.ids import new_id

_FOLDER: Final = ".published"


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
        note = self._note(place)
        note.parent.mkdir(parents=True, exist_ok=True)
        made = note.with_name(f"{note.name}.{new_id().hex}")
        made.write_text(client)
        try:
            os.link(made, note)
        except FileExistsError:
            if note.read_text() != client:
                if place.exists():
                    raise PublishedByAnother(name) from None
                os.replace(made, note)
        finally:
            made.unlink(missing_ok=True)

    def _note(self, place: Path) -> Path:
        digest = sha256(os.fsencode(place.relative_to(self._root))).hexdigest()
        return self._root / _FOLDER / digest[:2] / digest
