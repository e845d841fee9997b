"""The master key replaced: every box under the new key, whenever the work is cut off, and both keys open boxes meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from uuid import UUID

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api.kernel.log import RequestLog
from api.wiring.core import Core, core
from api.wiring.services import services
from domain.kernel.encryption import DecryptionFailed, EncryptedSecret, SecretCipher
from domain.kernel.errors import Refused
from projections.kernel.database import Database
from projections.vault.master_keys import master_key_fits
from projections.vault.rotation import Fingerprints, Rotation
from projections.vault.vault import Vault
from tests.api.asking import logged
from tests.api.media.test_configuration_secrecy import CHANNEL_TEXT
from tests.api.media.test_configuration_secrets import held
from tests.api.serving import NO_FILES
from tests.conftest import HandClock, assembled
from tests.projections.content_keys.issuing import KID, handlers_on, issue, issue_one, key_request, values
from tests.projections.feeding import as_superuser
from workers.adapters.outbound_http import GuardedClient

OLD, NEW = bytes(32), bytes(31) + b"\1"
BEFORE, BOTH, AFTER = SecretCipher(OLD), SecretCipher(NEW, previous=OLD), SecretCipher(NEW)
FINGERPRINTS = Fingerprints(old="old", new="new")
QUESTIONS = [key_request(period=str(number)) for number in range(9)] + [key_request(kid=KID)]


class CutOff(Exception):
    """The work ends here."""


@dataclass
class Cutting:
    """Lets so many batches pass."""

    batches: int

    def __call__(self, _: int) -> None:
        self.batches -= 1
        if not self.batches:
            raise CutOff


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """As the schema's owner, on a database that was started with the old key."""
    async with Database(database_url, size=4) as owner:
        assert await master_key_fits(owner, "old")
        yield owner


def rotation(database: Database, *, batch: int = 3, cipher: SecretCipher = BOTH) -> Rotation:
    return Rotation(database, cipher=cipher, fingerprints=FINGERPRINTS, batch=batch)


async def boxes(database: Database) -> list[EncryptedSecret]:
    rows = await database.rows("SELECT reference, owner, key_id, fingerprint, nonce, ciphertext FROM vault ORDER BY reference")
    return [EncryptedSecret(*row) for row in rows]


async def under(database: Database, cipher: SecretCipher) -> int:
    return sum(box.key_id == cipher.key_id for box in await boxes(database))


async def test_the_same_keys_are_given_before_meanwhile_and_afterwards(inner: Core, database: Database) -> None:
    first = [values(key) for key in await issue(handlers_on(inner), *QUESTIONS)]
    events = await database.rows("SELECT * FROM events")
    before = await boxes(database)
    assert await rotation(database).begin() == 1, "the core of this test"
    with pytest.raises(CutOff):
        await rotation(database).run(Cutting(2))
    assert (await under(database, BEFORE), await under(database, AFTER)) == (4, 6)
    assert [values(key) for key in await issue(handlers_on(inner, cipher=BOTH), *QUESTIONS)] == first
    seen: list[int] = []
    assert await rotation(database).run(seen.append) == 4
    assert seen == [3, 4]
    assert [values(key) for key in await issue(handlers_on(inner, cipher=AFTER), *QUESTIONS)] == first
    assert await database.rows("SELECT * FROM events") == events, "the log was not touched"
    after = await boxes(database)
    for old, new in zip(before, after, strict=True):
        assert (new.reference, new.owner) == (old.reference, old.owner)
        assert (new.ciphertext != old.ciphertext, new.nonce != old.nonce, new.fingerprint != old.fingerprint) == (True, True, True)
        with pytest.raises(DecryptionFailed):
            BEFORE.decrypt(new)
    assert await rotation(database).run(seen.append) == 0


KILLED = """
import asyncio, sys
from domain.kernel.encryption import SecretCipher
from projections.kernel.database import Database
from projections.vault.rotation import Fingerprints, Rotation

def progress(count):
    print(count, flush=True)
    if count == 6:
        sys.stdin.readline()

async def main():
    async with Database(sys.argv[1]) as database:
        cipher = SecretCipher(bytes(31) + b"\\1", previous=bytes(32))
        rotation = Rotation(database, cipher=cipher, fingerprints=Fingerprints("old", "new"), batch=3)
        await rotation.begin()
        await rotation.run(progress)

asyncio.run(main())
"""


