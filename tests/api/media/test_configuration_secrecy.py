"""No secret of a channel or flow is found anywhere in the clear: not in a table, an answer, an error or a log line."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import httpx
import psycopg
import pytest

from api.kernel.log import JsonFormatter, RequestLog
from api.wiring.core import Core
from tests.api.asking import add, logged
from tests.api.media.test_configuration_secrets import secrets_of
from tests.domain.channel.texts_given import FLOW

MARK = "swordfish"
"""Every secret here begins so; nothing else does."""

POINT = {"srvaApi": "http://srva", "publishingPointUrl": "http://o/live.isml"}
CHANNEL_TEXT = json.dumps(
    {
        "encoders": [
            {
                "name": "enc-1",
                "encoderSpecific": {"deep": [{"er": {"PASSWORD": f"{MARK}-1"}}], "apikey": f"{MARK}-2"},
                "settings": {"x": [[{"password": f'{MARK}-3 "quoted" \\ ä 🎬'}]]},
                "streamingServer": {
                    "streamingServerSpecific": {"primaryPublishingPoint": {**POINT, "srvaApiKey": f"{MARK}-4"}},
                },
            }
        ],
        "rampServers": [{"serverAddress": "http://ramp", "apiKey": f"{MARK}-5"}],
        "ours": {"password": f"{MARK}-6"},
        "password": f"{MARK}-7",
    }
).replace(f'"apiKey": "{MARK}-5"', '"\\u0061piKey" : "\\u0073wordfish-5"')
FLOW_TEXT = json.dumps(FLOW).replace("first-key", f"{MARK}-8").replace("second-key", f"{MARK}-9")
SPELLINGS = (MARK, MARK.encode().hex(), "\\u0073wordfish", base64.b64encode(MARK.encode()).decode())


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def request_log(inner: Core, lines: io.StringIO) -> RequestLog:
    return RequestLog(lines, clock=inner.clock, reads=True)


@pytest.fixture
async def answers(http: httpx.AsyncClient) -> list[str]:
    """Every answer from here on, head and body."""
    seen: list[str] = []

    async def keep(answer: httpx.Response) -> None:
        seen.append(f"{answer.headers}\n{(await answer.aread()).decode()}")

    http.event_hooks["response"].append(keep)
    return seen


def tables(conninfo: str) -> dict[str, str]:
    """The whole database, table by table, as text; bytes are shown in hexadecimal."""
    with psycopg.connect(conninfo) as connection:
        names = connection.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p', 'm') AND relnamespace = "
            "(SELECT oid FROM pg_namespace WHERE nspname = current_schema)"
        ).fetchall()
        return {
            name: "\n".join(row for (row,) in connection.execute(f"SELECT t::text FROM {name} t".encode()).fetchall())
            for (name,) in names
        }


async def written(http: httpx.AsyncClient) -> tuple[str, str]:
    """A channel and a flow, each made under an idempotency key, repeated, changed and read back in every way."""
    keys = []
    for path, text in (("channel", CHANNEL_TEXT), ("flow", FLOW_TEXT)):
        body = {"name": path, "configurationJson": text}
        made, again = [await http.post(f"/api/{path}/", json=body, headers={"Idempotency-Key": path}) for _ in range(2)]
        assert made.status_code == 200, made.text
        assert made.content == again.content
        key = made.json()["id"]
        keys.append(key)
        changed = await http.put(
            f"/api/{path}/{key}", json={"name": "x", "configurationJson": text.replace(f"{MARK}-1", f"{MARK}-0")}
        )
        assert changed.status_code == 200
        for read in (f"{path}/{key}", path, f"audit/{path}/{key}", f"audit/{path}/{key}/state?version=1", "audit/events/"):
            assert (await http.get(f"/api/{read}")).status_code == 200
    return keys[0], keys[1]


async def refused(http: httpx.AsyncClient, channel: str) -> None:
    """Errors about texts and bodies with secrets in them."""
    texts: list[Any] = [
        CHANNEL_TEXT[:-1],
        CHANNEL_TEXT.replace(f'"{MARK}-4"', f'["{MARK}-4"]'),
        CHANNEL_TEXT.replace(f'"{MARK}-7"', f'{{"x": "{MARK}-7"}}'),
        CHANNEL_TEXT.replace('"name": "enc-1"', '"name": 7'),
        f'{{"password": "{MARK}\\u0000"}}',
        f'{{"password": "{MARK}\\ud800"}}',
        f'{{"password": "{MARK}"',
        {"password": MARK},
    ]
    for text in texts:
        body = {"name": "x", "configurationJson": text}
        for answer in (await http.post("/api/channel/", json=body), await http.put(f"/api/channel/{channel}", json=body)):
            assert answer.status_code == 400
        assert (await http.post("/api/flow/", json=body)).status_code == 400
        assert (await http.post("/api/channel/", content=json.dumps(body).encode()[:-1])).status_code in (400, 415)


async def test_no_secret_is_found_in_the_clear(
    http: httpx.AsyncClient,
    database_url: str,
    answers: list[str],
    request_log: RequestLog,
    lines: io.StringIO,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    caplog.handler.setFormatter(JsonFormatter())
    channel, flow = await written(http)
    event = await add(http, ChannelId=channel, FlowId=flow, EventState="LIVE_PUBLISHED")
    shown = await http.get(f"/api/event/{event['id']}?processVideo=true")
    assert shown.json()["video"]["rampServers"] == [{"serverAddress": "http://ramp", "apiKey": None}]
    assert (await http.get(f"/api/flow/taskengines/{flow}")).status_code == 200
    await refused(http, channel)
    await http.delete(f"/api/event/{event['id']}")
    assert (await http.delete(f"/api/flow/{flow}")).status_code == 200

    dumped = tables(database_url)
    assert {"events", "vault", "idempotency_keys", "record_view", "snapshots", "logbook", "unique_claims"} <= dumped.keys()
    request_log.flush()
    places = [*dumped.items(), *enumerate(answers), ("log", caplog.text), ("requests", lines.getvalue())]
    for place, sight in (
        (dumped["events"], b"enc-1".hex()),
        (dumped["idempotency_keys"], "channel:"),
        (lines.getvalue(), "PUT /api/flow/"),
    ):
        assert sight in place, "the search looks at what it should"
    for spelling in SPELLINGS:
        assert [place for place, text in places if spelling in text] == []


async def test_every_secret_can_be_decrypted(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    channel, flow = await written(http)
    result = await secrets_of(inner, f"channel:{channel}")
    assert sorted(str(secret) for secret in result.values()) == sorted(
        [f"{MARK}-0", f"{MARK}-2", f'{MARK}-3 "quoted" \\ ä 🎬', *(f"{MARK}-{n}" for n in range(4, 8))]
    )
    assert list((await secrets_of(inner, f"flow:{flow}")).values()) == [f"{MARK}-8", f"{MARK}-9"]
    assert tables(database_url)["vault"].count("\n") == 8
    shown = json.loads((await http.get(f"/api/channel/{channel}")).json()["configurationJson"])
    assert (shown["password"], shown["ours"]) == (None, {"password": None})
    assert shown["encoders"][0]["encoderSpecific"] == {"deep": [{"er": {"PASSWORD": None}}], "apikey": None}
    assert len(await logged(inner, f"channel:{channel}")) == 2
