"""Schemathesis over `/openapi.json`: what we document is what we do, for requests that fit it and for those that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from api.http.body import FORM, PLAIN
from api.http.response import EVENT_STREAM
from api.http.routing import routes_of
from api.wiring.services import ROUTES
from domain.client.names import SEGMENTS
from tests.api.product_thread import ProductThread
from tests.domain.channel.texts_given import FLOW, PROFILE
from tests.support.listed_statuses import LISTED
from tests.support.postgres import empty

OPERATIONS = sorted(
    f"{spec.method} {spec.documented_path}"
    for spec in routes_of(ROUTES)
    if spec.include_in_schema and spec.rules.media_type != EVENT_STREAM
)
"""Event streams have no end to wait for."""

EXAMPLES = {GenerationMode.POSITIVE: 2, GenerationMode.NEGATIVE: 1}
THOROUGH = {GenerationMode.POSITIVE: 25, GenerationMode.NEGATIVE: 15}
SECONDS = 120
LONGEST_QUERY = 2_000
"""In characters, of up to twelve bytes each. A server refuses long addresses before it knows the operation."""
CONFIGURATION: dict[str, Any] = {
    "request-timeout": SECONDS,
    # NUL is 400 in any text, even in a member that we ignore; unknown parameters are ignored. Neither can be said in OpenAPI.
    "generation": {"allow-x00": False, "allow-extra-parameters": False},
    "checks": {
        # 412 is documented, and any If-Match fits the document. So is 429, after too many keys that are wrong.
        "positive_data_acceptance": {"expected-statuses": ["2xx", "304", "401", "403", "404", "409", "412", "429"]},
        "negative_data_rejection": {"expected-statuses": ["400", "401", "403", "404", "409", "413", "415", "428", "429"]},
    },
}
EMPTY_VALUES = {
    "GET /api/event/": "`ids=` and `skipEvents=` name none, which is no filter; of a list in a query OpenAPI knows entries only",
    "GET /api/event/deleted/": "the same",
    "GET /api/event/{id}": "`streamSource=` is no source, which is no filter either",
    "GET /api/event/reference": "the same",
    "GET /api/event/external": "the same",
    "GET /api/audit/events/": "`from=` and `order=` have no value, which is no filter and the default order",
    "GET /api/media/livepublication/transactionId/{transactionId}": "`targetFilter=` names no target, which is no filter",
    "GET /api/media/vodpublication/transactionId/{transactionId}": "the same",
    "GET /api/vodpublications/transactionId/{transactionId}": "the same",
}
NOT_ALL_IN_THE_SCHEMA = {
    "POST /api/event/": "links must lead somewhere, and two texts must hold JSON",
    "PUT /api/event/state/{id}": "one of its two names must have a value",
    "POST /api/event/flow/add/": "a text must hold JSON",
    "PUT /api/eventtype/event/{id}": "a link must lead somewhere",
    "PUT /api/vod/{id}/metadata": "the Event must be there, in a state with metadata",
    "POST /api/category/": "a name or a label must be there, and a label is used once",
    "POST /api/category/customproperty/": "which fields are required depends on the id",
    "POST /api/category/customproperty/bulk/{id}": "which fields are required depends on the id",
    "DELETE /api/category/customproperty/": "a filter must be there",
    "POST /api/chapterpoint/": "which fields are required depends on the id, and times are of two formats",
    "POST /api/chapterpoint/customproperty/": "which fields are required depends on the id",
    "POST /api/chapterpoint/customproperty/bulk/{id}": "which fields are required depends on the id",
    "DELETE /api/chapterpoint/customproperty/": "a filter must be there",
    "PUT /api/playlist/{id}": "a new one must have a name",
    "POST /api/playlist/{id}/playlistItems/": "a link must lead somewhere",
    "POST /api/asset/gif/": "times and file names have formats",
    "POST /api/asset/video/": "the same, and a filter has a grammar",
    "POST /api/asset/image/": "times and file names have formats",
    "POST /api/asset/caption/": "exactly one of `file` and `url` must be there, and languages and addresses have formats",
    "DELETE /api/asset/": "a filter must be there",
    "POST /api/archiverstream/": "`endTime` may not be before `startTime`",
    "PUT /api/archiverstream/{id}": "`endTime` may not be before `startTime`",
    "POST /api/channel/": "a text must hold a channel's configuration",
    "PUT /api/channel/{id}": "a text must hold a channel's configuration",
    "POST /api/flow/": "a text must hold a flow's configuration",
    "PUT /api/flow/{id}": "a text must hold a flow's configuration",
    "POST /api/infrastructureprofile/": "a text must hold a profile's configuration",
    "DELETE /api/infrastructureprofile/{id}": "an unknown id is 400",
    "POST /api/webhook/": "a URL and a text have a format, and which fields are required depends on the id",
    "POST /api/webhook/event/": "the same",
    "POST /api/webook/event/": "the same",
    "PUT /api/webhook/{id}": "a URL and a text have a format, and basic authentication needs a username",
    "PUT /api/webhook/{id}/event/": "the same",
    "POST /api/consumer/{name}/parked/replay/": "an aggregate has a kind and an id",
    "PUT /api/client/{name}/drm/": "texts have formats",
    "POST /api/media/destination/": "a text must hold a destination's configuration",
    "PUT /api/media/destination/{id}": "its two names must have the same value, which holds a destination's configuration",
    "POST /api/media/destinationproperty/": "which fields are required depends on the id",
    "POST /api/media/vodpublication/": "a text must hold JSON",
    "POST /api/media/livepublication/": "a text must hold JSON",
    "POST /api/compose/": "items have types, times have formats, and links must lead somewhere",
    "POST /api/compose/encoder/": "the same",
    "PUT /api/compose/event/{eventId}": "the same",
    "PUT /api/compose/encoder/event/{eventId}": "the same",
    "DELETE /api/compose/{eventId}": "an unknown id is 400",
    "PUT /api/compose/event/{eventId}/drm/": "a text must hold JSON",
    "GET /api/audit/export": "an id goes with a kind, and with nothing else",
    "GET /api/audit/redact/{id}": "an id has a format",
    "GET /api/audit/verify": "a checkpoint is one that the product has made",
    "GET /api/audit/{aggregate}/{id}/diff": "there must be such versions",
    "POST /api/audit/redact": "which fields go together is not said",
    "POST /api/vodpublications/": "a text must hold JSON, and a content id is no path",
    "PUT /api/vodpublications/{id}": "a text must hold JSON",
    "PUT /api/vodpublications/publish/": "the ids must be in the query or in the body",
    "PUT /api/vodpublications/unpublish/": "the same",
    "POST /{client_name}/speke": "the text is a CPIX document",
    "POST /api/client/": "some names are reserved",
    "POST /engine/job": "which parameters are right depends on the workflow",
    "PUT /engine/job/{job_id}": "something must be changed; an unknown id is 400",
    "POST /engine/jobs/{job_id}/rerun": "an unknown id is 400",
    "GET /engine/jobs/{job_id}": "the same",
    "GET /engine/jobs/{job_id}/tasks": "the same",
    "GET /engine/jobs": "`after` is what the header Link has",
    "GET /engine/logs/{job_id}": "the same",
    "GET /engine/workflows/{name}": "an unknown name is 400",
    "POST /engine/settings": "which values are right depends on the name",
    "PATCH /api/event/{id}": "which value is right depends on the path",
    "PATCH /api/event/reference/{referenceid}": "which value is right depends on the path",
    "GET /api/audit/{aggregate}/{id}/state": "a version or a time, not both",
    "GET /api/event/{id}": "`out` may not be before `in`",
    "GET /api/event/reference": "`out` may not be before `in`",
    "GET /api/event/external": "`out` may not be before `in`",
}
"""Where what fits the schema may be 400 all the same, and why."""


@dataclass(frozen=True)
class Served:
    """The product behind a real socket, with its document."""

    address: str
    headers: dict[str, str]
    schema: BaseSchema
    http: httpx.Client
    session: requests.Session


@pytest.fixture(scope="module")
def served(migrated: tuple[str, str | None]) -> Iterator[Served]:
    conninfo, role = migrated
    empty(conninfo)
    product = ProductThread(conninfo, role)
    product.start()
    product.ready.wait()
    try:
        config = SchemathesisConfig.from_dict(CONFIGURATION)
        headers = {"API-KEY": product.key}
        with httpx.Client(base_url=product.address, headers=headers, timeout=SECONDS) as http, requests.Session() as session:
            schema = schemathesis.openapi.from_dict(http.get("/openapi.json").json(), config=config)
            session.trust_env = False  # no proxies and no .netrc, for which the environment is searched at each request
            yield Served(product.address, headers, schema, http, session)
    finally:
        if product.server is not None:
            product.server.should_exit = True
        product.join()


Parameters = dict[str, str]


def event(http: httpx.Client) -> str:
    body = {"RefId": "r", "EventState": 10, "Tags": [{"name": "a"}]}
    return str(http.post("/api/event/", json=body).json()["id"])


def added(http: httpx.Client, path: str, **body: object) -> str:
    return str(http.post(path, json=body).json()["id"])


def of_client(http: httpx.Client) -> Parameters:
    http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]})
    return {"name": "studio", "keyId": http.post("/api/client/studio/keys/").json()["keyId"]}


def of_chapter_point(http: httpx.Client) -> Parameters:
    of = event(http)
    return {"id": added(http, "/api/chapterpoint/", eventId=of, startTime="00:00:00"), "eventId": of}


def of_log(http: httpx.Client) -> Parameters:
    of = event(http)
    return {"id": added(http, "/api/log/loggable/", Id=of, Message="x", Level="Info"), "eventId": of}


def of_job(http: httpx.Client) -> Parameters:
    asked = {"job": {"workflow": "probe_media"}, "parameters": {"content_id": "film", "file": "a.mp4"}}
    return {"job_id": str(http.post("/engine/job", json=asked, headers={"client": "admin"}).json()["id"])}


def of_event(http: httpx.Client) -> Parameters:
    key = event(http)
    return {"id": key, "contentId": key, "referenceid": "r"}


EXISTING: dict[str, Callable[[httpx.Client], Parameters]] = {
    "/api/room": lambda http: {"id": http.post("/api/room/", json={"name": "Hall"}).json()["Id"]},
    "/api/webhook": lambda http: {"id": added(http, "/api/webhook/", webhookUrl="https://127.0.0.1/a"), "eventId": event(http)},
    "/api/category": lambda http: {"id": added(http, "/api/category/", name=f"Sport {uuid4()}")},
    "/api/chapterpoint": of_chapter_point,
    "/api/channel": lambda http: {"id": added(http, "/api/channel/", name="One")},
    "/api/flow": lambda http: {"id": added(http, "/api/flow/", name="f", configurationJson=json.dumps(FLOW))},
    "/api/infrastructureprofile": lambda http: {
        "id": added(http, "/api/infrastructureprofile/", name="p", configurationJson=json.dumps(PROFILE))
    },
    "/api/provision/compare": lambda http: {"channelId": added(http, "/api/channel/", name="One")},
    "/api/client": of_client,
    "/api/audit": lambda http: {"aggregate": "event", "id": event(http)},
    "/api/log": of_log,
    "/engine": of_job,
    "/api": of_event,
}
"""Functions that create the resources of a path's parameters, by the start of the path."""


