"""The strategies of status checks, against servers that report a state, and against servers that do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest

from domain.channel.channel import StatusCheckStrategy
from domain.channel.points import WatchedPoint
from domain.kernel.clock import iso
from tests.support.clock import NOON
from tests.workers.health.point_server import Page, PointServer, answers, drips, hangs, smil
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.point_status.strategies import SECONDS, point_status
from workers.ports.points import PointReport, PointSilent

ALL, ARCHIVE, API, PHP, NONE, TIMESTAMP = StatusCheckStrategy
MIB = 1024 * 1024


def playlist(*, ends: datetime, after: str = "", date: str | None = None) -> str:
    began = date or iso(ends - timedelta(seconds=10))
    return (
        '#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:4,\nold.ts\n'
        f"#EXTINF:6.0,\n#EXT-X-PROGRAM-DATE-TIME:{began}\na.ts\n#EXTINF:4,\nb.ts\n{after}"
    )


def mpd(*, ends: datetime, kind: str = "dynamic", line: str | None = None) -> str:
    line = line or '<S t="2000" d="4000" r="2"/><S d="1000"/>'
    return (
        f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="{kind}" availabilityStartTime="{iso(ends - timedelta(seconds=23))}">'
        '<Period start="PT0S" duration="PT10S"/><Period><AdaptationSet><SegmentTemplate timescale="1000" '
        f'presentationTimeOffset="2000"/><Representation><SegmentTemplate><SegmentTimeline>{line}</SegmentTimeline></SegmentTemplate>'
        "</Representation></AdaptationSet></Period></MPD>"
    )


@pytest.fixture
async def server() -> AsyncIterator[PointServer]:
    async with PointServer() as listening:
        yield listening


async def asked(
    outbound: GuardedClient, point: WatchedPoint, *, key: str | None = None, first: StatusCheckStrategy | None = None
) -> PointReport:
    return await point_status(outbound, lambda: NOON)[point.strategy].ask(point, key=key, first=first)


async def silence(outbound: GuardedClient, point: WatchedPoint) -> PointSilent:
    with pytest.raises(PointSilent) as caught:
        await asked(outbound, point)
    return caught.value


def point(server: PointServer, strategy: StatusCheckStrategy = ALL, path: str = "/live.isml", **members: object) -> WatchedPoint:
    made = WatchedPoint(0, 0, "enc", "shown", strategy, url=f"{server.url}{path}")
    return replace(made, **members)  # type: ignore[arg-type]  # by name


ARCHIVED = f'<video begin="wallclock({iso(NOON - timedelta(hours=1))})" end="wallclock({iso(NOON)})"/>'
PAGES: dict[StatusCheckStrategy, dict[str, Page]] = {
    ARCHIVE: {"/live.isml/archive": answers(smil(updated=NOON))},
    API: {"/live.isml/state": answers(smil(updated=NOON))},
    PHP: {"/live.isml/status.php": answers(f'{{"state":"started","lastUpdated":"{iso(NOON)}","receivingData":true}}')},
    TIMESTAMP: {"/live.isml/.m3u8": answers(playlist(ends=NOON))},
}


@pytest.mark.parametrize("strategy", PAGES)
async def test_each_strategy_learns_the_state_the_last_time_and_a_mark(
    outbound: GuardedClient, server: PointServer, strategy: StatusCheckStrategy
) -> None:
    server.pages = PAGES[strategy]
    report = await asked(outbound, point(server, strategy))
    assert (report.strategy, report.state, report.last_updated, report.mark) == (strategy, "started", NOON, iso(NOON))
    assert report.receiving is (True if strategy is PHP else None)


@pytest.mark.parametrize("strategy", PAGES)
async def test_all_tries_them_in_order_and_names_the_first_that_succeeds(
    outbound: GuardedClient, server: PointServer, strategy: StatusCheckStrategy
) -> None:
    order = [ARCHIVE, API, PHP, TIMESTAMP]
    for later in order[order.index(strategy) :]:
        server.pages |= PAGES[later]
    assert (await asked(outbound, point(server))).strategy is strategy
    assert len(server.asked) == order.index(strategy) + 1


async def test_all_tries_the_given_strategy_first(outbound: GuardedClient, server: PointServer) -> None:
    server.pages = PAGES[ARCHIVE] | PAGES[TIMESTAMP]
    assert (await asked(outbound, point(server), first=TIMESTAMP)).strategy is TIMESTAMP
    assert (await asked(outbound, point(server), first=PHP)).strategy is ARCHIVE


async def test_none_asks_nobody(outbound: GuardedClient, server: PointServer) -> None:
    assert await asked(outbound, point(server, NONE)) == PointReport(NONE, "unknown")
    assert server.asked == []


async def test_an_archive_without_a_state_is_as_old_as_its_last_clip(outbound: GuardedClient, server: PointServer) -> None:
    server.pages["/live.isml/archive"] = answers(smil("", body=ARCHIVED))
    report = await asked(outbound, point(server, ARCHIVE))
    assert (report.state, report.last_updated) == ("started", NOON)
    server.pages["/live.isml/archive"] = answers(smil("", body=ARCHIVED.replace(iso(NOON), iso(NOON - timedelta(minutes=5)))))
    assert (await asked(outbound, point(server, ARCHIVE))).state == "stopped"


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/state"])
async def test_the_api_of_a_server_gets_its_key_and_nobody_else_does(
    outbound: GuardedClient, server: PointServer, path: str
) -> None:
    server.pages["/api/state"] = answers(smil("Idle"))
    watched = point(server, API, srva_api=f"{server.url}{path}")
    assert (await asked(outbound, watched, key="s3cret")).state == "idle"
    assert "API-KEY: s3cret\r\n" in server.heads[-1]
    await silence_of_all(outbound, replace(watched, strategy=ALL), key="s3cret")
    assert [head.split(" ")[1] for head in server.heads if "s3cret" in head] == ["/api/state", "/api/state"]


async def silence_of_all(outbound: GuardedClient, watched: WatchedPoint, *, key: str) -> None:
    """Check that every strategy except the API is tried, too."""
    for strategy in (ARCHIVE, API, PHP, TIMESTAMP):
        try:
            await asked(outbound, replace(watched, strategy=strategy), key=key)
        except PointSilent:
            assert strategy is not API


async def test_user_info_of_an_address_becomes_a_header(outbound: GuardedClient, server: PointServer) -> None:
    server.pages = PAGES[API]
    watched = point(server, API)
    await asked(outbound, replace(watched, url=watched.url.replace("http://", "http://me:p%40ss@")))
    assert "Authorization: Basic bWU6cEBzcw==\r\n" in server.heads[-1]


@pytest.mark.parametrize(
    ("page", "state", "updated", "receiving"),
    [
        ('{"STATE": "Started", "lastupdated": 1700000000, "receivingData": false}', "started", 1700000000, False),
        ('{"state": "idle", "lastUpdated": 1700000000500, "other": [1]}', "idle", 1700000000.5, None),
        ("state: started\nlastUpdated: 2031-01-02T12:00:00Z\nreceivingData: yes\n", "started", NOON.timestamp(), True),
        ("state=stopped&receivingData=0", "stopped", None, False),
    ],
)
async def test_a_status_page_is_json_or_text(
    outbound: GuardedClient, server: PointServer, page: str, state: str, updated: float | None, receiving: bool | None
) -> None:
    server.pages["/s"] = answers(page)
    report = await asked(outbound, point(server, PHP, status_url=f"{server.url}/s"))
    moment = None if updated is None else datetime.fromtimestamp(updated, UTC)
    assert (report.state, report.last_updated, report.receiving) == (state, moment, receiving)


async def test_a_status_page_tells_no_text_that_cannot_be_stored(outbound: GuardedClient, server: PointServer) -> None:
    for odd in (r'{"state": "started", "lastUpdated": "\u0000a\ud83d"}', "state=started&lastUpdated=\0a"):
        server.pages["/s"] = answers(odd)
        assert (await asked(outbound, point(server, PHP, status_url=f"{server.url}/s"))).mark == "a"


async def test_a_master_playlist_leads_to_a_playlist(outbound: GuardedClient, server: PointServer) -> None:
    server.pages = {
        "/live/a/master.m3u8": answers("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\nv/live.m3u8?x=1\n"),
        "/live/a/v/live.m3u8": answers(playlist(ends=NOON)),
    }
    assert (await asked(outbound, point(server, TIMESTAMP, "/live/a"))).last_updated == NOON


async def test_the_manifest_of_the_channel_counts_before_one_that_is_guessed(outbound: GuardedClient, server: PointServer) -> None:
    server.pages["/d.mpd"] = answers(mpd(ends=NOON))
    report = await asked(outbound, point(server, TIMESTAMP, manifests=(f"{server.url}/h.m3u8", f"{server.url}/d.mpd")))
    assert (report.state, report.last_updated) == ("started", NOON)
    assert server.asked == ["/h.m3u8", "/d.mpd"]


@pytest.mark.parametrize("minutes", [-1, 1, 60, -600])
async def test_a_manifest_that_is_old_or_of_a_wrong_clock_has_not_started(
    outbound: GuardedClient, server: PointServer, minutes: int
) -> None:
    for content in (playlist(ends=NOON + timedelta(minutes=minutes)), mpd(ends=NOON + timedelta(minutes=minutes))):
        server.pages["/live.isml/.m3u8"] = answers(content)
        assert (await asked(outbound, point(server, TIMESTAMP))).state == "stopped"


@pytest.mark.parametrize("ended", [playlist(ends=NOON, after="#EXT-X-ENDLIST\n"), mpd(ends=NOON, kind="static")])
async def test_a_manifest_that_has_ended_has_not_started(outbound: GuardedClient, server: PointServer, ended: str) -> None:
    server.pages["/live.isml/.m3u8"] = answers(ended)
    assert (await asked(outbound, point(server, TIMESTAMP))).state == "stopped"


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">' + "".join(f'<!ENTITY b{n} "{"&b;" * 10}">' for n in range(9)) + "]><smil>&b8;</smil>"
FETCHES = '<!DOCTYPE a [<!ENTITY b SYSTEM "http://127.0.0.1:1/x">]><smil>&b;</smil>'
HUGE = 10 * MIB
HOSTILE = {
    "html": answers("<html><body>state: started</body></html>", headers="content-type: text/html\r\n"),
    "bomb": answers(BOMB),
    "entity": answers(FETCHES),
    "other xml": answers('<smile xmlns="x"><meta name="state" content="started"/></smile>'),
    "no state": answers(smil("")),
    "strange state": answers(smil("started; drop")),
    "empty": answers(""),
    "binary": answers(b"\xff\xfe\x00\x01" * 100),
    "500": answers(smil(), status=500),
    "redirect inside": answers("", status=302, headers="location: http://169.254.169.254/latest/meta-data\r\n"),
    "10 MiB": answers(b"#EXTM3U\n" + b"#EXTINF:1\na\n" * (HUGE // 12)),
    "10 MiB of XML": answers(b"<smil>" + b"<a/>" * (HUGE // 4) + b"</smil>"),
    "deep JSON": answers('{"state":' * 20_000),
    "deep XML": answers("<smil>" + "<a>" * 5000),
    "no time": answers("#EXTM3U\n#EXTINF:4,\na.ts\n"),
    "time of no calendar": answers(playlist(ends=NOON, date="9999-99-99T00:00:00Z")),
    "last second": answers(playlist(ends=NOON, date="9999-12-31T23:59:59Z")),
    "open timeline": answers(mpd(ends=NOON, line='<S t="0" d="4000" r="-1"/>')),
    "long timeline": answers(mpd(ends=NOON, line='<S d="1"/>' * 40_000)),
    "many lines": answers("#EXTM3U\n#EXT-X-STREAM-INF:A=1\n" + "#\n" * 200_000),
}


@pytest.mark.parametrize("strategy", [ALL, *PAGES])
@pytest.mark.parametrize("name", HOSTILE)
async def test_what_is_no_answer_is_no_state(
    outbound: GuardedClient, server: PointServer, name: str, strategy: StatusCheckStrategy
) -> None:
    paths = ("/archive", "/state", "/status.php", "/.m3u8", "/.mpd")
    server.pages = {f"/live.isml{path}": HOSTILE[name] for path in paths}
    silent = await silence(outbound, point(server, strategy))
    assert silent.kind in ("answer", "closed", "protocol")
    assert silent.is_at_fault
    assert "127.0.0.1" not in str(silent)
    assert "isml" not in str(silent)
    assert set(server.asked) <= {f"/live.isml{path}" for path in paths}


@pytest.mark.parametrize("page", [hangs, drips])
async def test_a_server_that_keeps_us_waiting_is_given_up_once(outbound: GuardedClient, server: PointServer, page: Page) -> None:
    server.pages = {f"/live.isml/{name}": page for name in ("archive", "state", "status.php", ".m3u8", ".mpd")}
    begun = monotonic()
    silent = await silence(outbound, point(server))
    assert silent.kind == "timeout"
    assert SECONDS <= monotonic() - begun < 2 * SECONDS
    assert len(server.asked) == 1


async def test_many_points_are_asked_at_once(outbound: GuardedClient, server: PointServer) -> None:
    server.pages = {"/live.isml/state": hangs}
    begun = monotonic()
    ends = await asyncio.gather(*(asked(outbound, point(server, API)) for _ in range(50)), return_exceptions=True)
    assert all(isinstance(end, PointSilent) for end in ends)
    assert monotonic() - begun < 3 * SECONDS


@pytest.mark.parametrize(
    ("url", "kind", "to_blame"),
    [
        ("http://127.0.0.1:1/live.isml", "connect", True),
        ("http://10.0.0.1/live.isml", "refused", False),
        ("rtmp://origin.example/live", "unaskable", False),
        ("http://{dns}/live.isml", "unaskable", False),
        ("http://[/", "refused", False),
    ],
)
async def test_only_what_the_point_does_counts_against_it(outbound: GuardedClient, url: str, kind: str, to_blame: bool) -> None:
    silent = await silence(outbound, WatchedPoint(0, 0, "", "", ALL, url=url))
    assert (silent.kind, silent.is_at_fault) == (kind, to_blame)
