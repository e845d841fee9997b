"""`medialedger origin`: runs only the built-in origin, without a database. Several processes may share its directory."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta
from functools import partial

from api.cli.run.home import create_home
from api.cli.run.limits import raise_descriptor_limit
from api.cli.run.serving import run_product
from api.cli.run.sockets import bound_sockets
from api.cli.run.startup_text import print_status
from api.cli.run.stop_signals import StopSignals
from api.cli.shell import confirm
from api.kernel.version import product_version
from api.wiring.master_keys import key_ring
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from api.wiring.standalone_origin import build
from api.wiring.startup import LOST_KEY, StartError
from domain.channel.point_token import LARGEST_SESSION, PointToken, Use
from domain.kernel.clock import system_clock
from domain.kernel.encryption import KeyRing
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.keyfiles import first_master_key, has_master_key
from workers.origin.names import is_point
from workers.origin.recordings import RecordedPoint, StoredPoint


def print_token(settings: Settings, name: str, *, read: bool, hours: int, session: int | None) -> int:
    """Print a token for the publishing point of this name, and on standard error the time when it expires."""
    create_home(settings.home)
    text, until = _token(settings, name, read=read, hours=hours, session=session)
    print_status(text)
    print(f"for {name}, until {until:%Y-%m-%d %H:%M:%SZ}", file=sys.stderr)
    return 0


def revoke_tokens(settings: Settings, name: str, *, yes: bool) -> int:
    create_home(settings.home)
    point = _point(settings, name)
    confirm(yes, f"revoke all tokens of {name} that were issued until now")
    point.revoke(now=system_clock().timestamp())
    print_status(f"all tokens of {name} that were issued until now are revoked")
    return 0


async def run(settings: Settings) -> int:
    create_home(settings.home)
    raise_descriptor_limit()
    with StopSignals() as signals, bound_sockets(settings.host, port=settings.port) as (sockets,):
        settings = settings.listening_on(sockets[0].getsockname()[1])
        ring = _keys(settings)
        try:
            origin = build(settings, ring)
            listening = partial(print_status, ready_text(settings))
            await run_product(origin, sockets, signals=signals, seconds=settings.shutdown_seconds, listening=listening)
        except asyncio.CancelledError:
            if not signals.requested:
                raise
        print_status("stopped by force" if signals.forced.is_set() else "stopped")
        return 1 if signals.forced.is_set() else 0


def ready_text(settings: Settings) -> str:
    point = f"{base_url(settings.host, port=settings.port)}/origin/live/NAME"
    return "\n".join(
        [
            f"medialedger {product_version()} origin is ready",
            "",
            f"  publish     {point}  (token: medialedger origin --token NAME)",
            f"  play        {point}/master.m3u8?token=TOKEN  {point}/manifest.mpd?token=TOKEN",
            f"  recording   {point}/archive/master.m3u8?token=TOKEN",
            f"  state       {point}/state?token=TOKEN",
            f"  data        {settings.origin_root}",
            "  stop        Ctrl-C, or SIGTERM",
            "",
        ]
    )


def _point(settings: Settings, name: str) -> RecordedPoint:
    if not is_point(name):
        raise StartError("the name of a publishing point has 1 to 64 letters, digits, dots, dashes and underscores")
    return RecordedPoint(settings.origin_root / name)


def _token(settings: Settings, name: str, *, read: bool, hours: int, session: int | None) -> tuple[str, datetime]:
    """Return the token and the time when it expires."""
    state, now = _point(settings, name).state() or StoredPoint(), system_clock()
    number = state.session + 1 if session is None else session
    if number > LARGEST_SESSION:
        raise StartError("the number of a session has at most 63 bits")
    issued, until = max(int(now.timestamp()), int(state.revoked) + 1), now + timedelta(hours=hours)
    token = PointToken(Use.READ if read else Use.HAND, issued, int(until.timestamp()), 0 if read else number)
    return token.text(_keys(settings).ingest.present, point=name), until


def _keys(settings: Settings) -> KeyRing:
    """Return the key ring. An origin without a database creates its own master key; one next to a database needs that database's
    key."""
    path = settings.master_key_file
    if not has_master_key(path) and (settings.database_url is not None or EmbeddedPostgres(settings.home).exists):
        raise StartError(f"there is no master key at {path} (MEDIALEDGER_MASTER_KEY_FILE): put a copy of it there; {LOST_KEY}")
    first_master_key(path)
    return key_ring(path)
