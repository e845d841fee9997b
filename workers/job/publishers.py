"""Notes of the client that published a file: no job replaces a file that a job of another client has published, or is about to
publish.

    .published/<hash of the path>               the client that publishes it, and the source
    .published/<hash of the path>.<number>      the client that publishes it now; the highest number counts

The note is written before the file is moved to its place, so a file that a job published always has one. A note is valid while its
file is in its place, or still where it was made: from there it may be moved at any moment. A note is never changed but superseded
by one with a higher number: of several clients that publish at the same time, one succeeds. Files that no job published have no
note and may be replaced. The account of steps may write in the media root where its owner allows that, so links are not followed
there.
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
from workers.job import folders
from workers.job.media_paths import JOBS

_FOLDER: Final = ".published"
_LONGEST: Final = 16384
"""Bytes to read of a note: enough for the longest client name and path."""


class PublishedByAnother(Exception):
    """Raised when a job of another client has published this file."""

    def __init__(self, name: str) -> None:
        super().__init__(f"A job of another client has published {name}; it is not replaced.")


@dataclass(frozen=True, slots=True)
class PublisherNote:
    """The client that publishes a file, and the places where its runs have made it.

    An empty client means that the file is not a note. `id` makes two notes with the same content differ in a store that identifies
    versions by their content only.
    """

    client: str
    sources: tuple[str, ...] = ()
    id: str = field(default="", compare=False)

    @classmethod
    def read(cls, content: bytes) -> PublisherNote:
        first, *sources = os.fsdecode(content).split("\n")
        client, _, id = first.partition(" ")
        return cls(client, tuple(sources), id)

    @property
    def content(self) -> bytes:
        return os.fsencode("\n".join((f"{self.client} {self.id}".rstrip(), *self.sources)))


def outputs_to_claim(outputs: Iterable[Output]) -> list[Output]:
    """Return the outputs that others can see, sorted by name, so that of two clients that publish several of the same paths, one
    gets all."""
    return sorted((output for output in outputs if not output.name.startswith(f"{JOBS}/")), key=attrgetter("name"))


class Publishers:
    """The notes below one media root. `client` claims `place`, which is below the root, for the file `source` below the root."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def claim(self, place: Path, client: str, *, source: Sequence[str], name: str) -> None:
        """Claim a place for a client. Raises `PublishedByAnother` with the `name` under which the file was to be published."""
        note, ours = sha256(os.fsencode(place.relative_to(self._root))).hexdigest(), PublisherNote(client, ("/".join(source),))
        with folders.folder(self._root, (_FOLDER, note[:2]), make=True) as notes:
            written = f"new.{new_id().hex}"
            try:
                _write(notes, written, ours.content)
                if not _is_linked(notes, written, note):
                    self._supersede(notes, note, written, place, ours, name=name)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(written, dir_fd=notes)

    def _supersede(self, notes: int, note: str, written: str, place: Path, ours: PublisherNote, *, name: str) -> None:
        """Supersede the last note, unless another client has published the file or may still do so."""
        while True:
            existing = _notes_by_number(notes, note)
            last = max(existing)
            pending = {number for number, existing_note in existing.items() if self._is_pending(existing_note)}
            there = self._is_there(
                place.relative_to(self._root).parts
            )  # read after the pending ones: a file moved meanwhile is in its place
            if max(_numbers(notes, note)) != last:
                continue
            if existing[last] == ours:
                return
            theirs = there or any(existing[number].client != ours.client for number in pending)
            if existing[last].client != ours.client and theirs:
                raise PublishedByAnother(name)
            if _is_linked(notes, written, f"{note}.{last + 1}"):
                if max(_numbers(notes, note)) == last + 1:
                    _delete(notes, (f"{note}.{number}" for number in existing if number and number not in pending))
                    return
                _delete(notes, [f"{note}.{last + 1}"])  # the number was free because a higher one had superseded it

    def _is_pending(self, note: PublisherNote) -> bool:
        return any(self._is_there(source.split("/")) for source in note.sources)

    def _is_there(self, parts: Sequence[str]) -> bool:
        """Return True if the file exists. Each folder is opened, so that NFS looks again for files that it remembers as absent."""
        try:
            with folders.folder(self._root, parts[:-1]) as folder:
                os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def _notes_by_number(notes: int, note: str) -> Mapping[int, PublisherNote]:
    """Return the notes by number. The first note, which has no number, is never deleted."""
    by_number = {number: _read(notes, f"{note}.{number}" if number else note) for number in _numbers(notes, note)}
    return {number: content for number, content in by_number.items() if content is not None}


def _numbers(notes: int, note: str) -> Iterator[int]:
    """Yield the numbers of the notes that exist; 0 is the number of the first one."""
    yield 0
    for name in os.listdir(notes):
        number = name.removeprefix(f"{note}.")
        if number != name and number.isascii() and number.isdigit():
            yield int(number)


def _is_linked(notes: int, written: str, name: str) -> bool:
    """Link the written note to this name; return False if the name exists already."""
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


def _read(notes: int, name: str) -> PublisherNote | None:
    """Return the note with this name; None if there is none."""
    try:
        file = os.open(name, folders.FILE, dir_fd=notes)
    except FileNotFoundError:
        return None
    try:
        ours = stat.S_ISREG(os.fstat(file).st_mode)
        return PublisherNote.read(os.read(file, _LONGEST)) if ours else PublisherNote("")
    finally:
        os.close(file)
