"""The export of the log: lines of JSON that can be verified without the product. docs/explanation/the-log.md describes the lines.

A whole export, or a range of it, has the commits with their events, and the checkpoints. The export of one stream has its events
with the proofs that they are in the log and that none is missing. PostgreSQL makes the lines of events, a slice at a time, so an
export of any length takes little memory and does not keep old rows from VACUUM for long.

Hashes of API keys can be withheld from readers that may not see them: the content of such an event is replaced by its hash, as if
it were erased, so the export can still be verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg import sql
from pydantic_core import to_json

from domain.client.events import KeyIssued
from domain.kernel.errors import NotFound, Unavailable
from projections.audit.chain import Link
from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.checkpoints import Checkpoints, StoredCheckpoint
from projections.audit.stored_log import StoredLog

FORMAT: Final = "medialedger log export 1"
MEDIA_TYPE: Final = "application/x-ndjson"
_SLICE: Final = 5_000
_BEGINS: Final = b'{"position":'
_PIECE: Final = 256 * 1024
_LINK: Final = "SELECT last_position, number, chain_hash FROM commits WHERE last_position <= %s ORDER BY last_position DESC LIMIT 1"
_EPOCHS: Final = "SELECT epoch, since_position FROM log_epochs ORDER BY epoch"
_TIME: Final = """to_char(e.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_ERASED: Final = """CASE WHEN num_nulls(e.state_hash, e.metadata_hash) = 2 THEN '' ELSE
    coalesce(',"state_hash":"' || encode(e.state_hash, 'hex') || @GONE@, '') ||
    coalesce(',"metadata_hash":"' || encode(e.metadata_hash, 'hex') || '","metadata_redaction":' || e.metadata_redaction, '') END"""
_TEXT: Final = """',"state":' || to_json(convert_from(e.state, 'UTF8'))"""
_BYTES: Final = """',"state_base64":"' || translate(encode(e.state, 'base64'), E'\\n', '') || '"'"""
_EVENT: Final = f"""'{{"position":' || e.position || ',"originator_id":' || to_json(e.originator_id)
    || ',"originator_version":' || e.originator_version || ',"topic":' || to_json(e.topic) || ',"event_id":"' || e.event_id
    || '","recorded_at":"' || {_TIME} || '","metadata":' || to_json(e.metadata::text)
    || ',"salt":' || coalesce('"' || encode(e.salt, 'hex') || '"', 'null') || @STATE@ || {_ERASED} || '}}'"""
_GONE: Final = """'","state_redaction":' || e.state_redaction"""
_GONE_OR_WITHHELD: Final = f"""CASE WHEN e.withheld THEN '","state_withheld":true' ELSE {_GONE} END"""
WITHHELD: Final = KeyIssued.TOPIC
"""The topic whose content includes the hash of an API key."""
_WITHHOLDING: Final = f"""(
    SELECT stored.position, originator_id, originator_version, topic, event_id, recorded_at, metadata, metadata_hash,
        metadata_redaction, state_redaction, withheld,
        CASE WHEN withheld THEN redacted_state(recorded_at) ELSE state END AS state,
        CASE WHEN withheld THEN sha256(CASE WHEN metadata_hash IS NULL THEN sha256(salt || '\\x02'::bytea) ELSE salt END || state)
            ELSE state_hash END AS state_hash,
        CASE WHEN NOT withheld THEN salt WHEN metadata_hash IS NULL THEN sha256(salt || '\\x01'::bytea) END AS salt
    FROM events stored CROSS JOIN LATERAL (SELECT topic = '{WITHHELD}' AND state_hash IS NULL AS withheld) AS said
)"""
_COMMIT: Final = """'{"commit":' || c.number || ',"first":' || c.first_position || ',"last":' || c.last_position
    || ',"recorded_micros":' || (extract(epoch FROM c.recorded_at) * 1000000)::bigint || ',"root":"' || encode(c.root, 'hex')
    || '","chain_hash":"' || encode(c.chain_hash, 'hex') || '"}'"""
_COMMITS: Final = f"""
SELECT c.first_position, {_COMMIT} FROM commits c
WHERE c.last_position > %s AND c.first_position > %s AND c.first_position <= %s
    AND c.last_position <= (SELECT last_position FROM commits WHERE last_position >= %s ORDER BY last_position LIMIT 1)
ORDER BY c.last_position
"""
_WHOLE: Final = f"SELECT {_EVENT} FROM @EVENTS@ e WHERE e.position > @AFTER@ AND e.position <= @THROUGH@ ORDER BY e.position"
_KIND: Final = f"""
SELECT {_EVENT} FROM @EVENTS@ e WHERE e.position > @AFTER@ AND e.position <= @THROUGH@ AND split_part(e.topic, '.', 1) = @KIND@
ORDER BY e.position
"""
_STREAM: Final = """
SELECT position, state_redaction, metadata_redaction FROM stream_events
WHERE stream = stream_key(%s) AND version > %s AND version <= %s ORDER BY version LIMIT 500
"""
_ONE: Final = f"SELECT {_EVENT} FROM @EVENTS@ e WHERE e.position = @POSITION@"
_BEYOND: Final = """
SELECT number, note FROM checkpoints WHERE position > (SELECT coalesce(max(last_position), 0) FROM commits) ORDER BY number
"""
_CHECKPOINTS: Final = "SELECT number, note FROM checkpoints WHERE position BETWEEN %s AND %s ORDER BY position, number"


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """The events of an export. `after` is exclusive, `through` and the times are inclusive.

    An export of one `kind` of aggregates cannot be verified, since it has gaps.
    """

    after: int = 0
    through: int | None = None
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    kind: str | None = None

    def shown(self) -> dict[str, Any] | None:
        return None if self.kind is None else {"aggregate": self.kind}


def export_log(stored: StoredLog, selection: ExportSelection, *, withholding: bool = False) -> Iterator[bytes]:
    """Yield the export in pieces, up to the end that the log has at the start. This blocks. With `withholding`, hashes of API keys
    are left out."""
    return _pieces(_LogExport(stored, selection, withholding=withholding).lines())


def export_stream(stored: StoredLog, name: str, *, withholding: bool = False) -> Iterator[bytes]:
    """Return the export of all events of a stream as of the last checkpoint, in pieces.

    Raise `NotFound` if the checkpoint does not have the stream, and `Unavailable` if a redaction of it is newer.
    """
    lines = _StreamExport(stored, name, withholding=withholding).lines()
    first = next(lines)  # fails before the response begins
    return _pieces(_after(first, lines))


def _after(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    gathered, size = [], 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)


class _LogExport:
    def __init__(self, stored: StoredLog, selection: ExportSelection, *, withholding: bool) -> None:
        self._stored = stored
        self._kind = selection.kind
        self._query = _of_events(_WHOLE if self._kind is None else _KIND, withholding=withholding)
        self._checkpoints = Checkpoints(stored)
        self._after, self._head = selection.after, stored.rows(_LINK, 1 << 62)
        end = self._head[0][0] if self._head else 0
        if selection.recorded_from is not None:
            self._after = max(self._after, stored.last_commit("recorded_at < %s", selection.recorded_from))
        if selection.recorded_to is not None:
            end = min(end, stored.last_commit("recorded_at <= %s", selection.recorded_to))
        whole = selection.recorded_to is None and selection.through is None and self._kind is None
        self._beyond = [StoredCheckpoint(*row) for row in stored.rows(_BEYOND)] if whole else []
        """Checkpoints of events that no longer exist, which the export must show."""
        self._through = end if selection.through is None else min(end, selection.through)
        self._selection = selection

    def lines(self) -> Iterator[bytes]:
        yield _line(self._header())
        exported = self._after - 1  # a client whose connection broke may lack the checkpoint there
        for after in range(self._after, self._through, _SLICE):
            through = min(after + _SLICE, self._through)
            checkpoints = self._checkpoints_in(exported + 1, through)
            yield from self._slice(after, through, checkpoints)
            exported = through
        for checkpoint in self._beyond:
            yield _checkpoint_line(checkpoint, self._checkpoints)
        yield _line({"end": self._link(self._through)})

    def _header(self) -> dict[str, Any]:
        before = self._link(self._after)
        return {
            **_identity(self._stored),
            "filter": self._selection.shown(),
            "after": self._after,
            "commit": before["commit"],
            "commit_end": before["position"],
            "chain_hash": before["chain_hash"],
            "tree": self._tree(before["commit"]),
            "head": self._link(1 << 62),
        }

    def _tree(self, size: int) -> list[str]:
        """Return the subtree roots for a reader that continues from here; an empty list if the tree does not reach that far yet."""
        last = self._checkpoints.last()
        covered = last is not None and last.content.commits >= size
        return [hash.hex() for hash in self._checkpoints.subtrees(size)] if size and covered else []

    def _link(self, position: int) -> dict[str, Any]:
        """Return the place behind the last commit that ends at or before the position."""
        row = self._stored.row(_LINK, position)
        link = self._stored.start() if row is None else Link(*row)
        return {"position": link.position, "commit": link.number, "chain_hash": link.chain_hash.hex()}

    def _checkpoints_in(self, first: int, last: int) -> list[StoredCheckpoint]:
        if self._kind is not None:
            return []
        return [StoredCheckpoint(*row) for row in self._stored.rows(_CHECKPOINTS, first, last)]

    def _slice(self, after: int, through: int, checkpoints: Sequence[StoredCheckpoint]) -> Iterator[bytes]:
        """Yield the lines up to the end of each checkpoint, followed by the checkpoint."""
        for checkpoint in checkpoints:
            end = checkpoint.content.events
            if end > after:
                yield from self._copy_events(after, end)
                after = end
            yield _checkpoint_line(checkpoint, self._checkpoints)
        if after < through:
            yield from self._copy_events(after, through)

    def _copy_events(self, after: int, through: int) -> Iterator[bytes]:
        """Yield pieces: the lines of events, with each commit before its first event."""
        commits: Iterator[tuple[int, str]] = iter(())
        if self._kind is None:
            commits = iter(self._stored.rows(_COMMITS, after, after, through, through))
        yield from _interleave(self._events(after, through), commits)

    def _events(self, after: int, through: int) -> Iterator[bytes]:
        """Yield the lines of events. If a state is not text, the rest of the slice has states as bytes."""
        line = b""
        try:
            for line in self._stored.copied(_fill_in(self._query, after=after, through=through, kind=self._kind)):
                yield line
        except (psycopg.errors.CharacterNotInRepertoire, psycopg.errors.UntranslatableCharacter):
            reached = int(line[len(_BEGINS) : line.index(b",")]) if line else after
            yield from self._stored.copied(_fill_in(self._query, state=_BYTES, after=reached, through=through, kind=self._kind))


def _interleave(events: Iterator[bytes], commits: Iterator[tuple[int, str]]) -> Iterator[bytes]:
    """Yield commits and events in order. A commit whose first event is missing comes at the end, so that nothing is hidden from the
    verifier."""
    gathered: list[bytes] = []
    size, following = 0, next(commits, None)
    mark = _mark(following)
    for line in events:
        if mark and line.startswith(mark):
            assert following is not None
            gathered.append(following[1].encode() + b"\n")
            following = next(commits, None)
            mark = _mark(following)
        gathered.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    remaining = [*([] if following is None else [following]), *commits]
    yield b"".join([*gathered, *(line.encode() + b"\n" for _, line in remaining)])


def _mark(commit: tuple[int, str] | None) -> bytes:
    """Return the beginning of the line of the commit's first event."""
    return b"" if commit is None else b"%s%d," % (_BEGINS, commit[0])


class _StreamExport:
    def __init__(self, stored: StoredLog, name: str, *, withholding: bool) -> None:
        self._stored = stored
        self._name = name
        self._query = _of_events(_ONE, withholding=withholding)
        self._checkpoints = Checkpoints(stored)

    def lines(self) -> Iterator[bytes]:
        with self._stored.transaction(one_moment=True):
            last, stream = self._checkpoints.last(), self._checkpoints.stream(self._name)
            if last is None or stream is None:
                sentence = f"No checkpoint includes the stream {self._name} yet."
                raise NotFound("stream", self._name, sentence=sentence)
            size = last.content.commits
            redactions = self._redactions(stream["version"], last.content.events)
            yield _line({**_identity(self._stored), "filter": {"stream": self._name}})
            for checkpoint in (*(earlier for earlier in self._checkpoints.handed_over() if earlier.number < last.number), last):
                yield _checkpoint_line(checkpoint, self._checkpoints)
            yield _line(stream)
            for position in redactions:
                yield b'{"redaction":' + self._event_with_proof(position, size) + b"}\n"
            for position, *_ in self._events(stream["version"]):
                yield self._event_with_proof(position, size) + b"\n"
            yield _line({"end": {"events": stream["version"]}})

    def _events(self, version: int) -> Iterator[tuple[Any, ...]]:
        after = 0
        while rows := self._stored.rows(_STREAM, self._name, after, version):
            yield from rows
            after += len(rows)

    def _redactions(self, version: int, sealed: int) -> list[int]:
        """Return the positions of the redactions of the stream's events that are recorded in other streams.

        Raise `Unavailable` if one is later than the last checkpoint.
        """
        own, named = set(), set()
        for position, *by in self._events(version):
            own.add(position)
            named |= {redaction for redaction in by if redaction is not None}
        if any(redaction > sealed for redaction in named):
            raise Unavailable("the stream was redacted since the last checkpoint; the next one has the proof", retry_after=60)
        return sorted(named - own)

    def _event_with_proof(self, position: int, size: int) -> bytes:
        proof = to_json(self._checkpoints.included(position, size).shown())
        line = next(iter(self._event_lines(position))).rstrip(b"\n")
        return line[:-1] + b',"proof":' + proof + b"}"

    def _event_lines(self, position: int) -> list[bytes]:
        query = sql.SQL(self._query.replace("@POSITION@", str(position)))
        [(state,)] = self._stored.rows("SELECT state FROM events WHERE position = %s", position)
        try:
            text = _TEXT if "\0" not in bytes(state).decode() else _BYTES
        except UnicodeDecodeError:
            text = _BYTES
        return list(self._stored.copied(sql.SQL(query.as_string(None).replace("@STATE@", text))))


def _of_events(query: str, *, withholding: bool) -> str:
    """Return the query over the stored events, or over the events without withheld content."""
    gone, events = (_GONE_OR_WITHHELD, _WITHHOLDING) if withholding else (_GONE, "events")
    return query.replace("@GONE@", gone).replace("@EVENTS@", events)


def _fill_in(query: str, *, after: int, through: int, kind: str | None, state: str = _TEXT) -> sql.Composable:
    """Return the query with its values filled in, because COPY takes no parameters."""
    numbers = query.replace("@STATE@", state).replace("@AFTER@", str(int(after))).replace("@THROUGH@", str(int(through)))
    if kind is None:
        return sql.SQL(numbers)
    before, after_kind = numbers.split("@KIND@")
    return sql.SQL(before) + sql.Literal(kind) + sql.SQL(after_kind)


def _identity(stored: StoredLog) -> dict[str, Any]:
    """Return the members that identify the log and the keys of its checkpoints."""
    stored.start()
    return {
        "export": FORMAT,
        "log_id": str(stored.rows("SELECT log_id FROM log_identity")[0][0]),
        "epochs": [list(row) for row in stored.rows(_EPOCHS)],
        "keys": [key for (key,) in stored.rows(PUBLIC_KEYS)],
    }


def _checkpoint_line(checkpoint: StoredCheckpoint, checkpoints: Checkpoints) -> bytes:
    anchors = [anchor.shown() for anchor in checkpoints.anchors(checkpoint.number)]
    return _line({"checkpoint": checkpoint.note, **({"anchors": anchors} if anchors else {})})


def _line(content: dict[str, Any]) -> bytes:
    return to_json(content) + b"\n"
