"""Texts of the API description that belong to no single route: an introduction, tags and path parameters."""

from __future__ import annotations

from typing import Any, Final

from api.http.openapi import ApiDescription
from api.kernel.browser_sessions import COOKIE

_INTRODUCTION: Final = """\
Media Events with their rooms, tags, categories, playlists and webhooks; a job engine; and a key provider (SPEKE).

* **Authentication**: the header `API-KEY` holds the key of a client. The roles of the client determine its permissions.
* **Versions**: the response of a resource has its version as `ETag`. `If-Match` refuses a change of another version.
* **Repeats**: a POST with an `Idempotency-Key` can be sent repeatedly and is carried out once.
* **Errors**: a problem document (RFC 9457). The job engine sends `{"error": …}`, and the key provider one line of text.
* **Times**: ISO 8601. A time without an offset is UTC. Responses have UTC with three decimals.
* **Names** of fields and parameters ignore case. Unknown names are ignored.
* **Enumerations** are accepted as number or name.
"""

_TAGS: Final = {
    "Events": "Media Events: live, on-demand and planned programmes with their states, times and links.",
    "VOD metadata": "Metadata of the files of an Event for playback on demand.",
    "Rooms": "Rooms: where Events take place.",
    "Tags": "Tags: keywords for finding Events.",
    "Documents": "Documents of Events.",
    "Event types": "Event types: kinds of Events.",
    "Categories": "Categories: subjects of Events.",
    "Category custom properties": "Custom properties of categories: a category and a key with a value.",
    "Chapter points": "Chapter points: positions in the video of an Event.",
    "Chapter point custom properties": "Custom properties of chapter points: a category and a key with a value.",
    "Playlists": "Playlists: Events in chronological order.",
    "Assets": "Assets: the files of Events, and requests for pictures, GIFs and video clips.",
    "Compositions": "Playlists from which films are made, or that encoders play.",
    "Destinations": "Destinations: the platforms and servers that films and streams are published to.",
    "Media live publications": "Publications of the streams of live Events: their starts, stops and states.",
    "Media VOD publications": "Publications of the films of Events.",
    "VOD publications": "Publications of films: their states, and the reports of their targets.",
    "Destination properties": "Custom properties of destinations: a category and a key with a value.",
    "Channels": "Channels: the delivery of the video of Events, and the settings of players.",
    "Flows": "Flows: the processing of the video of Events, and its task engines.",
    "Infrastructure Profiles": "Infrastructure profiles: the servers that Events are provisioned with.",
    "Provisioning": "The infrastructure of Events, and what a channel needs compared with what is provisioned.",
    "Archiver streams": "Archiver streams: streams that are recorded, with their start and end.",
    "Webhooks": "Webhooks: addresses that are notified of changes, their deliveries, and the callbacks of jobs.",
    "Logs": "The logs of Events and services, as clients write and read them.",
    "Job engine": "Jobs: workflows that process media files, their states, logs and schedules.",
    "Key provider": "Content keys and DRM signalling for packagers (SPEKE 1, 2.0 and 2.1).",
    "Clients": "Clients of the API, with their roles, API keys and DRM settings.",
    "Content keys": "The content keys that were issued. The keys themselves are never shown.",
    "Audit": "The event log: the author and time of every change, and the state of a resource at any moment.",
    "Changes": "Changes as a stream of server-sent events, in the order of the log.",
    "Consumers": "The readers of the event log: their positions, and the records that they could not process.",
    "Console": "Sessions of the web console: login by an API key, for browsers.",
    "Published media": "The files that players fetch: manifests, segments, videos and pictures of Events.",
    "Origin": "Live streams of the built-in origin: uploads of encoders, and the files for players and health checks.",
    "Health": "The health of the services, and their versions.",
    "Operations": "Health checks and metrics for operators. They need no API key.",
}

