"""The file of a sealed partition: its commits and events as text, which can be verified without a database.

The file holds lines of JSON, compressed by gzip: a header, then each commit followed by its events. The chain hash in the header is
that of the seal. It fixes the log's id, all commits and all events, but not the epoch, the time of sealing and the partition's own
bounds, which are for people.
"""

from __future__ import annotations

import gzip
import os
import struct
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import UUID

from pydantic_core import from_json, to_json

from projections.audit.chain import Chain, Commit, Link, LogDamaged
from projections.audit.redactions import Redactions
from projections.audit.seals import LogPartition, Seal
from projections.audit.stored_log import Progress, StoredLog, check_events
from projections.consumers.timeline import EPOCH
from projections.log.hash_chain import genesis

FORMAT: Final = "medialedger log partition 1"
_LEVEL: Final = 6
_REPORTED: Final = 1_000
_LONGEST_LINE: Final = 32 * 1024 * 1024
"""The longest line in bytes. A parsed line may take thirty times its size."""
_MOST_EVENTS: Final = 1_000_000
"""The most events of one commit. Their hashes are in memory until its end; an append has far fewer."""
_NUMBERS: Final = ("epoch", "first_position", "last_position", "after", "after_commit", "through", "last_commit")
_EVENT: Final = ("stream", "version", "topic", "event_id", "metadata", "state", "salt")
_ERASED: Final = ("metadata_hash", "state_hash", "metadata_redaction", "state_redaction")
"""The members that only redacted events have."""


class FileDamaged(Exception):
    """Raised when the file cannot be read, or is not the file of a partition."""


@dataclass(frozen=True, slots=True)
class PartitionHeader:
    """The first line of a file.

    The partition covers the positions `first_position` to `last_position`; the file has the commits that begin in it, with the
    events after the position `after` up to `through`.
    """

    log_id: UUID
    epoch: int
    first_position: int
    last_position: int
    after: int
    after_commit: int
    after_chain_hash: bytes
    through: int
    last_commit: int
    chain_hash: bytes
    sealed_at: datetime

    @property
    def start(self) -> Link:
        return Link(self.after, self.after_commit, self.after_chain_hash)

    @property
    def end(self) -> Link:
        return Link(self.through, self.last_commit, self.chain_hash)

    def line(self) -> bytes:
        shown = {name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(self).items()}
        return to_json({"format": FORMAT, **shown}) + b"\n"

    @classmethod
    def read(cls, line: bytes) -> PartitionHeader:
        document = _object(line, 1)
        if document.pop("format", None) != FORMAT:
            raise FileDamaged("it is not the file of a partition of the log")
        with _readable(1):
            hashes = {name: bytes.fromhex(document[name]) for name in ("after_chain_hash", "chain_hash")}
            if not all(type(value) is int for name, value in document.items() if name in _NUMBERS):
                raise ValueError("no position")
            read = {
                **document,
                **hashes,
                "log_id": UUID(document["log_id"]),
                "sealed_at": datetime.fromisoformat(document["sealed_at"]),
            }
            return cls(**read)


def export(stored: StoredLog, partition: LogPartition, *, before: Seal | None, path: Path, seen: Progress) -> PartitionHeader:
    """Write the file of a sealed partition, readable by its owner only, and recompute its hashes meanwhile.

    `before` is the seal of the previous partition. The file appears when it is complete. Raise `FileExistsError` and `LogDamaged`.
    """
    assert partition.seal is not None, "only a sealed partition is exported"
    start, end = before.end if before is not None else stored.start(), partition.seal.end
    [log_id], [epoch] = stored.rows("SELECT log_id FROM log_identity")[0], stored.rows(EPOCH)[0]
    header = PartitionHeader(
        log_id=log_id,
        epoch=epoch,
        first_position=partition.first,
        last_position=partition.last,
        after=start.position,
        after_commit=start.number,
        after_chain_hash=start.chain_hash,
        through=end.position,
        last_commit=end.number,
        chain_hash=end.chain_hash,
        sealed_at=partition.seal.sealed_at.astimezone(UTC),
    )
    if path.exists():
        raise FileExistsError(path)
    made, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")  # with mode 0600
    try:
        with os.fdopen(made, "wb") as raw:
            with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=raw, mtime=0) as file:
                file.write(header.line())
                _write_commits(stored, header, file, seen=seen)
            raw.flush()
            os.fsync(raw.fileno())
        os.link(name, path)  # fails if a file was created in the meantime
    finally:
        os.unlink(name)
    _sync(path.parent)
    return header


def _write_commits(stored: StoredLog, header: PartitionHeader, file: gzip.GzipFile, *, seen: Progress) -> None:
    chain, redactions = Chain(header.start), Redactions()
    for commit, events in stored.commits(after=header.after, through=header.through, seen=seen):
        chain.expect(commit)
        file.write(_commit_line(commit))
        leaves = []
        for position, *columns, time, _ in check_events(commit, events):
            leaves.append(redactions.leaf(position, columns, recorded_micros=time))
            file.write(_event_line(columns))
        chain.add(commit, leaves)
    redactions.finish(stored.event)
    _expect_end(chain, header)


