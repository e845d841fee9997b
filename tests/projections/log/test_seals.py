"""Partitions of the log are sealed when they are full, and exported to files that can be verified without a database."""

from __future__ import annotations

import gzip
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.wiring.core import Core
from domain.kernel.errors import Unavailable
from projections.audit.chain import LogDamaged
from projections.audit.partition_file import FileDamaged, PartitionHeader, export, verify_file
from projections.audit.seals import LogPartition, partitions, seal_full
from projections.audit.stored_log import StoredLog
from projections.audit.verify import Extent, Verification, verify
from projections.log.statement import WriteSet
from tests.projections.log.conftest import process_on, small_partitions
from tests.projections.log.helpers import event, rows
from tests.support.feeding import as_superuser


def _ignore(_: int) -> None:
    """Ignore the progress."""


def sealed(url: str) -> list[LogPartition]:
    with StoredLog.connected(url, purpose="test") as stored:
        return list(seal_full(stored, seen=_ignore))


def log_partitions(url: str) -> list[LogPartition]:
    with StoredLog.connected(url, purpose="test") as stored:
        return partitions(stored)


def exported(url: str, path: Path, *, number: int) -> PartitionHeader:
    with StoredLog.connected(url, purpose="test") as stored:
        sealed_partitions = partitions(stored)
        before = sealed_partitions[number - 1].seal if number else None
        return export(stored, sealed_partitions[number], before=before, path=path, seen=_ignore)


Lines = list[dict[str, Any]]


def lines_of(path: Path) -> Lines:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


async def fill(wired: Core) -> None:
    """Commits have the events 1, 2 to 4, 5 to 9, 10 to 13, 14 and 15 to 16: one reaches over two partitions of 7 positions, and one
    ends with its partition."""
    for stream, count in (("a", 1), ("b", 3), ("c", 5), ("d", 4), ("e", 1), ("f", 2)):
        state = b"\xff\x00" if stream == "b" else b'{"title":"\xc3\xbc"}'
        await wired.appender.append(WriteSet([event(f"test:{stream}", version, state=state) for version in range(1, count + 1)]))
        await wired.partitions.make()


@pytest.fixture
async def log(wired: Core, small: str) -> str:
    """The address of a log that is filled so."""
    await fill(wired)
    return small


