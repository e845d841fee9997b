"""A valid body for each route that has one, and the resources that those bodies and paths need."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx

from api.http.routing import routes_of
from api.kernel.wire import Wire, wire_names
from api.wiring.services import ROUTES
from tests.api.asking import (
    add,
    add_archiver_stream,
    add_channel,
    add_flow,
    add_playlist,
    add_playlist_item,
    add_webhook,
)
from tests.api.media.asset.assets_given import vod_file
from tests.api.media.owners import OWNERS, add_category, add_point
from tests.api.media.publishing import add_destination
from tests.api.media.test_vod import put_file
from tests.domain.channel.texts_given import FLOW, PROFILE

EVENT = "0f0e0d0c-0b0a-4908-8706-050403020100"
PROPERTY = "0f0e0d0c-0b0a-4908-8706-050403020101"
DESTINATION_PROPERTY = "the property of a destination"
EVENT_WEBHOOK = "webhook of an Event"
CALLBACK = "webhook of jobs"
ITEMS = [{"type": 0, "value": EVENT, "properties": {"start": "00:00:01"}}]
COMPOSED, COMPOSED_FOR_ENCODER = "0f0e0d0c-0b0a-4908-8706-050403020102", "0f0e0d0c-0b0a-4908-8706-050403020103"
CLIP = {"eventId": EVENT, "start": "00:00:01.000", "end": "00:00:02.000"}
WEBHOOK = {"webhookUrl": "https://hooks.test/a"}
STREAMED: dict[str, Any] = {"eventId": EVENT, "publicationId": PROPERTY, "destinationId": PROPERTY}
"""A live publication; `things` names it and its destination."""
SEVERAL_STREAMED: dict[str, Any] = {"eventId": EVENT, "publications": [{"publicationId": PROPERTY, "destinationId": PROPERTY}]}


def model_in(annotation: Any) -> Iterator[type[Wire]]:
    """Yield the model of a body: itself, of each of its items, or of a body that may be null."""
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        yield annotation
    for inner in get_args(annotation):
        yield from model_in(inner)


def bodies_of_examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each route whose request model has an example, with the required members of the example. If none is required, yield
    the whole example."""
    for route in routes_of(ROUTES):
        model = None if route.signature.body is None else next(model_in(route.signature.body_type), None)
        extra: Any = None if model is None else model.model_config.get("json_schema_extra")
        if model is not None and isinstance(extra, dict) and (example := extra.get("examples", [None])[0]):
            required = {wire_names(model, name)[0] for name, field in model.model_fields.items() if field.is_required()}
            body = {name: value for name, value in example.items() if name in required or not required}
            yield f"{route.method} {route.documented_path}", body


