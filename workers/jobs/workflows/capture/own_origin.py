"""Sources at the built-in origin: a capture reads the whole recording, whatever the live window of the address is."""

from __future__ import annotations

from re import compile as regex
from typing import Final

_LIVE: Final = regex(r"(/origin/live/[A-Za-z0-9._-]{1,64})/(master\.m3u8|manifest\.mpd|tracks/[A-Za-z0-9._-]{1,96}\.m3u8)")


def whole_recording(url: str, *, origin: str | None) -> str:
    """Return the address of the whole recording, if the URL is at the built-in origin; otherwise the URL.

    `origin` is the address of the built-in origin, such as `http://127.0.0.1:8080`. For DASH, too, the address is that of HLS with
    the same segments, since its numbers do not change when the stream ends.
    """
    if origin is None or not url.startswith(f"{origin}/"):
        return url
    live = _LIVE.fullmatch(url.removeprefix(origin))
    return url if live is None else f"{origin}{live[1]}/archive/{live[2].replace('manifest.mpd', 'master.m3u8')}"
