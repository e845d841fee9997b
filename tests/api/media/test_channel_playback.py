"""The addresses that viewers get from a channel and a flow, for one Event, live and then on demand. docs/reference/playback.md."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.api.asking import add, add_channel, add_flow, fields_of, new_id
from tests.domain.channel.texts_given import FLOW

PROFILE = "26a0228e-f1b2-497d-9cb2-246ffc4d3224"
RAMP = {"serverAddress": "http://ramp", "apiKey": "k", "location": "north", "proxyPass": "/p", "proxyPassEmpty": False}
CHANNEL: dict[str, Any] = {
    "encoders": [
        {
            "name": "enc-1",
            "streamingServer": {
                "type": "SRVA",
                "streamingServerSpecific": {
                    "primaryPublishingPoint": {"publishingPointUrl": "http://o1/live.isml", "srvaApiKey": "k"},
                    "secondaryPublishingPoint": {"publishingPointUrl": "http://o2/live.isml"},
                },
            },
            "outputUrls": [
                {"streamProtocol": "HLS", "liveCdnPrimaryUrl": "https://cdn/1.m3u8", "liveOriginSecondaryUrl": "http://o2/1.m3u8"}
            ],
        },
        {
            "name": "enc-2",
            "streamingServer": {
                "streamingServerSpecific": {"primaryPublishingPoint": {"publishingPointUrl": "http://o3/live.isml"}}
            },
            "outputUrls": [{"streamProtocol": "DASH", "liveCdnPrimaryUrl": "https://cdn/2.mpd?a=1"}],
        },
    ],
    "playoutProfiles": [
        {"id": PROFILE, "name": "low", "outputUrls": [{"streamProtocol": "HLS", "liveCdnPrimaryUrl": "https://cdn/low.m3u8"}]}
    ],
    "rampServers": [{**RAMP, "playerAddress": "https://watch.example/app"}, {**RAMP, "playerAddress": "https://other.example"}],
}
STREAM = {
    "streamProtocol": "HLS",
    "vodCdnPrimaryUrl": "https://cdn/vod/{contentId}/index.m3u8",
    "vodOriginPrimaryUrl": "http://o1/{contentId}.ism/.m3u8",
    "vodPrivateUrl": "http://inside/{contentId}.m3u8",
}
VOD = {"flows": [{**FLOW["flows"][0], "outputUrls": [STREAM], "storageUrlPublic": "https://files.example/media/"}]}
Video = dict[str, Any]


async def watched(http: httpx.AsyncClient, key: str, **asked: str) -> Video:
    answer = await http.get(f"/api/event/{key}", params={"processVideo": "true", **asked})
    assert answer.status_code == 200, answer.text
    shown: Video = answer.json()["video"]
    return shown


async def on_air(http: httpx.AsyncClient, **fields: Any) -> str:
    """An Event that is live and published, on the channel and with the flow above."""
    links = {"ChannelId": await add_channel(http, configurationJson=json.dumps(CHANNEL)), "FlowId": await add_flow(http, "f", VOD)}
    event = await add(http, Title='The "Final"', **links, **fields)
    answer = await http.put(f"/api/event/state/{event['id']}", json={"state": "LIVE_PUBLISHED"})
    assert answer.status_code == 200, answer.text
    return str(event["id"])


def urls(streams: list[Video]) -> list[str]:
    return [stream["url"] for stream in streams]


async def test_an_event_that_is_live_shows_its_channel(http: httpx.AsyncClient) -> None:
    key = await on_air(http, DvrLength=30)
    video = await watched(http, key)
    assert [
        (live_url["streamSourceString"], live_url["streamSource"], live_url["streamProtocolString"], live_url["url"])
        for live_url in video["liveUrls"]
    ] == [
        ("CDN_PRIMARY_INDEX_0", 0, "HLS", "https://cdn/1.m3u8?dvr_window_length=30"),
        ("ORIGIN_SECONDARY_INDEX_0", 3, "HLS", "http://o2/1.m3u8?dvr_window_length=30"),
        ("CDN_PRIMARY_INDEX_1", 10, "DASH", "https://cdn/2.mpd?a=1&dvr_window_length=30"),
    ]
    assert video["liveUrls"][2]["absoluteUrlWithPathNoQuery"] == "https://cdn/2.mpd"
    assert video["currentStateUrls"] == video["liveUrls"]
    assert urls(video["livePlayoutProfileUrls"][PROFILE]) == ["https://cdn/low.m3u8?dvr_window_length=30"]
    assert urls(video["publishingPointUrls"]) == ["http://o1/live.isml", "http://o2/live.isml", "http://o3/live.isml"]
    assert video["rampServers"] == [{**ramp_server, "apiKey": None} for ramp_server in CHANNEL["rampServers"]]
    assert (video["vodUrls"], video["remixUrls"], video["archiverUrls"], video["publicMp4Url"]) == ([], [], [], "")


async def test_the_player_lies_where_the_first_ramp_server_says(http: httpx.AsyncClient) -> None:
    key = await on_air(http)
    video = await watched(http, key, autoStart="true")
    src = "src=https://cdn/1.m3u8&autoStart=true"
    assert video["webPageUrl"] == f"https://watch.example/app/event/{key}"
    assert video["playerUrl"] == f"https://watch.example/app/player/{key}?{src}"
    assert video["scriptablePlayerUrl"] == f"https://watch.example/app/player/{key}?{src}&scriptable=true"
    assert video["websiteplayerUrl"] == f"https://watch.example/app/website-player/{key}?{src}"
    assert video["scriptableWebsitePlayerUrl"] == f"https://watch.example/app/website-player/{key}?{src}&scriptable=true"
    for code in ("embedCode", "scriptableEmbedCode", "websiteEmbedCode", "scriptableWebsiteEmbedCode"):
        assert video[code].startswith('<iframe src="https://watch.example/app/')
        assert 'title="The &quot;Final&quot;"' in video[code]
        assert "autoStart=true" in video[code]
    assert video["requestedAutoStart"] is True


async def test_in_out_audio_and_source_shape_the_urls(http: httpx.AsyncClient) -> None:
    key = await on_air(http)
    asked = {"in": "2031-01-02T13:00:00+01:00", "out": "2031-01-02T12:30:00Z", "audioOnly": "true", "streamSource": "10"}
    video = await watched(http, key, **asked)
    assert urls(video["liveUrls"]) == [
        "https://cdn/2.mpd?a=1&vbegin=2031-01-02T12:00:00.000Z&vend=2031-01-02T12:30:00.000Z&filter=type%3D%3D%22audio%22"
    ]
    assert video["requestedAudioOnly"] is True
    stream_time = video["requestedStreamTime"]
    assert (stream_time["inPointOriginalString"], stream_time["inPointDateTime"]) == (asked["in"], "2031-01-02T12:00:00.000Z")
    assert (stream_time["outPointHasValue"], stream_time["outPointIsAbsoluteDateTime"]) == (True, True)
    assert fields_of(await http.get(f"/api/event/{key}?in=noon")) == ["in"]


async def test_a_playout_profile_is_followed_and_the_main_source_serves_where_there_is_none(http: httpx.AsyncClient) -> None:
    key = await on_air(http)
    main = await watched(http, key)
    low = await watched(http, key, livePlayoutProfileId=PROFILE.upper())
    assert (urls(low["currentStateUrls"]), low["liveUrls"]) == (["https://cdn/low.m3u8"], main["liveUrls"])
    assert low["playerUrl"].endswith("?src=https://cdn/low.m3u8")
    other = await watched(http, key, livePlayoutProfileId=new_id())
    assert (other["currentStateUrls"], other["embedCode"]) == (main["liveUrls"], main["embedCode"])


async def test_what_is_not_published_is_seen_on_request_only(http: httpx.AsyncClient) -> None:
    key = await on_air(http)
    await http.put(f"/api/event/state/{key}", json={"state": "LIVE_UNPUBLISHED"})
    hidden = await watched(http, key)
    assert (hidden["liveUrls"], hidden["livePlayoutProfileUrls"]) == ([], {})
    assert len((await watched(http, key, viewUnpublished="true"))["liveUrls"]) == 3


async def test_the_same_event_on_demand_shows_its_flow(http: httpx.AsyncClient) -> None:
    key = await on_air(http, DvrLength=30)
    await http.put(f"/api/event/state/{key}", json={"state": "VOD_PUBLIC"})
    video = await watched(http, key, **{"in": "00:01:00"})
    assert urls(video["vodUrls"]) == [
        f"https://cdn/vod/{key}/index.m3u8?vbegin=00:01:00",
        f"http://o1/{key}.ism/.m3u8?vbegin=00:01:00",
    ]
    assert video["currentStateUrls"] == video["vodUrls"]
    assert (video["liveUrls"], video["livePlayoutProfileUrls"], video["publicMp4Url"]) == ([], {}, "")

    task = {"Id": key, "TaskEngineJson": "{}", "Mp4State": "AVAILABLE"}
    assert (await http.post("/api/event/flow/add/", json=task)).json()["mp4State"] == 1
    video = await watched(http, key)
    assert video["publicMp4Url"] == f"https://files.example/media/{key}/{key}.mp4"
    assert video["privateMp4Url"] == f"http://storage.inside/{key}/{key}.mp4"

    await http.put(f"/api/event/flow/protection/{key}", json={"Protection": "VOD_PRIVATE"})
    assert urls((await watched(http, key))["vodUrls"])[0] == f"http://inside/{key}.m3u8"


async def test_a_thumbnail_is_an_address_or_lies_in_the_storage_of_the_flow(http: httpx.AsyncClient) -> None:
    flow = await add_flow(http, "f", VOD)
    bare = await add_flow(http, "g", {"flows": [{**FLOW["flows"][0], "storageUrlPublic": ""}]})
    for fields, url in (
        ({"FlowId": flow, "Thumbnail": "stills/one two.jpg"}, "https://files.example/media/{key}/stills/one%20two.jpg"),
        ({"FlowId": flow, "Thumbnail": "HTTPS://images.example/a b.png?x=1"}, "HTTPS://images.example/a b.png?x=1"),
        ({"FlowId": flow}, ""),
        ({"FlowId": bare, "Thumbnail": "a.jpg"}, ""),
        ({"Thumbnail": "a.jpg"}, ""),
        ({"Thumbnail": "http://images.example/a.png"}, "http://images.example/a.png"),
        (
            {"FlowId": bare, "ArchiverflowId": flow, "EventState": "ARCHIVER_PUBLIC", "Thumbnail": "a.jpg"},
            "https://files.example/media/{key}/a.jpg",
        ),
    ):
        added = await add(http, **fields)
        key, wanted = added["id"], url.format(key=added["id"])
        assert added["thumbnailUrl"] == wanted, fields
        assert (await http.get(f"/api/event/{key}")).json()["thumbnailUrl"] == wanted
        assert (await http.get(f"/api/audit/event/{key}/state")).json()["state"]["thumbnailUrl"] == wanted
        listed = (await http.get("/api/event/", params={"pageSize": 100})).json()["results"]
        assert [record["thumbnailUrl"] for record in listed if record["id"] == key] == [wanted]


async def test_a_changed_channel_shows_at_once_in_every_event(http: httpx.AsyncClient) -> None:
    key = await on_air(http)
    channel = (await http.get(f"/api/event/{key}")).json()["channelId"]
    text = json.dumps({"encoders": [{"outputUrls": [{"streamProtocol": 1, "liveCdnPrimaryUrl": "https://new"}]}]})
    await http.put(f"/api/channel/{channel}", json={"configurationJson": text})
    video = await watched(http, key)
    assert urls(video["liveUrls"]) == ["https://new"]
    assert (video["rampServers"], video["playerUrl"], video["embedCode"]) == ([], "", "")
    assert (await http.get(f"/api/event/{key}")).json()["video"] is None
