"""The file of a sealed partition: its commits and events as text, which can be verified without a database.

Lines of JSON, compressed by gzip: a header, then each commit with its events after it. The chain hash in the header is the seal's.
It fixes the log's id, all commits and all events; not the epoch, the time of sealing and the partition's own bounds, which are for
people.
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
from projections.audit.stored_log import Progress, StoredLog, whole
from projections.consumers.timeline import EPOCH
from projections.log.hash_chain import genesis

FORMAT: Final = "medialedger log partition 1"
_LEVEL: Final = 6
_TOLD: Final = 1_000
_LONGEST_LINE: Final = 32 * 1024 * 1024
"""Bytes; a parsed line may take thirty times its size."""
_MOST_EVENTS: Final = 1_000_000
"""Of one commit. Their hashes are kept until its end; one append has far fewer."""
_NUMBERS: Final = ("epoch", "first_position", "last_position", "after", "after_commit", "through", "last_commit")
_EVENT: Final = ("stream", "version", "topic", "event_id", "metadata", "state", "salt")
_ERASED: Final = ("metadata_hash", "state_hash", "metadata_redaction", "state_redaction")
"""Of redacted events only."""


class FileDamaged(Exception):
    """The file cannot be read, or is not the file of a partition."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line. The partition is for the positions `first_position` to `last_position`; the file has the commits that begin
    in it, with the events after the position `after` up to `through`."""

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
    def read(cls, line: bytes) -> Header:
        given = _object(line, 1)
        if given.pop("format", None) != FORMAT:
            raise FileDamaged("it is not the file of a partition of the log")
        with _readable(1):
            hashes = {name: bytes.fromhex(given[name]) for name in ("after_chain_hash", "chain_hash")}
            if not all(type(value) is int for name, value in given.items() if name in _NUMBERS):
                raise ValueError("no position")
            read = {**given, **hashes, "log_id": UUID(given["log_id"]), "sealed_at": datetime.fromisoformat(given["sealed_at"])}
            return cls(**read)


def export(stored: StoredLog, partition: LogPartition, *, before: Seal | None, path: Path, seen: Progress) -> Header:
    """Write the file of a sealed partition, for its owner only; its hashes are computed again meanwhile. `before` is the seal of
    the partition before it. The file appears when it is whole. Raises `FileExistsError` and `LogDamaged`."""
    assert partition.seal is not None, "only a sealed partition is exported"
    start, end = before.end if before is not None else stored.start(), partition.seal.end
    [log_id], [epoch] = stored.rows("SELECT log_id FROM log_identity")[0], stored.rows(EPOCH)[0]
    header = Header(
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
        os.link(name, path)  # fails where a file has come meanwhile
    finally:
        os.unlink(name)
    _sync(path.parent)
    return header


def _write_commits(stored: StoredLog, header: Header, file: gzip.GzipFile, *, seen: Progress) -> None:
    chain, redactions = Chain(header.start), Redactions()
    for commit, events in stored.commits(after=header.after, through=header.through, seen=seen):
        chain.expect(commit)
        file.write(_commit_line(commit))
        leaves = []
        for position, *columns, time, _ in whole(commit, events):
            leaves.append(redactions.leaf(position, columns, recorded_micros=time))
            file.write(_event_line(columns))
        chain.add(commit, leaves)
    redactions.finish(stored.event)
    _expect_end(chain, header)


def _expect_end(chain: Chain, header: Header) -> None:
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


def verify_file(path: Path, *, seen: Progress) -> tuple[Header, Sequence[int]]:
    """Compute the hashes of a file again. Needs no database. Raises `FileDamaged` and `LogDamaged`, and OSError. The positions are
    those of redactions of its events that come after the file: the log itself has to show them.

    The file is then what its header says. Whether the header is that of the log's seal, only who has kept the seal's chain hash
    elsewhere can tell."""
    with path.open("rb") as raw:
        lines = _lines(raw)
        header = Header.read(next(lines, (1, b""))[1])
        if header.after == 0 and header.start != Link(0, 0, genesis(header.log_id)):
            raise LogDamaged(1, "the log does not begin with its identity")
        chain, redactions = Chain(header.start), Redactions()
        for number, line in lines:
            commit = _read_commit(line, number)
            chain.expect(commit)
            if commit.last > header.through:
                raise LogDamaged(commit.first, "a commit goes on beyond the end of the file's header")
            chain.add(commit, _read_leaves(commit, lines, redactions))
            if commit.number % _TOLD == 0:
                seen(commit.last)
        _expect_end(chain, header)
    if redactions.awaited and redactions.awaited[0] <= header.through:
        raise LogDamaged(redactions.awaited[0], f"the event {redactions.awaited[0]} is no redaction, but others name it as theirs")
    return header, redactions.awaited


def _read_commit(line: bytes, at: int) -> Commit:
    given = _object(line, at)
    with _readable(at):
        numbers = [given[name] for name in ("last", "commit", "first", "recorded_micros")]
        if not all(type(value) is int and value < 1 << 63 for value in numbers) or not 1 <= given["first"] <= given["last"]:
            raise ValueError("no commit has such positions")
        if given["last"] - given["first"] >= _MOST_EVENTS:
            raise ValueError("no commit has so many events")
        last, number, first, recorded_micros = numbers
        root, chain_hash = bytes.fromhex(given["root"]), bytes.fromhex(given["chain_hash"])
        return Commit(last, number, first, recorded_micros, root, chain_hash)


def _read_leaves(commit: Commit, lines: Iterator[tuple[int, bytes]], redactions: Redactions) -> list[bytes]:
    leaves = []
    for position in range(commit.first, commit.last + 1):
        number, line = next(lines, (0, b""))
        if not number:
            raise LogDamaged(position, f"there is no event at position {position}")
        given = _object(line, number)
        with _readable(number):
            state = given["state"].encode() if "state" in given else b64decode(given["state_base64"], validate=True)
            salt, hashes = given["salt"], [None if given.get(name) is None else bytes.fromhex(given[name]) for name in _ERASED[:2]]
            read = {
                **given,
                "event_id": UUID(given["event_id"]),
                "state": state,
                "salt": None if salt is None else bytes.fromhex(salt),
            }
            columns = [*(read[name] for name in _EVENT), *hashes, *(given.get(name) for name in _ERASED[2:])]
            leaves.append(redactions.leaf(position, columns, recorded_micros=commit.recorded_micros))
    return leaves


def _lines(raw: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """With their numbers."""
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
        given = from_json(line)
        if not isinstance(given, dict):
            raise ValueError("no object")
        return given


@contextmanager
def _readable(number: int) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, struct.error):
        raise FileDamaged(f"line {number} is not as the product writes it") from None


def _sync(directory: Path) -> None:
    """The name of a new file is on disk."""
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
