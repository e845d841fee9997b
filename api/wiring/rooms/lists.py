"""The support of long lists in addition to the views: maintained totals and search indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.room import Room, WorkerRole
from domain.kernel.ids import new_id
from projections.kernel.schema.migrate import Migration

if TYPE_CHECKING:
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _lists(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from projections.event.view import EVENT_SEARCH
    from projections.job.view import JOB_SEARCH
    from projections.kernel.sql.search import CONSUMER
    from projections.kernel.sql.tallies import Tallies
    from workers.kernel.consumer import Consumer
    from workers.lists.search import SearchIndexer
    from workers.lists.totals import TotalsTask

    handler = SearchIndexer(context.database, (EVENT_SEARCH, JOB_SEARCH))
    leases = ShardLeases(context.database, CONSUMER, shards=1, member=new_id(), host=context.host)
    feed = context.feed(frozenset({EVENT_SEARCH.kind, JOB_SEARCH.kind}), consumer=CONSUMER)
    return [Consumer(context.database, leases, feed=feed, handler=handler), TotalsTask(Tallies(context.database))]


LISTS = Room(
    name="lists",
    migrations=(
        Migration.read("0012 search of events", "event/search.sql"),
        Migration.read("0013 search of jobs", "job/search.sql"),
    ),
    worker_roles=(WorkerRole("lists", _lists, inside=True),),
)
