"""DASH manifests of a source that is captured."""

from __future__ import annotations

from workers.jobs.workflows.capture.segments import SourceFault
from workers.media import dash
from workers.media.errors import Unreadable


def parse(body: bytes, url: str, *, now: float) -> dash.Mpd:
    """Parse a manifest. Raises `SourceFault`."""
    try:
        return dash.parse(body, url, now=now)
    except Unreadable as fault:
        raise SourceFault(fault.sentence, final=True) from None
