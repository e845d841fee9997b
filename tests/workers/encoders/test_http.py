"""Somebody else's encoder over HTTP: what it is told, its lease, and what it may answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from domain.channel.encoding import EncoderPlan, PointPlan
from domain.channel.streaming_options import encoder_options
from domain.event.values import AudioInput
from tests.contract.encoder.conftest import client
from tests.contract.encoder.http_stage import http_plan
from tests.projections.log.helpers import until
from tests.workers.encoders.foreign import KEY, Foreign, foreign_encoder
from workers.adapters.encoders.http import HttpEncoder
from workers.adapters.encoders.point import shown
from workers.adapters.outbound_http import GuardedClient
from workers.ports.encoders import EncoderFailed

__all__ = ["client"]


@pytest.fixture
async def foreign() -> AsyncIterator[Foreign]:
    async with foreign_encoder() as encoder:
        yield encoder


@pytest.fixture
def encoder(client: GuardedClient) -> HttpEncoder:
    return HttpEncoder(
        client,
        lambda: datetime.now(UTC),
        lambda url, session: {"Authorization": f"Bearer {session} for {url}"},
        lease=2.0,
        poll=0.05,
    )


async def test_a_start_sends_all_settings_and_the_key_in_the_header_only(encoder: HttpEncoder, foreign: Foreign) -> None:
    plan = http_plan(foreign, quality="best")
    options = encoder_options("-g 50 --archive", dvr_length=30, max_bitrate=4_000_000)
    plan = EncoderPlan(0, "enc-1", "http", plan.specific, plan.points, options)
    run = await encoder.start(plan, channel="news", session=9, may_send=lambda: True)
    order = foreign.sessions[9].order
    assert (order["session"], order["channel"], order["encoder"], order["leaseSeconds"]) == (9, "news", "enc-1", 2.0)
    assert order["settings"] == {"quality": "best"}
    assert (order["options"]["dvrLength"], order["options"]["encode"], order["options"]["archive"]) == (30, {"-g": "50"}, True)
    url = plan.points[1].url
    assert order["points"][1] == {"index": 1, "url": url, "headers": {"Authorization": f"Bearer 9 for {url}", "X-Session": "9"}}
    assert KEY not in str(order)
    await until(lambda: run.audio_inputs() and run.statistics().bytes)
    assert run.audio_inputs() == [AudioInput(id="a", name="Original", index=0, language="en")]
    assert run.statistics().points[0].url == "https://origin.example/live/0"
    await run.stop(final=False)
    assert foreign.stops == [{"force": False, "final": False}]
    assert not any(KEY in line or "point-key" in line for line in foreign.requests)


async def test_a_start_that_is_repeated_is_one_session(encoder: HttpEncoder, foreign: Foreign) -> None:
    runs = [await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True) for _ in range(2)]
    assert len(foreign.sessions) == 1
    await asyncio.gather(*(run.stop() for run in runs))


async def test_what_it_says_is_shown_without_its_key(encoder: HttpEncoder, foreign: Foreign) -> None:
    with pytest.raises(EncoderFailed, match=r"status 422: No camera") as refusal:
        await encoder.start(http_plan(foreign, refuse="No camera,\n"), channel="news", session=1, may_send=lambda: True)
    assert KEY not in str(refusal.value)
    assert "\n" not in str(refusal.value)
    with pytest.raises(EncoderFailed, match="status 401") as refusal:
        await encoder.start(http_plan(foreign, key="wrong-key"), channel="news", session=1, may_send=lambda: True)
    assert "wrong-key" not in str(refusal.value)
    assert "status 401" in str(await encoder.check(http_plan(foreign, key="wrong-key")))
    assert await encoder.check(http_plan(foreign)) is None


async def test_numbers_that_cannot_be_stored_are_left_out(encoder: HttpEncoder, foreign: Foreign) -> None:
    """Statistics of all sessions are written together, and audio inputs are in the log for ever."""
    foreign.response_text = (
        '{"state": "running", "frames": 7, "fps": NaN, "bitrate": 1e999, "bytes": 9' + "9" * 4_000 + ', "points": [{"index": 0, '
        '"bytes": 9223372036854775808, "dropped": 3}], "audioInputs": [' + ",".join(["{}"] * 1_000) + "]}"
    )
    run = await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    await until(lambda: run.statistics().frames == 7)
    statistics = run.statistics()
    assert (statistics.fps, statistics.bitrate, statistics.bytes) == (0.0, 0.0, 0)
    assert [(point.bytes, point.dropped) for point in statistics.points][:1] == [(0, 3)]
    assert len(run.audio_inputs() or ()) == 16
    await run.stop()


SAYS = "rtmp://a.rtmp.example/live2/s3cret-key: Input/output error"


@pytest.mark.parametrize(
    ("says", "shows"),
    [
        (SAYS, "…: Input/output error"),
        ("RTMP://a.rtmp.example:1935/live2/s3cret-key/: Input/output error", "… Input/output error"),
        ("the stream s3cret-key is used already", "the stream … is used already"),
        ("403 for ?token=a%20query with Bearer 9-t0ken", "403 for ?… with …"),
        ("the token is a query or 9-t0ken", "the token is … or …"),
        ("no camera for its-own-passw0rd at /dev/video0", "no camera for … at …"),
        ("." * 295 + SAYS, "." * 295 + "…: In"),
        ("." * 295 + "s3cret-key", "." * 295 + "…"),
        ("The disk is full.", "The disk is full."),
    ],
)
async def test_messages_of_the_encoder_hold_no_secret(client: GuardedClient, foreign: Foreign, says: str, shows: str) -> None:
    encoder = HttpEncoder(client, lambda: datetime.now(UTC), lambda *_: {"Authorization": "Bearer 9-t0ken"}, lease=2.0, poll=0.05)
    plan = http_plan(foreign, camera={"password": "its-own-passw0rd"})
    urls = ("rtmp://a.rtmp.example/live2/s3cret-key", "https://origin.example/live/x?token=a%20query")
    plan = replace(plan, points=[PointPlan(0, place, url) for place, url in enumerate(urls)])
    run = await encoder.start(plan, channel="news", session=9, may_send=lambda: True)
    foreign.odd_point = {"lastError": says}
    await until(lambda: run.statistics().points[0].last_error)
    assert [point.last_error for point in run.statistics().points] == [shows, shows]
    foreign.sessions[9].state, foreign.sessions[9].reason = "failed", says
    async with asyncio.timeout(60):
        assert await run.ended() == f"The encoder has ended: {shows.rstrip('.')}."
    await run.stop()


@pytest.mark.parametrize("url", ["rtmp://h/app/KEY", "rtmp://h/app/KEY/", "rtmps://u:p@h/app/KEY//?KEY#KEY", "rtmp://h/KEY/"])
def test_a_point_is_shown_without_its_key(url: str) -> None:
    assert "KEY" not in shown(url)
    assert shown(url).startswith(url.partition("://")[0] + "://h")


async def test_an_encoder_that_is_gone_has_ended_when_its_lease_has(encoder: HttpEncoder, foreign: Foreign) -> None:
    run = await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    del foreign.sessions[9]
    async with asyncio.timeout(60):
        why = await run.ended()
    assert why.startswith("The encoder did not report its status for 2 s: The encoder answers with status 404")
    await run.stop()


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1, 10**30, "x", True])
async def test_a_number_that_cannot_be_is_unknown(encoder: HttpEncoder, foreign: Foreign, odd: object) -> None:
    run = await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    await until(lambda: run.statistics().fps == 25.0)
    foreign.odd = {"fps": odd, "bitrate": odd, "bytes": odd, "frames": odd}
    await until(lambda: run.statistics().fps != 25.0)
    statistics = run.statistics()
    assert (statistics.fps, statistics.bitrate, statistics.bytes, statistics.frames) == (0.0, 0.0, 0, 0)
    await run.stop()


async def test_a_stop_without_an_answer_waits_for_the_lease(client: GuardedClient, foreign: Foreign) -> None:
    encoder = HttpEncoder(client, lambda: datetime.now(UTC), lambda *_: {}, lease=2.0, poll=0.05, seconds=0.3)
    run = await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    await until(lambda: foreign.arrived.get(0))
    foreign.deaf = True
    async with asyncio.timeout(60):
        await run.stop()
    assert not foreign.sessions[9].live
    sent = len(foreign.arrived[0])
    await asyncio.sleep(0.2)  # nothing may come: there is no event to wait for
    assert len(foreign.arrived[0]) == sent


async def test_its_lease_counts_from_the_last_request_that_may_have_reached_it(client: GuardedClient, foreign: Foreign) -> None:
    """The answers are lost first, and then the requests."""
    encoder = HttpEncoder(client, lambda: datetime.now(UTC), lambda *_: {}, lease=3.0, poll=0.05, seconds=1.0)
    run = await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    foreign.dumb = {"GET"}
    renewed = foreign.sessions[9].renewed
    await until(lambda: foreign.sessions[9].renewed > renewed + 1)
    foreign.deaf = True
    async with asyncio.timeout(60):
        await run.stop()
    assert not foreign.sessions[9].live


async def test_a_start_without_an_answer_leaves_nothing(client: GuardedClient, foreign: Foreign) -> None:
    encoder = HttpEncoder(client, lambda: datetime.now(UTC), lambda *_: {}, lease=60.0, poll=0.05, seconds=1.0)
    foreign.dumb = {"PUT"}
    with pytest.raises(EncoderFailed, match="cannot be reached"):
        await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    assert not foreign.sessions[9].live


async def test_a_start_that_is_cancelled_leaves_nothing(encoder: HttpEncoder, foreign: Foreign) -> None:
    foreign.dumb = {"PUT"}
    start = asyncio.create_task(encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True))
    await until(lambda: foreign.arrived.get(0))
    start.cancel()
    await asyncio.wait({start})
    assert start.cancelled()
    assert not foreign.sessions[9].live


@pytest.mark.parametrize("url", ["", "rtmp://h/x", "http://169.254.169.254/", "http://[::1"])
async def test_addresses_that_are_no_encoders(encoder: HttpEncoder, foreign: Foreign, url: str) -> None:
    plan = http_plan(foreign, url=url)
    with pytest.raises(EncoderFailed):
        await encoder.start(plan, channel="news", session=1, may_send=lambda: True)
    assert await encoder.check(plan) is not None


async def test_new_tokens_arrive_before_the_old_ones_end(client: GuardedClient, foreign: Foreign) -> None:
    """The tokens are removed from the encoder's messages, too."""
    given: list[str] = []

    def headers(url: str, session: int) -> dict[str, str]:
        given.append(f"Bearer t0ken-number-{len(given)}")
        return {"Authorization": given[-1]}

    encoder = HttpEncoder(client, lambda: datetime.now(UTC), headers, lease=2.0, poll=0.02, renew=0.05)
    run = await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    order = foreign.sessions[9].order
    await until(lambda: sum(line.startswith("PUT") for line in foreign.requests) >= 4)
    assert foreign.orders[-1]["points"][0]["headers"]["Authorization"] not in (order["points"][0]["headers"]["Authorization"], None)
    assert {**foreign.orders[-1], "points": []} == {**order, "points": []}
    foreign.response_text = (
        f'{{"state": "failed", "reason": "401 with {foreign.orders[-1]["points"][0]["headers"]["Authorization"]}"}}'
    )
    assert "t0ken" not in await run.ended()
    await run.stop()


