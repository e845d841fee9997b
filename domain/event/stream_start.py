"""The time at which the first frame of an Event's film was captured. Date-times in trims and clips are relative to it."""

from __future__ import annotations

from datetime import datetime

from domain.event import metadata_file
from domain.event.ports import EventRow
from domain.kernel.errors import Malformed
from domain.kernel.media_files import MediaFiles
from domain.kernel.stream_time import stream_point


async def stream_start(files: MediaFiles, event: EventRow) -> datetime | None:
    """Return the time that the packager has recorded, else the start of the capture, else that of the live stream. None means
    that the film carries no timecode."""
    noted = await _noted(files, str(event.id))
    return noted or event.details.capture_vod_start or event.details.actual_live_start


async def _noted(files: MediaFiles, content: str) -> datetime | None:
    """Return the time in the metadata; None if the file cannot be read."""
    try:
        text = await files.read(f"{content}/{metadata_file.NAME}", limit=metadata_file.LARGEST)
        start = metadata_file.start_time(text) if text is not None else None
        return stream_point(start, field="startTime").date_time if start is not None else None
    except (ValueError, Malformed):
        return None
