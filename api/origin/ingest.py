"""Uploads of encoders to the built-in origin: docs/reference/api/origin.md."""

from __future__ import annotations

from fastapi import APIRouter

from api.http.request import Request
from api.http.response import Response
from api.http.routing import OPEN, Service, rules
from api.origin.access import OriginAccess, Refusal
from api.origin.surface import OriginRoute
from workers.origin.limits import UploadRefused
from workers.origin.names import upload

routes = APIRouter(prefix="/origin", tags=["Origin"], route_class=OriginRoute)

_ERRORS = {
    401: "The token is missing, has expired, or is for another publishing point or session",
    408: "The body of a playlist or a segment arrives too slowly",
    409: "The session has ended, a later one has written, the token was revoked, or the stream goes back in time",
    413: "A playlist, a segment or the number of renditions is too large",
    415: "The format is not supported",
    429: "The publishing point receives too many requests per second",
    503: "Too many uploads are under way, or the server is stopping; see Retry-After",
    507: "The disk is full, or MEDIALEDGER_ORIGIN_GIB is reached",
}


@routes.put("/live/{name}/{file:path}", dependencies=[OPEN], status_code=201)
@rules(streamed_body=True, if_match=False, absent=404, errors=_ERRORS)
async def write_live_file(request: Request, name: str, file: str, access: Service[OriginAccess]) -> Response:
    """Take a playlist, a segment or a stream of fragments from an encoder.

    Served if MEDIALEDGER_ORIGIN is on. Needs a token of the encoder's session, `Authorization: Bearer …`. The first write of a
    later session revokes the write access of earlier sessions.
    """
    return await _take(request, name, file, access)


@routes.post("/live/{name}/{file:path}", dependencies=[OPEN], status_code=201)
@rules(streamed_body=True, if_match=False, absent=404, errors=_ERRORS)
async def send_live_file(request: Request, name: str, file: str, access: Service[OriginAccess]) -> Response:
    """Take a stream of fragments, or a file, from an encoder that sends them by POST.

    `Streams(NAME)` is a CMAF track: one request for all of its fragments, or one for each. Everything else is as with PUT.
    """
    return await _take(request, name, file, access)


@routes.delete("/live/{name}/{file:path}", dependencies=[OPEN], status_code=204)
@rules(if_match=False, absent=404, errors={401: _ERRORS[401]})
async def delete_live_file(request: Request, name: str, file: str, access: Service[OriginAccess]) -> Response:
    """Answer an encoder that removes old segments. Nothing is removed, because the origin keeps recordings whole."""
    access.writer(access.origin(name), name, request)
    return Response(status_code=204)


@routes.delete("/live/{name}", dependencies=[OPEN], status_code=204)
@rules(if_match=False, absent=404, errors={401: _ERRORS[401], 409: _ERRORS[409]})
async def cancel_live_session(request: Request, name: str, access: Service[OriginAccess]) -> Response:
    """End the session of the token permanently. Its further uploads are refused; its recording stays."""
    origin = access.origin(name)
    writer = access.writer(origin, name, request)
    try:
        await origin.ingest.end(name, writer.token)
    except UploadRefused as refused:
        raise Refusal(refused) from None
    return Response(status_code=204)


async def _take(request: Request, name: str, file: str, access: OriginAccess) -> Response:
    origin = access.origin(name)
    writer = access.writer(origin, name, request)
    assert request.pieces is not None, "the route streams its body"
    try:
        await origin.ingest.take(name, upload(file), writer=writer.token, body=aiter(request.pieces), window=writer.window)
    except UploadRefused as refused:
        raise Refusal(refused) from None
    return Response(status_code=201)
