"""Reads what is pending, as far as there is room for it. One question at a time: the order of the lanes rests on that.

New rows come in log order, behind a cursor over all webhooks. An endpoint that has no room for them is left behind, and reads its
own rows alone until it has caught up. Lanes that waited for another try read on by themselves.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

from projections.deliveries.ledger import DeliveryLedger, LaneAsked, PageAsked, PendingDelivery
from workers.webhooks.dispatch import Dispatch
from workers.webhooks.endpoint import Endpoint
from workers.webhooks.lanes import Lane
from workers.webhooks.targets import Targets
from workers.webhooks.verdicts import DISABLED

Disable = Callable[[UUID, str], Awaitable[None]]

DELETED: Final = "the webhook was deleted"
_FRESH: Final = 1000
_PAGES: Final = 2000
_LEAST_PAGE: Final = 50
_LANES: Final = 256
_OF_A_LANE: Final = 8
_CHECKED_SECONDS: Final = 1.0
"""How long a webhook is taken to be as it was."""
_UNREADABLE_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class Reader:
    """Between the table and the endpoints."""

    def __init__(
        self, ledger: DeliveryLedger, targets: Targets, *, dispatch: Dispatch, disable: Disable, time: Callable[[], float]
    ) -> None:
        self._ledger = ledger
        self._targets = targets
        self._dispatch = dispatch
        self._disable = disable
        self._time = time
        self._cursor: tuple[int, UUID, str] | None = None
        self.to_find = True
        """There may be webhooks with something pending that no endpoint is held for."""
        self.fresh = True
        """There may be rows behind the cursor."""

    async def read(self) -> bool:
        """One round; whether there is more to read at once."""
        self._dispatch.agenda.run(self._time())
        if self.to_find:
            await self._find()
        await self._close()
        read_on = await self._read_lanes()
        paged = await self._read_pages()
        return await self._read_fresh() or paged or read_on

    def again(self) -> None:
        """Everything anew: what was told may have been missed."""
        for endpoint in self._dispatch.endpoints.values():
            endpoint.read_again()
            self._dispatch.awake(endpoint)
        self.to_find = self.fresh = True

    def retried(self) -> None:
        """A round was broken off."""
        for endpoint in self._dispatch.endpoints.values():
            self._dispatch.awake(endpoint)

    async def _find(self) -> None:
        self.to_find = False
        try:
            if self._cursor is None:
                self._cursor = await self._ledger.last()
            for webhook in await self._ledger.webhooks():
                self._dispatch.endpoint(webhook)
        except BaseException:
            self.to_find = True
            raise

    async def _close(self) -> None:
        """Let fail what is pending for webhooks that are disabled or gone. Their endpoints go first: what comes in meanwhile is
        looked at anew."""
        for endpoint in [one for one in self._dispatch.to_close if one.idle]:
            assert endpoint.closed is not None
            if endpoint.to_disable is not None and not await self._disabled(endpoint.webhook, endpoint.to_disable):
                continue
            self._dispatch.remove(endpoint)
            try:
                await self._ledger.fail(endpoint.webhook, endpoint.closed, share=(endpoint.shard, endpoint.epoch))
            except BaseException:
                self._dispatch.endpoint(endpoint.webhook)
                raise

    async def _disabled(self, webhook: UUID, reason: str) -> bool:
        try:
            await self._disable(webhook, reason)
        except Exception as fault:  # tried again at the next round; nothing is sent meanwhile
            _log.warning("webhook %s could not be disabled: %s", webhook, type(fault).__name__)
            return False
        return True

    async def _read_lanes(self) -> bool:
        now = self._time()
        hungry = [
            (endpoint, lane)
            for endpoint in self._dispatch.to_read
            if endpoint.lanes.hungry and endpoint.room(now) > 0
            for lane in endpoint.lanes.hungry.values()
        ][:_LANES]
        if not hungry:
            return False
        asked = [LaneAsked(one.webhook, lane.key, lane.known, one.lanes.through(lane)) for one, lane in hungry]
        generations = [endpoint.generation for endpoint, _ in hungry]
        self._dispatch.asking()
        rows: defaultdict[tuple[UUID, str], list[PendingDelivery]] = defaultdict(list)
        for row in await self._ledger.lanes(asked, each=_OF_A_LANE):
            rows[row.webhook, row.lane].append(row)
        await self._check([endpoint for endpoint, _ in hungry])
        for (endpoint, lane), generation in zip(hungry, generations, strict=True):
            if endpoint.generation == generation and not endpoint.lost:
                self._feed(endpoint, lane, rows[endpoint.webhook, lane.key])
        return True

    def _feed(self, endpoint: Endpoint, lane: Lane, rows: Sequence[PendingDelivery]) -> None:
        now = self._time()
        read_to = rows[-1].position if len(rows) == _OF_A_LANE else None
        pending = (self._dispatch.known(row, now) for row in rows)
        endpoint.lanes.feed(lane, [row for row in pending if row is not None], read_to=read_to, now=now)
        self._dispatch.awake(endpoint)

    async def _read_pages(self) -> bool:
        now = self._time()
        behind = [endpoint for endpoint in self._dispatch.to_read if endpoint.starved and endpoint.room(now) > 0]
        self._dispatch.to_read = {one: None for one in self._dispatch.to_read if one.lanes.hungry and one.room(now) > 0}
        if not behind:
            return False
        most = max(_LEAST_PAGE, _PAGES // len(behind))
        asked = [PageAsked(one.webhook, *one.lanes.frontier, min(one.room(now), most)) for one in behind]
        generations = [endpoint.generation for endpoint in behind]
        self._dispatch.asking()
        rows: defaultdict[UUID, list[PendingDelivery]] = defaultdict(list)
        for row in await self._ledger.pages(asked):
            rows[row.webhook].append(row)
        await self._check(behind)
        for endpoint, page, generation in zip(behind, asked, generations, strict=True):
            if endpoint.generation == generation and not endpoint.lost:
                found = rows[endpoint.webhook]
                self._offer(endpoint, found)
                endpoint.behind = len(found) == page.limit
                self._dispatch.awake(endpoint)
        return True

    async def _read_fresh(self) -> bool:
        if not self.fresh or self._cursor is None or not self._dispatch.shares:
            return False
        self.fresh = False
        self._dispatch.asking()
        try:
            found = await self._ledger.fresh(self._cursor, shards=self._dispatch.shares, limit=_FRESH)
            rows: defaultdict[UUID, list[PendingDelivery]] = defaultdict(list)
            for row in found:
                rows[row.webhook].append(row)
            endpoints = [one for one in map(self._dispatch.endpoint, rows) if one is not None]
            await self._check([one for one in endpoints if not one.behind])
        except BaseException:
            self.fresh = True
            raise
        for endpoint in endpoints:
            if not (endpoint.behind or endpoint.lost or endpoint.leaving):
                self._take(endpoint, rows[endpoint.webhook])
        if found:
            self._cursor = found[-1].position, found[-1].webhook, found[-1].lane
        self.fresh = self.fresh or len(found) == _FRESH
        return self.fresh

    def _take(self, endpoint: Endpoint, rows: Sequence[PendingDelivery]) -> None:
        new = [row for row in rows if (row.position, row.lane) > endpoint.lanes.frontier]
        room = max(endpoint.room(self._time()), 0)
        self._offer(endpoint, new[:room])
        endpoint.behind = len(new) > room
        self._dispatch.awake(endpoint)

    def _offer(self, endpoint: Endpoint, rows: Iterable[PendingDelivery]) -> None:
        now = self._time()
        lanes, known = endpoint.lanes, self._dispatch.known
        for row in rows:
            pending = known(row, now)
            if pending is None:
                lanes.pass_over(row.position, row.lane)
            else:
                lanes.offer(pending, now)

    async def _check(self, endpoints: Iterable[Endpoint]) -> None:
        """How the webhooks are now, before anything of theirs is taken."""
        now = self._time()
        old = [one for one in dict.fromkeys(endpoints) if one.target is None or now - one.checked > _CHECKED_SECONDS]
        if not old:
            return
        standing = await self._ledger.standing([one.webhook for one in old])
        changed = [
            one
            for one in old
            if (version := standing[one.webhook].version) and (one.target is None or one.target.version != version)
        ]
        loaded = await self._targets.load([one.webhook for one in changed]) if changed else {}
        for endpoint in old:
            endpoint.checked = now
            endpoint.target = loaded.get(endpoint.webhook, endpoint.target)
            endpoint.failing_since = standing[endpoint.webhook].failing_since if endpoint in changed else endpoint.failing_since
            if endpoint.closed is not None:
                continue
            if standing[endpoint.webhook].version is None:
                endpoint.close(DELETED)
            elif endpoint.target is None:
                endpoint.pause(now, seconds=_UNREADABLE_SECONDS)
            elif endpoint.target.disabled:
                endpoint.close(DISABLED)
            else:
                continue
            self._dispatch.awake(endpoint)
