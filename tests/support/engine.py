"""A small engine on a real PostgreSQL: its roles in this process, its steps in separate processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from api.wiring.core import Core, core
from api.wiring.parts import RefusedTargets
from api.wiring.workers import workers_of
from domain.job.aggregate import Job
from domain.job.values import Submission
from domain.kernel.clock import system_clock
from domain.kernel.command import Command
from domain.kernel.encryption import IngestKeys
from domain.kernel.ports import Invocation
from domain.record.kinds.setting import Setting
from domain.record.record import RegisterRecord
from projections.job.queue import JobNumberSequence
from tests.support.services import container
from tests.support.waiting import pauses
from workers.adapters.outbound_guard import Network
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.registry import TargetRegistry
from workers.event.outcomes.policy import OwnerCommand, OwnerCommands
from workers.job.registry import installed
from workers.job.step_processes import step_fork_server
from workers.kernel.consumer_factory import Broker
from workers.kernel.fork_client import ForkServer
from workers.kernel.point_tokens import PointTokens
from workers.kernel.settings import Home, MediaPlace, OutboundRules, StepSettings
from workers.ports.buckets import BucketAddress
from workers.ports.outbound import DownloadLimits
from workers.ports.targets import OpenDestination, ServiceAddresses, Targets, TargetSettings

PLUGINS = str(Path(__file__).with_name("plugins"))
SOON = 120.0
T = TypeVar("T")
ENGINE = ("controller", "work")


async def once(ask: Callable[[], Awaitable[T | None]], *, seconds: float = SOON) -> T:
    """Wait until the request gives a value, and return the value."""
    async with asyncio.timeout(seconds):
        for pause in pauses():
            if value := await ask():
                return value
            await asyncio.sleep(pause)
    raise AssertionError


@dataclass(frozen=True)
class Engine:
    """An engine, with methods for tests."""

    inner: Core
    numbers: JobNumberSequence

    async def accept(self, workflow: str, *, client: str = "admin", priority: int = 5, **parameters: Any) -> int:
        number = await self.numbers.draw()
        loaded, _ = installed().checked(workflow, {"content_id": "match", **parameters})
        submission = Submission(
            client=client,
            workflow=workflow,
            content_id=parameters.get("content_id", "match"),
            parameters={"content_id": "match", **parameters},
            tasks=loaded.graph(),
        )
        await self.do(Job.accept.on(number, submission, priority=priority))
        return number

    async def do(self, command: Command[Job]) -> Job:
        return (await self.inner.executor.execute(command, invocation=Invocation.by("admin"))).aggregate

    async def update(self, number: int, **changes: object) -> Job:
        return await self.do(Job.update.on(number, changes))

    async def set(self, name: str, value: int, *, client: str = "admin") -> None:
        values = {"client": client, "name": name, "setting": value}
        await self.inner.executor.execute(RegisterRecord(f"{client}:{name}", Setting, values), invocation=Invocation.by("admin"))

    async def job(self, number: int) -> Job:
        aggregate = await self.inner.streams.load(Job.stream(number))
        assert isinstance(aggregate, Job)
        return aggregate

    async def until(self, number: int, condition: Callable[[Job], bool], *, seconds: float = SOON) -> Job:
        """Wait until the job fulfils the condition, and return the job."""

        async def ask() -> Job | None:
            job = await self.job(number)
            return job if condition(job) else None

        return await once(ask, seconds=seconds)

    async def ended(self, number: int, *, seconds: float = SOON) -> Job:
        return await self.until(number, lambda job: job.ended, seconds=seconds)

    async def topics(self, number: int) -> list[str]:
        topic_rows = await self.inner.database.rows(
            "SELECT topic FROM events WHERE originator_id = %s ORDER BY position", (Job.stream(number),)
        )
        return [topic.removeprefix("job.") for (topic,) in topic_rows]


@contextmanager
def plugins() -> Iterator[None]:
    """Install the workflows of tests/support/plugins while the context is open."""
    sys.path.append(PLUGINS)
    installed.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(PLUGINS)
        installed.cache_clear()


@cache
def _step_server(path: tuple[str, ...]) -> ForkServer:
    """Return the fork server of all processes with this module path: each would import the same. It ends with the process of the
    test run."""
    return step_fork_server()


@asynccontextmanager
async def process(
    conninfo: str,
    role: str | None,
    *,
    media_root: Path,
    roles: Sequence[str] = ENGINE,
    steps: int = 4,
    lease: float = 30.0,
    owners: Mapping[str, OwnerCommand] | None = None,
    outbound_allow: Sequence[Network] = (),
    media_bucket: BucketAddress | None = None,
    opens: OpenDestination | None = None,
    filesystem_root: Path | None = None,
    services: ServiceAddresses | None = None,
) -> AsyncIterator[Core]:
    """Run the parts of one process of the product, without its web server."""
    inner = core(conninfo, role=role, clock=system_clock)
    outbound = GuardedClient(outbound_allow)
    settings = TargetSettings(filesystem_root, services or ServiceAddresses())
    given = {
        Broker: None,
        GuardedClient: outbound,
        Home: Home(media_root),
        MediaPlace: MediaPlace(media_root, media_bucket),
        OutboundRules: OutboundRules(outbound_allow),
        DownloadLimits: DownloadLimits(),
        PointTokens: PointTokens(IngestKeys(bytes(32)), inner.clock, origin=None),
        RefusedTargets: RefusedTargets(),
        StepSettings: StepSettings(steps, lease, 0.2),
        Targets: TargetRegistry(lambda: GuardedClient(outbound_allow), settings=settings),
        TargetSettings: settings,
    }
    wired = container(inner, given=given)
    if opens is not None:
        wired.give(OpenDestination, opens)
    if owners is not None:
        wired.give(OwnerCommands, OwnerCommands(inner.executor, owners=owners))
    with plugins():
        wired.give(ForkServer, _step_server(tuple(sys.path)))
        workers = workers_of(wired, roles, permanent=False)
        await inner.start()
        try:
            await workers.start()
            yield inner
        finally:
            await workers.stop()
            await outbound.close()
            await inner.stop()
