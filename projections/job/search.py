"""The search index of jobs. The text of a job never changes."""

from __future__ import annotations

from typing import Final

from domain.job.aggregate import Job
from projections.kernel.search import SearchIndex

JOB_SEARCH: Final = SearchIndex("job_search", "job_view", kind=Job.KIND, key="bigint", fixed=True)
