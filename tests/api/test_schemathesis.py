"""Schemathesis over `/openapi.json`: what we document is what we do, for requests that fit it and for those that do not."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from api.core import core
from api.kernel.app import build as build_application
from api.kernel.body import FORM, PLAIN
from api.kernel.log import RequestLog
from api.kernel.streaming import EVENT_STREAM
from api.services import ROUTES, authenticate, services
from domain.kernel.clock import system_clock
from domain.kernel.sealed import Marker, Sealer
from projections.log.answers import KeptAnswers
from tests.conftest import empty, introduce
from tests.domain.configuration.texts_given import FLOW, PROFILE
from workers.adapters.outbound_http import GuardedClient

OPERATIONS = sorted(
    f"{one.method} {one.path}" for routes in ROUTES for one in routes.declarations if one.media_type != EVENT_STREAM
)
"""Event streams have no end to wait for."""

EXAMPLES = {GenerationMode.POSITIVE: 25, GenerationMode.NEGATIVE: 15}
SECONDS_EACH = 1.2
"""No operation takes longer than this, whatever the machine; the whole stays well below two minutes."""
CONFIGURATION: dict[str, Any] = {
    # NUL is 400 in any text, even in a member that we ignore; unknown parameters are ignored. Neither can be said in OpenAPI.
    "generation": {"allow-x00": False, "allow-extra-parameters": False},
    # 412 is documented, and any If-Match fits the document.
    "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "401", "403", "404", "409", "412"]}},
}
EMPTY_LISTS = {
    "GET /api/event/": "`skipEvents=` names none, which is no filter; of a list in a query OpenAPI knows entries only",
    "GET /api/event/deleted/": "the same",
}
NOT_ALL_IN_THE_SCHEMA = {
    "POST /api/event/": "links must lead somewhere, and two texts must hold JSON",
    "POST /api/event/flow/add/": "a text must hold JSON",
    "PUT /api/eventtype/event/{id}": "a link must lead somewhere",
    "POST /api/category/": "a name or a label must be there, and a label is used once",
    "PUT /api/category/{id}": "a label is used once",
    "POST /api/category/customproperty/": "which fields are required depends on the id",
    "POST /api/category/customproperty/bulk/{id}": "which fields are required depends on the id",
    "DELETE /api/category/customproperty/": "a filter must be there",
    "POST /api/chapterpoint/": "which fields are required depends on the id, and times are of two formats",
    "POST /api/chapterpoint/customproperty/": "which fields are required depends on the id",
    "POST /api/chapterpoint/customproperty/bulk/{id}": "which fields are required depends on the id",
    "DELETE /api/chapterpoint/customproperty/": "a filter must be there",
    "PUT /api/playlist/{id}": "a new one must have a name",
    "POST /api/playlist/{id}/playlistItems/": "a link must lead somewhere",
    "POST /api/archiverstream/": "`endTime` may not be before `startTime`",
    "PUT /api/archiverstream/{id}": "`endTime` may not be before `startTime`",
    "POST /api/channel/": "a text must hold a channel's configuration",
    "PUT /api/channel/{id}": "a text must hold a channel's configuration",
    "POST /api/flow/": "a text must hold a flow's configuration",
    "PUT /api/flow/{id}": "a text must hold a flow's configuration",
    "POST /api/infrastructureprofile/": "a text must hold a profile's configuration",
    "DELETE /api/infrastructureprofile/{id}": "an unknown id is 400, as document 2 says",
    "POST /api/webhook/": "a URL and a text have a format, and which fields are required depends on the id",
    "POST /api/webhook/event/": "the same",
    "POST /api/webook/event/": "the same",
    "PUT /api/webhook/{id}": "a URL and a text have a format, and basic authentication needs a username",
    "PUT /api/webhook/{id}/event/": "the same",
    "POST /api/consumer/{name}/parked/replay/": "an aggregate has a kind and an id",
    "PUT /api/client/{name}/drm/": "texts have formats",
    "POST /{client_name}/speke": "the text is a CPIX document",
    "POST /api/client/": "some names are reserved",
    "POST /engine/job": "which parameters are right depends on the workflow",
    "PUT /engine/job/{job_id}": "something must be changed; an unknown id is 400, as document 3 says",
    "POST /engine/jobs/{job_id}/rerun": "an unknown id is 400, as document 3 says",
    "GET /engine/jobs/{job_id}": "the same",
    "GET /engine/logs/{job_id}": "the same",
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
    key: str
    schema: BaseSchema

    @property
    def headers(self) -> dict[str, str]:
        return {"API-KEY": self.key}


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._ready.set()


class _Product(threading.Thread):
    """In a thread with a loop of its own: schemathesis asks one blocking question after another."""

    def __init__(self, conninfo: str, role: str | None) -> None:
        super().__init__(name="product")
        self._conninfo = conninfo
        self._role = role
        self.ready = threading.Event()
        self.server: _Server | None = None
        self.key = ""

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self.ready.set()

    async def _serve(self) -> None:
        inner, outbound = core(self._conninfo, role=self._role, clock=system_clock), GuardedClient()
        await inner.start()
        try:
            self.key = await introduce(inner, "admin", "admin")
            app = build_application(
                ROUTES,
                services(inner, self._conninfo, Sealer(bytes(32)), outbound=outbound),
                authenticate=partial(authenticate, inner.directory),
                answers=KeptAnswers(inner.database),
                fingerprint=Marker(bytes(32)),
                registry=inner.registry,
                request_log=RequestLog(io.StringIO(), clock=system_clock),
            )
            config = uvicorn.Config(app, port=0, http="httptools", log_level="critical", access_log=False, lifespan="off")
            self.server = _Server(config, self.ready)
            await self.server.serve()
        finally:
            await outbound.close()
            await inner.stop()

    @property
    def address(self) -> str:
        assert self.server is not None, "the product did not start"
        return f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"


@pytest.fixture(scope="module")
def served(migrated: tuple[str, str | None]) -> Iterator[Served]:
    conninfo, role = migrated
    empty(conninfo)
    product = _Product(conninfo, role)
    product.start()
    product.ready.wait()
    try:
        config = SchemathesisConfig.from_dict(CONFIGURATION)
        schema = schemathesis.openapi.from_url(f"{product.address}/openapi.json", config=config)
        yield Served(product.address, product.key, schema)
    finally:
        if product.server is not None:
            product.server.should_exit = True
        product.join()


def existing(served: Served) -> dict[str, dict[str, str]]:
    """Path parameters that lead somewhere, by the start of the path."""
    with httpx.Client(base_url=served.address, headers=served.headers) as http:
        event = http.post("/api/event/", json={"RefId": "r", "EventState": 10, "Tags": [{"name": "a"}]}).json()["id"]
        room = http.post("/api/room/", json={"name": "Hall"}).json()["Id"]
        http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]})
        key = http.post("/api/client/studio/keys/").json()["keyId"]
        category = http.post("/api/category/", json={"name": f"Sport {uuid4()}"}).json()["id"]
        point = http.post("/api/chapterpoint/", json={"eventId": event, "startTime": "00:00:00"}).json()["id"]
        channel = http.post("/api/channel/", json={"name": "One"}).json()["id"]
        flow = http.post("/api/flow/", json={"name": "f", "configurationJson": json.dumps(FLOW)}).json()["id"]
        body = {"name": "p", "configurationJson": json.dumps(PROFILE)}
        profile = http.post("/api/infrastructureprofile/", json=body).json()["id"]
        log = http.post("/api/log/loggable/", json={"Id": event, "Message": "x", "Level": "Info"}).json()["id"]
        hook = http.post("/api/webhook/", json={"webhookUrl": "https://127.0.0.1/a"}).json()["id"]
        asked = {"job": {"workflow": "probe_media"}, "parameters": {"content_id": "film", "file": "a.mp4"}}
        job = http.post("/engine/job", json=asked, headers={"client": "admin"}).json()["id"]
    return {
        "/api/room": {"id": room},
        "/api/webhook": {"id": hook, "eventId": event},
        "/api/category": {"id": category},
        "/api/chapterpoint": {"id": point, "eventId": event},
        "/api/channel": {"id": channel},
        "/api/flow": {"id": flow},
        "/api/infrastructureprofile": {"id": profile},
        "/api/provision/compare": {"channelId": channel},
        "/api/client": {"name": "studio", "keyId": key},
        "/api/audit": {"aggregate": "event", "id": event},
        "/api/log": {"id": log, "eventId": event},
        "/engine": {"job_id": str(job)},
        "/api": {"id": event, "contentId": event, "referenceid": "r"},
    }


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_product_keeps_to_its_document(served: Served, name: str, mode: GenerationMode) -> None:
    method, _, path = name.partition(" ")
    operation = next(
        one.ok()
        for one in served.schema.get_all_operations()
        if isinstance(one, Ok) and (one.ok().method.upper(), one.ok().path) == (method, path)
    )
    targets = existing(served)
    known = next((values for start, values in targets.items() if path.startswith(start)), {})
    end = monotonic() + SECONDS_EACH
    turn = iter(range(1_000_000))

    @settings(
        max_examples=EXAMPLES[mode],
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case[Any]) -> None:
        if monotonic() > end:
            return
        if mode is GenerationMode.POSITIVE and next(turn) % 2:
            case.path_parameters = {key: known.get(key, value) for key, value in case.path_parameters.items()}
        if "client" in case.headers:  # any other is 401, which says nothing about the rest
            case.headers["client"] = "admin"
        excluded: list[CheckFunction] = [positive_data_acceptance] if name in NOT_ALL_IN_THE_SCHEMA else []
        # In a form, and in plain text, everything is text: 7 is a title, and `true` is one too.
        if case.media_type in (*FORM.media_types, *PLAIN.media_types) or name in EMPTY_LISTS:
            excluded.append(negative_data_rejection)
        case.call_and_validate(base_url=served.address, headers=served.headers, excluded_checks=excluded)

    ask()
