"""`medialedger audit checkpoint`, `key`, `rotate-key`, `export` and `verifier`: what an auditor takes away."""

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
from api.cli.database import first_line, open_database
from api.cli.open_vault import open_vault
from api.cli.printable import printable
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
    """The note on the standard output, so that it can be kept as it is; the rest is for people."""
    if args.now:
        await _sealed(settings, rotate=False)
    found = await _read(settings, _last)
    if found is None:
        raise StartError("the log is not sealed yet; `medialedger audit checkpoint --now` does it")
    last, anchors = found
    print(last.note, end="")
    print(printable(anchored(anchors)), file=sys.stderr)
    return 0


async def key(args: Namespace, settings: Settings) -> int:
    keys = await _read(settings, lambda stored: [text for (text,) in stored.rows(PUBLIC_KEYS)])
    if not keys:
        raise StartError("the log has no key yet; its first checkpoint makes one")
    print("\n".join(keys if args.all else keys[-1:]))
    return 0


async def rotate_key(args: Namespace, settings: Settings) -> int:
    sealed = await _sealed(settings, rotate=True)
    if sealed is None:
        raise StartError("the log is empty; its first checkpoint makes a key")
    print(f"checkpoint {sealed.number} is signed by the key before and by the new one:\n{sealed.checkpoint.next_key}")
    return 0


async def export(args: Namespace, settings: Settings) -> int:
    """To a file that is not there yet, or to the standard output."""

    def write(stored: StoredLog) -> None:
        if args.id is None:
            selection = Selection(args.after, args.through, args.recorded_from, args.recorded_to, args.aggregate)
            _write(args.output, export_log(stored, selection))
        else:
            _write(args.output, export_stream(stored, f"{args.aggregate}:{args.id}"))

    if args.id is not None and args.aggregate is None:
        raise StartError("--id needs --aggregate")
    if args.output is not None and args.output.exists():
        raise StartError(f"{args.output} is there already")
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


def anchored(anchors: list[Anchor]) -> str:
    if not anchors:
        return (
            "WARNING: nothing outside of the database keeps a checkpoint; who has it and the master key could write the log anew: "
            "set MEDIALEDGER_SEAL_FILE, MEDIALEDGER_SEAL_BUCKET or MEDIALEDGER_SEAL_TIMESTAMP_URL, or have a webhook for log.sealed"
        )
    return "anchored by " + ", ".join(f"{anchor.kind} {anchor.place}" for anchor in anchors)


async def anchors_of_log(settings: Settings) -> str:
    """Of the newest checkpoint that has any; the sentence about it."""

    def look(stored: StoredLog) -> str:
        newest = stored.row("SELECT checkpoint FROM checkpoint_anchors ORDER BY checkpoint DESC LIMIT 1")
        last = Checkpoints(stored).last()
        if last is None:
            return "the log is not sealed: nobody has signed for it yet"
        number = last.number if newest is None else max(newest[0], 0)
        found = Checkpoints(stored).anchors(number)
        note = stored.rows("SELECT position FROM checkpoints WHERE number = %s", number)[0][0]
        return anchored(found) if not found else f"{anchored(found)}, up to position {note}"

    return await _read(settings, look)


def _last(stored: StoredLog) -> tuple[StoredCheckpoint, list[Anchor]] | None:
    checkpoints = Checkpoints(stored)
    last = checkpoints.last()
    return None if last is None else (last, checkpoints.anchors(last.number))


def _write(output: Path | None, pieces: Iterator[bytes]) -> None:
    """A file appears when it is whole and on disk."""
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
    async with open_database(settings) as found:

        def read() -> T:
            with StoredLog.connected(found.url, purpose="audit") as stored:
                return question(stored)

        try:
            return await asyncio.to_thread(read)
        except psycopg.Error as error:
            raise StartError(f"the log cannot be read: {first_line(error)}") from None
        except LogDamaged as damage:
            print(f"the log does not fit at position {damage.position}: {damage.reason}")
            raise SystemExit(NOT_WHOLE) from None


async def _sealed(settings: Settings, *, rotate: bool) -> Sealed | None:
    """Seals all that is there."""
    async with open_vault(settings) as (core, vault):

        def run() -> Sealed | None:
            with StoredLog.connected(core.database.conninfo, purpose="audit") as stored:
                found = None
                while (sealed := seal(stored, vault)) is not None:
                    found = sealed
                return seal(stored, vault, rotate=True) if rotate else found

        try:
            return await asyncio.to_thread(run)
        except LogDamaged as damage:
            print(f"the log does not fit at position {damage.position}: {damage.reason}")
            raise SystemExit(NOT_WHOLE) from None
