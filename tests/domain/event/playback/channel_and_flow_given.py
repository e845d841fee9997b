"""A channel and a flow with all members, and an Event that plays from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from uuid import UUID

from domain.event.playback import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    StreamUrl,
    Video,
    channel_configuration,
    flow_configuration,
    video,
)

EVENT_ID = UUID("346eb986-1248-4391-9ebc-c1f35bb27cd8")
PROFILE_ID = UUID("26a0228e-f1b2-497d-9cb2-246ffc4d3224")
BASE = "https://watch.example/app/"
ARRAYS = ("live_urls", "vod_urls", "remix_urls", "archiver_urls")

CHANNEL: dict[str, Any] = {
    "encoders": [
        {
            "name": "enc-1",
            "streamingServer": {
                "streamingServerSpecific": {
                    "primaryPublishingPoint": {"publishingPointUrl": "http://o1/live.isml", "srvaApiKey": "s3cret"},
                    "secondaryPublishingPoint": {"publishingPointUrl": "http://o2/live.isml"},
                }
            },
            "outputUrls": [
                {
                    "streamProtocol": "HLS",
                    "liveOriginPrimaryUrl": "http://o1/live.isml/.m3u8",
                    "liveCdnPrimaryUrl": "https://cdn1/live.m3u8",
                    "liveCdnSecondaryUrl": "https://cdn2/live.m3u8",
                    "liveOriginSecondaryUrl": "http://o2/live.isml/.m3u8",
                },
                {"streamProtocol": "DASH", "liveCdnPrimaryUrl": "https://cdn1/live.mpd"},
            ],
        },
        {"name": "enc-2", "outputUrls": [{"streamProtocol": "HLSe", "liveCdnPrimaryUrl": "https://cdn1/b.m3u8"}]},
    ],
    "playoutProfiles": [
        {
            "id": str(PROFILE_ID),
            "name": "low latency",
            "outputUrls": [{"streamProtocol": "HLS", "liveCdnPrimaryUrl": "https://cdn1/ll.m3u8"}],
        },
        {"id": str(PROFILE_ID), "outputUrls": [{"streamProtocol": "HLS", "liveCdnPrimaryUrl": "https://twin"}]},
        {"name": "without id", "outputUrls": []},
    ],
    "rampServers": [{"serverAddress": "ramp-1", "apiKey": "s3cret", "location": "NL", "proxyPassEmpty": True}],
}
FLOW: dict[str, Any] = {
    "flows": [
        {
            "storageUrlPublic": "https://files.example/public/",
            "storageUrlPrivate": "http://nas/media?sig=1",
            "outputUrls": [
                {
                    "streamProtocol": "hss",
                    "vodCdnPrimaryUrl": "https://cdn/{contentId}/{CONTENTID}.ism/Manifest",
                    "vodOriginPrimaryUrl": "http://o/vod.ism/Manifest",
                    "vodPrivateUrl": "http://inside/vod.ism/Manifest",
                }
            ],
        },
        {"outputUrls": [{"streamProtocol": "HLS", "vodCdnPrimaryUrl": "https://second-flow"}]},
    ]
}


def play(
    state: int = 2, *, channel: object = CHANNEL, flow: object = FLOW, base: str = BASE, event: Any = None, **request: Any
) -> Video:
    return video(
        PlayableEvent(EVENT_ID, str(EVENT_ID), state, **(event or {})),
        channel=channel_configuration(json.dumps(channel)),
        flow=flow_configuration(json.dumps(flow)),
        request=PlaybackRequest(**request),
        player=PlayerAddresses(base),
    )


def live_at(url: str, **options: Any) -> Video:
    """The Video object of an Event whose channel has only this live URL."""
    stream = {"streamProtocol": "HLS", "liveCdnPrimaryUrl": url}
    return play(channel={"encoders": [{"outputUrls": [stream]}]}, **options)


def urls(streams: Sequence[StreamUrl]) -> list[str]:
    return [stream.url for stream in streams]


class Frame(HTMLParser):
    def __init__(self, code: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(code)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data
