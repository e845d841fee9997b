"""Options of ffmpeg for the files that steps make: each states which tracks it has, and nothing else of the source is copied.

Notes of a camera or an editor in a file, such as a place, comments, chapters and a timecode, are not for the public, and would not
apply to a part of the film. Attributes of a track, such as its language, are written again.
"""

from __future__ import annotations

from typing import Final

CLEAN: Final = ("-map_metadata", "-1", "-map_chapters", "-1", "-dn")
"""Options for no tags of the file or of its tracks, no chapters, and no data tracks."""
TRACKS: Final = (*CLEAN, "-write_tmcd", "0", "-f", "mp4")
"""Options for an MP4 file for a later step."""
MP4: Final = ("-movflags", "+faststart", *TRACKS)
"""Options for an MP4 file that is published: players begin before they have the whole file."""
GIF: Final = (*CLEAN, "-f", "gif")


def jpeg(*, quality: int, several: bool = False) -> tuple[str, ...]:
    """Return options for a JPEG file, or for `several` whose names have a number. A lower `quality` is better and larger."""
    overwrite = () if several else ("-update", "1")
    return (*CLEAN, "-c:v", "mjpeg", "-q:v", str(quality), "-pix_fmt", "yuvj420p", "-f", "image2", *overwrite)


def language(name: str, track: int = 0) -> tuple[str, ...]:
    """Return options that write the language of an audio track to the output; none if it is unknown."""
    return (f"-metadata:s:a:{track}", f"language={name}") if name else ()