VALID: dict[str, dict[str, Any]] = {
    **dict(bodies_of_examples()),
    "POST /api/event/": {"Title": "x", "RefId": "r"},
    "PATCH /api/event/{id}": {"op": "replace", "path": "/Title", "value": "x"},
    "PATCH /api/event/reference/{referenceid}": {"op": "replace", "path": "/Title", "value": "x"},
    "PUT /api/event/state/{id}": {"state": 11},
    "PUT /api/event/flow/protection/{contentId}": {"protection": 11},
    "POST /console/session": {"apiKey": "key-of-admin"},
    "POST /api/audit/redact": {"reason": "asked for", "actor": "nobody"},
    "PUT /api/eventtype/event/{id}": {"eventTypeId": None},
    "POST /api/category/": {"name": "x"},
    "PUT /api/category/{id}": {"name": "x"},
    "POST /api/category/customproperty/": {"id": PROPERTY, "value": "x"},
    "POST /api/category/customproperty/bulk/{id}": {"category": "x", "key": "y", "value": "z"},
    "POST /api/chapterpoint/": {"eventId": EVENT, "startTime": "00:00:00", "propertyModels": [{"category": "x", "key": "y"}]},
    "POST /api/chapterpoint/customproperty/": {"id": PROPERTY, "value": "x"},
    "POST /api/chapterpoint/customproperty/bulk/{id}": {"category": "x", "key": "y", "value": "z"},
    "POST /api/playlist/{id}/playlistItems/": {"eventId": EVENT, "startTime": "2031-01-02"},
    "POST /api/asset/gif/": {"clip": CLIP, "name": "x", "fps": 5, "width": 64, "height": 48.5, "playbackSpeed": 1},
    "POST /api/asset/video/": {"clip": {**CLIP, "filter": 'type=="video"'}, "name": "x", "mezzanine": 1},
    "POST /api/asset/caption/": {"eventId": EVENT, "language": "de", "kind": "captions", "name": "x", "file": "in/x.srt"},
    "POST /api/asset/image/": {"eventId": EVENT, "name": "x", "time": "00:00:01", "filename": "y", "priority": 3},
    "POST /api/compose/": {"event": {"title": "x"}, "playlist": {"name": "x", "liveStreamStart": "2100-01-01", "items": ITEMS}},
    "POST /api/compose/encoder/": {"event": {"channelId": PROPERTY}, "playlist": {"name": "x", "looped": True, "items": ITEMS}},
    "PUT /api/compose/event/{eventId}": {"name": "y", "looped": False, "items": ITEMS},
    "PUT /api/compose/encoder/event/{eventId}": {"name": "y", "looped": False, "items": ITEMS},
    "PUT /api/compose/event/{eventId}/drm/": {"drmJson": "{}"},
    "PUT /api/archiverstream/{id}": {"uploaded": True, "streamingFormats": ["HLS"]},
    "POST /api/log/loggable/": {"Id": "x", "Message": "x", "Level": 3, "Tag": ["a"]},
    "POST /api/media/destination/": {"name": "x", "target": "TWITTER", "destinationJson": "{}", "active": False},
    "PUT /api/media/destination/{id}": {"name": "x", "destinationJson": "{}"},
    "POST /api/media/destinationproperty/": {"destinationId": PROPERTY, "category": "x", "key": "y", "value": "z"},
    "POST /api/media/vodpublication/": {"eventId": EVENT, "publications": [{"destinationId": PROPERTY, "publicationJson": "{}"}]},
    "POST /api/media/livepublication/": {"eventId": EVENT, "publications": [{"destinationId": PROPERTY, "publicationJson": "{}"}]},
    **{f"PUT /api/media/livepublication/{path}/": STREAMED for path in ("recreate", "start", "stop", "publish", "unpublish")},
    **{f"PUT /api/media/livepublication/{path}/all/": SEVERAL_STREAMED for path in ("start", "stop")},
    "DELETE /api/media/livepublication/": SEVERAL_STREAMED,
    "POST /api/vodpublications/": {"publications": [{"contentId": EVENT, "destinationId": PROPERTY, "publicationJson": "{}"}]},
    "PUT /api/vodpublications/publish/": {"id": PROPERTY, "destinationId": PROPERTY},
    "PUT /api/vodpublications/unpublish/": {"id": PROPERTY, "destinationId": PROPERTY},
    "PUT /api/vodpublications/{id}": {"destinationId": PROPERTY, "publicationJson": "{}"},
    "POST /api/flow/": {"name": "x", "configurationJson": json.dumps(FLOW)},
    "POST /api/infrastructureprofile/": {"name": "x", "configurationJson": json.dumps(PROFILE)},
    "POST /api/webhook/": WEBHOOK,
    "POST /api/webhook/deliveries/resend/": {"ids": [EVENT]},
    "POST /api/webhook/event/": {"eventId": EVENT, **WEBHOOK},
    "POST /api/webook/event/": {"eventId": EVENT, **WEBHOOK},
    "PUT /api/webhook/{id}": {"useJsonBody": False, "disabledAt": "2031-01-02"},
    "PUT /api/webhook/{id}/event/": {"eventId": EVENT, "password": "x"},
    "PUT /api/client/{name}/drm/": {"widevineProvider": "x"},
    "POST /engine/job": {"job": {"workflow": "probe_media"}, "parameters": {"content_id": "film", "file": "a.mp4"}},
    "PUT /engine/job/{job_id}": {"priority": 7},
}
"""A body for each route that would be carried out; the attacks spoil it in one place each. The entries are those of routes whose
example is not enough, or names resources that do not exist."""
_AT_DESTINATION = (
    "POST /api/media/destinationproperty/",
    "PUT /api/vodpublications/publish/",
    "PUT /api/vodpublications/unpublish/",
    "PUT /api/vodpublications/{id}",
)
"""Requests that name the destination of `things`, whose id the product assigns."""


async def add_compositions(http: httpx.AsyncClient) -> None:
    """Add a composition that waits, so that no job is needed, and one for an encoder."""
    encoder = VALID["POST /api/compose/encoder/"]
    configuration = json.dumps({"encoders": [{"name": "e", "supportsComposition": True}]})
    encoder["event"]["channelId"] = await add_channel(http, name="Composing", configurationJson=configuration)
    film = VALID["POST /api/compose/"]
    for path, body, key in (("", film, COMPOSED), ("encoder/", encoder, COMPOSED_FOR_ENCODER)):
        answer = await http.post(f"/api/compose/{path}", json={**body, "event": {**body["event"], "id": key}})
        assert answer.status_code == 201, answer.text


