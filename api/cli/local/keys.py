"""`medialedger keys`: imports and exports content keys, replaces the master key, and checks a packager's document. It needs the
master key file: without it nothing in the vault can be decrypted."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from api.cli import shell
from api.cli.run.core import open_vault
from api.cli.run.database import check_owner, open_database
from api.cli.shell import confirm
from api.cli.terminal_text import printable
from api.speke.cpix.errors import SpekeError
from api.speke.cpix.request import dry_run
from api.speke.key_document import InvalidKeyDocument, document_of, keys_of
from api.wiring.core import Core, prepare
from api.wiring.settings import Settings
from api.wiring.startup import LOST_KEY, StartError
from api.wiring.workers import prepared_core
from domain.client.aggregate import Client
from domain.content_key.aggregate import ContentKey, Usage
from domain.content_key.handlers import ContentKeyHandlers, KeyRequest
from domain.kernel.encryption import KeyRing, fingerprint
from domain.kernel.errors import DomainError, NotFound
from projections.content_key.queries import ContentKeyQueries
from projections.kernel.database.database import Database
from projections.kernel.database.page import LARGEST, Window
from projections.kernel.schema.builds import LivingProcess, living
from projections.vault.master_keys import NamedKeys, named_keys, replace_lost_key, unreadable_secrets
from projections.vault.rotation import Rotation
from projections.vault.vault import Vault
from workers.adapters.keyfiles import (
    first_master_key,
    forget_previous_master_key,
    has_master_key,
    master_key,
    previous_master_key,
    read_secret_file,
    readable_master_keys,
    replace_master_key,
    write_secret_file,
)

_EXPORTED = "export"


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn the refusals of the domain and the faults of a document into the line of an error."""
    try:
        yield
    except (DomainError, InvalidKeyDocument) as refusal:
        raise StartError(str(refusal)) from None
    except SpekeError as fault:
        raise StartError(fault.sentence) from None


async def import_keys(settings: Settings, file: Path, *, client: str) -> None:
    with _refusals():
        keys = keys_of(read_secret_file(file).encode(), client=client)
        async with open_vault(settings) as (wired, vault):
            if await wired.directory.find(client) is None:
                raise NotFound(Client.KIND, client)
            new = await _handlers(wired, vault).import_keys(keys, invocation=shell.invocation())
    print(f"{new} of {len(keys)} keys are new")


async def export_keys(settings: Settings, content_id: str, *, client: str, output: Path) -> None:
    """Write the keys of one content to a file. The export is recorded in the log as a use of each key."""
    with _refusals():
        async with open_vault(settings) as (wired, vault):
            page = await ContentKeyQueries(wired.database).of_content(content_id, client=client, window=Window(LARGEST))
            if not page.results:
                raise StartError(f"{client} has no content keys for {content_id}")
            if page.total > len(page.results):
                raise StartError(f"the content has {page.total} keys; at most {LARGEST} can be exported")
            invocation = shell.invocation()
            requests = [KeyRequest(row.client, row.content_id, row.period, row.kid) for row in page.results]
            keys = await _handlers(wired, vault).issue(requests, invocation=invocation)
            write_secret_file(output, document_of(content_id, keys).decode().rstrip("\n"))
            now = wired.clock()
            exported = [ContentKey.record_usage.on(key.id, Usage(1, now, now, (), (_EXPORTED,))) for key in keys]
            await asyncio.gather(*(wired.executor.execute(command, invocation=invocation) for command in exported))
    print(f"{len(keys)} keys, in the clear: {output}")


async def rotate_master_key(settings: Settings, new_key_file: Path) -> None:
    """Rotate the master key. The files change first, then the database: a process killed between two steps leaves files that can
    decrypt everything."""
    path: Path = settings.master_key_file
    async with open_database(settings) as database:
        check_owner(database)
        await prepared_core(database.url, path, owner=database.owner)
        new = first_master_key(new_key_file)
        replace_master_key(path, new)
        old = previous_master_key(path)
        if old is None:
            raise StartError(f"{new_key_file} holds the current master key")
        async with Database.of_owner(database.owner, size=2) as owner:
            ring = KeyRing(new, previous=old)
            rotation = Rotation(owner, ring=ring, old=fingerprint(old))
            await rotation.begin()
            await rotation.switch(partial(_report_waiting, new=fingerprint(new), printed=set()))
            count = await rotation.run(_progress)
            unreadable = await unreadable_secrets(owner)
        forget_previous_master_key(path)
    print(f"{count} secrets are sealed under the new master key, which is in {path}")
    if unreadable:
        print(f"{unreadable} other secrets can be decrypted with neither key, and are unchanged; {LOST_KEY}")


def _report_waiting(processes: Sequence[LivingProcess], *, new: str, printed: set[str]) -> None:
    """Print on stderr which processes the rotation waits for and why, once for each process and reason."""
    for process in processes:
        if process.master_keys is None:
            what = "belongs to an older build, which cannot load a new key: stop it, or start the current build there"
        elif new in process.master_keys:
            what = "holds the new key, but does not encrypt with it yet"
        else:
            what = f"holds only the old key; it loads master.key and master.key.previous of {process.host} within seconds"
        line = f"waiting for process {process.pid} on {printable(process.host)}: it {what}"
        if line not in printed:
            print(line, file=sys.stderr, flush=True)
            printed.add(line)


async def replace_lost_master_key(settings: Settings, new_key_file: Path, *, yes: bool) -> None:
    """Give the database a new master key. Secrets that are encrypted with the lost key stay as they are."""
    path: Path = settings.master_key_file
    async with open_database(settings) as database:
        check_owner(database)
        await prepare(database.url, owner=database.owner)
        async with Database.of_owner(database.owner, size=1) as owner:
            named = await named_keys(owner)
            if named is None:
                raise StartError("this database has no master key yet; the next start creates one")
            await _check_lost(owner, named, available={fingerprint(key) for key in readable_master_keys(path)})
            confirm(yes, "give up everything that is encrypted with the lost master key")
            new = first_master_key(new_key_file)
            if has_master_key(path) and master_key(path) != new:
                raise StartError(f"{path} holds another key, perhaps that of another database: move it away first")
            replace_master_key(path, new)
            await replace_lost_key(owner, KeyRing(new))
            unreadable = await unreadable_secrets(owner)
    print(f"the database now uses the master key in {path}; {unreadable} secrets cannot be decrypted with it: set them again")


async def _check_lost(database: Database, named: NamedKeys, *, available: set[str]) -> None:
    """Raise `StartError` if the files or a living process hold the keys that the database uses."""
    if named.all <= available:
        raise StartError("the master key of this database exists, so it is not lost: `medialedger keys rotate` replaces it")
    for process in await living(database):
        if named.all <= set(process.master_keys or ()):
            where = f"the process {process.pid} on {printable(process.host)}"
            raise StartError(f"{where} holds the master key, so it is not lost; stop it first")


def _progress(count: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{count}", end="", file=sys.stderr, flush=True)


def _handlers(wired: Core, vault: Vault) -> ContentKeyHandlers:
    return ContentKeyHandlers(wired.executor, ContentKeyQueries(wired.database), vault=vault, random=os.urandom)


def check_request(file: Path) -> int:
    """Check a packager's document and return the exit code. The database is not needed."""
    try:
        body = file.read_bytes()
    except OSError as error:
        raise StartError(f"{file} cannot be read: {error.strerror or error}") from None
    with _refusals():
        errors = dry_run(body)
    for message in errors:
        print(printable(message))
    if not errors:
        print("the document is valid: it would be answered")
    return 1 if errors else 0
