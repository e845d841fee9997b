"""Media Events as answers show them: document 2, "Event object" and "Video object", key by key as it spells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from api.kernel.answer import iso
from api.media.category.shape import category_object, property_object
from domain.media_event.links import Link
from domain.media_event.playback import StreamUrl, Video
from domain.media_event.stream_point import RequestedStreamTime
from projections.media_event.queries import EventRow
from projections.records.queries import RecordRow


@dataclass(frozen=True, slots=True)
class Linked:
    """What Events point at, as it stands, and the custom properties of their categories, by the category's id."""

    records: Mapping[Link, RecordRow] = field(default_factory=dict)
    properties: Mapping[str, Sequence[RecordRow]] = field(default_factory=dict)


NOTHING_LINKED = Linked()


def shaped(row: EventRow, linked: Linked, *, base_url: str, video: Video | None = None) -> dict[str, Any]:
    """The Event object. Strings without a source are "", display names of absent links null."""
    details = row.details
    key = str(row.id)

    def name(kind: str, link: UUID | None) -> str | None:
        found = linked.records.get((kind, str(link))) if link is not None else None
        return found.details.name if found is not None else None

    event_type = linked.records.get(("event_type", str(details.event_type_id))) if details.event_type_id is not None else None
    categories = [found for one in details.category_ids if (found := linked.records.get(("category", str(one))))]
    properties = {one.id: linked.properties.get(one.id, ()) for one in categories}
    return {
        "id": key,
        "title": details.title or "",
        "refId": details.ref_id or "",
        "externalId": details.external_id or "",
        "contentId": key,
        "description": details.description,
        "channelId": details.channel_id,
        "channel": name("channel", details.channel_id),
        "flowId": details.flow_id,
        "flow": name("flow", details.flow_id),
        "remixflowId": details.remixflow_id,
        "remixflow": name("flow", details.remixflow_id),
        "archiverflowId": details.archiverflow_id,
        "archiverflow": name("flow", details.archiverflow_id),
        "infrastructureProfileId": details.infrastructure_profile_id,
        "infrastructureProfile": name("infrastructure_profile", details.infrastructure_profile_id),
        "eventTypeId": details.event_type_id,
        "eventType": event_type.details.name if event_type is not None else None,
        "roomId": details.room_id,
        "room": name("room", details.room_id),
        "channelProfileId": None,
        "customPropertyConfigurationId": "",
        "eventTypeColour": event_type.details.colour if event_type is not None else None,
        "state": int(details.state),
        "stateString": details.state.name,
        "mp4State": int(details.mp4_state),
        "mp4StateString": details.mp4_state.name,
        "autoStart": details.auto_start,
        "autoEnd": details.auto_end,
        "autoPublish": details.auto_publish,
        "autoStartPublications": details.auto_start_publications,
        "autoProvisionInfrastructure": details.auto_provision_infrastructure,
        "autoTerminateInfrastructure": details.auto_terminate_infrastructure,
        "embededVodTimestamps": False,
        "capturingLive2Vod": False,
        "externalUpdateAllowed": False,
        "vodDrm": details.vod_drm,
        "remixDrm": False,
        **_times(row),
        "drmJson": details.drm_json or "",
        "drmData": _drm_data(details.drm_json),
        "remixDrmJson": "",
        "remixDrmData": None,
        "additionalStreamingOptions": details.additional_streaming_options or "",
        "dvrLength": details.dvr_length or 0,
        "dvrLengthUrlParam": details.dvr_length or 0,
        "maxBitrateUrlParam": details.max_bitrate or 0,
        "minBitrateUrlParam": details.min_bitrate or 0,
        "taskEngineJson": details.task_engine_json or "",
        "thumbnail": details.thumbnail or "",
        "thumbnailUrl": "",
        "documentUrl": f"{base_url}/api/document/event/{key}",
        "tagUrl": f"{base_url}/api/tag/event/{key}",
        "customProperties": [property_object(one) for found in properties.values() for one in found],
        "categories": [category_object(one, properties[one.id]) for one in categories],
        "category": categories[0].details.label if categories else None,
        "categoryId": details.category_ids[0] if details.category_ids else None,
        "provisionInfo": None,
        "archiverCaptureId": "",
        "archiverProfileId": "",
        "video": None if video is None else _video(video),
    }