def _expect_end(chain: Chain, header: PartitionHeader) -> None:
    if chain.end != header.end:
        raise LogDamaged(chain.end.position + 1, f"the commits up to {chain.end.position} are not those of the seal")


def _commit_line(commit: Commit) -> bytes:
    shown = {
        "commit": commit.number,
        "first": commit.first,
        "last": commit.last,
        "recorded_micros": commit.recorded_micros,
        "root": commit.root.hex(),
        "chain_hash": commit.chain_hash.hex(),
    }
    return to_json(shown) + b"\n"


def _event_line(columns: Sequence[Any]) -> bytes:
    event = dict(zip(_EVENT, columns, strict=False))
    state = event.pop("state")
    try:
        event["state"] = state.decode()
    except UnicodeDecodeError:
        event["state_base64"] = b64encode(state).decode()
    erased = {name: value for name, value in zip(_ERASED, columns[len(_EVENT) :], strict=True) if value is not None}
    shown = {name: value.hex() if isinstance(value, bytes) else value for name, value in {**event, **erased}.items()}
    return to_json(shown) + b"\n"


def verify_file(path: Path, *, seen: Progress) -> tuple[PartitionHeader, Sequence[int]]:
    """Recompute the hashes of a file, without a database. Return its header, and the positions of redactions of its events that
    come after the file: the log itself has to prove these.

    The file is then consistent with its header. Only a chain hash of the seal that is stored elsewhere can show that the header
    itself is genuine. Raise `FileDamaged`, `LogDamaged` and OSError.
    """
    with path.open("rb") as raw:
        lines = _lines(raw)
        header = PartitionHeader.read(next(lines, (1, b""))[1])
        if header.after == 0 and header.start != Link(0, 0, genesis(header.log_id)):
            raise LogDamaged(1, "the log does not begin with its identity")
        chain, redactions = Chain(header.start), Redactions()
        for number, line in lines:
            commit = _read_commit(line, number)
            chain.expect(commit)
            if commit.last > header.through:
                raise LogDamaged(commit.first, "a commit extends beyond the end in the file's header")
            chain.add(commit, _read_leaves(commit, lines, redactions))
            if commit.number % _REPORTED == 0:
                seen(commit.last)
        _expect_end(chain, header)
    if redactions.awaited and redactions.awaited[0] <= header.through:
        raise LogDamaged(
            redactions.awaited[0], f"the event {redactions.awaited[0]} is not a redaction, but other events name it as theirs"
        )
    return header, redactions.awaited


def _read_commit(line: bytes, at: int) -> Commit:
    document = _object(line, at)
    with _readable(at):
        numbers = [document[name] for name in ("last", "commit", "first", "recorded_micros")]
        if not all(type(value) is int and value < 1 << 63 for value in numbers) or not 1 <= document["first"] <= document["last"]:
            raise ValueError("no commit has such positions")
        if document["last"] - document["first"] >= _MOST_EVENTS:
            raise ValueError("no commit has so many events")
        last, number, first, recorded_micros = numbers
        root, chain_hash = bytes.fromhex(document["root"]), bytes.fromhex(document["chain_hash"])
        return Commit(last, number, first, recorded_micros, root, chain_hash)


def _read_leaves(commit: Commit, lines: Iterator[tuple[int, bytes]], redactions: Redactions) -> list[bytes]:
    leaves = []
    for position in range(commit.first, commit.last + 1):
        number, line = next(lines, (0, b""))
        if not number:
            raise LogDamaged(position, f"there is no event at position {position}")
        document = _object(line, number)
        with _readable(number):
            state = document["state"].encode() if "state" in document else b64decode(document["state_base64"], validate=True)
            salt, hashes = (
                document["salt"],
                [None if document.get(name) is None else bytes.fromhex(document[name]) for name in _ERASED[:2]],
            )
            read = {
                **document,
                "event_id": UUID(document["event_id"]),
                "state": state,
                "salt": None if salt is None else bytes.fromhex(salt),
            }
            columns = [*(read[name] for name in _EVENT), *hashes, *(document.get(name) for name in _ERASED[2:])]
            leaves.append(redactions.leaf(position, columns, recorded_micros=commit.recorded_micros))
    return leaves


def _lines(raw: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers."""
    number = 0
    try:
        with gzip.GzipFile(fileobj=raw) as file:
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if not line.endswith(b"\n"):
                    raise FileDamaged(f"line {number} is too long or not whole")
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise FileDamaged(f"it cannot be read after line {number}: {fault}") from None


def _object(line: bytes, number: int) -> dict[str, Any]:
    with _readable(number):
        document = from_json(line)
        if not isinstance(document, dict):
            raise ValueError("no object")
        return document


@contextmanager
def _readable(number: int) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, struct.error):
        raise FileDamaged(f"line {number} does not have the product's format") from None


def _sync(directory: Path) -> None:
    """Write the name of a new file to disk."""
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
