"""The scenarios of faults, one after another. Each runs under load; the verdict judges what it leaves behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from faults.load import Load
from faults.processes import Supervised
from faults.receivers import Behaviour, Receiver
from faults.stage import Servers, Stage
from projections.consumers.leases import LEASE
from projections.log.commit_notifier import CHANNEL
from projections.webhook import keys as deliveries
from tests.support.link import Link


@dataclass(frozen=True, slots=True)
class Effort:
    """The extent of each scenario."""

    per_second: float
    calm: float
    kills: int
    outage: float
    restarts: int
    faulty: float
    freezes: int
    between: float
    """The most seconds from one kill to the next."""
    vanished: Sequence[float]
    """The seconds for which a machine cannot be reached, one time after another."""
    away: Sequence[float]
    """The seconds for which PostgreSQL is stopped, one time after another."""
    full: float
    exhausted: float


FULL = Effort(
    per_second=150,
    calm=20,
    kills=20,
    outage=60,
    restarts=4,
    faulty=20,
    freezes=8,
    between=3,
    vanished=(10, 60),
    away=(120, 300),
    full=120,
    exhausted=30,
)
QUICK = Effort(
    per_second=100,
    calm=4,
    kills=3,
    outage=10,
    restarts=1,
    faulty=8,
    freezes=2,
    between=1.5,
    vanished=(12,),
    away=(20,),
    full=15,
    exhausted=8,
)


@dataclass
class Scene:
    """A scenario in progress. `notes` are printed in addition to the figures."""

    stage: Stage
    load: Load
    effort: Effort
    receivers: Sequence[Receiver]
    notes: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    """The violations that the scenario itself detected."""
    given_up: float | None = None
    """The time when the leases from before a promotion had expired. Until then senders may send what they had read from the former
    primary."""

    async def chosen(self, role: str) -> Supervised:
        """Return a working process of the role, as soon as there is one."""
        places = list(self.stage.processes[role])
        self.stage.dice.shuffle(places)
        while True:
            for process in places:
                if process.ready:
                    return process
            await asyncio.sleep(0.05)

    async def moment(self, least: float, most: float) -> None:
        await asyncio.sleep(self.stage.dice.uniform(least, most))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario. `kafka` selects the transport. `others` are the behaviours of receivers in addition to the two healthy ones."""

    name: str
    meaning: str
    kafka: bool
    act: Callable[[Scene], Awaitable[None]]
    others: Sequence[Behaviour] = (Behaviour.SLOW,)
    jobs: bool = False
    """True if there are jobs with a callback next to the Events."""
    servers: Servers = Servers.ALONE
    obstacle: Callable[[], str | None] = lambda: None
    """Returns the reason why the scenario cannot run on this machine; None if it can."""


async def calm(scene: Scene) -> None:
    await asyncio.sleep(scene.effort.calm)


async def kills(scene: Scene) -> None:
    """Kill processes of random roles, one after another; each is started again at once. Only working processes are killed."""
    roles = [role for role in scene.stage.processes for _ in range(scene.effort.kills)]
    scene.stage.dice.shuffle(roles)
    for role in roles:
        (await scene.chosen(role)).kill()
        await scene.moment(0.1, scene.effort.between)
    scene.notes.append(f"{scene.effort.kills} each of {', '.join(scene.stage.processes)}")


async def one_fan_out_killed(scene: Scene) -> None:
    """Kill all processes of one fan-out at once, while the other continues; then the other way round."""
    roles = ("callback", "webhooks") * scene.effort.kills
    for role in roles:
        for process in scene.stage.processes[role]:
            process.kill()
        await scene.moment(1.0, LEASE + 1)
    scene.notes.append(f"{scene.effort.kills} x both processes of each fan-out")


async def kafka_outage(scene: Scene) -> None:
    broker = scene.stage.broker
    assert broker is not None
    await asyncio.to_thread(broker.stop)
    await asyncio.sleep(scene.effort.outage)
    await asyncio.to_thread(broker.start)
    await scene.moment(3, 6)
    await asyncio.to_thread(broker.kill)
    await asyncio.to_thread(broker.start)
    scene.notes.append(f"stopped for {scene.effort.outage:.0f} s, then killed")


