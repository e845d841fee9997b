"""The encoders of the product and of plug-in packages, by the `type` of a channel's encoder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from domain.channel.encoding import FFMPEG, HTTP
from domain.kernel.clock import Clock
from workers.adapters.encoders.ffmpeg import FfmpegEncoder, Headers, no_headers
from workers.adapters.encoders.http import HttpEncoder, Permitted, always_permitted
from workers.adapters.encoders.sources import EncoderSources
from workers.adapters.ffmpeg import choose
from workers.adapters.step_account import program_confinement
from workers.kernel.confinement import NO_PLACES, Places
from workers.kernel.plugins import load_plugins
from workers.ports.encoders import Encoder
from workers.ports.outbound import OutboundConnections
from workers.ports.plugins import ENCODERS, EncoderPlugin


def encoders(
    client: OutboundConnections,
    clock: Clock,
    *,
    media_root: Path | None,
    devices: bool = False,
    headers: Headers = no_headers,
    permitted: Permitted = always_permitted,
    places: Places = NO_PLACES,
) -> Mapping[str, Encoder]:
    """Return the encoders by their type. `media_root` is None if media are in a bucket. `devices` lets encoders read cameras and
    sound cards. `headers` returns the headers of a request to a publishing point, by its URL and the session. `permitted` returns
    True for a channel while the clients that ordered its encoders are still permitted to. `places` are the places of this machine.
    """
    others: Mapping[str, EncoderPlugin] = load_plugins(ENCODERS, taken=(FFMPEG, HTTP))
    confinement = partial(program_confinement, places=places, devices=devices)
    return {
        **{name: plugin(client=client) for name, plugin in others.items()},
        FFMPEG: FfmpegEncoder(
            choose(places, "ffmpeg"), client, EncoderSources(media_root, client, devices), clock, headers, confinement
        ),
        HTTP: HttpEncoder(client, clock, headers, permitted),
    }