_PATH_PARAMETERS: Final = {
    "workflows/{name}": "The name of the workflow.",
    "/{client_name}": "The name of the client that the API key belongs to.",
    "all/{destinationId}": "The id of the destination.",
    "archiverstream/{id}": "The number of the archiver stream.",
    "asset/{id}": "The id of the asset.",
    "audit/{aggregate}": "The kind of aggregate, such as `event` or `room`.",
    "bulk/{id}": "The id of the owner: the category or the chapter point.",
    "category/{id}": "The id of the category.",
    "channel/{id}": "The id of the channel.",
    "chapterpoint/{id}": "The id of the chapter point.",
    "client/{name}": "The name of the client. Upper and lower case differ.",
    "clone/{sourceEventId}": "The id of the Event whose playlist is copied.",
    "compose/{eventId}": "The id of the Event.",
    "contentId/{contentId}": "The content id of the Event.",
    "statistics/{publicationId}": "The id of the publication.",
    "livepublication/{id}": "The id of the publication.",
    "tile/{level}": "The level of the tile: 0 to 5, or `entries`.",
    "{level}/{place}": "The number of the tile in groups of three digits, such as `x001/067`; `.p/<width>` selects its first "
    "hashes.",
    "compare/{channelId}": "The id of the channel.",
    "consumer/{name}": "The name of the consumer.",
    "customproperty/{id}": "The id of the custom property.",
    "deliveries/{deliveryId}": "The id of the delivery; the receiver saw it as `webhook-id`.",
    "destination/{id}": "The id of the destination.",
    "id/{id}": "The id of the property.",
    "destinationproperty/{destinationId}": "The id of the destination.",
    "all/{contentId}": "The content.",
    "content/{contentId}": "The content.",
    "redact/{id}": "The id of the redaction.",
    "transactionId/{transactionId}": "The transaction id of the request.",
    "vodpublication/{id}": "The id of the publication.",
    "vodpublications/{id}": "The id of the publication.",
    "stream/{channelId}": "The id of the channel.",
    "event/{eventId}": "The id of the Event.",
    "event/{id}": "The id of the Event.",
    "eventtype/{id}": "The id of the event type.",
    "exists/{text}": "The name of the tag, percent-encoded.",
    "flow/{id}": "The id of the flow.",
    "infrastructureprofile/{id}": "The id of the infrastructure profile.",
    "job/{job_id}": "The number of the job.",
    "jobs/{job_id}": "The number of the job.",
    "keys/{keyId}": "The `keyId` of the API key.",
    "log/{id}": "The number of the entry.",
    "logs/{job_id}": "The number of the job.",
    "notify/{eventId}": "The id of the Event.",
    "playlist/{id}": "The id of the playlist.",
    "playlistItems/{itemId}": "The id of the item.",
    "protection/{contentId}": "The content id of the Event.",
    "provision/{eventId}": "The id of the Event.",
    "reference/{referenceid}": "The `refId` of the Event, percent-encoded. If several Events have it, the newest is changed.",
    "room/{id}": "The id of the room.",
    "sync/{eventId}": "The id of the Event.",
    "tag/{id}": "The id of the tag.",
    "vod/{id}": "The id of the Event.",
    "webhook/{id}": "The id of the webhook; in calls about callbacks, the id of the callback.",
    "media/{contentId}": "The content id of the Event, or the name of another folder of the media root.",
    "{contentId}/{file}": "The path of the file below that folder, with slashes.",
    "live/{name}": "The name of the publishing point.",
    "{name}/{file}": "The path below the publishing point, with slashes.",
    "{aggregate}/{id}": "The id of the aggregate: a GUID, the name of a client, or the number of a job.",
}

_REQUEST_HEADERS: Final = {
    "X-Transaction-ID": "1 to 128 printable ASCII characters. The response repeats it, and it is the correlation id of everything "
    "that the request causes. Such as `import-7`; default: a new GUID.",
    "Idempotency-Key": "1 to 255 printable ASCII characters. The same request sent again within 24 hours gets the first response "
    "again. Such as `add-hall-a`.",
    "If-Match": 'The ETag of the version that the change is meant for, such as `"3"`; another version is 412. Default: any.',
    "client": "The name of the client that the API key belongs to, such as `studio`; another name is 401.",
    "If-None-Match": "ETags that the caller has. Where one of them is that of the response, the response is 304 without a body.",
    "Prefer": "`handling=strict`: fields and parameters that are not documented are refused with 400. Default: they have no effect "
    "and are named in a header Warning.",
    "traceparent": "W3C Trace Context: the trace that the request is a part of. It is kept with the events that the request causes "
    "and sent on with their notifications. Such as `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.",
    "X-Request-ID": "Taken in the place of X-Transaction-ID where that is absent.",
}

_RESPONSE_HEADERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "X-Transaction-ID": ("The transaction id of the request.", {"type": "string"}),
    "ETag": (
        'The version of the resource, in quotes, such as `"3"`; for a compressed body with a checksum behind it, such as '
        '`"3-0c4a2f19"`. Absent where the body is not one resource.',
        {"type": "string"},
    ),
    "Location": ("The address of the new resource.", {"type": "string", "format": "uri-reference"}),
    "Retry-After": ("After how many seconds to try again.", {"type": "integer"}),
    "Idempotency-Replayed": (
        "`true` where this is the response to an earlier request with the same Idempotency-Key; absent otherwise.",
        {"type": "string", "enum": ["true"]},
    ),
    "WWW-Authenticate": ("The ways to authenticate: `ApiKey`, and `Bearer`.", {"type": "string"}),
    "Link": ('The next page: `<…>; rel="next"`. Absent on the last one, and where a list has no pages.', {"type": "string"}),
    "Warning": (
        '`299 - "unknown: …"`: fields and parameters that are not documented and had no effect. Absent where there are none.',
        {"type": "string"},
    ),
    "Preference-Applied": ("`handling=strict` where that was asked for in Prefer.", {"type": "string"}),
}
_ERRORS: Final = {
    304: "The caller has this version: If-None-Match names it",
    400: "The request is not valid; nothing was changed",
    401: "The API key is missing, or it is not valid",
    403: "The API key has none of the roles that this call needs",
    404: "The resource does not exist",
    409: "The change conflicts with a rule or with another change; nothing was changed",
    412: "If-Match names another version; nothing was changed",
    413: "The body is too large",
    415: "The media type of the body is not accepted",
    503: "The database or another service that this call needs is not available",
}

API: Final = ApiDescription(
    _INTRODUCTION,
    licence={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    tags=_TAGS,
    path_parameters=_PATH_PARAMETERS,
    request_headers=_REQUEST_HEADERS,
    response_headers=_RESPONSE_HEADERS,
    errors=_ERRORS,
    cookie=COOKIE,
)
