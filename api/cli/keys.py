"""`medialedger keys`: content keys in and out, the master key replaced, and a packager's document looked over.

For whoever has the shell and the master key: nobody else can open what is sealed. Issue 6, "Keys".
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from api.cli.database import at_hand
from api.cli.vault import unlocked
from api.core import Core
from api.settings import Settings
from api.speke.cpix.errors import SpekeError
from api.speke.cpix.request import dry_run
from api.speke.key_document import UnfitDocument, document_of, keys_of
from api.startup import StartError
from api.wiring import ground
from domain.client.aggregate import Client
from domain.content_key.aggregate import ContentKey
from domain.kernel.cause import Cause
from domain.kernel.errors import DomainError, NotFound
from domain.kernel.sealed import Sealer
from projections.content_keys.answers import Answered
from projections.content_keys.store import ContentKeys, KeyAsked
from projections.kernel.database import Database
from projections.kernel.page import LARGEST, Window
from projections.vault.rotation import Marks, Rotation
from workers.adapters.keyfiles import (
    fingerprint,
    forget_previous_master_key,
    master_key,
    previous_master_key,
    read_secret_file,
    replace_master_key,
    write_secret_file,
)

_EXPORTED = "export"


async def run(args: Namespace, settings: Settings) -> int:
    try:
        code: int = await _ACTIONS[args.action](args, settings)
    except (DomainError, UnfitDocument) as refusal:
        raise StartError(str(refusal)) from None
    except SpekeError as fault:
        raise StartError(fault.sentence) from None
    return code


async def _import(args: Namespace, settings: Settings) -> int:
    brought = keys_of(read_secret_file(args.file).encode(), client=args.client)
    async with _keys(settings) as (wired, keys):
        await _must_be_client(wired, args.client)
        new = await keys.take_in(brought, cause=Cause.by("system"))
    print(f"{new} of {len(brought)} keys are new")
    return 0


async def _export(args: Namespace, settings: Settings) -> int:
    """Who takes keys out leaves a trace: each key records it as an answer."""
    async with _keys(settings) as (_, keys):
        page = await keys.of_content(args.content_id, client=args.client, window=Window(LARGEST))
        if not page.results:
            raise NotFound(ContentKey.KIND, f"of the content {args.content_id} for the client {args.client}")
        if page.total > len(page.results):
            raise StartError(f"the content has {page.total} keys; at most {LARGEST} can be exported")
        cause = Cause.by("system")
        asked = [KeyAsked(row.client, row.content_id, row.period, row.kid) for row in page.results]
        given = await keys.give(asked, cause=cause)
        write_secret_file(args.output, document_of(args.content_id, given).decode().rstrip("\n"))
        for one in given:
            keys.answered(Answered(one.id, cause.actor, (), _EXPORTED, cause.correlation_id))
    print(f"{len(given)} keys, in the clear: {args.output}")
    return 0


async def _rotate(args: Namespace, settings: Settings) -> int:
    """The files first, then the database: killed between any two steps, what is there still opens everything."""
    path: Path = settings.master_key_file
    async with at_hand(settings) as found:
        await ground(found.url, master_key(path), previous=previous_master_key(path))
        new = master_key(args.new_key_file)
        replace_master_key(path, new)
        old = previous_master_key(path)
        if old is None:
            raise StartError(f"{args.new_key_file} holds the master key that is in use already")
        marks = Marks(old=fingerprint(old), new=fingerprint(new))
        async with Database(found.url, size=2) as owner:
            rotation = Rotation(owner, sealer=Sealer(new, previous=old), marks=marks)
            older = await rotation.begin()
            if older:
                raise StartError(f"{older} processes still know the old master key only; restart them, then run this again")
            count = await rotation.run(_progress)
        forget_previous_master_key(path)
    print(f"{count} secrets are sealed under the new master key, which is in {path}")
    return 0


def _progress(count: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{count}", end="", file=sys.stderr, flush=True)


@asynccontextmanager
async def _keys(settings: Settings) -> AsyncIterator[tuple[Core, ContentKeys]]:
    async with unlocked(settings) as (wired, vault):
        keys = ContentKeys(wired.database, ledger=wired.ledger, vault=vault, clock=wired.clock)
        yield wired, keys
        await keys.stop()


async def _must_be_client(wired: Core, name: str) -> None:
    if await wired.directory.find(name) is None:
        raise NotFound(Client.KIND, name)


async def _dry_run(args: Namespace, settings: Settings) -> int:
    """Asks nothing of the database: the document alone is looked at."""
    try:
        body = args.file.read_bytes()
    except OSError as error:
        raise StartError(f"{args.file} cannot be read: {error.strerror or error}") from None
    faults = dry_run(body)
    for fault in faults:
        print(fault)
    if not faults:
        print("the document would be answered")
    return 1 if faults else 0


_ACTIONS = {"import": _import, "export": _export, "rotate": _rotate, "dry-run": _dry_run}
