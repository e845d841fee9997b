"""The role `lists`: maintains the search indexes and totals of long lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from projections.event.view import EVENT_SEARCH
from projections.job.view import JOB_SEARCH
from projections.kernel.database.database import Database
from projections.kernel.sql.search import CONSUMER
from projections.kernel.sql.tallies import Tallies
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker
from workers.lists.search import SearchIndexer
from workers.lists.totals import TotalsTask

_CADENCE: Final = 0.25
"""Seconds between two changes of the indexes. A search reads for itself what they do not have yet."""


def lists(consumers: ConsumerFactory, database: Database, *, tallies: Tallies) -> Sequence[Worker]:
    indexer = SearchIndexer(database, (EVENT_SEARCH, JOB_SEARCH))
    return [consumers.consumer(CONSUMER, indexer, cadence=_CADENCE), TotalsTask(tallies, position=consumers.log.reached())]
