"""The form of the snapshots of an aggregate: what this build puts into one.

Builds that know different events make different snapshots: an older build ignores a member that it does not know, so its snapshot
lacks it for good. Each build reads and writes the snapshots of its own form only.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import get_type_hints

from pydantic import BaseModel
from pydantic_core import to_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import Catalogue

_ENVELOPE = 3
"""Changes with what `AggregateRoot.snapshot` gives."""


class SnapshotForms:
    """The forms of all aggregates, each computed when it is first needed."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._forms: dict[str, bytes] = {}

    def of(self, kind: str) -> bytes:
        """16 bytes. Raises `UnknownTopic`."""
        form = self._forms.get(kind)
        if form is None:
            form = self._forms[kind] = form_of(self._catalogue.aggregate(kind))
        return form


@cache
def form_of(root: type[AggregateRoot]) -> bytes:
    """A hash of the kind, of topics, versions and fields of its events, of the fields of its state, and of its code's version.
    Computed once for each class: the schemas of an aggregate's events take some milliseconds."""
    events = sorted((event.TOPIC, event.class_version, event.model_json_schema()) for event in root.EVENTS)
    details = get_type_hints(root).get("details")
    state = details.model_json_schema() if isinstance(details, type) and issubclass(details, BaseModel) else None
    return sha256(to_json([_ENVELOPE, root.KIND, root.SNAPSHOT_VERSION, events, state])).digest()[:16]
