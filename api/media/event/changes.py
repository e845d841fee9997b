"""From a body to what the domain understands: `EventDetails` names and values, with links checked and tags found or made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from api.kernel.parsing import Validator
from api.media.event.wire import EventParticulars, PatchStep, TagModel
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.clock import Clock
from domain.kernel.errors import FieldError, Malformed
from domain.media_event.commands import Expectation, Replacement
from domain.records.kinds.tag import Tag
from projections.records.queries import Link, RecordQueries

LINKS: Mapping[str, str] = {
    "room_id": "room",
    "event_type_id": "event_type",
    "category_ids": "category",
    "channel_id": "channel",
    "flow_id": "flow",
    "remixflow_id": "flow",
    "archiverflow_id": "flow",
    "infrastructure_profile_id": "infrastructure_profile",
}
"""Details that point at other records, and the kind of record that each points at."""

_NAMES = {"vod_enable_drm": "vod_drm", "event_state": "state"}
_IGNORED = frozenset({"id", "refresh_index"})
_RESPONSE_NAMES = {
    "voddrm": "vodEnableDrm",
    "state": "eventState",
    "maxbitrateurlparam": "maxBitrate",
    "minbitrateurlparam": "minBitrate",
    "dvrlengthurlparam": "dvrLength",
}
_FLAGS = frozenset(
    name for name, field in EventParticulars.model_fields.items() if "bool" in str(field.annotation) and name not in _IGNORED
)
_UNKNOWN = object()
_PARTICULARS = Validator(EventParticulars, where="value")


class EventChanges:
    """Reads bodies of POST and PATCH /event/. Looks at other records, so it is asked again for every try of a command."""

    def __init__(self, records: RecordQueries, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    async def of(self, body: EventParticulars) -> tuple[dict[str, Any], list[AggregateRoot]]:
        """Changes to the Event, its states among them, and the tags that must be made with it."""
        changes = plain(body)
        new: list[AggregateRoot] = []
        if "tags" in body.model_fields_set:
            changes["tag_ids"], new = await self._tags(body.tags or ())
        await self.check_links(changes)
        return changes, new

    async def steps(self, patch: Sequence[PatchStep]) -> tuple[tuple[Expectation | Replacement, ...], list[AggregateRoot]]:
        """A JSON Patch as steps on details. Bad paths and operations are `Malformed`, naming the step."""
        steps: list[Expectation | Replacement] = []
        new: list[AggregateRoot] = []
        for index, step in enumerate(patch):
            body = _one(step, index)
            if step.op == "test":
                steps += [Expectation(name, value) for name, value in (await self._expected(body)).items()]
                continue
            changes, made = await self.of(body)
            steps += [Replacement(name, value) for name, value in changes.items()]
            new += [tag for tag in made if tag.claims().isdisjoint(claim for other in new for claim in other.claims())]
        return tuple(steps), new

    async def check_links(self, changes: Mapping[str, Any]) -> None:
        """decisions.md, Everywhere: an unknown id as a link in a body is 400, naming the field."""
        wanted = [(name, link) for name in LINKS if changes.get(name) for link in links(name, changes[name])]
        known = await self._records.names(link for _, link in wanted)
        missing = [name for name, link in wanted if link not in known]
        if missing:
            raise Malformed(*(FieldError(_spelled(name), f"there is no such {LINKS[name].replace('_', ' ')}") for name in missing))

    async def _expected(self, body: EventParticulars) -> dict[str, Any]:
        changes = plain(body)
        if "tags" in body.model_fields_set:
            known = await self._records.named(Tag.KIND, [tag.name for tag in body.tags or ()])
            found = tuple(dict.fromkeys(UUID(known[tag.name].id) for tag in body.tags or () if tag.name in known))
            complete = all(tag.name in known for tag in body.tags or ())
            changes["tag_ids"] = found if complete else _UNKNOWN
        return changes

    async def _tags(self, tags: Sequence[TagModel]) -> tuple[tuple[UUID, ...], list[AggregateRoot]]:
        """decisions.md, Rooms, tags: the name decides, twins collapse, an unknown name makes a tag."""
        named = {tag.name: tag.id for tag in reversed(tags)}
        known = await self._records.named(Tag.KIND, list(named))
        given = [tag_id for name, tag_id in named.items() if tag_id is not None and name not in known]
        taken = {UUID(row.id) for row in await self._records.those(Tag.KIND, given)} if given else set()
        new: dict[str, Tag] = {}
        for name, tag_id in named.items():
            if name not in known:
                key = tag_id if tag_id is not None and tag_id not in taken else uuid4()
                taken.add(key)
                new[name] = Tag.register(key, {"name": name}, at=self._clock())
        ids = [UUID(known[tag.name].id) if tag.name in known else UUID(new[tag.name].key) for tag in tags]
        return tuple(dict.fromkeys(ids)), list(new.values())


def plain(body: EventParticulars) -> dict[str, Any]:
    """What the body sets, under the domain's names, without its tags. null is false for a flag, absent for a state."""
    changes: dict[str, Any] = {}
    for name in body.model_fields_set:
        if name in _IGNORED or name == "tags":
            continue
        value = getattr(body, name)
        if name == "category_id":
            changes["category_ids"] = () if value is None else (value,)
        elif name == "event_state":
            if value is not None:
                changes["state"] = value
        elif name in _FLAGS:
            changes[_NAMES.get(name, name)] = bool(value)
        else:
            changes[name] = value if value != "" else None
    return changes


def links(name: str, value: Any) -> Iterable[Link]:
    """What one detail points at."""
    return [(LINKS[name], str(key)) for key in (value if isinstance(value, tuple) else (value,))]


def _spelled(name: str) -> str:
    if name == "category_ids":
        return "categoryId"
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _one(step: PatchStep, index: int) -> EventParticulars:
    """The body that a single step amounts to."""
    if step.op not in ("replace", "add", "remove", "test"):
        raise Malformed.at(f"[{index}].op", "must be replace, add, remove or test")
    if step.op != "remove" and "value" not in step.model_fields_set:
        raise Malformed.at(f"[{index}].value", "is required")
    name = _target(step.path, index)
    try:
        body: EventParticulars = _PARTICULARS.read({name: None if step.op == "remove" else step.value})
    except Malformed as wrong:
        raise Malformed(*(FieldError(f"[{index}].value", error.message) for error in wrong.errors)) from None
    return body


def _target(path: str, index: int) -> str:
    """The body's own name of what a path points at: `/Title`, `/vodDrm`; RFC 6901 escapes are undone."""
    where = f"[{index}].path"
    if not path.startswith("/") or "/" in path[1:]:
        raise Malformed.at(where, "must be a slash and the name of a field of the Event")
    name = path[1:].replace("~1", "/").replace("~0", "~").lower()
    name = _RESPONSE_NAMES.get(name, name).lower()
    spelled = EventParticulars.spellings().get(name)
    if spelled is None:
        raise Malformed.at(where, "names no field that can be written")
    return spelled
