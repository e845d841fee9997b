"""The members of an Event and its Video object in a response, their order, and the API description of them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import jsonschema_rs
import pytest
from pydantic_core import from_json

from api.http.response import encode
from api.kernel.wire import Wire, wire_names
from api.media.event.responses import NO_LINKS, Event, EventCollection, ExternalIdCheck, event_json
from api.media.event.video import PublishingPointUrl, RequestedStreamTime, StreamUrl, Video
from domain.event import playback
from domain.event.playback import (
    ChannelConfiguration,
    PlayableEvent,
    PlaybackEncoder,
    PlaybackProfile,
    PlaybackRequest,
    PlaybackServer,
    PlayerAddresses,
    StreamAddresses,
    StreamPlace,
    StreamProtocol,
    video,
)
from domain.event.ports import EventRow
from domain.event.values import EventDetails, EventState, Mp4State
from domain.provision.values import ProvisionState, ProvisionSummary
from projections.event.shown import ShownEvent, values_of
from tests.api.asking import UNKNOWN, add, add_room
from tests.support.clock import NOON


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


def full_details() -> EventDetails:
    """Return details with a value in every field: texts with characters that JSON escapes, and times with milliseconds."""
    of_type: dict[Any, Any] = {
        str | None: 'é"\\/\x01\x1f\x7f\u2028\n\U0001f3a5',
        bool: True,
        int | None: 12,
        datetime | None: NOON.replace(microsecond=7_000),
        UUID | None: KEY,
        tuple[UUID, ...]: (KEY,),
    }
    values = {name: of_type.get(field.annotation) for name, field in EventDetails.model_fields.items()}
    provision = ProvisionSummary(state=ProvisionState.PROVISIONED_PARTIAL, infrastructure_key="k", provisioned_at=NOON)
    document = '{"drm_data": {"b": [1.50, null, "\\u0001é"], "a": {}}}'
    states = {"state": EventState.VOD_PUBLIC, "mp4_state": Mp4State.AVAILABLE}
    return EventDetails(**{**values, **states, "provision": provision, "drm_json": document})


def full_event() -> bytes:
    """An Event with a value in every field of its own, and an entry in every list of its Video object."""
    streams = (StreamAddresses(StreamProtocol.HLS, {StreamPlace.CDN_PRIMARY: "https://cdn/live.m3u8"}),)
    points = (playback.PublishingPointUrl("http://origin/live.isml"),)
    channel = ChannelConfiguration(
        (PlaybackEncoder(0, "enc-1", streams),),
        (PlaybackProfile(UNKNOWN, "p", streams),),
        (PlaybackServer({"serverAddress": "x"}),),
    )
    row = EventRow(KEY, 1, full_details(), NOON, NOON)
    playable = PlayableEvent(KEY, str(KEY), EventState.LIVE_PUBLISHED)
    player = PlayerAddresses("https://player")
    made = video(playable, channel=channel, flow=None, request=PlaybackRequest(), player=player, points=points)
    return event_json(values_of(ShownEvent.of(row).lines), NO_LINKS, base_url="http://x", video=Video.of(made))


@pytest.mark.parametrize(
    ("model", "members"),
    [
        (Event, EVENT),
        (Video, VIDEO),
        (RequestedStreamTime, STREAM_TIME),
        (StreamUrl, STREAM_URL),
        (PublishingPointUrl, PUBLISHING_POINT),
        (EventCollection, ["pageSize", "totalCount", "results"]),
        (ExternalIdCheck, ["IsUnique", "Value", "ValueType"]),
    ],
)
def test_each_model_has_these_members_in_this_order(model: type[Wire], members: list[str]) -> None:
    """Clients rely on these members. Other members may be added."""
    assert [name for name in names_of(model) if name in members] == members


def test_a_response_has_all_members_in_the_order_of_the_model() -> None:
    event: dict[str, Any] = from_json(full_event())
    assert list(event) == names_of(Event)
    assert list(event["video"]) == names_of(Video)
    assert list(event["video"]["requestedStreamTime"]) == names_of(RequestedStreamTime)
    for name in ("liveUrls", "currentStateUrls"):
        assert [list(url) for url in event["video"][name]] == [names_of(StreamUrl)]
    assert [list(url) for url in event["video"]["livePlayoutProfileUrls"][UNKNOWN]] == [names_of(StreamUrl)]
    assert [list(point) for point in event["video"]["publishingPointUrls"]] == [names_of(PublishingPointUrl)]


def test_a_response_is_valid_for_its_model() -> None:
    """Responses are constructed without validation."""
    written = full_event()
    assert encode(Event.model_validate(from_json(written))) == written


async def test_responses_over_http_fit_the_openapi_schema(http: httpx.AsyncClient) -> None:
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