def existing(served: Served, path: str) -> Parameters:
    """Path parameters that lead somewhere."""
    make = next((make for start, make in EXISTING.items() if path.startswith(start)), None)
    return {} if make is None else make(served.http)


def names_used_values(answer: schemathesis.Response) -> bool:
    """Return True if the only errors are values that must be unique and belong to another record. A schema cannot express this."""
    errors = (
        answer.json().get("errors", ()) if answer.status_code == 400 and b"is already used by another" in answer.content else ()
    )
    return bool(errors) and all(error["message"].startswith("is already used by another ") for error in errors)


@pytest.mark.parametrize("exceptions", [EMPTY_VALUES, NOT_ALL_IN_THE_SCHEMA])
def test_an_exception_names_an_operation(exceptions: dict[str, str]) -> None:
    assert exceptions.keys() <= set(OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_product_keeps_to_its_document(served: Served, name: str, mode: GenerationMode, thorough: bool) -> None:
    method, _, path = name.partition(" ")
    operation = served.schema[path][method]
    services = existing(served, path)
    transport: dict[str, Any] = {"base_url": served.address, "session": served.session, "headers": served.headers}
    turn = iter(range(1_000_000))

    @settings(
        max_examples=(THOROUGH if thorough else EXAMPLES)[mode],
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case[Any]) -> None:
        if mode is GenerationMode.POSITIVE and next(turn) % 2:
            case.path_parameters = {key: services.get(key, value) for key, value in case.path_parameters.items()}
        assume(len(str(case.query)) < LONGEST_QUERY)
        if case.path_parameters.get("client_name") in SEGMENTS:  # another operation's path
            case.path_parameters["client_name"] = "admin"
        if "client" in case.headers:  # any other is 401, which says nothing about the rest
            case.headers["client"] = "admin"
        # `Prefer: handling=strict` refuses the unknown names that the schema allows.
        lenient = case.headers.get("Prefer") is None
        excluded: list[CheckFunction] = [] if lenient and name not in NOT_ALL_IN_THE_SCHEMA else [positive_data_acceptance]
        # In a form, and in plain text, everything is text: 7 is a title, and `true` is one too.
        if case.media_type in (*FORM, *PLAIN) or name in EMPTY_VALUES:
            excluded.append(negative_data_rejection)
        answer = case.call(**transport)
        if names_used_values(answer):
            excluded.append(positive_data_acceptance)
        case.validate_response(answer, headers=served.headers, excluded_checks=excluded, transport_kwargs=transport)
        assert answer.status_code in LISTED[method, path]  # schemathesis takes `default` for any status

    ask()