async def test_the_encoder_ends_when_its_client_loses_its_permission(client: GuardedClient, foreign: Foreign) -> None:
    """The key of the client was revoked that had pointed the channel to its own encoder: it wrote on."""
    allowed = {"news"}

    async def permitted(channel: str) -> bool:
        return channel in allowed

    encoder = HttpEncoder(client, lambda: datetime.now(UTC), lambda *_: {}, permitted, lease=2.0, poll=0.02, renew=0.05)
    run = await encoder.start(http_plan(foreign), channel="news", session=9, may_send=lambda: True)
    allowed.clear()
    assert "no longer has a key" in await run.ended()
    await run.stop()
    assert foreign.stops
    with pytest.raises(EncoderFailed, match="no longer has a key"):
        await encoder.start(http_plan(foreign), channel="news", session=10, may_send=lambda: True)
    assert 10 not in foreign.sessions


async def test_who_names_the_host_of_a_point_gets_no_token_for_it(encoder: HttpEncoder, foreign: Foreign) -> None:
    plan = http_plan(foreign)
    plan = replace(plan, points=[replace(plan.points[0], provisioned=True), *plan.points[1:]])
    run = await encoder.start(plan, channel="news", session=9, may_send=lambda: True)
    point_headers = [point["headers"] for point in foreign.sessions[9].order["points"]]
    assert ["Authorization" in headers for headers in point_headers] == [False, *[True] * (len(point_headers) - 1)]
    await run.stop()
