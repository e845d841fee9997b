"""Redaction of stored events: what is erased is gone, the rest and every hash stays, and verification knows who may erase."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from api.wiring.core import Core
from projections.audit.partition_file import export, verify_file
from projections.audit.redactions import REDACTED_METADATA
from projections.audit.seals import partitions, seal_full
from projections.audit.stored_log import StoredLog
from projections.audit.verify import Verification, verify
from projections.log.append import Appender
from projections.log.statement import LogRow, WriteSet
from tests.projections.log.conftest import process_on
from tests.projections.log.helpers import event, rows
from tests.support.feeding import as_superuser

_SECRET = "Ilse Müller"
_SHOWN = "SELECT position, state, metadata::text, octet_length(salt) FROM events ORDER BY 1"


def named(stream: str, version: int = 1) -> LogRow:
    return event(
        stream, version, state=json.dumps({"title": _SECRET}).encode(), metadata=json.dumps({"actor": f"{_SECRET} {version}"})
    )


def redaction(*ranges: tuple[int, int], parts: tuple[str, ...] = ("content",)) -> WriteSet:
    content = {"reason": "asked for", "parts": parts, "positions": ranges}
    return WriteSet([event(f"log:{uuid4()}", state=json.dumps(content).encode(), topic="log.redacted")], redacts=True)


async def written(appender: Appender, *, events: int) -> None:
    for number in range(1, events + 1):
        await appender.append(WriteSet([named(f"test:{number}")]))


async def test_erased_content_is_gone_and_the_log_stays_valid(appender: Appender, database_url: str) -> None:
    await written(appender, events=3)
    await appender.append(redaction((1, 2)))
    [first, second, third, _] = rows(database_url, _SHOWN)
    for _, state, metadata, salt in (first, second):
        assert set(json.loads(state)) == {"timestamp", "redacted"}
        assert _SECRET.encode() not in state
        assert (json.loads(metadata), salt) == ({"actor": f"{_SECRET} 1"}, 32)
    assert (json.loads(third[1]), third[3]) == ({"title": _SECRET}, 16)
    assert verify(database_url) == Verification(True, 4)


async def test_a_cause_and_then_the_content_are_erased(appender: Appender, database_url: str) -> None:
    await written(appender, events=1)
    await appender.append(redaction((1, 1), parts=("cause",)))
    [(_, state, metadata, salt), _] = rows(database_url, _SHOWN)
    assert (json.loads(state), json.loads(metadata)["actor"], salt) == ({"title": _SECRET}, "redacted", 32)
    assert verify(database_url).valid
    await appender.append(redaction((1, 1)))
    await appender.append(redaction((1, 1), parts=("content", "cause")))  # nothing is left to erase
    [(_, state, _, salt), *_] = rows(database_url, _SHOWN)
    assert (_SECRET.encode() in state, salt) == (False, None)
    assert rows(database_url, "SELECT metadata_redaction, state_redaction FROM events WHERE position = 1") == [(2, 3)]
    assert verify(database_url) == Verification(True, 4)


async def test_only_earlier_events_are_erased_and_never_a_redaction(appender: Appender, database_url: str) -> None:
    await written(appender, events=1)
    await appender.append(redaction((1, 1)))
    await appender.append(redaction((1, 9)))
    await written_again(appender)
    assert rows(database_url, "SELECT position FROM events WHERE state_hash IS NOT NULL") == [(1,)]
    assert verify(database_url) == Verification(True, 4)


async def written_again(appender: Appender) -> None:
    await appender.append(WriteSet([named("test:again")]))


async def test_a_redaction_without_the_flag_erases_nothing(appender: Appender, database_url: str) -> None:
    await written(appender, events=1)
    plain = redaction((1, 1))
    plain.redacts = False
    await appender.append(plain)
    assert rows(database_url, "SELECT position FROM events WHERE state_hash IS NOT NULL") == []


TAMPERING = {
    "content removed with its hash kept": (
        1,
        "UPDATE events SET state_hash = sha256(sha256(salt || '\\x02'::bytea) || state), salt = sha256(salt || '\\x01'::bytea), "
        "state = redacted_state(recorded_at) WHERE position = 1",
    ),
    "content removed, as if a redaction of others said so": (
        1,
        "UPDATE events SET state_hash = sha256(sha256(salt || '\\x02'::bytea) || state), salt = sha256(salt || '\\x01'::bytea), "
        "state = redacted_state(recorded_at), state_redaction = 5 WHERE position = 1",
    ),
    "content removed, as if another event said so": (
        1,
        "UPDATE events SET state_hash = sha256(sha256(salt || '\\x02'::bytea) || state), salt = sha256(salt || '\\x01'::bytea), "
        "state = redacted_state(recorded_at), state_redaction = 4 WHERE position = 1",
    ),
    "another text in the place of erased content": (3, "UPDATE events SET state = '{}' WHERE position = 3"),
    "another cause beside erased content": (3, 'UPDATE events SET metadata = \'{"actor":"me"}\' WHERE position = 3'),
    "the hash of erased content": (3, "UPDATE events SET state_hash = sha256('') WHERE position = 3"),
    "the salt of the part that stays": (3, "UPDATE events SET salt = NULL WHERE position = 3"),
    "the redaction's own content": (3, "UPDATE events SET state = '{}' WHERE position = 5"),
    "a redaction that is not there": (3, "UPDATE events SET state_redaction = 77 WHERE position = 3"),
    "a cause that was only said to be content": (
        3,
        "UPDATE events SET metadata_hash = sha256(salt || convert_to(metadata::text, 'UTF8')), salt = NULL, metadata_redaction = 5,"
        f" metadata = '{REDACTED_METADATA}' WHERE position = 3",
    ),
}


@pytest.mark.parametrize(("first_bad", "edit"), TAMPERING.values(), ids=TAMPERING.keys())
async def test_unrecorded_edits_are_found(appender: Appender, database_url: str, first_bad: int, edit: str) -> None:
    await written(appender, events=4)
    await appender.append(redaction((3, 3)))
    as_superuser(database_url, edit)
    verification = verify(database_url)
    assert (verification.valid, verification.first_bad_position) == (False, first_bad), verification.reason
    assert verification.checked < first_bad


@pytest.mark.parametrize("seed", range(4))
async def test_random_redactions_keep_every_hash(appender: Appender, database_url: str, seed: int) -> None:
    """Any parts of any events, in batches with others, again and again."""
    random = Random(seed)
    erased: set[tuple[int, str]] = set()
    head = 0
    for round_ in range(6):
        rest = [WriteSet([named(f"test:{round_}-{n}-{seed}", v) for v in range(1, random.randint(2, 4))]) for n in range(3)]
        for append in rest:
            head = await appender.append(append)
        low = random.randint(1, head)
        ranges = [(low, min(low + random.randint(0, 3), head)), (random.randint(1, head),) * 2]
        parts = random.choice([("content",), ("cause",), ("content", "cause")])
        head = await appender.append(redaction(*ranges, parts=parts))
        erased |= {(at, part) for first, last in ranges for at in range(first, last + 1) for part in parts}
    assert verify(database_url) == Verification(True, head)
    for position, topic, state, metadata in rows(database_url, "SELECT position, topic, state, metadata::text FROM events"):
        assert (b'redacted":true' in state) == ((position, "content") in erased and topic != "log.redacted")
        assert ('"redacted"' in metadata) == ((position, "cause") in erased)
    edited = random.choice(sorted({at for at, _ in erased}))
    as_superuser(database_url, f"UPDATE events SET state = state || ' '::bytea WHERE position = {edited}")
    assert not verify(database_url).valid


async def test_sealed_partitions_stay_sealed_and_can_be_exported(small: str, wired: Core, tmp_path: Path) -> None:
    """The export has no erased content, and says where the log shows who erased it."""
    for number in range(9):
        await wired.appender.append(WriteSet([named(f"test:{number}")]))
    with StoredLog.connected(small, purpose="test") as stored:
        assert len(list(seal_full(stored, seen=_ignore))) == 1
        await wired.appender.append(redaction((2, 4), parts=("content", "cause")))
        assert verify(small) == Verification(True, 10)
        export(stored, partitions(stored)[0], before=None, path=tmp_path / "1.gz", seen=_ignore)
    _, elsewhere = verify_file(tmp_path / "1.gz", seen=_ignore)
    assert elsewhere == [10]


async def test_the_product_cannot_erase_without_saying_so(small: str) -> None:
    async with process_on(small) as wired:
        for refused in ("SELECT log_erase(1, 1, true, true, 1)", "UPDATE events SET state = '' WHERE position = 1"):
            with pytest.raises(Exception, match="permission denied"):
                await wired.database.execute(refused)


def _ignore(_: int) -> None:
    """Ignore the progress."""
