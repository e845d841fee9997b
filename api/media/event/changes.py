"""From a body to what the domain understands: `EventDetails` names and values, with links checked and tags found or made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic.alias_generators import to_camel

from api.kernel.parsing import Validator
from api.media.event.wire import EventParticulars, PatchStep, TagModel
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.ids import new_id
from domain.media_event.commands import Expectation, Replacement
from domain.media_event.links import LINKS, links
from domain.records.kinds.tag import Tag
from domain.records.record import RegisterRecord
from projections.records.queries import RecordQueries

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

    def __init__(self, records: RecordQueries) -> None:
        self._records = records

    async def of(self, body: EventParticulars) -> tuple[dict[str, Any], list[RegisterRecord]]:
        """Changes to the Event, its states among them, and the tags that must be made with it."""
        new: dict[str, RegisterRecord] = {}
        changes = await self._wanted(body, new)
        return changes, list(new.values())

    async def steps(self, patch: Sequence[PatchStep]) -> tuple[tuple[Expectation | Replacement, ...], list[RegisterRecord]]:
        """A JSON Patch as steps on details. Bad paths and operations are `Malformed`, naming the step."""
        steps: list[Expectation | Replacement] = []
        new: dict[str, RegisterRecord] = {}
        for body, is_test in [(_one(step, index), step.op == "test") for index, step in enumerate(patch)]:
            if is_test:
                steps += [Expectation(name, value) for name, value in (await self._expected(body, new)).items()]
            else:
                steps += [Replacement(name, value) for name, value in (await self._wanted(body, new)).items()]
        return tuple(steps), list(new.values())

    async def _wanted(self, body: EventParticulars, new: dict[str, RegisterRecord]) -> dict[str, Any]:
        """The changes; tags that must be made for them join `new`, by name."""
        changes = plain(body)
        if "tags" in body.model_fields_set:
            changes["tag_ids"] = await self.tags(body.tags or (), new)
        await self.check_links(changes)
        return changes

    async def check_links(self, changes: Mapping[str, Any]) -> None:
        """decisions.md, Everywhere: an unknown id as a link in a body is 400, naming the field."""
        pointing = LINKS.keys() & changes.keys() - {"tag_ids"}  # tags are found by name, and made
        wanted = [(name, link) for name in pointing for link in links(name, changes[name])]
        if not wanted:
            return
        known = await self._records.shown(link for _, link in wanted)
        missing = [name for name, link in wanted if link not in known]
        if missing:
            raise Malformed(*(FieldError(_spelled(name), f"there is no such {LINKS[name].replace('_', ' ')}") for name in missing))

    async def _expected(self, body: EventParticulars, new: Mapping[str, RegisterRecord]) -> dict[str, Any]:
        """What a `test` says that the Event holds: a state is never null, and what no answer shows equals nothing."""
        changes = {name: getattr(body, name) for name in _IGNORED & body.model_fields_set} | plain(body)
        if "event_state" in body.model_fields_set:
            changes["state"] = body.event_state
        if "tags" in body.model_fields_set:
            names = dict.fromkeys(tag.name for tag in body.tags or ())
            known = {name: row.id for name, row in (await self._records.named(Tag.KIND, list(names))).items()}
            known |= {name: str(tag.key) for name, tag in new.items()}
            changes["tag_ids"] = tuple(UUID(known[name]) for name in names) if known.keys() >= names.keys() else _UNKNOWN
        return changes

    async def tags(self, tags: Sequence[TagModel], new: dict[str, RegisterRecord]) -> tuple[UUID, ...]:
        """decisions.md, Rooms, tags: the name decides, twins collapse, an unknown name makes a tag, which joins `new`."""
        named = {tag.name: tag.id for tag in reversed(tags)}
        known = await self._records.named(Tag.KIND, list(named))
        unknown = {name: tag_id for name, tag_id in named.items() if name not in known and name not in new}
        given = [tag_id for tag_id in unknown.values() if tag_id is not None]
        taken = {tag.key for tag in new.values()}
        taken |= {UUID(row.id) for row in await self._records.those(Tag.KIND, given)} if given else set()
        for name, tag_id in unknown.items():
            given_id = tag_id if tag_id is not None and tag_id not in taken else None
            new[name] = RegisterRecord(given_id or new_id(), Tag, {"name": name}, new=given_id is None)
            taken.add(new[name].key)
        return tuple(dict.fromkeys(UUID(str(new[tag.name].key if tag.name in new else known[tag.name].id)) for tag in tags))


def plain(body: EventParticulars) -> dict[str, Any]:
    """What the body sets, under the domain's names, without its tags. null is false for a flag, absent for a state; an empty
    text and a limit of 0 are shown for what is not set, so they set nothing."""
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
            changes[name] = None if value in ("", 0) else value
    return changes


def _spelled(name: str) -> str:
    return "categoryId" if name == "category_ids" else to_camel(name)


def _one(step: PatchStep, index: int) -> EventParticulars:
    """The body that a single step amounts to."""
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
