"""`/asyncapi.json` says what Kafka and the webhooks really get: held against golden files, and against what writes the headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import httpx
import jsonschema_rs
import pytest
import yaml
from pydantic_core import from_json

from api.kernel.version import product_version
from api.wiring.catalogue import AGGREGATES, catalogue
from api.wiring.services import asyncapi
from docs.generate import REFERENCE
from domain.client.aggregate import Client
from domain.event.values import EventDetails, EventState, Mp4State
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.consumers.timeline import Origin
from projections.log.reader import LoggedEvent
from projections.log.write_set import metadata_text
from tests.golden.samples import EVENTS, STREAM_KEY, example, golden_file
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.webhook.fanout import payload
from workers.webhook.policy import Effect, EventChange, PayloadAction
from workers.webhook.sender.attempt import form_body, signatures

TOLD = [root for root in AGGREGATES if root is not Client]  # whose events hold marks of keys
CALLBACKS = ("job_callback", "provision_callback", "publication_callback")
CLASSES = [event for root in TOLD for event in root.EVENTS]
GOLDEN = sorted(path for path in EVENTS.iterdir() if not path.name.startswith("client."))
CAUSE = Cause("planner", "request 1", UUID(int=7), UUID(int=8), "Jane", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


@cache
def document() -> Mapping[str, Any]:
    """Made by the first test that needs it: each process of the test run imports this file."""
    return asyncapi("1.2.3").describe()


every_root = pytest.mark.parametrize("root", TOLD, ids=[root.KIND for root in TOLD])


def validator(pointer: str) -> Any:
    return jsonschema_rs.Draft7Validator(
        {"$ref": f"#/components/{pointer}", "components": document()["components"]}, validate_formats=True
    )


def references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from references(member)


def headers(event: type[DomainEvent], cause: Cause) -> dict[str, str]:
    recorded = datetime(2031, 1, 2, 3, 4, 5, tzinfo=UTC)
    stream = f"{event.aggregate_kind()}:{STREAM_KEY}"
    state, metadata = golden_file(event).read_bytes(), metadata_text(cause)
    logged = LoggedEvent(9, stream, 3, event.TOPIC, cause.event_id(1), state, metadata, recorded)
    return {name: value.decode() for name, value in cloud_event.headers(logged, after=6, origin=Origin(UUID(int=1), 2))}


def test_there_is_a_topic_for_every_kind_of_aggregate_and_a_message_for_every_event_and_nothing_else() -> None:
    assert list(document()["channels"]) == [*(root.KIND for root in TOLD), "notification", *CALLBACKS]
    assert list(document()["operations"]) == [f"send.{name}" for name in document()["channels"]]
    ours = ["notification.form", "notification.json", *CALLBACKS]
    assert sorted(document()["components"]["messages"]) == sorted([*(event.TOPIC for event in CLASSES), *ours])
    for root in TOLD:
        channel = document()["channels"][root.KIND]
        assert list(channel["messages"]) == [event.TOPIC for event in root.EVENTS]
        bound = {"topic": Topics().of(root.KIND), "partitions": PARTITIONS, "bindingVersion": "0.5.0"}
        assert (channel["address"], channel["bindings"]) == (bound["topic"], {"kafka": bound})
        assert document()["operations"][f"send.{root.KIND}"]["channel"] == {"$ref": f"#/channels/{root.KIND}"}


def test_every_reference_leads_somewhere_and_every_shared_part_is_used() -> None:
    used = set(references(document()))
    for reference in used:
        place: Any = document()
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]
    shared = {f"#/components/{section}/{name}" for section, members in document()["components"].items() for name in members}
    assert shared <= used


def test_a_message_of_the_log_is_named_as_its_topic_and_has_the_aggregates_id_as_its_key() -> None:
    for topic in (event.TOPIC for event in CLASSES):
        message = document()["components"]["messages"][topic]
        assert message["name"] == topic
        assert message["bindings"] == {"$ref": "#/components/messageBindings/byAggregate"}
    assert document()["components"]["messageBindings"]["byAggregate"]["kafka"]["key"]["type"] == "string"


def test_every_event_of_a_log_fits_its_message() -> None:
    for path in GOLDEN:
        topic = path.name.rsplit(".v", 1)[0]
        assert list(validator(f"messages/{topic}/payload").iter_errors(from_json(path.read_bytes()))) == [], path.name


@every_root
def test_a_payload_has_the_fields_that_are_stored_and_no_other(root: type[AggregateRoot]) -> None:
    for event in root.EVENTS:
        stored = from_json(golden_file(event).read_bytes())
        version = ["class_version"] if event.class_version > 1 else []
        fields = [*version, *list(event.model_fields)[2:]]
        assert list(document()["components"]["messages"][event.TOPIC]["payload"]["properties"]) == fields
        later = {
            name for name, field in event.model_fields.items() if name not in stored and not field.is_required()
        }  # than the file
        assert document()["components"]["messages"][event.TOPIC]["payload"]["properties"].keys() - later == stored.keys() - later


@every_root
def test_an_event_with_required_fields_only_fits(root: type[AggregateRoot]) -> None:
    mapper = EventMapper(catalogue())
    for event in root.EVENTS:
        full = example(event)
        given = {name: getattr(full, name) for name, field in event.model_fields.items() if field.is_required()}
        stored = from_json(mapper.state(event(**given)))
        fits = validator(f"messages/{event.TOPIC}/payload")
        assert list(fits.iter_errors(stored)) == [], event.TOPIC
        for name in stored.keys() - {"class_version"}:  # absent from events that were stored in version 1
            without = {member: value for member, value in stored.items() if member != name}
            assert not fits.is_valid(without), f"{name} of {event.TOPIC}"


def test_the_version_of_an_events_form_is_described_if_it_has_several() -> None:
    payload = document()["components"]["messages"]["composition.composed"]["payload"]
    version = payload["properties"]["class_version"]
    assert (version["type"], version["minimum"], version["maximum"]) == ("integer", 2, 2)
    assert "class_version" not in payload["required"]


def test_only_first_events_have_defaults() -> None:
    def required_of(topic: str) -> set[str]:
        fields = document()["components"]["messages"][topic]["payload"]["properties"]
        return {name for name, field in fields.items() if "default" in field}

    assert "use_json_body" in required_of("webhook.registered") & required_of("webhook.restored")
    assert required_of("webhook.amended") | required_of("event.described") | required_of("event.automation_changed") == set()


def test_numbers_have_names() -> None:
    event_state = document()["components"]["schemas"]["EventState"]
    assert event_state["enum"] == [state.value for state in EventState]
    assert event_state["x-enum-varnames"] == [state.name for state in EventState]
    assert event_state["description"].startswith("0 PRE_LIVE, 1 LIVE_UNPUBLISHED, ")


def test_an_invalid_event_does_not_fit() -> None:
    fits = validator("messages/event.mp4_state_changed/payload")
    right = {"timestamp": "2031-01-02T03:04:05Z", "mp4_state": 1, "previous": 0}
    assert fits.is_valid(right)
    for wrong in ({"mp4_state": 3}, {"mp4_state": "AVAILABLE"}, {"timestamp": "noon"}, {"previous": None}):
        assert not fits.is_valid({**right, **wrong}), wrong


@every_root
def test_the_headers_are_those_of_the_relay(root: type[AggregateRoot]) -> None:
    for event in root.EVENTS:
        fits = validator(f"messages/{event.TOPIC}/headers")
        written = headers(event, CAUSE)
        assert [*written, "ce_dataref"] == list(document()["components"]["schemas"]["CloudEventHeaders"]["properties"])
        for sent in (written, headers(event, Cause.by("system"))):
            assert list(fits.iter_errors(sent)) == [], event.TOPIC
        assert not fits.is_valid({**written, "ce_type": "room.painted"}), event.TOPIC


def test_every_message_has_an_example_that_fits() -> None:
    for name, message in document()["components"]["messages"].items():
        (shown,) = message["examples"]
        for part in ("headers", "payload"):
            validator(f"messages/{name}/{part}").validate(shown[part])


def test_all_headers_but_the_causation_and_what_may_be_erased_are_required() -> None:
    written = [name for name in headers(CLASSES[0], Cause.by("system")) if name != "ce_actorkind"]
    assert written == document()["components"]["schemas"]["CloudEventHeaders"]["required"]


@pytest.mark.parametrize("changes", [EventChange(0), ~EventChange(0)], ids=["nothing", "everything"])
@pytest.mark.parametrize("action", PayloadAction)
def test_a_notification_fits_in_both_forms(action: PayloadAction, changes: EventChange) -> None:
    details = EventDetails(ref_id="r", state=EventState.LIVE_PUBLISHED, mp4_state=Mp4State.NONE)
    text = payload(STREAM_KEY, details, effect=Effect(action, changes))
    form = dict(parse_qsl(form_body(text).decode(), keep_blank_values=True))
    for schema, sent in (("Notification", from_json(text)), ("NotificationForm", form)):
        validator(f"schemas/{schema}").validate(sent)
        assert list(sent) == list(document()["components"]["schemas"][schema]["properties"])
        assert len(sent) == 17


@pytest.mark.parametrize("keys", [(b"new",), (b"new", b"old")])
def test_the_headers_of_a_notification_fit(keys: tuple[bytes, ...]) -> None:
    sent = {
        "webhook-id": STREAM_KEY,
        "webhook-timestamp": "1924992000",
        "webhook-signature": signatures(keys, b"{}", message=STREAM_KEY, timestamp=1924992000),
    }
    fits = validator("schemas/WebhookHeaders")
    fits.validate(sent)
    for name in sent:
        assert not fits.is_valid({other: value for other, value in sent.items() if other != name})


async def test_the_document_is_served_without_a_key(http: httpx.AsyncClient) -> None:
    expected = asyncapi(product_version()).describe()
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as anyone:
        for path in ("/asyncapi.json", "/asyncapi.json/", "/asyncapi.json"):
            answer = await anyone.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
            assert answer.json() == expected
    assert expected["asyncapi"] == "3.0.0"
    assert expected["info"]["version"] == product_version()


async def test_the_document_is_rendered_once() -> None:
    made = asyncapi("1.2.3")
    assert await made.rendered() is await made.rendered()
    assert (await made.rendered()).body == (await asyncapi("1.2.3").rendered()).body


def test_the_yaml_page_is_the_same_document() -> None:
    page = yaml.safe_load((REFERENCE / "asyncapi.yaml").read_text(encoding="utf-8"))
    assert page == asyncapi(page["info"]["version"]).describe()
