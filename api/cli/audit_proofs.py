"""`medialedger audit checkpoint`, `key`, `rotate-key`, `export` and `verifier`: the files and proofs for an auditor."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psycopg

from api.cli.arguments import NOT_WHOLE
from api.cli.printable import printable
from api.cli.run.core import open_vault
from api.cli.run.database import first_line, open_database
from api.cli.verifier_text import verifier_text
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.errors import NotFound, Unavailable
from projections.audit.chain import LogDamaged
from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.checkpoints import Anchor, Checkpoints, StoredCheckpoint
from projections.audit.log_export import Selection, export_log, export_stream
from projections.audit.sealing import Sealed, seal
from projections.audit.stored_log import StoredLog

T = TypeVar("T")


async def checkpoint(args: Namespace, settings: Settings) -> int:
    """Print the last checkpoint. Standard output holds only the signed note, so that it can be stored unchanged; standard error
    holds the anchors, for people."""
    if args.now:
        await _seal_all(settings, rotate=False)
    latest = await _read(settings, _last)
    if latest is None:
        raise StartError("the log has no checkpoint yet; `medialedger audit checkpoint --now` signs one")
    last, anchors = latest
    print(last.note, end="")
    print(printable(anchors_sentence(anchors)), file=sys.stderr)
    return 0


async def key(args: Namespace, settings: Settings) -> int:
    keys = await _read(settings, lambda stored: [text for (text,) in stored.rows(PUBLIC_KEYS)])
    if not keys:
        raise StartError("the log has no key yet; its first checkpoint creates one")
    print("\n".join(keys if args.all else keys[-1:]))
    return 0


async def rotate_key(args: Namespace, settings: Settings) -> int:
    sealed = await _seal_all(settings, rotate=True)
    if sealed is None:
        raise StartError("the log is empty; its first checkpoint creates a key")
    print(f"checkpoint {sealed.number} is signed by the previous key and by the new one:\n{sealed.checkpoint.next_key}")
    return 0


async def export(args: Namespace, settings: Settings) -> int:
    """Write the export to a new file or to standard output."""

    def write(stored: StoredLog) -> None:
        if args.id is None:
            selection = Selection(args.after, args.through, args.recorded_from, args.recorded_to, args.aggregate)
            _write(args.output, export_log(stored, selection))
        else:
            _write(args.output, export_stream(stored, f"{args.aggregate}:{args.id}"))

    if args.id is not None and args.aggregate is None:
        raise StartError("--id needs --aggregate")
    if args.output is not None and args.output.exists():
        raise StartError(f"{args.output} already exists")
    try:
        await _read(settings, write)
    except (NotFound, Unavailable) as refusal:
        raise StartError(str(refusal)) from None
    except OSError as error:
        raise StartError(f"{args.output} cannot be written: {error.strerror}") from None
    return 0


def verifier() -> int:
    print(verifier_text(), end="")
    return 0


def anchors_sentence(anchors: list[Anchor]) -> str:
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


def _last(stored: StoredLog) -> tuple[StoredCheckpoint, list[Anchor]] | None:
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
