"""The master key replaced: every box under the new key, whenever the work is cut off, and both keys open boxes meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from socket import gethostname
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from prometheus_client import CollectorRegistry

from api.kernel.log import RequestLog
from api.wiring.core import Core
from domain.kernel.encryption import EncryptedSecret, KeyRing, SecretCipher, fingerprint
from domain.kernel.errors import DecryptionFailed, Refused, Unavailable
from projections.kernel.database.database import Database
from projections.kernel.schema.builds import LivingProcess, RunningBuild
from projections.vault.master_keys import NamedKeys, ProcessKeys, master_key_fits, named_keys, unreadable_secrets
from projections.vault.rotation import Rotation
from projections.vault.vault import Vault
from tests.api.asking import logged
from tests.api.media.test_configuration_secrecy import CHANNEL_TEXT
from tests.api.media.test_configuration_secrets import secrets_of
from tests.api.serving import NO_FILES
from tests.projections.content_key.issuing import KID, handlers_on, issue, issue_one, key_request, values
from tests.support.application import assembled
from tests.support.feeding import as_superuser
from tests.support.services import services
from workers.adapters.outbound_http import GuardedClient

OLD, NEW = bytes(32), bytes(31) + b"\1"
BEFORE, BOTH, AFTER = SecretCipher(OLD), SecretCipher(NEW, previous=OLD), SecretCipher(NEW)
INSERTED = "INSERT INTO vault (reference, owner, key_id, fingerprint, nonce, ciphertext) VALUES (%s, %s, %s, %s, %s, %s)"
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
        assert await master_key_fits(owner, KeyRing(OLD))
        yield owner


def rotation(database: Database, *, batch: int = 3, new: bytes = NEW, old: bytes = OLD) -> Rotation:
    return Rotation(database, ring=KeyRing(new, previous=old), old=fingerprint(old), batch=batch, settle=0)


async def begun(database: Database) -> None:
    """The new key encrypts from now on."""
    await rotation(database).begin()
    await rotation(database).switch(nobody)


def nobody(processes: Sequence[LivingProcess]) -> None:
    raise AssertionError(f"waits for {processes}")


async def boxes(database: Database) -> list[EncryptedSecret]:
    rows = await database.rows("SELECT reference, owner, key_id, fingerprint, nonce, ciphertext FROM vault ORDER BY reference")
    return [EncryptedSecret(*row) for row in rows]


async def under(database: Database, cipher: SecretCipher) -> int:
    return sum(box.key_id == cipher.key_id for box in await boxes(database))


async def test_the_same_keys_are_given_before_meanwhile_and_afterwards(inner: Core, database: Database) -> None:
    first = [values(key) for key in await issue(handlers_on(inner), *QUESTIONS)]
    events = await database.rows("SELECT * FROM events")
    before = await boxes(database)
    await begun(database)
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
from domain.kernel.encryption import KeyRing, fingerprint
from projections.kernel.database.database import Database
from projections.vault.rotation import Rotation

def progress(count):
    print(count, flush=True)
    if count == 6:
        sys.stdin.readline()

async def main():
    async with Database(sys.argv[1]) as database:
        ring = KeyRing(bytes(31) + b"\\1", previous=bytes(32))
        rotation = Rotation(database, ring=ring, old=fingerprint(bytes(32)), batch=3, settle=0)
        await rotation.begin()
        await rotation.switch(lambda _: sys.exit("nobody is to be waited for"))
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
    assert not await master_key_fits(database, KeyRing(NEW))
    assert [values(key) for key in await issue(handlers_on(inner, cipher=BOTH), *QUESTIONS)] == first
    await begun(database)
    assert await rotation(database).run(lambda _: None) == 4
    assert [values(key) for key in await issue(handlers_on(inner, cipher=AFTER), *QUESTIONS)] == first


async def test_values_sealed_during_a_rotation_have_the_new_key_or_are_found(inner: Core, database: Database) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    await begun(database)
    with pytest.raises(CutOff):
        await rotation(database).run(Cutting(1))
    new = await issue_one(handlers_on(inner, cipher=BOTH), key_request("made meanwhile"))
    late = await issue_one(handlers_on(inner, cipher=BEFORE), key_request("made by a process that has not switched yet"))
    assert await under(database, AFTER) == 4
    assert await rotation(database).run(lambda _: None) == 8
    keys = handlers_on(inner, cipher=AFTER)
    assert values(await issue_one(keys, key_request("made meanwhile"))) == values(new)
    assert values(await issue_one(keys, key_request("made by a process that has not switched yet"))) == values(late)


async def test_two_at_once_do_no_harm(inner: Core, database: Database) -> None:
    first = [values(key) for key in await issue(handlers_on(inner), *QUESTIONS)]
    await asyncio.gather(begun(database), begun(database))
    counts = await asyncio.gather(*(rotation(database, batch=1).run(lambda _: None) for _ in range(2)))
    assert sum(counts) == len(QUESTIONS)
    assert [values(key) for key in await issue(handlers_on(inner, cipher=AFTER), *QUESTIONS)] == first


# --- which keys a process must have to start


async def test_meanwhile_a_process_needs_both_keys_and_afterwards_the_new_one(inner: Core, database: Database) -> None:
    await issue(handlers_on(inner), *QUESTIONS)

    async def fits() -> tuple[bool, bool, bool]:
        """The old key alone; both; the new one alone."""
        rings = (KeyRing(OLD), KeyRing(NEW, previous=OLD), KeyRing(NEW))
        old, both, new = [await master_key_fits(database, ring) for ring in rings]
        return old, both, new

    assert await fits() == (True, True, False)
    await begun(database)
    assert await fits() == (False, True, False)
    with pytest.raises(CutOff):
        await rotation(database).run(Cutting(2))
    assert await fits() == (False, True, False)
    await rotation(database).run(lambda _: None)
    assert await fits() == (False, True, True)


async def test_a_database_of_other_keys_is_refused_and_left(inner: Core, database: Database) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    another, third = bytes(31) + b"\2", bytes(31) + b"\3"
    with pytest.raises(Refused):
        await rotation(database, old=another).begin()
    await begun(database)
    for old, new in ((another, NEW), (NEW, third), (OLD, third)):
        with pytest.raises(Refused):
            await rotation(database, old=old, new=new).begin()
    assert await named_keys(database) == NamedKeys(fingerprint(NEW), fingerprint(OLD), previous_encrypts=False)


async def test_a_database_that_nobody_has_started_yet_takes_the_new_key(inner: Core, database_url: str) -> None:
    async with Database(database_url, size=2) as owner:
        await begun(owner)
        assert await rotation(owner).run(lambda _: None) == 0
        assert await master_key_fits(owner, KeyRing(NEW))


async def test_a_damaged_box_is_named_and_the_others_go_on(inner: Core, database: Database, database_url: str) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    damaged = (await boxes(database))[2].reference
    as_superuser(database_url, f"UPDATE vault SET ciphertext = '\\x00' WHERE reference = '{damaged}'")
    await begun(database)
    with pytest.raises(Refused, match=str(damaged)):
        await rotation(database).run(lambda _: None)
    assert await under(database, AFTER) == len(QUESTIONS) - 1
    assert await master_key_fits(database, KeyRing(NEW, previous=OLD))
    assert not await master_key_fits(database, KeyRing(NEW)), "the old key is still written down"
    as_superuser(database_url, f"DELETE FROM vault WHERE reference = '{damaged}'")
    await rotation(database).run(lambda _: None)
    assert await master_key_fits(database, KeyRing(NEW))


async def test_a_box_of_a_third_key_is_counted_without_a_stop(inner: Core, database: Database, database_url: str) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    lost = (await boxes(database))[2].reference
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # as an earlier version of the product let it happen
        connection.execute("UPDATE vault SET key_id = 'lost' WHERE reference = %s", (lost,))
    await begun(database)
    assert await rotation(database).run(lambda _: None) == len(QUESTIONS) - 1
    assert await master_key_fits(database, KeyRing(NEW))
    assert await unreadable_secrets(database) == 1


async def test_an_empty_vault_is_soon_done(inner: Core, database: Database) -> None:
    await begun(database)
    assert await rotation(database).run(lambda _: None) == 0


# --- the fence: the database refuses what nobody could decrypt


async def test_after_the_end_nothing_is_written_under_the_old_key(inner: Core, database: Database) -> None:
    await begun(database)
    await rotation(database).run(lambda _: None)
    events = await logged(inner)
    with pytest.raises(Unavailable, match="the master key has been replaced"):
        await issue_one(handlers_on(inner, cipher=BEFORE), key_request("late"))
    assert (await boxes(database), await logged(inner)) == ([], events)
    await issue_one(handlers_on(inner, cipher=AFTER), key_request("late"))


async def test_only_the_command_with_the_old_key_is_refused(inner: Core, database: Database) -> None:
    """This holds even if several commands go into one commit."""
    await begun(database)
    await rotation(database).run(lambda _: None)
    wanted = [(AFTER, "a"), (BEFORE, "b"), (AFTER, "c"), (AFTER, "d")]
    made = await asyncio.gather(
        *(issue_one(handlers_on(inner, cipher=cipher), key_request(period)) for cipher, period in wanted), return_exceptions=True
    )
    assert [isinstance(result, Unavailable) for result in made] == [False, True, False, False]
    assert await under(database, AFTER) == 3


async def test_an_update_to_a_key_without_a_name_is_refused(inner: Core, database: Database) -> None:
    await issue(handlers_on(inner), *QUESTIONS)
    with pytest.raises(psycopg.errors.CheckViolation, match="does not use"):
        await database.execute("UPDATE vault SET key_id = 'lost'")
    assert await under(database, BEFORE) == len(QUESTIONS)


async def test_a_box_that_is_being_written_when_the_rotation_ends_is_waited_for(inner: Core, database: Database) -> None:
    await begun(database)
    box = Vault(database, BEFORE).encrypt("a secret", owner="webhook:1")
    async with await database.connect("test") as connection:
        async with connection.transaction():
            await connection.execute(INSERTED, (box.reference, box.owner, box.key_id, box.fingerprint, box.nonce, box.ciphertext))
            ending = asyncio.create_task(rotation(database).run(lambda _: None))
            while not await database.rows("SELECT FROM pg_locks WHERE NOT granted"):
                assert not ending.done(), "it did not wait"
        assert await ending == 1
    assert await Vault(database, AFTER).read(box.reference, owner="webhook:1") == "a secret"


async def test_every_table_of_boxes_has_the_fence(database: Database) -> None:
    """A table that holds something encrypted names the key beside it, as the vault does."""
    tables = await database.rows(
        "SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'ciphertext'"
    )
    fenced = await database.rows(
        "SELECT tgrelid::regclass::text, sum(tgtype::int & 20) FROM pg_trigger "
        "WHERE tgfoid = 'refuse_unnamed_master_key'::regproc AND tgenabled = 'O' GROUP BY 1"
    )
    assert [(name, 4 + 16) for (name,) in tables] == fenced == [("vault", 20)], "at each insert and each update"


# --- processes that run take up the new key


@dataclass
class Running:
    """A process of the product: its keys, the keys in its files, and its row in the register."""

    ring: KeyRing
    files: list[bytes]
    build: RunningBuild


@asynccontextmanager
async def running(database: Database, *, files: Sequence[bytes] = (OLD,)) -> AsyncIterator[Running]:
    there = list(files)
    ring = KeyRing(files[0], read=lambda: there)
    build = RunningBuild(database, keys=ProcessKeys(database, ring), beat=0.01)
    await build.start()
    try:
        yield Running(ring, there, build)
    finally:
        await build.stop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - it is told by no event
            await asyncio.sleep(0.005)


async def test_running_processes_take_up_the_new_key_and_all_of_them_are_waited_for(inner: Core, database: Database) -> None:
    waited: list[Sequence[LivingProcess]] = []
    async with running(database) as first, running(database) as second:
        await rotation(database).begin()
        switching = asyncio.create_task(rotation(database).switch(waited.append))
        first.files[:] = [NEW, OLD]
        await until(lambda: len(first.ring.fingerprints) == 2)
        await until(lambda: any(len(processes) == 1 for processes in waited))
        assert [first.ring.fingerprints[0], second.ring.fingerprints] == [fingerprint(OLD), (fingerprint(OLD),)], (
            "nobody encrypts with it yet"
        )
        assert not switching.done()
        second.files[:] = [NEW, OLD]
        await switching
        assert {first.ring.fingerprints[0], second.ring.fingerprints[0]} == {fingerprint(NEW)}
        assert (first.ring.cipher.key_id, second.ring.cipher.key_id) == (AFTER.key_id, AFTER.key_id)
    assert {(process.host, process.pid) for processes in waited for process in processes} == {(gethostname(), os.getpid())}


async def test_a_process_of_a_build_that_does_not_tell_is_waited_for(inner: Core, database: Database) -> None:
    insert = "INSERT INTO builds (process, build, host, pid, seen_at) VALUES (%s, 1, 'old', 7, 'infinity')"
    await database.execute(insert, (uuid4(),))
    await rotation(database).begin()
    waited: list[tuple[str, int]] = []
    switching = asyncio.create_task(
        rotation(database).switch(lambda some: waited.extend((process.host, process.pid) for process in some))
    )
    await until(lambda: waited)
    assert not switching.done()
    await database.execute("DELETE FROM builds WHERE host = 'old'")
    await switching
    assert waited == [("old", 7)]


async def test_a_process_that_starts_meanwhile_encrypts_with_the_old_key_until_all_hold_both(
    inner: Core, database: Database
) -> None:
    async with running(database) as first:
        await rotation(database).begin()
        async with running(database, files=[NEW, OLD]) as started:
            assert started.ring.fingerprints == (fingerprint(OLD), fingerprint(NEW))
            first.files[:] = [NEW, OLD]
            await rotation(database).switch(lambda _: None)
            assert started.ring.fingerprints[0] == fingerprint(NEW)


async def test_a_process_that_lacks_the_key_in_use_knows_it(
    inner: Core, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    ring = KeyRing(OLD)
    keys = ProcessKeys(database, ring)
    await begun(database)
    await rotation(database).run(lambda _: None)
    await keys.follow()
    assert not keys.fit
    assert f"lacks the master key {fingerprint(NEW)}" in caplog.text


# --- the rest of the product


async def test_a_secret_that_is_sent_again_after_a_rotation_is_kept(
    http: httpx.AsyncClient, inner: Core, database: Database, database_url: str, request_log: RequestLog, outbound: GuardedClient
) -> None:
    """The fingerprint of the secret is then different: there is one more event and a new box, and nothing is lost."""
    body = {"name": "c", "configurationJson": CHANNEL_TEXT}
    made = (await http.post("/api/channel/", json=body)).json()["id"]
    stream = f"channel:{made}"
    before = sorted(str(secret) for secret in (await secrets_of(inner, stream)).values())
    await begun(database)
    count = await rotation(database).run(lambda _: None)
    assert count == len(before)
    restarted = services(replace(inner, registry=CollectorRegistry()), cipher=AFTER, outbound=outbound, files=NO_FILES)
    app = assembled(inner, restarted, request_log=request_log, registry=CollectorRegistry())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://media.test", headers=http.headers
    ) as client:
        assert (await client.put(f"/api/channel/{made}", json=body)).status_code == 200
        assert (await client.put(f"/api/channel/{made}", json=body)).status_code == 200
    assert len(await logged(inner, stream)) == 2, "once for the new fingerprints, then nothing new"
    assert sorted(AFTER.decrypt(box) for box in await boxes(database)) == before


async def test_another_vault_of_the_same_keys_opens_all(inner: Core, database: Database) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    await begun(database)
    await rotation(database).run(lambda _: None)
    [box] = await boxes(database)
    assert await Vault(database, AFTER).read(box.reference, owner=box.owner) == key.key.hex()
    assert await Vault(database, AFTER).read(UUID(int=1), owner=box.owner) is None
    with pytest.raises(DecryptionFailed):
        await Vault(database, AFTER).read(box.reference, owner=f"{box.owner}0")
