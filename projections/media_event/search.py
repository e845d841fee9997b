"""The search index of Events."""

from __future__ import annotations

from typing import Final

from domain.media_event.aggregate import MediaEvent
from projections.kernel.search import SearchIndex

EVENT_SEARCH: Final = SearchIndex("event_search", "event_view", kind=MediaEvent.KIND, key="uuid")