async def test_killed_in_the_middle_it_goes_on_where_it_was(inner: Core, database: Database, database_url: str) -> None:
    first = [values(key) for key in await issue(handlers_on(inner), *QUESTIONS)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, database_url, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    while (line := await process.stdout.readline()) != b"6\n":
        assert line, "it ended"
    os.kill(process.pid, signal.SIGKILL)
    await process.communicate()
    assert (await under(database, BEFORE), await under(database, AFTER)) == (4, 6)
    assert not await master_key_fits(database, "new")
    assert [values(key) for key in await issue(handlers_on(inner, cipher=BOTH), *QUESTIONS)] == first
    assert await rotation(database).begin() == 1, "the core of this test"
    assert await rotation(database).run(lambda _: None) == 4
    assert [values(key) for key in await issue(handlers_on(inner, cipher=AFTER), *QUESTIONS)] == first


async def test_what_the_product_seals_meanwhile_is_under_the_new_key_or_found(inner: Core, database: Database) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    await rotation(database).begin()
    with pytest.raises(CutOff):
        await rotation(database).run(Cutting(1))
    new = await issue_one(handlers_on(inner, cipher=BOTH), key_request("made meanwhile"))
    late = await issue_one(handlers_on(inner, cipher=BEFORE), key_request("made by a process that was not started again"))
    assert await under(database, AFTER) == 4
    assert await rotation(database).run(lambda _: None) == 8
    keys = handlers_on(inner, cipher=AFTER)
    assert values(await issue_one(keys, key_request("made meanwhile"))) == values(new)
    assert values(await issue_one(keys, key_request("made by a process that was not started again"))) == values(late)


async def test_two_at_once_do_no_harm(inner: Core, database: Database) -> None:
    first = [values(key) for key in await issue(handlers_on(inner), *QUESTIONS)]
    await asyncio.gather(rotation(database).begin(), rotation(database).begin())
    counts = await asyncio.gather(*(rotation(database, batch=1).run(lambda _: None) for _ in range(2)))
    assert sum(counts) == len(QUESTIONS)
    assert [values(key) for key in await issue(handlers_on(inner, cipher=AFTER), *QUESTIONS)] == first


# --- which keys a process must have to start


async def test_meanwhile_a_process_needs_both_keys_and_afterwards_the_new_one(inner: Core, database: Database) -> None:
    await issue(handlers_on(inner), *QUESTIONS)

    async def fits() -> tuple[bool, bool, bool]:
        """The old key alone; both; the new one alone."""
        both = await master_key_fits(database, "new", previous="old")
        return await master_key_fits(database, "old"), both, await master_key_fits(database, "new")

    assert await fits() == (True, True, False)
    await rotation(database).begin()
    assert await fits() == (False, True, False)
    with pytest.raises(CutOff):
        await rotation(database).run(Cutting(2))
    assert await fits() == (False, True, False)
    await rotation(database).run(lambda _: None)
    assert await fits() == (False, True, True)


async def test_processes_that_know_only_the_old_key_are_counted(
    inner: Core, database: Database, database_url: str, migrated: tuple[str, str | None], clock: HandClock
) -> None:
    before = core(database_url, role=migrated[1], clock=clock)
    await before.start()
    assert await rotation(database).begin() == 2, "these two cores"
    assert await rotation(database).begin() == 2, "still running"
    await before.stop()
    since = core(database_url, role=migrated[1], clock=clock)
    await since.start()
    assert await rotation(database).begin() == 1, "one was started again"
    await since.stop()


async def test_a_database_of_other_keys_is_refused_and_left(inner: Core, database: Database) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    wrong = Rotation(database, cipher=BOTH, fingerprints=Fingerprints(old="another", new="new"))
    with pytest.raises(Refused):
        await wrong.begin()
    await rotation(database).begin()
    for old, new in (("another", "new"), ("new", "third"), ("old", "third")):
        with pytest.raises(Refused):
            await Rotation(database, cipher=BOTH, fingerprints=Fingerprints(old=old, new=new)).begin()
    assert await database.row("SELECT fingerprint, previous FROM master_keys") == ("new", "old")


async def test_a_database_that_nobody_has_started_yet_takes_the_new_key(inner: Core) -> None:
    await rotation(inner.database).begin()
    assert await rotation(inner.database).run(lambda _: None) == 0
    assert await master_key_fits(inner.database, "new")


async def test_a_box_that_opens_with_neither_key_is_named_and_stops_nothing_else(
    inner: Core, database: Database, database_url: str
) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    damaged = (await boxes(database))[2].reference
    as_superuser(database_url, f"UPDATE vault SET ciphertext = '\\x00' WHERE reference = '{damaged}'")
    await rotation(database).begin()
    with pytest.raises(Refused, match=str(damaged)):
        await rotation(database).run(lambda _: None)
    assert await under(database, AFTER) == len(QUESTIONS) - 1
    assert await master_key_fits(database, "new", previous="old")
    assert not await master_key_fits(database, "new"), "the old key is still written down"
    as_superuser(database_url, f"DELETE FROM vault WHERE reference = '{damaged}'")
    await rotation(database).run(lambda _: None)
    assert await master_key_fits(database, "new")


async def test_an_empty_vault_is_soon_done(inner: Core, database: Database) -> None:
    await rotation(database).begin()
    assert await rotation(database).run(lambda _: None) == 0


# --- the rest of the product


async def test_a_secret_that_is_sent_again_after_a_rotation_is_kept(
    http: httpx.AsyncClient, inner: Core, database: Database, database_url: str, request_log: RequestLog, outbound: GuardedClient
) -> None:
    """Its fingerprint is another then: one more event and a new box, and nothing is lost."""
    body = {"name": "c", "configurationJson": CHANNEL_TEXT}
    made = (await http.post("/api/channel/", json=body)).json()["id"]
    stream = f"channel:{made}"
    before = sorted(str(secret) for secret in (await held(inner, stream)).values())
    await rotation(database).begin()
    count = await rotation(database).run(lambda _: None)
    assert count == len(before)
    known = services(replace(inner, registry=CollectorRegistry()), database_url, AFTER, outbound=outbound, files=NO_FILES)
    app = assembled(inner, known, request_log=request_log, registry=CollectorRegistry())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://media.test", headers=http.headers
    ) as client:
        assert (await client.put(f"/api/channel/{made}", json=body)).status_code == 200
        assert (await client.put(f"/api/channel/{made}", json=body)).status_code == 200
    assert len(await logged(inner, stream)) == 2, "once for the new fingerprints, then nothing new"
    assert sorted(AFTER.decrypt(box) for box in await boxes(database)) == before


async def test_another_vault_of_the_same_keys_opens_all(inner: Core, database: Database) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    await rotation(database).begin()
    await rotation(database).run(lambda _: None)
    [box] = await boxes(database)
    assert await Vault(database, AFTER).read(box.reference, owner=box.owner) == key.key.hex()
    assert await Vault(database, AFTER).read(UUID(int=1), owner=box.owner) is None
    with pytest.raises(DecryptionFailed):
        await Vault(database, AFTER).read(box.reference, owner=f"{box.owner}0")
