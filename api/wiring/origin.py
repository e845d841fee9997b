"""The built-in origin that the settings describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from re import compile as regex
from typing import Any, Final

from pydantic_core import to_json

from api.wiring.settings import Settings
from domain.channel.point_token import PointToken, Use
from domain.kernel.clock import Clock, system_clock
from domain.kernel.encryption import IngestKeys
from projections.kernel.database.database import Database
from projections.kernel.sizes import GIB
from projections.publishing_point.own_points import OwnPoints
from projections.publishing_point.points import ChannelPointsReader
from projections.record.queries import RecordQueries
from workers.adapters.free_space import free_bytes
from workers.adapters.media_directory import MediaDirectory
from workers.origin.knowledge import PointDirectory
from workers.origin.limits import OriginLimits
from workers.origin.live_origin import LiveOrigin

_POINT: Final = regex(r"/origin/live/([A-Za-z0-9._-]{1,64})(?:[/?]|$)")
ENCODER_SECONDS: Final = 600
"""The lifetime of an encoder's token. Encoders get the next one long before the end."""
READ_SECONDS: Final = 60
STEP_SECONDS: Final = 25 * 3600
_POINTS: Final = regex(r"/origin/live/([A-Za-z0-9._-]{1,64})")
ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on


def live_origin(settings: Settings, keys: IngestKeys, *, directory: PointDirectory | None = None) -> LiveOrigin:
    """Return the origin that accepts tokens of these keys."""
    return LiveOrigin(
        settings.origin_root,
        keys=keys,
        limits=_limits(settings),
        files=MediaDirectory(settings.origin_root),
        free=free_bytes,
        clock=system_clock,
        directory=directory,
    )


def own_points(settings: Settings, database: Database, records: RecordQueries) -> OwnPoints:
    """Return the database's information about the publishing points of the built-in origin."""
    return OwnPoints(database, ChannelPointsReader(database, records), point_name(settings), hours=settings.origin_hours)


def point_name(settings: Settings) -> Callable[[str], str | None]:
    """Return a function that maps a URL to the name of its publishing point of the built-in origin; None for any other address."""
    origins = [origin for origin in (own_origin(settings), settings.public_url) if origin is not None]

    def name(url: str) -> str | None:
        matches = [_POINT.match(url.removeprefix(origin)) for origin in origins if url.startswith(f"{origin}/")]
        return next((match[1] for match in matches if match is not None), None)

    return name


def _limits(settings: Settings) -> OriginLimits:
    return OriginLimits(
        size=settings.origin_gib * GIB,
        free=settings.origin_free_gib * GIB,
        hours=settings.origin_hours,
        window=float(settings.origin_dvr_seconds),
    )


def base_url(host: str, *, port: int) -> str:
    """Return a URL to open. A server that listens on all addresses is shown with the loopback address."""
    shown = ANY_ADDRESS.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def own_origin(settings: Settings) -> str | None:
    """Return the address of the built-in origin; None if there is none."""
    if settings.origin_url is not None or not settings.origin:
        return settings.origin_url
    return base_url(settings.host, port=settings.port)


def ingest_headers(origin: str | None, keys: IngestKeys, *, clock: Clock) -> Callable[[str, int], Mapping[str, str]]:
    """Return a function that makes the headers of a request to a URL in the session of a number. A token is only sent to the origin
    at `origin`."""

    def headers(url: str, session: int) -> Mapping[str, str]:
        below = url.removeprefix(origin) if origin is not None and url.startswith(origin) else ""
        point = _POINT.match(below)
        if point is None:
            return {}
        now = int(clock().timestamp())
        token = PointToken(Use.ENCODER, now, now + ENCODER_SECONDS, session)
        return {"Authorization": f"Bearer {token.text(keys.present, point=point[1])}"}

    return headers


def read_tokens(keys: IngestKeys, *, clock: Clock, seconds: int = READ_SECONDS) -> Callable[[str], str]:
    """Return a function that makes the token with which the product reads a publishing point, from its name."""

    def token(point: str) -> str:
        now = int(clock().timestamp())
        return PointToken(Use.READ, now, now + seconds).text(keys.present, point=point)

    return token


def step_tokens(origin: str | None, keys: IngestKeys, *, clock: Clock) -> Callable[[Mapping[str, Any]], Mapping[str, str]]:
    """Return a function that makes the tokens of a step, which has no key: for the publishing points that its parameters name,
    valid for the length of a capture."""
    token = read_tokens(keys, clock=clock, seconds=STEP_SECONDS)

    def tokens(parameters: Mapping[str, Any]) -> Mapping[str, str]:
        if origin is None:
            return {}
        return {name: token(name) for name in set(_POINTS.findall(to_json(parameters).decode()))}

    return tokens
