"""The finished part of a step's share of the film: files that grow item by item, and a list of what is in them.

A later run of the step copies the complete items of the files of the run before, by the digests in the list, and continues from
there: a worker that was thought dead may still write to them.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from projections.kernel.sizes import MIB
from workers.job.context import StepContext, StepFailed

_LIST: Final = "made.jsonl"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class Reel:
    """The files of the items that a run has made. `names` are its files, in the workspace of the run."""

    def __init__(self, context: StepContext[Any], names: Sequence[str]) -> None:
        self._folder = context.workspace
        self._names = names
        self._list = self._folder / _LIST
        self.made: dict[int, Mapping[str, Any]] = {}
        """The notes about each item that is in the files."""
        for name in names:
            (self._folder / name).touch()
        if context.previous is not None:
            self._take_over(context, context.previous)

    def path(self, name: str) -> Path:
        return self._folder / name

    def add(self, item: int, pieces: Mapping[str, Path], *, note: Mapping[str, Any]) -> None:
        """Append the pieces to the files of their names, and delete the pieces."""
        try:
            digests = self._append(pieces)
        except OSError as fault:
            if fault.errno not in _FULL:
                raise
            raise StepFailed("The disk is full.") from None
        self._note({"item": item, "pieces": digests, "known": note})

    def _append(self, pieces: Mapping[str, Path]) -> Mapping[str, tuple[int, str]]:
        """Append the pieces, and return their sizes and digests."""
        digests = {}
        for name, piece in pieces.items():
            digest, size = sha256(), 0
            with piece.open("rb") as source, self.path(name).open("ab") as target:
                while block := source.read(MIB):
                    target.write(block)
                    digest.update(block)
                    size += len(block)
            digests[name] = (size, digest.hexdigest())
            piece.unlink()
        return digests

    def _note(self, line: Mapping[str, Any]) -> None:
        with self._list.open("a") as listed:
            listed.write(f"{json.dumps(line)}\n")
        self.made[line["item"]] = line["known"]

    def _take_over(self, context: StepContext[Any], before: Path) -> None:
        places = dict.fromkeys(self._names, 0)
        with suppress(OSError, ValueError), (before / _LIST).open() as lines:  # the last line may be cut off
            for line in map(json.loads, lines):
                if context.cancelled or not self._copy_item(before, line["pieces"], places):
                    break
                self._note(line)
        if self.made:
            context.log(f"Continuing after {len(self.made)} items, which the previous run had.")

    def _copy_item(self, before: Path, pieces: Mapping[str, Sequence[Any]], places: dict[str, int]) -> bool:
        """Copy all pieces of an item, or none; return True if they were copied."""
        good = True
        for name, (size, digest) in pieces.items():
            good = good and _copy(before / name, self.path(name), at=places[name], size=size) == digest
        for name, (size, _) in pieces.items():
            if good:
                places[name] += size
            else:
                with self.path(name).open("ab") as file:
                    file.truncate(places[name])
        return good


def _copy(source: Path, target: Path, *, at: int, size: int) -> str:
    digest = sha256()
    with suppress(OSError), source.open("rb") as read, target.open("ab") as written:
        read.seek(at)
        while size and (block := read.read(min(size, MIB))):
            written.write(block)
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()