async def postgres_restarts(scene: Scene) -> None:
    """Stop PostgreSQL, kill it, and kill it right after the last of many writes.

    Every write brings to the disk what earlier ones had not, so only the last kill undoes something.
    """
    for _ in range(scene.effort.restarts):
        await scene.stage.restart_postgres(accident=False)
        await scene.moment(2, 5)
        await scene.stage.restart_postgres(accident=True)
        await scene.moment(2, 5)
        await scene.load.hush()
        await scene.moment(0.0, 0.1)
        await scene.stage.restart_postgres(accident=True)
        scene.load.resume()
        await scene.moment(2, 5)
    scene.notes.append(f"{scene.effort.restarts} x stopped, {2 * scene.effort.restarts} x killed")


async def faulty_receivers(scene: Scene) -> None:
    await asyncio.sleep(scene.effort.faulty)
    scene.notes.append(f"faulty for {scene.effort.faulty:.0f} s")


async def freezes(scene: Scene) -> None:
    """Freeze one process of every role that has a lease, at the same time."""
    before = await scene.stage.lease_changes()
    for _ in range(scene.effort.freezes):
        frozen = [scene.stage.dice.choice(places) for role, places in scene.stage.processes.items() if role != "api"]
        since = time.monotonic()
        for process in frozen:
            process.freeze()
            await scene.moment(0.0, 0.3)
        await scene.moment(LEASE + 1, LEASE + 4)
        for process in frozen:
            process.thaw()
        scene.notes.append(f"{time.monotonic() - since:.1f} s")
        await scene.moment(2, 4)
    scene.notes.append(f"{await scene.stage.lease_changes() - before} shards changed their owner")


async def forged_notifications(scene: Scene) -> None:
    """Send notifications like anyone who can connect to the database."""
    forged = [(CHANNEL, text) for text in ("9223372036854775807", "-1", "not a number", "")]
    forged += [(deliveries.CHANNEL, text) for text in (str(UUID(int=7)), "not a UUID", "x" * 7999)]
    since, sent = time.monotonic(), 0
    while time.monotonic() - since < scene.effort.calm:
        await scene.stage.notify(forged)
        sent += len(forged)
        await scene.moment(0.0, 0.05)
    scene.notes.append(f"{sent} forged notifications")


async def postgres_vanishes(scene: Scene) -> None:
    """Swallow packets for all processes at once; then for one process of every role, with what it has sent arriving late; then for
    one of every role once more, with connections that never carry anything again."""
    links = scene.stage.links
    for seconds in scene.effort.vanished:
        await _swallowed(links.values(), seconds)
        await scene.moment(5, 8)
    before = await scene.stage.lease_changes()
    for late in (True, False):
        gone = [links[scene.stage.dice.choice(places).name] for places in scene.stage.processes.values()]
        await _swallowed(gone, scene.stage.dice.uniform(LEASE + 5, LEASE + 10), late=late)
        await scene.moment(5, 8)
    times = ", ".join(f"{seconds:.0f} s" for seconds in scene.effort.vanished)
    scene.notes.append(f"gone for {times}; {await scene.stage.lease_changes() - before} shards changed their owner")


async def standby_promoted(scene: Scene) -> None:
    """Promote the standby after the primary was stopped, and after it was killed. A new standby is made each time."""
    servers = scene.stage.replicated
    for _ in range(scene.effort.restarts):
        for accident in (False, True):
            await scene.moment(2, 5)
            await asyncio.to_thread(servers.switch, accident=accident)
            await scene.moment(5, 8)
            await asyncio.to_thread(servers.replace)
    scene.notes.append(f"{scene.effort.restarts} x the primary stopped, {scene.effort.restarts} x killed")


async def standby_behind(scene: Scene) -> None:
    """Promote a standby that has less than Kafka and the receivers. The relay reports this and stops, until a new
    epoch has begun."""
    stage, servers = scene.stage, scene.stage.replicated
    await asyncio.to_thread(servers.fall_behind)
    await scene.moment(3, 5)
    await scene.load.hush()
    head = await stage.relayed()
    written = await stage.transactions()
    await asyncio.to_thread(servers.switch, accident=True)
    scene.given_up = time.time() + LEASE
    head_after = await stage.head()
    scene.load.resume(lost={transaction for position, transaction in written if position > head_after})
    since = await stage.told_to_restore()
    await stage.restored(since)
    await scene.moment(3, 5)
    await asyncio.to_thread(servers.replace)
    scene.notes.append(f"{head - head_after} events lost after position {head_after}, begun again after {since}")