def _times(row: EventRow) -> dict[str, str | None]:
    details = row.details
    return {
        "displayStart": _moment(details.display_start),
        "displayEnd": _moment(details.display_end),
        "scheduledStart": iso(details.scheduled_start) if details.scheduled_start is not None else None,
        "scheduledEnd": iso(details.scheduled_end) if details.scheduled_end is not None else None,
        "scheduledChannelStart": iso(details.scheduled_channel_start) if details.scheduled_channel_start is not None else None,
        "scheduledChannelEnd": iso(details.scheduled_channel_end) if details.scheduled_channel_end is not None else None,
        "actualLiveStart": iso(details.actual_live_start) if details.actual_live_start is not None else None,
        "actualLiveEnd": iso(details.actual_live_end) if details.actual_live_end is not None else None,
        "publishedStart": iso(details.published_start) if details.published_start is not None else None,
        "publishedEnd": iso(details.published_end) if details.published_end is not None else None,
        "instantVodStart": iso(details.instant_vod_start) if details.instant_vod_start is not None else None,
        "instantVodEnd": iso(details.instant_vod_end) if details.instant_vod_end is not None else None,
        "scheduledProvisionAt": iso(details.scheduled_provision_at) if details.scheduled_provision_at is not None else None,
        "scheduledTerminateAt": iso(details.scheduled_terminate_at) if details.scheduled_terminate_at is not None else None,
        "captureVodStart": None,
        "captureVodEnd": None,
        "dateCreated": iso(row.date_created),
        "dateModified": iso(row.date_modified),
        "dateDeleted": iso(details.date_deleted) if details.date_deleted is not None else None,
        "archiverStart": iso(details.archiver_start) if details.archiver_start is not None else None,
        "archiverEnd": iso(details.archiver_end) if details.archiver_end is not None else None,
    }


def _moment(value: datetime | None) -> str | None:
    return iso(value) if value is not None else None


def _drm_data(drm_json: str | None) -> Any:
    """decisions.md, Events: the parsed `drm_data`, null when there is none."""
    if drm_json is None:
        return None
    try:
        document = from_json(drm_json, allow_inf_nan=False)
    except ValueError:
        return None
    return document.get("drm_data") if isinstance(document, dict) else None


def _video(video: Video) -> dict[str, Any]:
    return {
        "webPageUrl": video.web_page_url,
        "playerUrl": video.player_url,
        "embedCode": video.embed_code,
        "scriptablePlayerUrl": video.scriptable_player_url,
        "scriptableEmbedCode": video.scriptable_embed_code,
        "requestedStreamTime": _stream_time(video.requested_stream_time),
        "requestedAudioOnly": video.requested_audio_only,
        "requestedAutoStart": video.requested_auto_start,
        "liveUrls": _streams(video.live_urls),
        "currentStateUrls": _streams(video.current_state_urls),
        "livePlayoutProfileUrls": {key: _streams(urls) for key, urls in video.live_playout_profile_urls.items()},
        "vodUrls": _streams(video.vod_urls),
        "archiverCapturePublishingPointUrls": _streams(video.archiver_capture_publishing_point_urls),
        "remixUrls": _streams(video.remix_urls),
        "archiverUrls": _streams(video.archiver_urls),
        "privateMp4Url": video.private_mp4_url,
        "publicMp4Url": video.public_mp4_url,
        "websiteplayerUrl": video.website_player_url,
        "websiteEmbedCode": video.website_embed_code,
        "scriptableWebsitePlayerUrl": video.scriptable_website_player_url,
        "scriptableWebsiteEmbedCode": video.scriptable_website_embed_code,
        "publishingPointUrls": [
            {
                "url": point.url,
                "state": point.state,
                "hasStarted": point.has_started,
                "lastUpdated": _moment(point.last_updated),
                "receivingData": point.receiving_data,
            }
            for point in video.publishing_point_urls
        ],
        "rampServers": [dict(server.settings) for server in video.ramp_servers],
    }


def _streams(urls: Sequence[StreamUrl]) -> list[dict[str, Any]]:
    return [
        {
            "streamProtocol": int(url.protocol),
            "streamProtocolString": url.protocol.name,
            "url": url.url,
            "absoluteUrlWithPathNoQuery": url.absolute_url_with_path_no_query,
            "streamSource": url.source.number,
            "streamSourceString": url.source.name,
        }
        for url in urls
    ]


def _stream_time(asked: RequestedStreamTime) -> dict[str, Any]:
    begin, end = asked.in_point, asked.out_point
    return {
        "inPointOriginalString": begin.original,
        "outPointOriginalString": end.original,
        "inPointDateTime": _moment(begin.date_time),
        "outPointDateTime": _moment(end.date_time),
        "inPointTimeSpan": begin.time_span,
        "outPointTimeSpan": end.time_span,
        "inPointHasValue": begin.has_value,
        "outPointHasValue": end.has_value,
        "inPointIsAbsoluteDateTime": begin.is_absolute,
        "outPointIsAbsoluteDateTime": end.is_absolute,
    }
