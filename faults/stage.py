"""The product under test: PostgreSQL, Kafka, and two processes of every role, on one machine."""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import sys
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from uuid import UUID

import aiohttp
import psycopg

from deploy.kafka.broker import Broker
from faults.processes import Supervised
from faults.receivers import Receiver
from faults.surroundings import SmallDisk, faked_clock
from projections.kernel.database.connection import with_limits
from projections.log.reader import HEAD
from projections.webhook.keys import CHANNEL
from tests.support.link import Link
from tests.support.product import kill_postgres
from tests.support.standby import Replicated
from tests.support.waiting import ROOT
from workers.adapters.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError

KEY = "the-admin-key-of-the-fault-matrix"
EACH = 2
_MAKE_DUE = f"""
WITH due_now AS (
    UPDATE pending_deliveries SET due_at = clock_timestamp()
    WHERE webhook = %s AND due_at > clock_timestamp() RETURNING 1
) SELECT count(*), pg_notify('{CHANNEL}', %s) FROM due_now
"""
_EPOCHS = "SELECT coalesce(sum(epoch), 0)::bigint FROM consumer_shards"
_RELAYED = f"SELECT max(position) = ({HEAD}) FROM consumer_shards WHERE consumer LIKE 'relay %%'"
_TRANSACTIONS = "SELECT position, metadata->>'correlation_id' FROM events"
_TOLD = re.compile(r"medialedger restored --since (\d+)")
_PATIENCE = 120.0
_PARKED = "SELECT count(*) FROM parked_records"


class Servers(Enum):
    """The ways in which the product reaches its servers."""

    ALONE = "one of each"
    LINKED = "each process reaches PostgreSQL by a link of its own, and all of them Kafka by one; a link can swallow packets"
    REPLICATED = "PostgreSQL is a primary with a standby"
    ON_SMALL_DISK = "PostgreSQL has a disk of its own, which can be filled"
    CLOCKED = "the clock of one process of every role can be set"


