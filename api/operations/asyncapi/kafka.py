"""The Kafka part: a channel for each kind of aggregate, and a message for each domain event, with its payload as in the log.

The headers are those of `workers/adapters/kafka/cloud_event.py`; a test compares them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from domain.kernel.cause import ActorKind
from domain.kernel.event import ENVELOPE, DomainEvent, FirstEvent
from domain.kernel.mapper import Catalogue

_REF: Final = "#/components/schemas/"
_FORMATS: Final = {
    "date": "2031-01-02",
    "uuid": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "date-time": "2031-01-02T03:04:05.000Z",
    "binary": "AAAA",
}


def example_of(schema: Mapping[str, Any], *, shared: Mapping[str, Any], name: str = "value") -> Any:
    """Return a value that fits the schema. The example of a text is the name of its field."""
    if "const" in schema:
        return schema["const"]
    if "default" in schema:
        return schema["default"]
    if "$ref" in schema:
        return example_of(shared[schema["$ref"].removeprefix(_REF)], shared=shared, name=name)
    if "enum" in schema:
        return schema["enum"][0]
    for options in ("anyOf", "allOf"):
        if options in schema:
            return example_of(schema[options][0], shared=shared, name=name)
    return _plain(schema, shared=shared, name=name)


def _plain(schema: Mapping[str, Any], *, shared: Mapping[str, Any], name: str) -> Any:
    kind = schema.get("type")
    if kind == "object":
        fields = schema.get("properties", {})
        return {field: example_of(fields[field], shared=shared, name=field) for field in fields}
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})]
        return [example_of(item, shared=shared, name=name) for item in items]
    if kind in ("integer", "number"):
        return max(1, schema.get("minimum", 1))
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    return _text(schema, name)


def _text(schema: Mapping[str, Any], name: str) -> str:
    if "pattern" in schema:
        return "1"  # the patterns are of digits
    return _FORMATS.get(str(schema.get("format")), name)


_BINDING = "0.5.0"
_SCHEMAS = "#/components/schemas/"
_NAMES = "x-enum-varnames"
_NUMBER = {"type": "string", "pattern": "^[0-9]+$"}
_HEADERS: dict[str, dict[str, Any]] = {
    "content-type": {"const": "application/json"},
    "ce_specversion": {"const": "1.0"},
    "ce_source": {
        "format": "uri-reference",
        "pattern": "^/medialedger/logs/[0-9a-f-]{36}$",
        "description": "The log that it comes from. A position is valid only within one log.",
    },
    "ce_epoch": {
        **_NUMBER,
        "description": "The epoch of the log when it was sent: 1, incremented each time the log is restored. Records of an "
        "earlier epoch after the position at which a later one begins are no longer in the log.",
    },
    "ce_id": {"format": "uuid", "description": "The event's own id."},
    "ce_type": {"description": "The event's type in the log."},
    "ce_subject": {"description": "The aggregate's id; also the key of the record."},
    "ce_time": {"format": "date-time", "description": "The time when the log recorded it."},
    "ce_sequence": {
        "type": "string",
        "pattern": "^[0-9]{19}$",
        "description": "The aggregate's version, 1, 2, 3 and so on, with leading zeros so that it sorts as text.",
    },
    "ce_position": {**_NUMBER, "description": "The position in the log. A repeat has the same."},
    "ce_after": {**_NUMBER, "description": "All records up to this position were sent before the page that holds this record."},
    "ce_actorkind": {
        "enum": [kind.value for kind in ActorKind],
        "description": "A client with an API key, a person in the console, the product, or a shell. Absent if it was erased.",
    },
    "ce_actor": {"description": "The client that made the change, or `system`."},
    "ce_correlationid": {"description": "The X-Transaction-ID of the request that caused it, or a generated id."},
    "ce_commandid": {"format": "uuid", "description": "The id of the write that it belongs to; all events of one write share it."},
    "ce_causationid": {"format": "uuid", "description": "The id of the event that caused the write, if an event did."},
    "ce_enduser": {"description": "The end user on whose behalf the client acted, as named by the client."},
    "ce_traceparent": {"description": "The W3C traceparent of that request, if it had one."},
    "ce_dataref": {
        "format": "uri-reference",
        "description": "The address of the event if the topic does not accept a record of its size; the value of the record "
        "is empty then.",
    },
}
_HEADER_EXAMPLES = {
    "content-type": "application/json",
    "ce_specversion": "1.0",
    "ce_source": "/medialedger/logs/0d5f0a3e-8c52-4f43-9d5b-9b1f6a2f7c11",
    "ce_epoch": "1",
    "ce_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "ce_subject": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "ce_time": "2031-01-02T03:04:05.000000Z",
    "ce_sequence": "0000000000000000003",
    "ce_position": "1200",
    "ce_after": "1100",
    "ce_actorkind": "client",
    "ce_actor": "studio",
    "ce_correlationid": "import-7",
    "ce_commandid": "9b2d1f8e-6f5b-4c1e-8f0a-2f4a1c7b3d55",
}
_OPTIONAL = frozenset({"ce_actorkind", "ce_causationid", "ce_enduser", "ce_traceparent", "ce_dataref"})


class _Schemas(GenerateJsonSchema):
    """Generates schemas with the names of enumerated numbers, and without titles that only repeat the name of a field."""

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        described, kind = super().enum_schema(schema), schema["cls"]
        if issubclass(kind, IntEnum):
            described[_NAMES] = [member.name for member in kind]
        return described

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def kafka_part(catalogue: Catalogue, *, topic: Callable[[str], str], partitions: int) -> dict[str, dict[str, Any]]:
    """Return the sections of the document, the sections of the components next to the channels."""
    payloads, shared = _payloads(catalogue)
    kinds = catalogue.aggregates.items()
    return {
        "channels": {
            kind: _channel(kind, [event.TOPIC for event in root.EVENTS], address=topic(kind), partitions=partitions)
            for kind, root in kinds
        },
        "operations": {f"send.{kind}": _operation(kind) for kind, _ in kinds},
        "schemas": {"CloudEventHeaders": _cloud_event(), **shared},
        "messages": {name: _message(event, payloads[name], shared=shared) for name, event in catalogue.events.items()},
        "messageBindings": {"byAggregate": _key()},
        "correlationIds": {"request": {"location": "$message.header#/ce_correlationid"}},
    }


def _channel(kind: str, events: Iterable[str], *, address: str, partitions: int) -> dict[str, Any]:
    return {
        "address": address,
        "description": (
            f"The events of aggregates of kind {kind}. A field of the payload that is null was cleared; "
            "an absent field was not changed, or has its default if the event begins the aggregate."
        ),
        "servers": [{"$ref": "#/servers/kafka"}],
        "messages": {event: {"$ref": f"#/components/messages/{event}"} for event in events},
        "bindings": {"kafka": {"topic": address, "partitions": partitions, "bindingVersion": _BINDING}},
    }


def _operation(kind: str) -> dict[str, Any]:
    return {"action": "send", "channel": {"$ref": f"#/channels/{kind}"}, "summary": f"The log's events of kind {kind}."}


def _message(event: type[DomainEvent], payload: dict[str, Any], *, shared: dict[str, Any]) -> dict[str, Any]:
    doc = event.__dict__.get("__doc__")
    return {
        "name": event.TOPIC,
        **({"summary": " ".join(inspect.cleandoc(doc).split())} if doc else {}),
        "headers": {
            "type": "object",
            "allOf": [{"$ref": f"{_SCHEMAS}CloudEventHeaders"}],
            "properties": {"ce_type": {"type": "string", "const": event.TOPIC}},
        },
        "payload": payload,
        "correlationId": {"$ref": "#/components/correlationIds/request"},
        "bindings": {"$ref": "#/components/messageBindings/byAggregate"},
        "examples": [
            {
                "headers": {**_HEADER_EXAMPLES, "ce_type": event.TOPIC},
                "payload": example_of(payload, shared=shared),
            }
        ],
    }


def _key() -> dict[str, Any]:
    key = {
        "type": "string",
        "description": "The aggregate's id: a GUID, or the name of a client. All events of an aggregate are in one partition.",
    }
    return {"kafka": {"key": key, "bindingVersion": _BINDING}}


def _cloud_event() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "CloudEvents 1.0, Kafka protocol binding, binary content mode. Values are UTF-8 text.",
        "properties": {name: {"type": "string", **schema} for name, schema in _HEADERS.items()},
        "required": [name for name in _HEADERS if name not in _OPTIONAL],
    }


def _payloads(catalogue: Catalogue) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the payload of each topic, and the schemas that the payloads share."""
    events = catalogue.events
    inputs: list[Any] = [(event, "serialization") for event in events.values()]
    references, document = models_json_schema(inputs, ref_template=_SCHEMAS + "{model}", schema_generator=_Schemas)
    places: dict[Any, Any] = {event: reference["$ref"].removeprefix(_SCHEMAS) for (event, _), reference in references.items()}
    shared = document["$defs"]
    for schema in shared.values():
        if _NAMES in schema:
            schema["description"] = ", ".join(
                f"{number} {name}" for number, name in zip(schema["enum"], schema[_NAMES], strict=True)
            )
    return {topic: _payload(event, shared.pop(places[event])) for topic, event in events.items()}, shared


def _payload(event: type[DomainEvent], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the payload as stored: without the envelope, and without fields that the event does not set."""
    begins = issubclass(event, FirstEvent) or event.verb() == "restored"
    fields = {
        name: field if begins else {member: value for member, value in field.items() if member != "default"}
        for name, field in schema["properties"].items()
        if name not in ENVELOPE
    }
    return {
        "type": "object",
        "properties": {**_class_version(event), **fields},
        "required": [name for name in schema["required"] if name not in ENVELOPE],
    }


def _class_version(event: type[DomainEvent]) -> dict[str, Any]:
    """Return the field that holds the version of an event's form; none if the event has only one."""
    if event.class_version == 1:
        return {}
    return {
        "class_version": {
            "type": "integer",
            "minimum": 2,
            "maximum": event.class_version,
            "description": "The version of this event's form. Absent from events that were stored in version 1.",
        }
    }
