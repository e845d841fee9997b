"""The provisioner of an external service, against a real HTTP server: the cases that only HTTP requests have."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from domain.provision.desired import Desired, Provided
from domain.provision.values import Deployment
from tests.contract.provisioner.stages import QUICK, install
from tests.workers.provision.foreign_service import KEY, ForeignService, serving
from tests.workers.provision.site import A, B, Notes, names
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.provisioners.service import MOST, ServiceProvisioner
from workers.adapters.provisioners.service_file import ServiceFiles
from workers.ports.provisioners import Halt

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """The service, and a provisioner with its address."""

    def __init__(self, root: Path, service: ForeignService, client: GuardedClient) -> None:
        self.root, self.service = root, service
        self.files = ServiceFiles(root / "templates", root=root / "work")
        self.limits = replace(QUICK, request=30.0, patience=30.0)
        self.client = client
        self.notes = Notes()
        self.number = 0
        install(root / "templates" / "aws", url=service.url, key=KEY)

    @property
    def file(self) -> Path:
        return self.root / "templates" / "aws" / "service.json"

    async def provide(self, *resources: dict[str, Any], number: int | None = None, template: str = "aws") -> Provided:
        self.number += 1
        wanted = self._desired(resources, number=number or self.number, template=template)
        async with asyncio.timeout(60):
            return await self._provisioner.provide(wanted, progress=self.notes, halt=Halt())

    async def plan(self, *resources: dict[str, Any]) -> str:
        return await self._provisioner.plan(self._desired(resources, number=0, template="aws"))

    @property
    def _provisioner(self) -> ServiceProvisioner:
        return ServiceProvisioner(self.client, self.files, limits=self.limits)

    def _desired(self, resources: Sequence[dict[str, Any]], *, number: int, template: str) -> Desired:
        return Desired(
            key="../k",
            deployment=Deployment.TEMPLATE,
            template=template,
            settings={"size": "small"},
            resources=resources,
            allow_updates=False,
            work=(),
            refused=(),
            number=number,
        )


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    client = GuardedClient([ip_network("127.0.0.0/8")])
    async with serving() as service:
        yield Site(tmp_path, service, client)
    await client.close()


def says(status: int, body: str = "", **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, headers=headers)

    return answer


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(1)
    return web.Response()


async def drips(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    with suppress(ConnectionResetError):
        for _ in range(20):
            await answer.write(b" ")
            await asyncio.sleep(0.05)
    return answer


async def closes(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


LATER = "; trying again"
PASSING: dict[str, tuple[Answer, str]] = {
    "500": (says(500, "Oops"), "answers with status 500"),
    "503 with a reason": (says(503, json.dumps({"reason": f"no quota for {KEY}."})), "answers with status 503: no quota for ****"),
    "429": (says(429), "answers with status 429"),
    "no answer": (hangs, "No complete answer within 0.3 s"),
    "drops": (drips, "No complete answer within 0.3 s"),
    "closed": (closes, "closed the connection"),
    "HTML": (says(200, "<html>maintenance"), "gives an invalid answer: answer: is not JSON"),
    "another shape": (says(200, '{"run": "x", "status": "great"}'), "gives an invalid answer: answer.run"),
    "huge": (says(200, " " * (MOST + 2)), "answers with more than 4 MiB"),
}


@pytest.mark.parametrize("name", PASSING)
async def test_a_fault_that_passes_is_told_and_tried_again(site: Site, name: str) -> None:
    answer, sentence = PASSING[name]
    if answer in (hangs, drips):
        site.limits = replace(site.limits, request=0.3)
    site.service.answers = [says(202), answer, answer]
    assert names(await site.provide(A)) == ["a"]
    assert any(sentence in message and message.endswith(LATER) for message in site.notes.messages)
    assert KEY not in "".join(site.notes.messages)


LASTING: dict[str, tuple[Answer, str]] = {
    "400": (says(400, json.dumps({"reason": f"no resource {KEY}"})), "the service 'aws' answers with status 400: no resource ****"),
    "401": (says(401, "<html>"), "the service 'aws' answers with status 401"),
    "a redirect inside": (
        says(307, Location="http://169.254.169.254/latest/"),
        "the service 'aws' answers with status 307: it redirects, which is not followed",
    ),
}


@pytest.mark.parametrize("name", LASTING)
async def test_a_refusal_ends_it_at_once_and_nothing_is_there(site: Site, name: str) -> None:
    answer, sentence = LASTING[name]
    site.service.answers = [answer]
    result = await site.provide(A)
    assert (result.reason, result.exists, site.service.requests.total()) == (sentence, False, 1)


async def test_a_fault_that_lasts_ends_it_and_leaves_what_may_be_there(site: Site) -> None:
    site.limits = QUICK
    site.service.answers = [says(202), *[says(500)] * 1000]
    result = await site.provide(A)
    assert "answers with status 500; it was tried for" in result.reason
    assert (result.exists, result.left) == (True, True)
    assert 3 < site.service.requests["GET"] < 60, "with growing pauses"


async def test_what_is_asked_for_is_not_public(site: Site) -> None:
    allowed, site.client = site.client, GuardedClient()
    result = await site.provide(A)
    await site.client.close()
    site.client = allowed
    assert "is not public" in result.reason
    assert (result.exists, site.service.requests.total()) == (False, 0)


async def test_the_file_is_read_at_each_run_and_its_faults_are_told(site: Site) -> None:
    site.file.write_text(json.dumps({"url": site.service.url, "key": "another"}))
    assert "status 401" in (await site.provide(A)).reason
    site.file.write_text('{"key": "' + KEY + '"}')
    broken = await site.provide(A)
    assert (broken.reason, broken.exists) == ("the file of the service 'aws' is not valid: service.json.url: is required", False)
    for template in ("other", "../templates/aws", ".", ""):
        assert "not installed" in (await site.provide(A, template=template)).reason


async def test_a_service_that_was_taken_away_leaves_what_it_has_made(site: Site) -> None:
    await site.provide(A)
    retained = site.file.read_text()
    site.file.unlink()
    gone = await site.provide()
    assert (gone.reason, gone.left, gone.exists) == ("the service 'aws' is not installed", True, True)
    site.file.write_text(retained)
    assert not (await site.provide()).exists
    site.file.unlink()
    assert await site.provide() == Provided(), "nothing is left to be asked for"


async def test_a_request_names_its_operation_and_a_late_request_is_refused(site: Site) -> None:
    await site.provide(A, B)
    sent, body = site.service.sent[0], site.service.bodies[0]
    name = sent["Idempotency-Key"].partition("/")[0]
    assert (sent["X-Run"], sent["Idempotency-Key"], sent["Authorization"]) == ("1", f"{name}/1", f"Bearer {KEY}")
    assert name.isalnum(), "no text of a profile becomes a path"
    assert body == {
        "infrastructureKey": "../k",
        "run": 1,
        "allowUpdates": False,
        "settings": {"size": "small"},
        "resources": [A, B],
    }
    await site.provide(A, number=9)
    late = await site.provide(number=8)
    assert (late.reason, late.exists) == ("the service 'aws' has a later request", True)
    assert list(site.service.infrastructure.up["../k"]) == ["a"]


async def test_a_service_that_has_forgotten_is_told_again(site: Site) -> None:
    async def forgets(_: web.Request) -> web.StreamResponse:
        site.service.orders.clear()
        return web.Response(status=404)

    site.service.answers = [says(202), forgets]
    assert names(await site.provide(A)) == ["a"]
    assert site.service.requests["PUT"] == 2


async def test_a_plan_compares_what_is_wanted_with_what_is_there_and_tells_the_service_nothing(site: Site) -> None:
    assert await site.plan(A) == "+ a"
    await site.provide(A)
    reported = Counter(site.service.requests)
    assert await site.plan(B) == "+ b\n- a"
    assert await site.plan(A) == "= a"
    assert (site.service.requests - reported).keys() == {"GET"}
    site.file.unlink()
    assert (await site.plan(A)).startswith("it would fail: ")
