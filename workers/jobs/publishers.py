"""Which client published a file: no job replaces what a job of another client has published, or is about to publish.

    .published/<hash of the path>               who publishes it, and from where
    .published/<hash of the path>.<number>      who publishes it now; the highest number counts

It is noted before the file is moved to its place, so a file that a job published is never there without. A note counts while its
file is in its place, or still where it was made: from there it may be moved at any moment. A note is never changed but superseded
by one with a higher number: of several who publish at the same time one does. Files that no job published have no note and may be
replaced. The account of steps may write in the media root where its owner allows that, so no link is followed there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Final

from domain.job.values import Output
from domain.kernel.ids import new_id
from workers.jobs import folders
from workers.jobs.media_paths import JOBS

_FOLDER: Final = ".published"
_LONGEST: Final = 16384
"""Bytes of a client's name and a path, and more."""


class PublishedByAnother(Exception):
    """A job of another client has published this file."""

    def __init__(self, name: str) -> None:
        super().__init__(f"A job of another client has published {name}; it is not replaced.")


@dataclass(frozen=True, slots=True)
class Note:
    """The client that publishes a file, and where its runs have made it. An empty name: it is no note. `id` makes two notes of the
    same differ in a store that knows versions by their content only."""

    client: str
    made: tuple[str, ...] = ()
    id: str = field(default="", compare=False)

    @classmethod
    def read(cls, content: bytes) -> Note:
        first, *made = os.fsdecode(content).split("\n")
        client, _, id = first.partition(" ")
        return cls(client, tuple(made), id)

    @property
    def content(self) -> bytes:
        return os.fsencode("\n".join((f"{self.client} {self.id}".rstrip(), *self.made)))


def to_claim(outputs: Iterable[Output]) -> list[Output]:
    """Those that are seen by others, by their names: of two clients that publish several of the same paths one gets all of them."""
    return sorted((output for output in outputs if not output.name.startswith(f"{JOBS}/")), key=attrgetter("name"))


class Publishers:
    """The notes below one media root. `client` claims `place`, which is below the root, for the file `made` below the root."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def claim(self, place: Path, client: str, *, made: Sequence[str], name: str) -> None:
        """Raises `PublishedByAnother` with the `name` under which the file was to be published."""
        note, ours = sha256(os.fsencode(place.relative_to(self._root))).hexdigest(), Note(client, ("/".join(made),))
        with folders.folder(self._root, (_FOLDER, note[:2]), make=True) as notes:
            written = f"new.{new_id().hex}"
            try:
                _write(notes, written, ours.content)
                if not _is_linked(notes, written, note):
                    self._supersede(notes, note, written, place, ours, name=name)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(written, dir_fd=notes)

    def _supersede(self, notes: int, note: str, written: str, place: Path, ours: Note, *, name: str) -> None:
        """Unless another client has published the file, or may still do so."""
        while True:
            known = _known(notes, note)
            last = max(known)
            pending = {number for number, one in known.items() if self._is_pending(one)}
            there = self._is_there(place.relative_to(self._root).parts)  # after it: what was moved meanwhile is in its place
            if max(_numbers(notes, note)) != last:
                continue
            if known[last] == ours:
                return
            theirs = there or any(known[number].client != ours.client for number in pending)
            if known[last].client != ours.client and theirs:
                raise PublishedByAnother(name)
            if _is_linked(notes, written, f"{note}.{last + 1}"):
                if max(_numbers(notes, note)) == last + 1:
                    _delete(notes, (f"{note}.{number}" for number in known if number and number not in pending))
                    return
                _delete(notes, [f"{note}.{last + 1}"])  # its number was free because a higher one had superseded it

    def _is_pending(self, note: Note) -> bool:
        return any(self._is_there(made.split("/")) for made in note.made)

    def _is_there(self, parts: Sequence[str]) -> bool:
        """Each folder is opened: what NFS remembers to be absent is looked for again then."""
        try:
            with folders.folder(self._root, parts[:-1]) as folder:
                os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def _known(notes: int, note: str) -> Mapping[int, Note]:
    """By their numbers. The first one, which has none, is never deleted."""
    found = {number: _read(notes, f"{note}.{number}" if number else note) for number in _numbers(notes, note)}
    return {number: one for number, one in found.items() if one is not None}


def _numbers(notes: int, note: str) -> Iterator[int]:
    """Of the notes that are there; 0 is that of the first one."""
    yield 0
    for name in os.listdir(notes):
        number = name.removeprefix(f"{note}.")
        if number != name and number.isascii() and number.isdigit():
            yield int(number)


def _is_linked(notes: int, written: str, name: str) -> bool:
    """Whether there was none of this name before."""
    try:
        os.link(written, name, src_dir_fd=notes, dst_dir_fd=notes, follow_symlinks=False)
    except FileExistsError:
        return False
    return True


def _delete(notes: int, names: Iterable[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=notes)


def _write(notes: int, name: str, content: bytes) -> None:
    with open(os.open(name, folders.NEW_FILE, 0o600, dir_fd=notes), "wb") as file:
        file.write(content)


def _read(notes: int, name: str) -> Note | None:
    """None: there is none of this name."""
    try:
        file = os.open(name, folders.FILE, dir_fd=notes)
    except FileNotFoundError:
        return None
    try:
        ours = stat.S_ISREG(os.fstat(file).st_mode)
        return Note.read(os.read(file, _LONGEST)) if ours else Note("")
    finally:
        os.close(file)
