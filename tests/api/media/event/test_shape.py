"""Event answers by hand (`shape.py`), as documented (`documented.py`), and as document 2 lists them: one and the same."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import httpx
import jsonschema_rs
import pytest

from api.kernel.wire import Wire, wire_names
from api.media.event.documented import (
    EventCollectionWire,
    EventWire,
    IsUniqueWire,
    PublishingPointUrlWire,
    RequestedStreamTimeWire,
    StreamUrlWire,
    VideoWire,
)
from api.media.event.shape import NOTHING_LINKED, shaped
from domain.media_event.playback import (
    ChannelConfiguration,
    Encoder,
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    PlayoutProfile,
    PublishingPoint,
    RampServer,
    StreamAddresses,
    StreamPlace,
    StreamProtocol,
    video,
)
from domain.media_event.values import EventDetails, EventState
from projections.media_event.queries import EventRow
from tests.api.asking import UNKNOWN, add, add_room
from tests.conftest import NOON


def words(text: str) -> list[str]:
    return text.split()


EVENT = words("""
id title refId externalId contentId description
channelId channel flowId flow remixflowId remixflow archiverflowId archiverflow infrastructureProfileId infrastructureProfile
eventTypeId eventType roomId room channelProfileId customPropertyConfigurationId eventTypeColour
state stateString mp4State mp4StateString
autoStart autoEnd autoPublish autoStartPublications autoProvisionInfrastructure autoTerminateInfrastructure embededVodTimestamps
capturingLive2Vod externalUpdateAllowed vodDrm remixDrm
displayStart displayEnd scheduledStart scheduledEnd scheduledChannelStart scheduledChannelEnd actualLiveStart actualLiveEnd
publishedStart publishedEnd instantVodStart instantVodEnd scheduledProvisionAt scheduledTerminateAt captureVodStart captureVodEnd
dateCreated dateModified dateDeleted archiverStart archiverEnd
drmJson drmData remixDrmJson remixDrmData
additionalStreamingOptions dvrLength dvrLengthUrlParam maxBitrateUrlParam minBitrateUrlParam taskEngineJson
thumbnail thumbnailUrl documentUrl tagUrl customProperties categories category categoryId provisionInfo archiverCaptureId
archiverProfileId video
""")
VIDEO = words("""
webPageUrl playerUrl embedCode scriptablePlayerUrl scriptableEmbedCode requestedStreamTime requestedAudioOnly requestedAutoStart
liveUrls currentStateUrls livePlayoutProfileUrls vodUrls archiverCapturePublishingPointUrls remixUrls archiverUrls
privateMp4Url publicMp4Url websiteplayerUrl websiteEmbedCode scriptableWebsitePlayerUrl scriptableWebsiteEmbedCode
publishingPointUrls rampServers
""")
STREAM_TIME = words("""
inPointOriginalString outPointOriginalString inPointDateTime outPointDateTime inPointTimeSpan outPointTimeSpan
inPointHasValue outPointHasValue inPointIsAbsoluteDateTime outPointIsAbsoluteDateTime
""")
KEY = UUID(UNKNOWN)
STREAM_URL = words("streamProtocol streamProtocolString url absoluteUrlWithPathNoQuery streamSource streamSourceString")
PUBLISHING_POINT = words("url state hasStarted lastUpdated receivingData")


def names_of(model: type[Wire]) -> list[str]:
    return [wire_names(model, name)[0] for name in model.model_fields]


def filled() -> dict[str, Any]:
    """An Event with something in every corner of its Video object."""
    streams = (StreamAddresses(StreamProtocol.HLS, {StreamPlace.CDN_PRIMARY: "https://cdn/live.m3u8"}),)
    points = (PublishingPoint("http://origin/live.isml", "enc-1", 0, 0),)
    channel = ChannelConfiguration(
        (Encoder(0, "enc-1", streams, points),), (PlayoutProfile(UNKNOWN, "p", streams),), (RampServer({"serverAddress": "x"}),)
    )
    row = EventRow(KEY, 1, EventDetails(), NOON, NOON)
    playable = PlayableEvent(KEY, str(KEY), EventState.LIVE_PUBLISHED)
    shown = video(playable, channel=channel, flow=None, request=PlaybackRequest(), player=PlayerAddresses("https://player"))
    return shaped(row, NOTHING_LINKED, base_url="http://x", video=shown)


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        (EventWire, EVENT),
        (VideoWire, VIDEO),
        (RequestedStreamTimeWire, STREAM_TIME),
        (StreamUrlWire, STREAM_URL),
        (PublishingPointUrlWire, PUBLISHING_POINT),
        (EventCollectionWire, ["pageSize", "totalCount", "results"]),
        (IsUniqueWire, ["IsUnique", "Value", "ValueType"]),
    ],
)
def test_the_documentation_has_the_keys_of_document_2_and_no_others(model: type[Wire], listed: list[str]) -> None:
    assert sorted(names_of(model)) == sorted(listed)


def test_the_answer_has_the_documented_keys_and_no_others() -> None:
    shown = filled()
    assert list(shown) == names_of(EventWire)
    assert sorted(shown["video"]) == sorted(names_of(VideoWire))
    assert list(shown["video"]["requestedStreamTime"]) == names_of(RequestedStreamTimeWire)
    for name in ("liveUrls", "currentStateUrls"):
        assert [list(url) for url in shown["video"][name]] == [names_of(StreamUrlWire)]
    assert [list(url) for url in shown["video"]["livePlayoutProfileUrls"][UNKNOWN]] == [names_of(StreamUrlWire)]
    assert [list(point) for point in shown["video"]["publishingPointUrls"]] == [names_of(PublishingPointUrlWire)]


def test_the_answer_is_what_its_model_says() -> None:
    shown = filled()
    written = EventWire.model_validate(shown).model_dump(mode="json", by_alias=True)
    assert written == shown


async def test_answers_over_http_fit_the_openapi_schema(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    shown = await add(http, Title="Final", RoomId=await add_room(http), EventState=2, DrmJson='{"drm_data": [1]}')
    for path, template in [
        (f"/api/event/{shown['id']}?processVideo=true", "/api/event/{id}"),
        (f"/api/event/{shown['id']}", "/api/event/{id}"),
        ("/api/event/", "/api/event/"),
        ("/api/room/", "/api/room/"),
        ("/api/client/", "/api/client/"),
        ("/api/audit/events/", "/api/audit/events/"),
        ("/api/audit/verify", "/api/audit/verify"),
        (f"/api/audit/event/{shown['id']}/state", "/api/audit/{aggregate}/{id}/state"),
    ]:
        schema = document["paths"][template]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        validator = jsonschema_rs.validator_for({**schema, "components": document["components"]})
        assert [str(error) for error in validator.iter_errors((await http.get(path)).json())] == [], path


async def test_every_date_is_utc_with_milliseconds(http: httpx.AsyncClient) -> None:
    shown = await add(http, EventState=2, ScheduledStart="2031-01-01")
    dates = [value for value in shown.values() if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value)]
    assert len(dates) >= 6
    assert [date for date in dates if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", date)] == []