class Stage:
    """Runs the servers and processes of a scenario. `dice` is the random source of the scenario."""

    WORKERS: ClassVar[Mapping[str, int]] = {"relay": EACH, "webhooks": EACH, "callback": EACH, "deliveries": EACH}
    """The number of processes of each role. The relay runs only with Kafka."""

    def __init__(self, folder: Path, *, kafka: bool, dice: random.Random, servers: Servers = Servers.ALONE) -> None:
        self.dice = dice
        self.broker = Broker(folder / "kafka") if kafka else None
        self.broker_link = Link.to_port(lambda: self.broker.port if self.broker is not None else 0)
        self.links: dict[str, Link] = {}
        """The links to PostgreSQL, by the name of the process."""
        self.replicated = Replicated(folder / "replicated", synchronous=True)
        self._servers = servers
        self._folder = folder
        self.database = ""
        self.addresses: Sequence[str] = ()
        self.processes: dict[str, list[Supervised]] = {}
        self._home = folder / "home"
        self._postgres = EmbeddedPostgres(folder / "database")
        self._disk = SmallDisk(folder / "database")
        self._clocks = folder / "clocks"
        self._logs = folder / "logs"
        self._environment: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        self._logs.mkdir(parents=True)
        try:
            await self._open()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._close()

    @property
    def clocked(self) -> bool:
        return self._servers is Servers.CLOCKED

    @property
    def all(self) -> list[Supervised]:
        return [process for role in self.processes.values() for process in role]

    async def _open(self) -> None:
        replicated = self._servers is Servers.REPLICATED
        if self._servers is Servers.ON_SMALL_DISK:
            await asyncio.to_thread(self._disk.mount)
        self.database = with_limits(await asyncio.to_thread(self.replicated.start if replicated else self._postgres.start))
        self._environment = {
            "MEDIALEDGER_HOME": str(self._home),
            "MEDIALEDGER_DATABASE_URL": self.database,
            "MEDIALEDGER_ADMIN_API_KEY": KEY,
            "MEDIALEDGER_OUTBOUND_ALLOW": "127.0.0.0/8",
            "MEDIALEDGER_LOG_LEVEL": "WARNING",
        }
        if self.broker is not None and self._servers is Servers.LINKED:
            await self.broker_link.open()
            address = f"127.0.0.1:{self.broker_link.port}"
            self.broker = Broker(self._folder / "kafka", settings=f"advertised.listeners=CLIENT://{address}\n")
            await asyncio.to_thread(self.broker.start)
            self._environment["MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS"] = address
        elif self.broker is not None:
            self._environment["MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS"] = await asyncio.to_thread(self.broker.start)
        ports = [_free_port() for _ in range(EACH)]
        self.addresses = [f"http://127.0.0.1:{port}" for port in ports]
        self.processes = {"api": [self._process("api", n, {"MEDIALEDGER_PORT": str(port)}) for n, port in enumerate(ports)]}
        for role, count in self.WORKERS.items():
            if role != "relay" or self.broker is not None:
                self.processes[role] = [self._process(role, number, {}) for number in range(count)]
        for process in self.all if self._servers is Servers.LINKED else ():
            link = self.links[process.name] = Link.to_postgres(self.database)
            await link.open()
            process.environment = {**process.environment, "MEDIALEDGER_DATABASE_URL": link.through(self.database)}
        for places in self.processes.values() if self._servers is Servers.CLOCKED else ():
            self.set_clocks("+0")
            places[0].environment = {**places[0].environment, **faked_clock(self._clocks)}
        await self._command("migrate")
        await self._migrated()
        for process in self.all:
            process.start()
        await self.until_ready()

    async def _migrated(self) -> None:
        """Prepare the database for a stage that needs more than the product's own tables."""

    async def _close(self) -> None:
        await asyncio.gather(*(process.stop() for process in self.all))
        await asyncio.gather(*(link.close() for link in (*self.links.values(), self.broker_link)))
        if self.broker is not None:
            await asyncio.to_thread(self.broker.kill)
        await asyncio.to_thread(self._postgres.stop)
        await asyncio.to_thread(self.replicated.stop)
        await asyncio.to_thread(self._disk.unmount)

    def _process(self, role: str, number: int, more: dict[str, str]) -> Supervised:
        """Return a process. A role may be several of the workers' roles in one process, separated by spaces."""
        command = ["api"] if role == "api" else ["workers", *role.split()]
        return Supervised(f"{'-'.join(role.split())}-{number + 1}", command, environment=self._environment | more, logs=self._logs)

    async def until_ready(self) -> None:
        await asyncio.gather(*(process.until_ready() for process in self.all))

    async def subscribe(self, receiver: Receiver) -> None:
        body = {"webhookUrl": receiver.url, "useJsonBody": receiver.as_json}
        made = await self.request("POST", "/api/webhook/", body)
        receiver.webhook = UUID(made["id"])
        receiver.secret = b64decode(made["secret"].removeprefix("whsec_"))

    async def unsubscribe(self, receiver: Receiver) -> None:
        await self.request("DELETE", f"/api/webhook/{receiver.webhook}")

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        async with (
            aiohttp.ClientSession(headers={"API-KEY": KEY}) as http,
            http.request(method, self.addresses[0] + path, json=body) as answer,
        ):
            answer.raise_for_status()
            return await answer.json()

    async def restart_postgres(self, *, accident: bool) -> None:
        """Stop and start PostgreSQL. With `accident` the postmaster is killed, so everything that is not on the disk is lost."""
        if accident:
            await asyncio.to_thread(kill_postgres, self._postgres.home)
        else:
            await self.stop_postgres()
        await self.start_postgres()

    async def stop_postgres(self) -> None:
        await asyncio.to_thread(self._postgres.stop)

    async def start_postgres(self, *, must: bool = True) -> None:
        """Start PostgreSQL unless it runs. An object that has not noticed the end of its process would report a failed start."""
        self._postgres = EmbeddedPostgres(self._postgres.home)
        try:
            await asyncio.to_thread(self._postgres.start)
        except (EmbeddedPostgresError, OSError):
            if must:
                raise

    def fill_disk(self) -> None:
        self._disk.fill()

    def free_disk(self) -> None:
        self._disk.free()

    def set_clocks(self, deviation: str) -> None:
        """Set the clocks of the processes that permit it wrong by this number of seconds, such as `-3600`."""
        new = self._clocks.with_suffix(".new")
        new.write_text(f"{deviation}\n")
        new.replace(self._clocks)

    def log_lines(self) -> int:
        """Return the number of lines that all processes have logged, not counting those of requests."""
        return sum(
            b"medialedger.request" not in line for path in self._logs.glob("*.log") for line in path.read_bytes().splitlines()
        )

    async def make_due(self, receiver: Receiver) -> int:
        """Make all waiting attempts due at once, so that a scenario need not wait for minutes or hours. Return their number."""
        rows = await self.rows(_MAKE_DUE, receiver.webhook, str(receiver.webhook))
        return sum(row[0] for row in rows)

    async def head(self) -> int:
        return int((await self.rows(HEAD))[0][0])

    async def notify(self, forged: Sequence[tuple[str, str]]) -> None:
        channels, texts = zip(*forged, strict=True)
        await self.rows(
            "SELECT count(pg_notify(channel, text)) FROM unnest(%s::text[], %s::text[]) AS f (channel, text)", [*channels], [*texts]
        )

    async def relayed(self) -> int:
        """Return the head of the log, as soon as Kafka has all of it."""
        while await self.rows(_RELAYED) != [(True,)]:  # noqa: ASYNC110 - what is watched is another process
            await asyncio.sleep(0.1)
        return await self.head()

    async def transactions(self) -> list[tuple[int, str]]:
        return [(position, transaction) for position, transaction in await self.rows(_TRANSACTIONS)]

    async def told_to_restore(self) -> int:
        """Return the position that the relay reports, as soon as it does."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            for log in self._logs.glob("relay-*.log"):
                if positions := _TOLD.findall(log.read_text(errors="replace")):
                    return int(positions[-1])
            await asyncio.sleep(0.2)
        raise TimeoutError("the relay does not say that Kafka has more than the log")

    async def restored(self, since: int) -> None:
        """Begin an epoch like an operator that follows the relay's message: everything is stopped meanwhile."""
        await asyncio.gather(*(process.stop() for process in self.all))
        await self._command("restored", "--since", str(since), "--reason", "a standby that lacked commits")
        for process in self.all:
            process.start()
        await self.until_ready()

    async def _command(self, *words: str) -> None:
        done = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "api.cli.main", *words),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self._environment},
        )
        assert await done.wait() == 0

    async def lease_changes(self) -> int:
        """Return how often a shard has changed its owner so far."""
        return int((await self.rows(_EPOCHS))[0][0])

    async def parked(self) -> int:
        return int((await self.rows(_PARKED))[0][0])

    async def rows(self, question: str, *parameters: Any) -> list[tuple[Any, ...]]:
        async with await psycopg.AsyncConnection.connect(self.database, autocommit=True, connect_timeout=10) as connection:
            return await (await connection.execute(question.encode(), parameters)).fetchall()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
