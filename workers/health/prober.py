"""The prober: samples the publishing points of live Events, each by one process of the whole installation. See ADR 0056.

Channels are divided into shards under leases. A process samples only while its lease lasts by its own monotonic clock, and its
samples are written only while the database confirms the lease. A new owner continues where the last one stopped: the times of the
samples are in the table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from time import monotonic
from typing import Final
from uuid import UUID

from domain.channel.channel import StatusCheckStrategy
from domain.channel.hosts import ProvisionedHosts
from domain.channel.points import WatchedPoint
from domain.kernel.errors import DecryptionFailed
from domain.record.kinds.channel import Channel
from projections.consumers.leases import Assignment, ShardLeases, shard_of
from projections.kernel.background_task import TRANSIENT, start_task
from projections.publishing_point.points import ChannelPoints, ChannelPointsReader
from projections.publishing_point.samples import LiveChannel, PointKey, PointSample, Samples
from projections.vault.vault import Vault
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.metrics import PointMetrics
from workers.kernel.wakeups import Waker
from workers.ports.points import PointReport, PointSilent, PointStatusReader

# The rhythm of samples: decides which points are due. Each is due once in an interval, and the points are spread over it.

INTERVAL: Final = 5.0
"""Seconds between two samples of a point."""
_SOON: Final = 0.4
"""The part of an interval between the first two samples that got a state, since only two show if data arrive, and between the first
samples of a point without a state: its encoder starts at the same time."""
_FIRST: Final = 4
"""The number of first samples that are taken sooner."""
AT_ONCE: Final = 2000
"""The number of new points that take the whole interval to begin."""
_PATIENCE: Final = 2.0
"""Intervals between two samples of a point without a state: it may answer slowly, or have been asked by every strategy."""


@dataclass(slots=True)
class _Turn:
    due: float
    looks: int = 0
    answers: int = 0


class Rhythm:
    """The due times of points, by a monotonic clock. A point that is taken is not due again before it is put back."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._turns: dict[PointKey, _Turn] = {}
        self._heap: list[tuple[float, PointKey]] = []

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def points(self) -> Collection[PointKey]:
        return self._turns.keys()

    def set(self, points: Mapping[PointKey, float | None], *, now: float) -> None:
        """Set the points. The value of a new point is the number of seconds since it was last sampled; None if it never was, so it
        is due at once. A value below 0, since a clock was set back, counts as 0. If many points are new together, they are spread
        over the interval, and stay so."""
        for key in self._turns.keys() - points.keys():
            del self._turns[key]
        new = {key: age for key, age in points.items() if key not in self._turns}
        over = min(len(new) / AT_ONCE, 1.0) * self._interval
        for key, age in new.items():
            if age is None:
                self._add(key, _Turn(now + over * _phase(key)))
            else:
                self._add(key, _Turn(now + max(self._interval - max(age, 0.0), 0.0), looks=_FIRST, answers=2))
        if len(self._heap) > 2 * len(self._turns) + 100:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapify(self._heap)

    def due_at(self) -> float | None:
        """Return the time at which the next point is due."""
        while self._heap and not self._is_current(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> tuple[PointKey, float] | None:
        """Return the point that has been due for longest, and its due time; None if none is due."""
        due = self.due_at()
        if due is None or due > now:
            return None
        _, key = heappop(self._heap)
        self._turns[key].due = float("inf")
        return key, due

    def put_back(self, key: PointKey, *, due: float, now: float, answered: bool = True, slow: bool = False) -> None:
        """Put back a point after a sample that was due at `due`. `answered` is True if it got a state; `slow` if the answer was
        slow. A late sample does not make the next one early."""
        turn = self._turns.get(key)
        if turn is None:
            return
        turn.looks += 1
        turn.answers += answered
        soon = turn.answers == 1 if answered else turn.answers == 0 and turn.looks < _FIRST and not slow
        interval = self._interval * (_SOON if soon else 1.0 if answered else _PATIENCE)
        turn.due = max(due + interval, now + interval / 2)
        heappush(self._heap, (turn.due, key))

    def put_off(self, key: PointKey, until: float) -> None:
        """Postpone a point that was taken and not sampled."""
        self._turns[key].due = until
        heappush(self._heap, (until, key))

    def _add(self, key: PointKey, turn: _Turn) -> None:
        self._turns[key] = turn
        heappush(self._heap, (turn.due, key))

    def _is_current(self, entry: tuple[float, PointKey]) -> bool:
        turn = self._turns.get(entry[1])
        return turn is not None and turn.due == entry[0]


def _phase(key: PointKey) -> float:
    return (hash(key) % 1000) / 1000


AGAIN: Final = 60.0
"""Seconds for which the strategy that succeeded last is tried first; afterwards all are tried in their order."""


@dataclass(frozen=True, slots=True)
class LookResult:
    """The result of asking a server: a report, or the reason why there is none. `seconds` is the time that it took."""

    report: PointReport | None
    silent: PointSilent | None
    seconds: float

    @property
    def state(self) -> str:
        return "silent" if self.report is None else self.report.state


class PointKeys:
    """The keys of channels' points. They are decrypted once for each version of a channel."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def of(self, channel: UUID, points: ChannelPoints) -> Mapping[str, str]:
        """Return the keys by their place in the configuration. A key that cannot be decrypted is left out."""
        keys: dict[str, str] = {}
        for point in points.points:
            ref = points.secrets.get(point.key_place) if point.srva_api else None
            if ref is not None:
                try:
                    key = await self._vault.read(ref.reference, owner=Channel.stream(channel))
                except DecryptionFailed:
                    continue
                if key is not None:
                    keys[point.key_place] = key
        return keys


async def look_at(
    point: WatchedPoint,
    statuses: Mapping[StatusCheckStrategy, PointStatusReader],
    *,
    key: str | None,
    first: StatusCheckStrategy | None,
) -> LookResult:
    """Ask the server of a point once."""
    begun = monotonic()
    try:
        report = await statuses[point.strategy].ask(point, key=key, first=first)
    except PointSilent as silent:
        return LookResult(None, silent, monotonic() - begun)
    return LookResult(report, None, monotonic() - begun)


SHARDS: Final = 16
PLACES: Final = 600
"""The largest number of points that are asked at a time."""
SLOW_PLACES: Final = 400
"""The largest number of slow points among them: the other points stay in their rhythm."""
SLOW: Final = 1.0
READ_EVERY: Final = 1.0
WRITE_EVERY: Final = 0.25
_PUT_OFF: Final = 0.5
_FORGET_EVERY: Final = 600.0


@dataclass(slots=True)
class _Watched:
    """A point that this process samples. `first` is the strategy that last learnt its state, which is tried first until the time
    `until`."""

    point: WatchedPoint
    key: str | None
    shard: int
    slow: bool = False
    first: StatusCheckStrategy | None = None
    until: float = 0.0


class Prober(LeasedWorker):
    """A member of the prober. `statuses` are the strategies, `interval` the seconds between two samples of a point."""

    def __init__(
        self,
        samples: Samples,
        channels: ChannelPointsReader,
        *,
        hosts: ProvisionedHosts,
        keys: PointKeys,
        statuses: Mapping[StatusCheckStrategy, PointStatusReader],
        leases: ShardLeases,
        waker: Waker,
        metrics: PointMetrics,
        interval: float = INTERVAL,
    ) -> None:
        super().__init__(leases, waker)
        self._samples = samples
        self._channels = channels
        self._hosts = hosts
        self._keys = keys
        self._statuses = statuses
        self._metrics = metrics
        self._live: dict[UUID, LiveChannel] = {}
        self._watched: dict[PointKey, _Watched] = {}
        self._interval = interval
        self._rhythm = Rhythm(interval)
        self._asking: dict[PointKey, asyncio.Task[None]] = {}
        self._slow = 0
        self._results: dict[PointKey, tuple[PointSample, float]] = {}
        self._read = self._written = self._forgotten = float("-inf")

    @property
    def _busy(self) -> int:
        return len(self._asking)

    async def _turn(self) -> None:
        await self._renew()
        now = monotonic()
        if now >= self._assignment.until:
            await self._drop_all()
            await self._waker.sleep(self._leases.lease / 5)
            return
        if now - self._read >= READ_EVERY:
            await self._read_points()
        self._start_due()
        if self._results and monotonic() - self._written >= WRITE_EVERY:
            await self._write()
        if now - self._forgotten >= _FORGET_EVERY:
            await self._samples.forget()
            self._forgotten = now
        await self._waker.sleep(self._pause())

    def _pause(self) -> float:
        """Return the seconds until there is something to do. When all places are taken, the end of a sample wakes the worker."""
        due = self._rhythm.due_at()
        seconds = READ_EVERY if due is None or len(self._asking) >= PLACES else max(due - monotonic(), 0.0)
        return min(seconds, WRITE_EVERY if self._results or self._asking else READ_EVERY)

    async def _finish(self) -> None:
        with suppress(*TRANSIENT):
            await self._drop_all()

    async def _release(self, shards: Collection[int]) -> None:
        """Write the running samples of the shards first: the new owner reads them when a point is due."""
        in_progress = [task for key, task in self._asking.items() if key in self._watched and self._watched[key].shard in shards]
        await asyncio.gather(*in_progress, return_exceptions=True)
        await self._write()
        await super()._release(shards)

    async def _apply_assignment(self, assignment: Assignment) -> None:
        if assignment.leases.keys() != self._assignment.leases.keys():
            self._read = float("-inf")

    async def _drop_all(self) -> None:
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._write()
        self._live.clear()
        self._watched.clear()
        self._rhythm = Rhythm(self._interval)
        self._metrics.watched(0)

    async def _read_points(self) -> None:
        """Determine the points that this process is to sample. Only channels that have changed are read."""
        self._read = monotonic()
        live = await self._samples.live_channels()
        ours = {channel: live_channel for channel, live_channel in live.items() if self._shard(channel) in self._assignment.leases}
        if ours == self._live:
            return
        changed = {channel: live_channel for channel, live_channel in ours.items() if self._live.get(channel) != live_channel}
        read = await self._points_of(changed)
        watched = {
            key: watched_point for key, watched_point in self._watched.items() if key.channel in ours and key.channel not in changed
        }
        for channel, points in read.items():
            watched |= await self._of_channel(channel, points)
        ages = await self._samples.ages(list(changed))
        self._watched = watched
        self._live = ours
        sampled_ages = {
            key: ages.get((key, watched_point.point.fingerprint))
            for key, watched_point in watched.items()
            if key.channel in changed
        }
        self._rhythm.set({key: sampled_ages.get(key) for key in watched}, now=monotonic())
        self._metrics.watched(len(watched))

    async def _points_of(self, live: Mapping[UUID, LiveChannel]) -> Mapping[UUID, ChannelPoints]:
        read = await self._channels.of({channel: live_channel.version for channel, live_channel in live.items()})
        events = {channel: event for channel, points in read.items() if points.names_host and (event := live[channel].event)}
        hosts = await self._hosts.hosts_of(events.values()) if events else {}
        return read | {channel: read[channel].at(hosts[event]) for channel, event in events.items() if event in hosts}

    async def _of_channel(self, channel: UUID, points: ChannelPoints) -> dict[PointKey, _Watched]:
        keys = await self._keys.of(channel, points)
        return {
            PointKey(channel, point.encoder, point.index): _Watched(point, keys.get(point.key_place), self._shard(channel))
            for point in points.points
            if point.strategy is not StatusCheckStrategy.NONE
        }

    def _shard(self, channel: UUID) -> int:
        return shard_of(str(channel), self._leases.shards)

    def _start_due(self) -> None:
        now = monotonic()
        while len(self._asking) < PLACES and now < self._assignment.until and (taken := self._rhythm.take(now)) is not None:
            key, due = taken
            watched = self._watched[key]
            ours = watched.shard in self._assignment.leases  # the points may have been read before the shard was lost
            if not ours or key in self._asking or (watched.slow and self._slow >= SLOW_PLACES):
                self._rhythm.put_off(key, now + _PUT_OFF)
                self._metrics.put_off()
            else:
                self._start(key, watched, due=due)

    def _start(self, key: PointKey, watched: _Watched, *, due: float) -> None:
        lease = self._assignment.leases[watched.shard]
        self._metrics.started(late=monotonic() - due)
        self._slow += watched.slow
        task = start_task(self._sample(key, watched, due=due, epoch=lease.epoch), what="samples of publishing points")
        self._asking[key] = task
        task.add_done_callback(partial(self._on_end, key, slow=watched.slow))

    def _on_end(self, key: PointKey, _: asyncio.Task[None], *, slow: bool) -> None:
        del self._asking[key]
        self._slow -= slow
        if len(self._asking) >= PLACES - 1:
            self._waker.wake()

    async def _sample(self, key: PointKey, watched: _Watched, *, due: float, epoch: int) -> None:
        now = monotonic()
        if now >= self._assignment.until:
            self._rhythm.put_back(key, due=due, now=now, answered=False)
            return
        first = watched.first if now < watched.until else None
        try:
            looked = await look_at(watched.point, self._statuses, key=watched.key, first=first)
        except Exception:  # it is asked again anyway
            self._rhythm.put_back(key, due=due, now=monotonic(), answered=False)
            raise
        now = monotonic()
        watched.slow = looked.seconds > SLOW
        self._rhythm.put_back(key, due=due, now=now, answered=looked.report is not None, slow=watched.slow)
        if looked.report is not None and (first is None or looked.report.strategy is not first):
            watched.first, watched.until = looked.report.strategy, now + AGAIN
        self._metrics.sampled(looked.state, seconds=looked.seconds)
        if looked.silent is None or looked.silent.kind != "local":  # the sample says nothing about the point then
            self._results[key] = (_sample_of(key, watched, looked, epoch), now)

    async def _write(self) -> None:
        self._written = now = monotonic()
        results, self._results = self._results, {}
        await self._samples.write([replace(sample, age=now - at) for sample, at in results.values()])


def _sample_of(key: PointKey, watched: _Watched, looked: LookResult, epoch: int) -> PointSample:
    report = looked.report
    sample = PointSample(key, watched.shard, epoch, address=watched.point.fingerprint, strategy=watched.point.strategy, age=0.0)
    if report is None:
        assert looked.silent is not None
        return replace(sample, counted=looked.silent.is_at_fault, fault=str(looked.silent))
    return replace(
        sample,
        strategy=report.strategy,
        state=report.state,
        last_updated=report.last_updated,
        mark=report.mark,
        receiving=report.receiving,
    )
