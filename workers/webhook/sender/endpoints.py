"""The endpoints of the shards that a process owns: a task for each that has something to do, none for the others.

New deliveries are noticed in log order, after one cursor for each source and shard: a source inserts in log order, but each has its
own lag. One query finds them for all endpoints; each endpoint then reads its own rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from projections.consumers.leases import LeaseLost
from projections.kernel.background_task import start_task
from projections.webhook.keys import DeliverySource, shard_of
from projections.webhook.store import Cursor, Place
from workers.webhook.sender.endpoint import WORK, Endpoint, Phase, SharedParts

_NEW: Final = 250
"""The number of new rows of each source and shard."""
_MANY_ENDPOINTS: Final = 1000
_ROWS: Final = 20_000
_ROWS_EACH: Final = (50, 1000)


class Endpoints:
    """The endpoints of this process, and the shards that it owns with their epochs."""

    def __init__(self, parts: SharedParts) -> None:
        self.shards: dict[int, int] = {}
        """The owned shards, without those that are to be released."""
        self.releasing: dict[int, int] = {}
        self.is_complete = False
        """True if each webhook with pending deliveries in the owned shards has an endpoint, or is noticed after a cursor."""
        self._parts = parts
        self._endpoints: dict[UUID, Endpoint] = {}
        self._tasks: dict[Endpoint, asyncio.Task[None]] = {}
        self._cursors: dict[Cursor, Place] = {}
        self._is_ending = False

    def __len__(self) -> int:
        return len(self._endpoints)

    def in_phase(self, phase: Phase) -> int:
        """Return the number of endpoints in this phase."""
        return sum(endpoint.phase is phase for endpoint in self._endpoints.values())

    def wake(self, webhook: UUID) -> None:
        """Let a webhook send its new deliveries, if its shard is owned."""
        endpoint = self._endpoint(webhook)
        if endpoint is not None:
            endpoint.wake()
            self._start(endpoint)

    def read_again(self, webhook: UUID) -> None:
        """Let a webhook send all its deliveries, if its shard is owned: earlier ones may be pending again."""
        endpoint = self._endpoint(webhook)
        if endpoint is not None:
            endpoint.read_again()
            self._start(endpoint)

    def read_all_again(self) -> None:
        """Let all webhooks send what is pending: notifications may have been missed."""
        for webhook in list(self._endpoints):
            self.read_again(webhook)
        self.is_complete = False

    async def find_new(self) -> bool:
        """Wake the webhooks with deliveries after the cursors. Return True if there may be more."""
        if not self.is_complete:
            await self._find_webhooks()
        asked = dict(self._cursors)
        if not asked:
            return False
        new = await self._parts.store.read_new(asked, limit=_NEW)
        for cursor, places in new.items():
            if self._cursors.get(cursor) == asked[cursor]:
                self._cursors[cursor] = places[-1]
        for webhook in {webhook for places in new.values() for _, webhook, _ in places}:
            self.wake(webhook)
        return any(len(places) == _NEW for places in new.values())

    async def _find_webhooks(self) -> None:
        """Wake all webhooks with pending deliveries. The cursors are placed first, so that nothing is missed in between."""
        self.is_complete = True
        try:
            missing = [
                (source, shard) for shard in self.shards for source in DeliverySource if (source, shard) not in self._cursors
            ]
            if missing:
                places = await self._parts.store.last_places(missing)
                self._cursors |= {cursor: place for cursor, place in places.items() if cursor[1] in self.shards}
            for webhook in await self._parts.store.webhooks():
                self.wake(webhook)
        except BaseException:
            self.is_complete = False
            raise

    # --- shards

    def hold(self, shards: Mapping[int, int], *, excess: Collection[int], until: float) -> None:
        """Set the owned shards with their epochs. The endpoints of the `excess` shards end; what is in flight is finished first."""
        self._parts.until = until
        staying = {shard: epoch for shard, epoch in shards.items() if shard not in excess}
        new = {shard for shard, epoch in staying.items() if self.shards.get(shard) != epoch}
        if new:
            self.is_complete = False
        self._cursors = {cursor: place for cursor, place in self._cursors.items() if cursor[1] in staying and cursor[1] not in new}
        self.shards, self.releasing = staying, {shard: shards[shard] for shard in excess}
        for endpoint in list(self._endpoints.values()):
            if shards.get(endpoint.shard) != endpoint.epoch:
                self._cancel(endpoint)
            elif endpoint.shard in self.releasing:
                endpoint.end()
                if not endpoint.in_flight:
                    self._cancel(endpoint)

    def free(self) -> list[int]:
        """Return the shards to release that have no endpoint any more."""
        busy = {endpoint.shard for endpoint in self._endpoints.values()}
        return [shard for shard in self.releasing if shard not in busy]

    def lose(self, shard: int, epoch: int) -> None:
        """Cancel the endpoints of a shard, because another member owns it."""
        for endpoint in [endpoint for endpoint in self._endpoints.values() if (endpoint.shard, endpoint.epoch) == (shard, epoch)]:
            self._cancel(endpoint)
        for owned in (self.shards, self.releasing):
            if owned.get(shard) == epoch:
                del owned[shard]

    def tidy(self) -> None:
        """Forget idle endpoints if there are many, and set how many rows each may keep in memory."""
        if len(self._endpoints) > _MANY_ENDPOINTS:
            for endpoint in [
                endpoint for endpoint in self._endpoints.values() if endpoint not in self._tasks and endpoint.is_healthy
            ]:
                del self._endpoints[endpoint.webhook]
        least, most = _ROWS_EACH
        self._parts.rows_each = max(least, min(most, _ROWS // max(len(self._tasks), 1)))

    async def end(self, *, seconds: float) -> None:
        """End all endpoints. Attempts in flight have some seconds to end; the next owner repeats those that do not."""
        self._is_ending = True
        for endpoint in list(self._endpoints.values()):
            endpoint.end()
            if not endpoint.in_flight:
                self._cancel(endpoint)
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- tasks

    def _endpoint(self, webhook: UUID) -> Endpoint | None:
        endpoint = self._endpoints.get(webhook)
        if endpoint is None:
            shard = shard_of(webhook)
            epoch = self.shards.get(shard)
            if epoch is not None:
                endpoint = self._endpoints[webhook] = Endpoint(webhook, shard=shard, epoch=epoch, parts=self._parts)
        return endpoint

    def _start(self, endpoint: Endpoint) -> None:
        if endpoint not in self._tasks and not self._is_ending:
            self._tasks[endpoint] = start_task(self._run(endpoint), what=WORK)

    async def _run(self, endpoint: Endpoint) -> None:
        """Run an endpoint until it has nothing to do. If it cannot be used any more, another one takes its place."""
        is_idle = False
        try:
            is_idle = await self._serve(endpoint)
        except BaseException:
            self.is_complete = False
            raise
        finally:
            self._tasks.pop(endpoint, None)
            if not is_idle:
                self._forget(endpoint)
        if not is_idle:
            self.wake(endpoint.webhook)

    async def _serve(self, endpoint: Endpoint) -> bool:
        """Run an endpoint as long as something has happened. Return False if it is closed, has ended, or has lost its shard."""
        is_usable = True
        try:
            while is_usable and endpoint.has_news:
                is_closed = await endpoint.run()
                is_usable = not is_closed and not endpoint.is_ending
        except* LeaseLost:
            self.lose(endpoint.shard, endpoint.epoch)
            is_usable = False
        return is_usable

    def _cancel(self, endpoint: Endpoint) -> None:
        self._forget(endpoint)
        task = self._tasks.pop(endpoint, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def _forget(self, endpoint: Endpoint) -> None:
        if self._endpoints.get(endpoint.webhook) is endpoint:
            del self._endpoints[endpoint.webhook]
