"""`medialedger log`: the partitions of the log, their seals, and their files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from api.cli.output import Document, Kind, TableColumn, field, print_list, show_event_count
from api.cli.run.database import DatabaseAccess, check_owner, open_database
from api.wiring.core import prepare
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from projections.audit.chain import LogDamaged
from projections.audit.partition_file import export
from projections.audit.seals import LogPartition, partitions, seal_full
from projections.audit.stored_log import StoredLog


async def print_partitions(settings: Settings, *, form: str) -> None:
    def show(stored: StoredLog) -> None:
        print_list(map(_document, partitions(stored)), _COLUMNS, form=form, none="no partitions")

    await _on_log(settings, show)


async def seal_partitions(settings: Settings) -> None:
    await _on_log(settings, _seal, seals=True)


async def export_partition(settings: Settings, first: int, *, path: Path) -> None:
    await _on_log(settings, partial(_export, first=first, path=path))


async def _on_log(settings: Settings, work: Callable[[StoredLog], None], *, seals: bool = False) -> None:
    """Work as the owner of the tables: the running product may neither create seals nor read partitions."""

    def run(database: DatabaseAccess) -> None:
        if seals:
            check_owner(database)
        with StoredLog.connected(database.owner, purpose="log") as stored:
            work(stored)

    async with open_database(settings) as database:
        await prepare(database.url, owner=database.owner)
        try:
            await asyncio.to_thread(run, database)
        except LogDamaged as damage:
            raise StartError(f"the log is damaged at position {damage.position}: {damage.reason}") from None


def _document(partition: LogPartition) -> Document:
    seal = partition.seal
    return {
        "first": partition.first,
        "last": partition.last,
        "events": partition.events,
        "tableBytes": partition.table_bytes,
        "indexBytes": partition.index_bytes,
        "beginsAt": None if partition.begins_at is None else iso(partition.begins_at),
        "endsAt": None if partition.ends_at is None else iso(partition.ends_at),
        "state": "open" if not partition.full else "full" if seal is None else "sealed",
        "sealedAt": None if seal is None else iso(seal.sealed_at),
        "chainHash": None if seal is None else seal.end.chain_hash.hex(),
    }


_COLUMNS = (
    TableColumn("first", field("first"), Kind.NUMBER),
    TableColumn("last", field("last"), Kind.NUMBER),
    TableColumn("events", field("events"), Kind.NUMBER),
    TableColumn("table bytes", field("tableBytes"), Kind.NUMBER),
    TableColumn("index bytes", field("indexBytes"), Kind.NUMBER),
    TableColumn("begins", field("beginsAt"), Kind.TIME),
    TableColumn("ends", field("endsAt"), Kind.TIME),
    TableColumn("state", field("state"), Kind.STATE),
    TableColumn("sealed", field("sealedAt"), Kind.TIME, wide=True),
    TableColumn("chain hash", field("chainHash"), Kind.LONG),
)


def _line(partition: LogPartition) -> str:
    sizes = f"{partition.events} events  table {partition.table_bytes}  indexes {partition.index_bytes} bytes"
    state = (
        "open"
        if not partition.full
        else "full"
        if partition.seal is None
        else f"sealed {iso(partition.seal.sealed_at)}  {partition.seal.end.chain_hash.hex()}"
    )
    return f"{partition.first} to {partition.last}  {sizes}  {_time(partition.begins_at)} to {_time(partition.ends_at)}  {state}"


def _time(moment: datetime | None) -> str:
    return "-" if moment is None else iso(moment)


def _seal(stored: StoredLog) -> None:
    sealed = 0
    for partition in seal_full(stored, seen=show_event_count):
        print(_line(partition))
        sealed += 1
    if not sealed:
        print("there is no full partition without a seal")


def _export(stored: StoredLog, *, first: int, path: Path) -> None:
    log_partitions = partitions(stored)
    number = next((number for number, partition in enumerate(log_partitions) if partition.first == first), None)
    if number is None:
        raise StartError(f"no partition begins at position {first}; `medialedger log partitions` lists them")
    if log_partitions[number].seal is None:
        raise StartError(f"the partition from position {first} is not sealed; run `medialedger log seal` first")
    before = log_partitions[number - 1].seal if number else None
    try:
        header = export(stored, log_partitions[number], before=before, path=path, seen=show_event_count)
    except FileExistsError:
        raise StartError(f"{path} already exists and is not overwritten") from None
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None
    print(
        f"{path}: events {header.after + 1} to {header.through}, {path.stat().st_size} bytes\nchain hash {header.chain_hash.hex()}"
    )
