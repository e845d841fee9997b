"""Login to the console over HTTP: docs/reference/api/console-session.md."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from functools import partial
from hashlib import sha256
from typing import Any

import httpx
import pytest

from api.console.session import MOST, MOST_OF_KEY, FailedLogins
from api.http.errors import TooManyRequests
from api.kernel.app import build
from api.kernel.log import JsonFormatter, RequestLog
from api.wiring.core import Core
from api.wiring.services import ROUTES, authenticate
from domain.kernel.encryption import KeyedHash
from projections.client.console_sessions import MOST_OF_A_KEY
from projections.log.idempotency import IdempotencyRecords
from tests.api.asking import assert_problem, last, logged
from tests.support.application import assembled, introduce
from tests.support.clock import HandClock
from tests.support.services import services
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient

HERE = "http://media.test"
SESSION = "/console/session"
OWN = {"Sec-Fetch-Site": "same-origin"}
NAME = "medialedger_session"


@pytest.fixture
async def browser(http: httpx.AsyncClient, application: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client with cookies and without a key. The client `admin` exists."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=HERE) as client:
        yield client


async def log_in(browser: httpx.AsyncClient, key: str = "key-of-admin") -> httpx.Response:
    return await browser.post(SESSION, json={"apiKey": key}, headers=OWN)


async def ends(browser: httpx.AsyncClient, path: str = "/api/room/") -> None:
    """Waits until the session counts no more: other processes hear of it within a second."""
    async with asyncio.timeout(60):
        while (await browser.get(path)).status_code != 401:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.05)


async def test_a_login_gives_the_roles_of_the_key_and_a_cookie_that_scripts_cannot_read(
    browser: httpx.AsyncClient, inner: Core
) -> None:
    before = await last(inner)
    answer = await log_in(browser)
    shown = {"client": "admin", "roles": ["admin"], "expiresAt": "2031-01-03T00:00:00.000Z"}
    assert (answer.status_code, answer.json(), answer.headers["cache-control"]) == (200, shown, "no-store")
    token = browser.cookies[NAME]
    assert answer.headers["set-cookie"] == f"{NAME}={token}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"
    again = await browser.get(SESSION)
    assert (again.status_code, again.json()) == (200, shown)
    assert await inner.database.rows("SELECT token_hash FROM console_sessions") == [(sha256(token.encode()).digest(),)]
    [entry] = (await browser.get("/api/log/", params={"queryOrder": "DESC"})).json()["results"]
    assert (entry["message"], entry["username"]) == ("logged in to the console", "admin")
    assert await last(inner) == before, "a session is no fact of the log"


async def test_every_surface_but_the_key_provider_takes_the_cookie(browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    for path in ("/api/room/", "/engine/settings", "/api/audit/events/"):
        assert (await browser.get(path, headers=OWN)).status_code == 200, path
    made = await browser.post("/api/room/", json={"name": "Studio"}, headers=OWN)
    assert made.status_code < 300
    refused = await browser.post("/admin/speke", content=b"<a/>", headers=OWN)
    assert refused.status_code == 401
    wrong = await browser.get("/api/room/", headers={"API-KEY": "wrong"})
    assert wrong.status_code == 401, "a header counts more"


async def test_a_wrong_key_sets_no_cookie_and_is_not_repeated(browser: httpx.AsyncClient) -> None:
    answer = await log_in(browser, "wrong-key")
    assert_problem(answer, 401)
    assert "set-cookie" not in answer.headers
    assert "wrong-key" not in answer.text
    for body in ({}, {"apiKey": ""}, {"apiKey": "k" * 513}, {"apiKey": 7}, {"apiKey": "\x00"}):
        assert (await browser.post(SESSION, json=body)).status_code == 400
    assert_problem(await browser.get(SESSION), 401)
    assert_problem(await log_in(browser, "schlüssel"), 401)


async def test_a_logout_ends_the_session_and_not_only_the_cookie(browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    token = browser.cookies[NAME]
    answer = await browser.delete(SESSION, headers=OWN)
    assert answer.status_code == 204
    assert answer.headers["set-cookie"].startswith(f"{NAME}=; Path=/; Max-Age=0; HttpOnly")
    for path in ("/api/room/", SESSION):
        assert (await browser.get(path, headers={"Cookie": f"{NAME}={token}"})).status_code == 401
    assert (await browser.delete(SESSION, headers=OWN)).status_code == 204


async def test_a_session_ends_after_its_time_and_without_use(browser: httpx.AsyncClient, clock: HandClock) -> None:
    await log_in(browser)
    clock.forward(minutes=60)
    assert (await browser.get("/api/room/")).status_code == 401
    await log_in(browser)
    for _ in range(12):
        clock.forward(minutes=59, seconds=30)
        assert (await browser.get("/api/room/")).status_code == 200
    clock.forward(minutes=6)
    assert (await browser.get("/api/room/")).status_code == 401


async def test_a_session_ends_with_its_key_its_roles_and_its_client(http: httpx.AsyncClient, browser: httpx.AsyncClient) -> None:
    made = (await http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]})).json()
    assert (await log_in(browser, made["key"])).json()["roles"] == ["viewer"]
    assert (await browser.post("/api/room/", json={"name": "a"}, headers=OWN)).status_code == 403
    await http.put("/api/client/studio", json={"roles": ["operator"]})
    await ends(browser)
    assert (await log_in(browser, made["key"])).status_code == 200
    await http.post("/api/client/studio/keys/", json={})
    await http.delete(f"/api/client/studio/keys/{made['keys'][0]['keyId']}")
    await ends(browser)
    second = (await http.post("/api/client/studio/keys/", json={})).json()["key"]
    assert (await log_in(browser, second)).status_code == 200
    await http.delete("/api/client/studio")
    await ends(browser)


async def test_a_session_does_not_outlive_a_key_that_expires(
    http: httpx.AsyncClient, browser: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    key = await introduce(inner, "late", "viewer")
    assert (await http.post("/api/client/late/keys/", json={"expireOthersAfter": 600})).status_code == 201
    answer = await log_in(browser, key)
    assert answer.json()["expiresAt"] == "2031-01-02T12:10:00.000Z"
    assert "; Max-Age=600;" in answer.headers["set-cookie"]
    clock.forward(minutes=10)
    assert (await browser.get("/api/room/")).status_code == 401


async def test_processes_share_sessions(
    browser: httpx.AsyncClient, second: Core, database_url: str, outbound: GuardedClient, tmp_path: Any
) -> None:
    existing = services(second, outbound=outbound, files=MediaDirectory(tmp_path))
    other = assembled(second, existing, request_log=RequestLog(io.StringIO(), clock=second.clock), registry=second.registry)
    await log_in(browser)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(other), base_url=HERE, cookies=browser.cookies) as neighbour:
        assert (await neighbour.get("/api/room/")).status_code == 200
        await browser.delete(SESSION, headers=OWN)
        await ends(neighbour)


FROM_PAGES: tuple[tuple[dict[str, str], int, int], ...] = (
    ({"Sec-Fetch-Site": "same-origin"}, 200, 400),
    ({"Sec-Fetch-Site": "same-origin", "Origin": HERE}, 200, 400),
    ({"Sec-Fetch-Site": "none"}, 200, 403),
    ({"Sec-Fetch-Site": "same-site", "Origin": HERE}, 403, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403, 403),
    ({"Sec-Fetch-Site": ""}, 403, 403),
    ({"Origin": HERE}, 200, 400),
    ({"Origin": f"{HERE}:80"}, 200, 403),
    ({"Origin": f"{HERE}:9000"}, 200, 403),
    ({"Origin": "https://media.test"}, 200, 403),
    ({"Origin": "null"}, 200, 403),
    ({"Origin": "http://evil.test"}, 200, 403),
    ({}, 200, 403),
    ({"Referer": f"{HERE}/console/"}, 200, 403),
)
"""Headers that a browser sends about the page, and the statuses of a read and of a change."""


async def test_only_pages_of_this_origin_may_use_the_cookie(browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    for headers, read, change in FROM_PAGES:
        assert (await browser.get("/api/room/", headers=headers)).status_code == read, headers
        assert (await browser.post("/api/room/", json={}, headers=headers)).status_code == change, headers
        cloning = await browser.get("/api/compose/clone/8f51eaa1-decb-4863-89d3-9eb99768c67b", headers=headers)
        assert (cloning.status_code == 403) == (change == 403), f"a GET that writes is a change: {headers}"
        if change == 403:
            assert (await browser.delete(SESSION, headers=headers)).status_code == 403, headers


async def test_a_login_from_another_page_is_refused(browser: httpx.AsyncClient) -> None:
    for headers in ({"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://media.test:9000"}):
        assert (await browser.post(SESSION, json={"apiKey": "key-of-admin"}, headers=headers)).status_code == 403
    assert (await browser.post(SESSION, json={"apiKey": "key-of-admin"})).status_code == 200


async def test_behind_a_proxy_that_does_not_say_so_the_cookie_is_secure_too(
    inner: Core, services_by_type: dict[Any, Any], request_log: RequestLog, browser: httpx.AsyncClient
) -> None:
    application = build(
        ROUTES,
        services_by_type,
        authenticate=partial(authenticate, inner.directory),
        idempotency=IdempotencyRecords(inner.database, inner.streams),
        fingerprint=KeyedHash(bytes(32)),
        public_url="https://media.test",
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=HERE) as proxied:
        cookie = (await log_in(proxied)).headers["set-cookie"]
    assert cookie.startswith(f"__Host-{NAME}=")
    assert cookie.endswith("; Secure")


async def test_over_https_the_cookie_is_secure(application: Any, browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="https://media.test") as secure:
        plain = {"Cookie": f"{NAME}={browser.cookies[NAME]}"}
        assert (await secure.get("/api/room/", headers=plain)).status_code == 401, "a page without TLS may have set it"
        cookie = (await log_in(secure)).headers["set-cookie"]
        assert cookie.startswith(f"__Host-{NAME}=")
        assert cookie.endswith("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure")
        made = await secure.post("/api/room/", json={"name": "a"}, headers={"Origin": "https://media.test"})
        assert made.status_code < 300


@pytest.mark.parametrize("host", ["media.test:8080", "media.test:8081", "[::1]:8080"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_each_port_of_a_host_has_a_cookie_of_its_own(
    application: Any, browser: httpx.AsyncClient, scheme: str, host: str
) -> None:
    await log_in(browser)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=f"{scheme}://{host}") as other:
        other.cookies = browser.cookies
        assert (
            (await log_in(other))
            .headers["set-cookie"]
            .startswith(f"{'__Host-' if scheme == 'https' else ''}{NAME}_{host.rpartition(':')[2]}=")
        )
        both = "; ".join(f"{cookie.name}={cookie.value}" for cookie in other.cookies.jar)
        assert both.count("=") == 2
        for client in (browser, other):
            client.cookies.clear()
            assert (await client.get(SESSION, headers={"Cookie": both})).status_code == 200


async def test_a_strange_host_leaves_no_trace_in_the_name(browser: httpx.AsyncClient) -> None:
    for host in ("media.test:", "media.test:0x50", "media.test:8080; a=b", "media.test:\u0661".encode(), "a:999999"):
        answer = await browser.post(
            SESSION, json={"apiKey": "key-of-admin"}, headers=[(b"host", host if isinstance(host, bytes) else host.encode())]
        )
        assert answer.status_code != 200 or answer.headers["set-cookie"].startswith(f"{NAME}="), host


async def test_hostile_cookies_are_no_key(browser: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    await log_in(browser)
    token = browser.cookies[NAME]
    browser.cookies.clear()
    hostile: tuple[bytes, ...] = (
        b"x" * 10_000,
        f"{NAME}={token}; {NAME}=other".encode(),
        f"{NAME}=a; ".encode() * 500 + f"{NAME}={token}".encode(),
        f"{NAME}=".encode() + b"\xff\x00\xe4" * 20,
        f"{NAME}={token}x".encode(),
        f"{NAME}={token[:-1]}".encode(),
        f"{NAME}=".encode(),
        f"{NAME}".encode(),
        f'{NAME}="{token}"'.encode(),
        f"x{NAME}={token}".encode(),
        f"{NAME.upper()}={token}".encode(),
        f"{NAME}=key-of-admin".encode(),
        b";;;=;=a;",
    )
    for sent in hostile:
        for path in ("/api/room/", SESSION):
            answer = await browser.get(path, headers=[(b"Cookie", sent)])
            assert answer.status_code == 401, sent[:60]
            assert token not in answer.text
        assert (await browser.get("/api/room/", headers=[(b"Cookie", sent), (b"API-KEY", b"key-of-admin")])).status_code == 200
    split = [(b"Cookie", b"theme=dark"), (b"Cookie", f"a=b; {NAME}={token}".encode()), (b"Cookie", b"c=d")]
    assert (await browser.get("/api/room/", headers=split)).status_code == 200


async def test_nothing_that_is_written_holds_a_key_or_a_token(
    browser: httpx.AsyncClient, application: Any, inner: Core, caplog: pytest.LogCaptureFixture
) -> None:
    stream = io.StringIO()
    application.log = RequestLog(stream, clock=inner.clock, reads=True)
    caplog.handler.setFormatter(JsonFormatter())
    with caplog.at_level(logging.DEBUG):
        await log_in(browser)
        token = browser.cookies[NAME]
        job = {"job": {"workflow": "http_fetch_verify", "params": {"url": "http://a.test/a", "destination_path": "a"}}}
        sent = await browser.post("/engine/job", json=job, headers=OWN)
        await browser.get("/api/nowhere")
        await browser.delete(SESSION, headers=OWN)
        await browser.get("/api/room/", headers={"Cookie": f"{NAME}={token}"})
    application.log.flush()
    assert "/console/session" in stream.getvalue()
    reported = [stream.getvalue(), caplog.text]
    if sent.status_code == 200:
        reported.append((await browser.get(f"/engine/logs/{sent.json()['id']}")).text)
    reported.append(repr(await logged(inner)))
    for text in reported:
        assert token not in text
        assert "key-of-admin" not in text


async def test_wrong_keys_lock_out_one_address_only(browser: httpx.AsyncClient, application: Any) -> None:
    async def guess(number: int) -> int:
        return (await log_in(browser, f"guess-{number}")).status_code

    statuses = await asyncio.gather(*map(guess, range(100)))
    assert (statuses.count(401), statuses.count(429)) == (MOST, 100 - MOST)
    late = await log_in(browser, "guess-late")
    assert (late.status_code, late.headers["retry-after"]) == (429, "60")
    assert (await log_in(browser)).status_code == 200, "the right key is not kept out"
    other = httpx.ASGITransport(application, client=("198.51.100.7", 5))
    async with httpx.AsyncClient(transport=other, base_url=HERE) as elsewhere:
        assert (await log_in(elsewhere)).status_code == 200


def test_ten_thousand_wrong_keys_let_one_address_try_ten() -> None:
    failed, refused = FailedLogins(monotonic=lambda: 0.0), 0
    for _ in range(10_000):
        try:
            failed.failed("198.51.100.7")
        except TooManyRequests:
            refused += 1
    assert refused == 10_000 - MOST
    for number in range(30_000):
        failed.failed(f"10.0.{number >> 8}.{number & 255}")
    assert len(failed._counts) == 10_000, "its memory is bounded"


def test_an_address_waits_a_minute_and_ipv6_counts_by_network() -> None:
    now = 0.0
    failed = FailedLogins(monotonic=lambda: now)  # the clock that is moved below
    for host in range(MOST):
        failed.failed(f"2001:db8::{host:x}")
    with pytest.raises(TooManyRequests):
        failed.failed("2001:db8::ffff")
    failed.failed("2001:db8:0:1::1")
    now = 61.0
    failed.failed("2001:db8::1")


async def test_a_key_has_a_bounded_number_of_sessions(browser: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    for _ in range(MOST_OF_A_KEY + 3):
        await log_in(browser)
        clock.forward(seconds=4)
    assert await inner.database.row("SELECT count(*) FROM console_sessions") == (MOST_OF_A_KEY,)
    assert (await browser.get("/api/room/")).status_code == 200


async def test_logins_of_a_key_fill_no_log_and_end_no_session_in_use(
    browser: httpx.AsyncClient, application: Any, clock: HandClock
) -> None:
    await log_in(browser)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=HERE) as other:
        for _ in range(6):
            statuses = [(await log_in(other)).status_code for _ in range(MOST_OF_KEY + 1)]
            assert statuses[-1] == 429
            clock.forward(seconds=61)
            assert (await browser.get("/api/room/")).status_code == 200, "it is in use"
        entries = (await browser.get("/api/log/", params={"queryOrder": "DESC", "pageSize": 1000})).json()["results"]
    assert [entry["message"] for entry in entries].count("logged in to the console") == 6


async def test_a_key_of_another_client_does_not_end_a_session(browser: httpx.AsyncClient, inner: Core) -> None:
    await introduce(inner, "studio", "viewer")
    await log_in(browser)
    assert (await browser.get("/api/room/", headers={"client": "studio"})).status_code == 401
    assert (await browser.get(SESSION)).status_code == 200