@pytest.fixture(scope="module")
async def file(postgres: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of the first exported partition."""
    path = tmp_path_factory.mktemp("exported") / "0.gz"
    with small_partitions(postgres, template=migrated_template) as url:
        async with process_on(url) as wired:
            await fill(wired)
        sealed(url)
        exported(url, path, number=0)
    return path.read_bytes()


def test_full_partitions_are_sealed_once_the_oldest_first(log: str) -> None:
    assert [(partition.first, partition.events, partition.full, partition.seal) for partition in log_partitions(log)[:3]] == [
        (1, 7, True, None),
        (8, 7, True, None),
        (15, 2, False, None),
    ]
    done = sealed(log)
    ends = [(partition.first, partition.seal.end.position, partition.seal.end.number) for partition in done if partition.seal]
    assert ends == [(1, 9, 3), (8, 14, 5)]
    for partition in done:
        assert partition.seal is not None
        end = partition.seal.end
        assert rows(log, "SELECT chain_hash FROM commits WHERE number = %s", end.number) == [(end.chain_hash,)]
    assert sealed(log) == []
    assert log_partitions(log)[:2] == done
    assert all(partition.begins_at and partition.ends_at and partition.table_bytes and partition.index_bytes for partition in done)


async def test_later_partitions_are_sealed_when_they_are_full(wired: Core, log: str) -> None:
    """A command may fill several partitions: the commit belongs to the first."""
    sealed(log)
    await wired.appender.append(WriteSet([event("test:long", version) for version in range(1, 20)]))
    done = sealed(log)
    assert [(partition.first, partition.seal.end.position, partition.seal.end.number) for partition in done if partition.seal] == [
        (15, 35, 7),
        (22, 35, 7),
        (29, 35, 7),
    ]
    assert verify(log) == Verification(True, 35)


async def test_one_process_seals_at_a_time(log: str) -> None:
    with StoredLog.connected(log, purpose="test") as stored:
        first = seal_full(stored, seen=_ignore)
        next(first)
        with pytest.raises(Unavailable):
            sealed(log)
        assert len(list(first)) == 1
    assert len([partition for partition in log_partitions(log) if partition.seal]) == 2


@pytest.mark.parametrize("position", [1, 7, 8, 9])
def test_a_partition_that_was_edited_is_not_sealed(log: str, position: int) -> None:
    as_superuser(log, f"UPDATE events SET topic = 'test.edited' WHERE position = {position}")
    with pytest.raises(LogDamaged, match="do not match the root"):
        sealed(log)
    assert [partition for partition in log_partitions(log) if partition.seal] == []


def test_a_seal_is_never_changed(log: str) -> None:
    sealed(log)
    for statement in ("UPDATE log_seals SET through = through + 1", "DELETE FROM log_seals", "TRUNCATE log_seals"):
        with psycopg.connect(log) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())
    with psycopg.connect(log) as connection:
        connection.execute("SET ROLE medialedger_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO log_seals SELECT 21, 21, 7, chain_hash FROM log_seals LIMIT 1")


SEAL_EDITS = {
    "its chain hash": ("UPDATE log_seals SET chain_hash = set_byte(chain_hash, 0, 255 - get_byte(chain_hash, 0))", 5),
    "its last commit": ("UPDATE log_seals SET last_commit = 17", 5),
    "its end within a commit": ("UPDATE log_seals SET through = 8 WHERE last_position = 7", 8),
    "its end behind the log": ("UPDATE log_seals SET through = 99 WHERE last_position = 14", 17),
}


@pytest.mark.parametrize(("edit", "first_bad"), SEAL_EDITS.values(), ids=SEAL_EDITS.keys())
def test_verification_finds_an_edited_seal(log: str, edit: str, first_bad: int) -> None:
    sealed(log)
    as_superuser(log, edit)
    verification = verify(log)
    assert (verification.valid, verification.first_bad_position) == (False, first_bad)


def test_verification_can_begin_at_the_last_seal(log: str) -> None:
    assert verify(log, extent=Extent(since_seal=True)) == Verification(True, 16)
    sealed(log)
    assert verify(log, extent=Extent(since_seal=True)) == Verification(True, 16, since=14)
    as_superuser(log, "UPDATE events SET topic = 'test.edited' WHERE position = 3")
    assert verify(log, extent=Extent(since_seal=True)).valid
    as_superuser(log, "UPDATE events SET topic = 'test.edited' WHERE position = 16")
    assert verify(log, extent=Extent(since_seal=True)).first_bad_position == 15


def test_files_hold_every_event_once_and_continue_each_other(log: str, tmp_path: Path) -> None:
    done = sealed(log)
    first, second = (exported(log, tmp_path / f"{number}.gz", number=number) for number in (0, 1))
    assert [(partition.after, partition.through) for partition in (first, second)] == [(0, 9), (9, 14)]
    assert second.start == first.end
    assert [partition.end for partition in (first, second)] == [partition.seal.end for partition in done if partition.seal]
    read = [verify_file(tmp_path / f"{number}.gz", seen=_ignore)[0] for number in (0, 1)]
    assert read == [first, second]
    assert stat.S_IMODE((tmp_path / "0.gz").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.gz", "1.gz"]
    states = [line for line in lines_of(tmp_path / "0.gz") if "stream" in line]
    assert [partition.get("state", partition.get("state_base64")) for partition in states] == [
        '{"title":"ü"}',
        *["/wA="] * 3,
        *['{"title":"ü"}'] * 5,
    ]


def test_a_file_is_not_written_over_nor_left_in_part(log: str, tmp_path: Path) -> None:
    sealed(log)
    path = tmp_path / "0.gz"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        exported(log, path, number=0)
    assert path.read_text() == "mine"
    path.unlink()
    as_superuser(log, "UPDATE events SET topic = 'test.edited' WHERE position = 9")
    with pytest.raises(LogDamaged):
        exported(log, path, number=0)
    assert list(tmp_path.iterdir()) == []


def _set(lines: Lines, number: int, **changes: Any) -> Lines:
    return [*lines[:number], {**lines[number], **changes}, *lines[number + 1 :]]


# Line 1 is the header; 2 and 3 are a commit with its event; 4 to 7 one with three events.
FORGERIES: dict[str, tuple[type[Exception], Callable[[Lines], Lines]]] = {
    "an edited state": (LogDamaged, lambda lines: _set(lines, 2, state="{}")),
    "an edited topic": (LogDamaged, lambda lines: _set(lines, 2, topic="test.edited")),
    "an edited time": (LogDamaged, lambda lines: _set(lines, 1, recorded_micros=1)),
    "an edited root": (LogDamaged, lambda lines: _set(lines, 1, root="00" * 32)),
    "another log": (LogDamaged, lambda lines: _set(lines, 0, log_id="00000000-0000-4000-8000-000000000000")),
    "another start": (LogDamaged, lambda lines: _set(lines, 0, after_chain_hash="00" * 32)),
    "another end": (LogDamaged, lambda lines: _set(lines, 0, chain_hash="00" * 32)),
    "a commit less": (LogDamaged, lambda lines: [lines[0], *lines[3:]]),
    "an event less": (FileDamaged, lambda lines: [*lines[:4], *lines[5:]]),
    "the last event less": (LogDamaged, lambda lines: lines[:-1]),
    "the last commit less": (LogDamaged, lambda lines: lines[:-6]),
    "two events in another order": (LogDamaged, lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]]),
    "more events than are there": (LogDamaged, lambda lines: _set(lines, 3, last=999_999)),
    "events without end": (FileDamaged, lambda lines: _set(lines, 3, last=1 << 62)),
    "a million events too many": (FileDamaged, lambda lines: _set(lines, 3, last=1_000_002)),
    "a line that fills the memory": (FileDamaged, lambda lines: _set(lines, 3, more="x" * (32 << 20))),
    "no number": (FileDamaged, lambda lines: _set(lines, 1, commit="1")),
    "a version that is none": (FileDamaged, lambda lines: _set(lines, 2, version="1")),
    "a huge version": (FileDamaged, lambda lines: _set(lines, 2, version=1 << 80)),
    "no hash": (FileDamaged, lambda lines: _set(lines, 1, root="x")),
    "no state": (FileDamaged, lambda lines: _set(lines, 2, state=None)),
    "another format": (FileDamaged, lambda lines: _set(lines, 0, format="medialedger log partition 9")),
    "an unknown header": (FileDamaged, lambda lines: _set(lines, 0, more=1)),
    "nothing": (FileDamaged, lambda lines: []),
}


@pytest.mark.parametrize(("kind", "forge"), FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_file_is_found(file: bytes, tmp_path: Path, kind: type[Exception], forge: Callable[[Lines], Lines]) -> None:
    path = tmp_path / "0.gz"
    path.write_bytes(file)
    lines = lines_of(path)
    path.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    verify_file(path, seen=_ignore)
    path.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in forge(lines))))
    with pytest.raises(kind):
        verify_file(path, seen=_ignore)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda all: all[:-9],
        lambda all: all[: len(all) // 2],
        lambda all: b"x" + all,
        lambda all: b"",
        lambda all: all[:99] + b"x" + all[100:],
    ],
)
def test_a_damaged_file_is_found(file: bytes, tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "0.gz"
    path.write_bytes(spoil(file))
    with pytest.raises((FileDamaged, LogDamaged)):
        verify_file(path, seen=_ignore)
