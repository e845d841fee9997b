"""The role `lists`: maintains the search indexes and totals of long lists."""

from __future__ import annotations

from collections.abc import Sequence

from projections.event.view import EVENT_SEARCH
from projections.job.view import JOB_SEARCH
from projections.kernel.database.database import Database
from projections.kernel.sql.search import CONSUMER
from projections.kernel.sql.tallies import Tallies
from workers.kernel.consumer import Consumer
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker
from workers.lists.search import SearchIndexer
from workers.lists.totals import TotalsTask


def lists(consumers: ConsumerFactory, database: Database, *, tallies: Tallies) -> Sequence[Worker]:
    feed = consumers.feed(frozenset({EVENT_SEARCH.kind, JOB_SEARCH.kind}), consumer=CONSUMER)
    indexer = SearchIndexer(database, (EVENT_SEARCH, JOB_SEARCH))
    return [Consumer(database, consumers.leases(CONSUMER, reads_log=True), feed=feed, handler=indexer), TotalsTask(tallies)]
