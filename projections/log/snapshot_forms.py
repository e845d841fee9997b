"""The form of an aggregate's snapshots: a hash of what this build puts into them.

Builds that know different events make different snapshots: an older build ignores a member that it does not know, so its snapshot
permanently lacks that member. Each build reads and writes only snapshots of its own form.
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
"""The version of the result of `AggregateRoot.snapshot`."""


class SnapshotForms:
    """The forms of all aggregates, each computed when it is first needed."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._forms: dict[str, bytes] = {}

    def of(self, kind: str) -> bytes:
        """Return the form of a kind, 16 bytes. Raise `UnknownTopic` if there is no such kind."""
        form = self._forms.get(kind)
        if form is None:
            form = self._forms[kind] = form_of(self._catalogue.aggregate(kind))
        return form


@cache
def form_of(root: type[AggregateRoot]) -> bytes:
    """Return a hash of the kind, of the topics, versions and fields of its events, of the fields of its state, and of its code's
    version.

    It is computed once for each class, since the schemas of an aggregate's events take some milliseconds.
    """
    events = sorted((event.TOPIC, event.class_version, event.model_json_schema()) for event in root.EVENTS)
    details = get_type_hints(root).get("details")
    state = details.model_json_schema() if isinstance(details, type) and issubclass(details, BaseModel) else None
    return sha256(to_json([_ENVELOPE, root.KIND, root.SNAPSHOT_VERSION, events, state])).digest()[:16]
