"""The translation of the body of a POST or PATCH into changes of an Event, under the domain's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.kernel.parsing import Validator
from api.media.event.requests import EventFields, PatchStep, TagModel
from domain.event import changes
from domain.event.values import EventDetails
from domain.kernel.errors import FieldError, Malformed

_NAMES = {"vod_enable_drm": "vod_drm", "event_state": "state"}
_IGNORED = frozenset({"id", "refresh_index"})
_RESPONSE_NAMES = {
    "state": "eventState",
    "maxbitrateurlparam": "maxBitrate",
    "minbitrateurlparam": "minBitrate",
    "dvrlengthurlparam": "dvrLength",
}
_FLAGS = frozenset(name for name, field in EventDetails.model_fields.items() if field.annotation is bool)
_FIELDS = Validator(EventFields, where="value")


def changes_of(body: EventFields) -> changes.EventChanges:
    return changes.EventChanges(_values(body), _tags(body))


def patch_of(steps: Sequence[PatchStep]) -> list[changes.PatchStep]:
    """Return the steps of a patch. Raise `Malformed` with the index of the step for a wrong path or value."""
    bodies = [(_body(step, index), step.op == "test") for index, step in enumerate(steps)]
    return [changes.PatchStep(_expected(body) if is_test else changes_of(body), is_test) for body, is_test in bodies]


def tag_names(tags: Sequence[TagModel]) -> list[changes.TagName]:
    return [changes.TagName(tag.name, tag.id) for tag in tags]


def _tags(body: EventFields) -> list[changes.TagName] | None:
    return tag_names(body.tags or ()) if "tags" in body.model_fields_set else None


def _expected(body: EventFields) -> changes.EventChanges:
    """Return the values that a `test` expects. Unlike in a write, null is compared with the state, and no field is ignored."""
    values = {name: getattr(body, name) for name in _IGNORED & body.model_fields_set} | _values(body)
    if "event_state" in body.model_fields_set:
        values["state"] = body.event_state
    return changes.EventChanges(values, _tags(body))


def _values(body: EventFields) -> dict[str, Any]:
    """Return the values that the body sets, without its tags. null is false for a flag and absent for a state.

    An empty text and a limit of 0 are None, because responses show them for a field that is not set.
    """
    values: dict[str, Any] = {}
    for name in body.model_fields_set:
        if name in _IGNORED or name == "tags" or (name == "vod_drm" and "vod_enable_drm" in body.model_fields_set):
            continue
        value = getattr(body, name)
        if name == "category_id":
            values["category_ids"] = () if value is None else (value,)
        elif name == "event_state":
            if value is not None:
                values["state"] = value
        elif (detail := _NAMES.get(name, name)) in _FLAGS:
            values[detail] = bool(value)
        else:
            values[name] = None if value in ("", 0) else value
    return values


def _body(step: PatchStep, index: int) -> EventFields:
    """Return the request body with the same effect as the step."""
    if step.op != "remove" and "value" not in step.model_fields_set:
        raise Malformed.at(f"[{index}].value", "is required")
    name = _target(step.path, index)
    try:
        body: EventFields = _FIELDS.read({name: None if step.op == "remove" else step.value})
    except Malformed as wrong:
        raise Malformed(*(FieldError(f"[{index}].value", error.message) for error in wrong.errors)) from None
    return body


def _target(path: str, index: int) -> str:
    """Return the field of the body that a path such as `/Title` or `/vodDrm` names. RFC 6901 escapes are decoded."""
    where = f"[{index}].path"
    if not path.startswith("/") or "/" in path[1:]:
        raise Malformed.at(where, "must be a slash and the name of a field of the Event")
    name = path[1:].replace("~1", "/").replace("~0", "~").lower()
    name = _RESPONSE_NAMES.get(name, name).lower()
    field = EventFields.spellings().get(name)
    if field is None:
        raise Malformed.at(where, "is not a writable field")
    return field
