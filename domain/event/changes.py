"""Requested changes of an Event, and their resolution into ids of links and tags. The look-ups are made before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic.alias_generators import to_camel

from domain.event.commands import Expectation, Replacement
from domain.event.links import LINKS, links
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.ids import new_id
from domain.kernel.ports import Link
from domain.record.kinds.tag import Tag
from domain.record.ports import RecordRow
from domain.record.record import RegisterRecord

_NO_SUCH_TAGS = object()
"""A value that equals nothing, so that a JSON Patch `test` for a tag that does not exist fails."""


@dataclass(frozen=True, slots=True)
class TagName:
    """A tag by its name. `id` is used only for a tag that must be added."""

    name: str
    id: UUID | None = None


@dataclass(frozen=True, slots=True)
class EventChanges:
    """New values by their names in `EventDetails`. Tags are given by name; None does not change them."""

    values: Mapping[str, Any]
    tags: Sequence[TagName] | None = None

    def links(self) -> Iterable[tuple[str, Link]]:
        """Return each link with the name of its field."""
        return [(name, link) for name in LINKS.keys() & self.values.keys() for link in links(name, self.values[name])]


@dataclass(frozen=True, slots=True)
class PatchStep:
    """An operation of a JSON Patch: it sets values, or (`test`) expects them."""

    changes: EventChanges
    is_test: bool = False


class LinkTargets:
    """The existing link targets of changes, and the tags that must be added.

    `tags` are the existing tags by name; `used_ids` are the requested ids that other tags have."""

    def __init__(self, targets: Mapping[Link, RecordRow], tags: Mapping[str, RecordRow], *, used_ids: Iterable[UUID] = ()) -> None:
        self.targets = targets
        self._tags = {name: UUID(row.id) for name, row in tags.items()}
        self._used_ids = set(used_ids)
        self.new_tags: list[RegisterRecord] = []

    def values(self, changes: EventChanges) -> dict[str, Any]:
        """Return the changes with tags as ids. Raises `Malformed` for links to records that do not exist."""
        values = dict(changes.values)
        if changes.tags is not None:
            values["tag_ids"] = self._tag_ids(changes.tags)
        missing = [name for name, link in changes.links() if link not in self.targets]
        if missing:
            raise Malformed(*(FieldError(_api_name(name), f"there is no such {LINKS[name].replace('_', ' ')}") for name in missing))
        return values

    def steps(self, patch: Iterable[PatchStep]) -> tuple[Expectation | Replacement, ...]:
        steps: list[Expectation | Replacement] = []
        for step in patch:
            if step.is_test:
                steps += [Expectation(name, value) for name, value in self._expected(step.changes).items()]
            else:
                steps += [Replacement(name, value) for name, value in self.values(step.changes).items()]
        return tuple(steps)

    def _expected(self, changes: EventChanges) -> dict[str, Any]:
        values = dict(changes.values)
        if changes.tags is not None:
            names = dict.fromkeys(tag.name for tag in changes.tags)
            exist = self._tags.keys() >= names.keys()
            values["tag_ids"] = tuple(self._tags[name] for name in names) if exist else _NO_SUCH_TAGS
        return values

    def _tag_ids(self, tags: Sequence[TagName]) -> tuple[UUID, ...]:
        """Return the ids of the tags, and plan missing tags. If several entries have one name, the first id is used."""
        for name, requested_id in {tag.name: tag.id for tag in reversed(tags)}.items():
            if name not in self._tags:
                self._add(name, requested_id)
        return tuple(dict.fromkeys(self._tags[tag.name] for tag in tags))

    def _add(self, name: str, requested_id: UUID | None) -> None:
        is_free = requested_id is not None and requested_id not in self._used_ids
        key = requested_id if requested_id is not None and is_free else new_id()
        self.new_tags.append(RegisterRecord(key, Tag, {"name": name}, new=not is_free))
        self._tags[name] = key
        self._used_ids.add(key)


def _api_name(name: str) -> str:
    return "categoryId" if name == "category_ids" else to_camel(name)
