"""`medialedger audit` on the database: verifies the log's hash chain, and dispatches to the exports and proofs for auditors."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import psycopg
from pydantic import ValidationError

from api.cli.command import NOT_WHOLE
from api.cli.output import show_event_count
from api.cli.run.core import open_vault
from api.cli.run.database import first_line, open_database
from api.cli.terminal_text import printable
from api.wiring.catalogue import catalogue, views
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.errors import NotFound, Unavailable
from domain.kernel.ids import canonical
from domain.kernel.mapper import EventMapper, UnknownTopic
from projections.audit.chain import LogDamaged
from projections.audit.checkpoint import NoCheckpoint
from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.checkpoints import Checkpoints, StoredAnchor, StoredCheckpoint
from projections.audit.log_export import ExportSelection, export_log, export_stream
from projections.audit.partition_file import FileDamaged, verify_file
from projections.audit.replay import Replay, Replayed
from projections.audit.sealing import Sealed, seal
from projections.audit.stored_checkpoint import last_note
from projections.audit.stored_log import StoredLog
from projections.audit.verify import Extent, verify


async def verify_log(settings: Settings, *, since_seal: bool, since: int | Path | None) -> int:
    """Verify the log of the database. A damaged log has its own exit code, so that an unreachable database raises no alarm about
    tampering."""
    extent = _extent(since_seal, since)
    async with open_database(settings) as database:
        check = partial(verify, database.url, progress=show_event_count, extent=extent)
        try:
            result = await asyncio.to_thread(check)
        except psycopg.Error as error:
            raise StartError(f"the log cannot be read: {first_line(error)}") from None
        except NoCheckpoint as fault:
            raise StartError(f"{since} is not a checkpoint of this log: {fault}") from None
    events = f"{result.checked} events"
    if result.valid and not extent.whole:
        ends = "the last seal" if since_seal else "a commit" if extent.checkpoint is None else "the checkpoint"
        print(f"the log is intact after position {result.since}, where {ends} ends: {result.checked - result.since} events")
        return 0
    if result.valid:
        print(f"the log is intact: {events}, each in its position\n{await anchors_of_log(settings)}")
        return 0
    print(f"the log is damaged at position {result.first_bad_position}: {result.reason} ({events} before it are intact)")
    return NOT_WHOLE


def _extent(since_seal: bool, since: int | Path | None) -> Extent:
    if not isinstance(since, Path):
        return Extent(since_seal=since_seal, since=since or 0)
    try:
        text = since.read_text(encoding="utf-8")
    except OSError as error:
        raise StartError(f"{since} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StartError(f"{since} is not a checkpoint: it is not text") from None
    return Extent(checkpoint=last_note(text))


def verify_partition_file(file: Path, *, chain_hash: str | None) -> int:
    """Verify the file of an exported partition; no database is needed."""
    try:
        header, elsewhere = verify_file(file, seen=show_event_count)
    except OSError as error:
        raise StartError(f"{file} cannot be read: {error.strerror}") from None
    except FileDamaged as damage:
        print(printable(f"{file}: {damage}"))
        return NOT_WHOLE
    except LogDamaged as damage:
        print(printable(f"{file} is damaged at position {damage.position}: {damage.reason}"))
        return NOT_WHOLE
    if chain_hash is not None and chain_hash.lower() != header.chain_hash.hex():
        print(f"{file} is whole, but its chain hash is {header.chain_hash.hex()}")
        return NOT_WHOLE
    print(
        f"{file} is whole: events {header.after + 1} to {header.through} of log {header.log_id}, epoch {header.epoch}\n"
        f"chain hash {header.chain_hash.hex()}"
    )
    if elsewhere:
        print(f"some events are erased: {len(elsewhere)} later events of the log must record this, from position {elsewhere[0]} on")
    return 0


T = TypeVar("T")


async def print_checkpoint(settings: Settings, *, now: bool) -> int:
    """Print the last checkpoint. Standard output holds only the signed note, so that it can be stored unchanged; standard error
    holds the anchors, for people."""
    if now:
        await _seal_all(settings, rotate=False)
    latest = await _read(settings, _last)
    if latest is None:
        raise StartError("the log has no checkpoint yet; `medialedger audit checkpoint --now` signs one")
    last, anchors = latest
    print(last.note, end="")
    print(printable(anchors_sentence(anchors)), file=sys.stderr)
    return 0


async def print_keys(settings: Settings, *, whole: bool) -> None:
    keys = await _read(settings, lambda stored: [text for (text,) in stored.rows(PUBLIC_KEYS)])
    if not keys:
        raise StartError("the log has no key yet; its first checkpoint creates one")
    print("\n".join(keys if whole else keys[-1:]))


async def rotate_key(settings: Settings) -> None:
    sealed = await _seal_all(settings, rotate=True)
    if sealed is None:
        raise StartError("the log is empty; its first checkpoint creates a key")
    print(f"checkpoint {sealed.number} is signed by the previous key and by the new one:\n{sealed.checkpoint.next_key}")


async def export(
    settings: Settings,
    output: Path | None,
    *,
    after: int,
    through: int | None,
    recorded_from: datetime | None,
    recorded_to: datetime | None,
    aggregate: str | None,
    key: str | None,
) -> int:
    """Write the export to a new file or to standard output."""

    def write(stored: StoredLog) -> None:
        if key is None:
            selection = ExportSelection(after, through, recorded_from, recorded_to, aggregate)
            _write(output, export_log(stored, selection))
        else:
            _write(output, export_stream(stored, f"{aggregate}:{key}"))

    try:
        await _read(settings, write)
    except (NotFound, Unavailable) as refusal:
        raise StartError(str(refusal)) from None
    except OSError as error:
        raise StartError(f"{output} cannot be written: {error.strerror}") from None
    return 0


def anchors_sentence(anchors: list[StoredAnchor]) -> str:
    if not anchors:
        return (
            "WARNING: no checkpoint is stored outside the database, so anyone with the database and the master key could rewrite "
            "the log "
            "unnoticed: set MEDIALEDGER_SEAL_FILE, MEDIALEDGER_SEAL_BUCKET or MEDIALEDGER_SEAL_TIMESTAMP_URL, or add a webhook "
            "for log.sealed"
        )
    return "anchored by " + ", ".join(f"{anchor.kind} {anchor.place}" for anchor in anchors)


async def anchors_of_log(settings: Settings) -> str:
    """Return a sentence about the anchors of the newest checkpoint that has any."""

    def read(stored: StoredLog) -> str:
        newest = stored.row("SELECT checkpoint FROM checkpoint_anchors ORDER BY checkpoint DESC LIMIT 1")
        last = Checkpoints(stored).last()
        if last is None:
            return "the log has no checkpoint yet: no signature vouches for it"
        number = last.number if newest is None else max(newest[0], 0)
        anchors = Checkpoints(stored).anchors(number)
        note = stored.rows("SELECT position FROM checkpoints WHERE number = %s", number)[0][0]
        return anchors_sentence(anchors) if not anchors else f"{anchors_sentence(anchors)}, up to position {note}"

    return await _read(settings, read)


def _last(stored: StoredLog) -> tuple[StoredCheckpoint, list[StoredAnchor]] | None:
    checkpoints = Checkpoints(stored)
    last = checkpoints.last()
    return None if last is None else (last, checkpoints.anchors(last.number))


def _write(output: Path | None, pieces: Iterator[bytes]) -> None:
    """Write to standard output, or to a file, which appears once it is complete and on disk."""
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    draft = output.with_name(f".{output.name}.part")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, output)
    finally:
        draft.unlink(missing_ok=True)


async def _read(settings: Settings, question: Callable[[StoredLog], T]) -> T:
    async with open_database(settings) as database:

        def read() -> T:
            with StoredLog.connected(database.url, purpose="audit") as stored:
                return question(stored)

        try:
            return await asyncio.to_thread(read)
        except psycopg.Error as error:
            raise StartError(f"the log cannot be read: {first_line(error)}") from None
        except LogDamaged as damage:
            print(f"the log is damaged at position {damage.position}: {damage.reason}")
            raise SystemExit(NOT_WHOLE) from None


async def _seal_all(settings: Settings, *, rotate: bool) -> Sealed | None:
    """Sign checkpoints until the log has nothing unsigned; with `rotate`, sign another that introduces a new key. Return the last
    one."""
    async with open_vault(settings) as (core, vault):

        def run() -> Sealed | None:
            with StoredLog.connected(core.database.conninfo, purpose="audit") as stored:
                last = None
                while (sealed := seal(stored, vault)) is not None:
                    last = sealed
                return seal(stored, vault, rotate=True) if rotate else last

        try:
            return await asyncio.to_thread(run)
        except LogDamaged as damage:
            print(f"the log is damaged at position {damage.position}: {damage.reason}")
            raise SystemExit(NOT_WHOLE) from None


_MOST_SHOWN: Final = 20


async def replay(settings: Settings, aggregate: str, *, key: str | None) -> int:
    event_catalogue = catalogue()
    if aggregate not in event_catalogue.aggregates:
        raise StartError(printable(f"the kind {aggregate} does not exist; choose one of {', '.join(event_catalogue.aggregates)}"))
    mapper = EventMapper(event_catalogue)
    stream = None if key is None else f"{aggregate}:{canonical(key)}"

    def compare(conninfo: str) -> int:
        with Replay.open(conninfo, mapper=mapper, views=views()) as replaying:
            return _report_kind(replaying, aggregate) if stream is None else _report_stream(replaying.of_stream(stream))

    async with open_database(settings) as database:
        try:
            return await asyncio.to_thread(compare, database.url)
        except psycopg.Error as error:
            raise StartError(f"the log or a view cannot be read: {first_line(error)}") from None
        except UnknownTopic as unknown:
            raise StartError(f"the log has events of a type that this version does not know: {unknown.args[0]}") from None
        except (ValidationError, ValueError) as fault:
            print(printable(f"a stored event cannot be read: {first_line(fault)}"))
            return NOT_WHOLE


def _report_stream(replayed: Replayed) -> int:
    if not replayed.version and not replayed.differences:
        raise StartError(printable(f"the log has no events of {replayed.stream}"))
    if replayed.differences:
        print(_difference(replayed))
        return NOT_WHOLE
    events = "1 event gives" if replayed.version == 1 else f"{replayed.version} events give"
    print(f"{printable(replayed.stream)}: {events} what the views show")
    return 0


def _report_kind(replaying: Replay, kind: str) -> int:
    count = events = different = 0
    for replayed in replaying.of_kind(kind):
        count, events = count + 1, events + replayed.version
        if replayed.differences:
            different += 1
            if different <= _MOST_SHOWN:
                print(_difference(replayed))
    if different:
        print(f"{different} of {count} aggregates differ")
        return NOT_WHOLE
    print(f"{events} events of {count} aggregates give what the views show")
    return 0


def _difference(replayed: Replayed) -> str:
    return printable(f"{replayed.stream}, {replayed.version} events: {'; '.join(replayed.differences)}")
