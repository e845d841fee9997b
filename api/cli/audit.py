"""`medialedger audit` on the database: verifies the log's hash chain, and dispatches to the exports and proofs for auditors."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from functools import partial
from pathlib import Path

import psycopg

from api.cli.arguments import NOT_WHOLE
from api.cli.audit_proofs import anchors_of_log, checkpoint, export, key, rotate_key, verifier
from api.cli.audit_replay import replay
from api.cli.output import show_event_count
from api.cli.printable import printable
from api.cli.run.database import first_line, open_database
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from projections.audit.chain import LogDamaged
from projections.audit.checkpoint import NoCheckpoint
from projections.audit.kept_checkpoint import last_note
from projections.audit.partition_file import FileDamaged, verify_file
from projections.audit.verify import Extent, verify


async def run(args: Namespace, settings: Settings) -> int:
    if args.action == "verifier":
        return verifier()
    if args.action != "verify":
        actions = {"checkpoint": checkpoint, "key": key, "rotate-key": rotate_key, "export": export, "replay": replay}
        return await actions[args.action](args, settings)
    return await _verify(args, settings) if args.file is None else await verify_partition_file(args)


async def _verify(args: Namespace, settings: Settings) -> int:
    """Verify the log of the database. A damaged log has its own exit code, so that an unreachable database raises no alarm about
    tampering."""
    if args.chain_hash is not None:
        raise StartError("--chain-hash needs --file")
    extent = _extent(args)
    async with open_database(settings) as database:
        check = partial(verify, database.url, progress=show_event_count, extent=extent)
        try:
            result = await asyncio.to_thread(check)
        except psycopg.Error as error:
            raise StartError(f"the log cannot be read: {first_line(error)}") from None
        except NoCheckpoint as fault:
            raise StartError(f"{args.since} is not a checkpoint of this log: {fault}") from None
    events = f"{result.checked} events"
    if result.valid and not extent.whole:
        ends = "the last seal" if args.since_seal else "a commit" if extent.checkpoint is None else "the checkpoint"
        print(f"the log is intact after position {result.since}, where {ends} ends: {result.checked - result.since} events")
        return 0
    if result.valid:
        print(f"the log is intact: {events}, each in its position\n{await anchors_of_log(settings)}")
        return 0
    print(f"the log is damaged at position {result.first_bad_position}: {result.reason} ({events} before it are intact)")
    return NOT_WHOLE


def _extent(args: Namespace) -> Extent:
    if not isinstance(args.since, Path):
        return Extent(since_seal=args.since_seal, since=args.since or 0)
    try:
        text = args.since.read_text(encoding="utf-8")
    except OSError as error:
        raise StartError(f"{args.since} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StartError(f"{args.since} is not a checkpoint: it is not text") from None
    return Extent(checkpoint=last_note(text))


async def verify_partition_file(args: Namespace) -> int:
    """Verify the file of an exported partition; no database is needed."""
    try:
        header, elsewhere = await asyncio.to_thread(partial(verify_file, args.file, seen=show_event_count))
    except OSError as error:
        raise StartError(f"{args.file} cannot be read: {error.strerror}") from None
    except FileDamaged as damage:
        print(printable(f"{args.file}: {damage}"))
        return NOT_WHOLE
    except LogDamaged as damage:
        print(printable(f"{args.file} is damaged at position {damage.position}: {damage.reason}"))
        return NOT_WHOLE
    if args.chain_hash is not None and args.chain_hash.lower() != header.chain_hash.hex():
        print(f"{args.file} is whole, but its chain hash is {header.chain_hash.hex()}")
        return NOT_WHOLE
    print(
        f"{args.file} is whole: events {header.after + 1} to {header.through} of log {header.log_id}, epoch {header.epoch}\n"
        f"chain hash {header.chain_hash.hex()}"
    )
    if elsewhere:
        print(f"some events are erased: {len(elsewhere)} later events of the log must record this, from position {elsewhere[0]} on")
    return 0