async def things(http: httpx.AsyncClient, media_root: Path) -> dict[str, str]:
    """Things that exist, so that no attack is stopped by a 404."""
    vod_file(media_root, EVENT)
    shown = await add(http, Id=EVENT, Title="Final", RefId="r", EventState=10)
    put_file(media_root, EVENT)
    assert (await http.put(f"/api/vod/{EVENT}/metadata")).status_code == 200  # its film can be published
    channel = await add_channel(http)
    playlist = await add_playlist(http)
    category = await add_category(http, "Hostile")
    point = await add_point(http, shown["id"], id=category)  # two kinds may share an id, and here the paths before it are alike
    for of in OWNERS:
        await http.post(f"{of.path}/bulk/{category}", json=[{"id": PROPERTY, "category": "a", "key": "b"}])
    await http.post("/api/client/", json={"name": "studio", "roles": ["operator"]})
    destination = await add_destination(http, "Hostile", target="TWITTER", destinationJson="{}")
    for body in _AT_DESTINATION:
        VALID[body]["destinationId"] = destination
    paths = ("vodpublications", "media/vodpublication", "media/livepublication")
    publications = [VALID[f"POST /api/{path}/"]["publications"][0] for path in paths]
    for publication in publications:
        publication["destinationId"] = destination
    published = (await http.post("/api/vodpublications/", json={"publications": publications[:1]})).json()[0]["id"]
    for operation in ("publish", "unpublish"):
        VALID[f"PUT /api/vodpublications/{operation}/"]["id"] = published
    streamed = (await http.post("/api/media/livepublication/", json=VALID["POST /api/media/livepublication/"])).json()[0]["id"]
    for named in (STREAMED, SEVERAL_STREAMED["publications"][0]):
        named.update(publicationId=streamed, destinationId=destination)
    owned = await http.post("/api/media/destinationproperty/", json={"destinationId": destination, "category": "a", "key": "b"})
    await add_compositions(http)
    job = await http.post("/engine/job", json=VALID["POST /engine/job"], headers={"client": "admin"})
    ids = {
        "id": shown["id"],
        "event": shown["id"],
        "contentId": shown["id"],
        "file": "match.mp4",
        "eventId": shown["id"],
        "sourceEventId": COMPOSED,
        "referenceid": "r",
        "name": "studio",
        "keyId": "k",
        "aggregate": "event",
        "channel": channel,
        "channelId": channel,
        **dict.fromkeys(("destination", "active", "activate", "destinationId"), destination),
        **dict.fromkeys(("vodpublication", "vodpublications"), published),
        **dict.fromkeys(("livepublication", "publicationId"), streamed),
        "transactionId": PROPERTY,
        DESTINATION_PROPERTY: owned.json()["id"],
        "flow": await add_flow(http),
        "playlist": playlist,
        "category": category,
        "chapterpoint": point,
        "bulk": category,
        "customproperty": PROPERTY,
        "deliveryId": PROPERTY,
        "itemId": await add_playlist_item(http, playlist, shown["id"]),
        "webhook": await add_webhook(http),
        EVENT_WEBHOOK: await add_webhook(http, eventId=shown["id"]),
        "job_id": str(job.json()["id"]),
        "asset": (await http.post("/api/asset/image/", json=VALID["POST /api/asset/image/"])).json()["id"],
        "archiverstream": str(await add_archiver_stream(http)),
    }
    return {**await _added(http, except_for=ids), **ids}


async def _added(http: httpx.AsyncClient, *, except_for: Collection[str]) -> dict[str, str]:
    """Add a resource to each collection that has a route for one resource. Return the ids by the last segment of the collection."""
    declared = {f"{route.method} {route.documented_path}" for route in routes_of(ROUTES)}
    ids = {}
    for name in VALID:
        path = name.removeprefix("POST ")
        segment = path.rstrip("/").rpartition("/")[2]
        if path.endswith("/") and f"GET {path}{{id}}" in declared and segment not in except_for:
            answer = await http.post(path, json=VALID[name])
            assert answer.is_success, (name, answer.text)
            ids[segment] = str({member.lower(): value for member, value in answer.json().items()}["id"])
    return ids