async def kafka_freezes(scene: Scene) -> None:
    """Freeze Kafka for longer than the patience of consumers: connections stay open without answers, and then it continues."""
    broker = scene.stage.broker
    assert broker is not None
    for seconds in scene.effort.vanished:
        broker.freeze()
        await asyncio.sleep(seconds)
        broker.thaw()
        await scene.moment(8, 12)
    scene.notes.append(f"frozen for {', '.join(f'{seconds:.0f} s' for seconds in scene.effort.vanished)}")


async def kafka_vanishes(scene: Scene) -> None:
    link = scene.stage.broker_link
    for seconds in scene.effort.vanished:
        await _swallowed([link], seconds)
        await scene.moment(5, 8)
    await _swallowed([link], scene.effort.vanished[0], late=False)


async def receivers_vanish(scene: Scene) -> None:
    """Make receivers unreachable. The last time lasts until the load has ended, and what was sent to them then never arrives."""
    links = [receiver.link for receiver in scene.receivers if receiver.behaviour is Behaviour.VANISHES]
    for seconds in scene.effort.vanished:
        await _swallowed(links, seconds)
        await scene.moment(5, 8)
    for link in links:
        link.swallow()
    await asyncio.sleep(scene.effort.faulty)


async def _swallowed(links: Collection[Link], seconds: float, *, late: bool = True) -> None:
    for link in links:
        link.swallow()
    await asyncio.sleep(seconds)
    for link in links:
        if late:
            link.restore()
        else:
            link.replace()


_KILLED_IN_TURNS: Final = "one of the two fan-outs killed while the other continues; jobs with callbacks next to Events"
FAULTY = (Behaviour.FAILS, Behaviour.HANGS, Behaviour.DRIPS, Behaviour.BUSY, Behaviour.REDIRECTS, Behaviour.CLOSES)
_BOTH: Mapping[str, tuple[str, Callable[[Scene], Awaitable[None]]]] = {
    "calm": ("no faults, to compare with", calm),
    "kills": ("SIGKILL of processes at random", kills),
    "postgres": ("PostgreSQL restarted, and its postmaster killed", postgres_restarts),
    "frozen": ("processes frozen past their lease", freezes),
}
SCENARIOS: Sequence[Scenario] = (
    *(Scenario(name, meaning, True, act) for name, (meaning, act) in _BOTH.items()),
    Scenario("kafka", "Kafka stopped and restarted with its data, and killed", True, kafka_outage),
    Scenario("frozen-kafka", "Kafka frozen past the patience of consumers, and thawed", True, kafka_freezes),
    Scenario("receivers", "receivers with six faults, all at once", True, faulty_receivers, FAULTY),
    *(
        Scenario(f"receiver-{behaviour}", f"a faulty receiver: {behaviour}", True, faulty_receivers, (behaviour,))
        for behaviour in FAULTY
    ),
    Scenario("fan-outs", _KILLED_IN_TURNS, True, one_fan_out_killed, jobs=True),
    Scenario("fan-outs-log", f"{_KILLED_IN_TURNS}; no Kafka", False, one_fan_out_killed, jobs=True),
    Scenario("vanish-postgres", "the link to PostgreSQL swallows packets", True, postgres_vanishes, servers=Servers.LINKED),
    Scenario("vanish-kafka", "the link to Kafka swallows packets", True, kafka_vanishes, servers=Servers.LINKED),
    Scenario("standby", "a synchronous standby promoted, planned and not", True, standby_promoted, servers=Servers.REPLICATED),
    Scenario(
        "standby-behind", "an asynchronous standby promoted that lacks commits", True, standby_behind, servers=Servers.REPLICATED
    ),
    Scenario("notify", "forged and malformed NOTIFY; no Kafka", False, forged_notifications),
    Scenario("vanish-receiver", "the link to a receiver swallows packets", False, receivers_vanish, (Behaviour.VANISHES,)),
    *(Scenario(f"{name}-log", f"{meaning}; no Kafka", False, act) for name, (meaning, act) in _BOTH.items()),
)
