"""Options of ffmpeg for the files that steps make: each says which tracks it has, and nothing else of the source goes with them.

What a camera or an editor notes in a file, such as a place, comments, chapters and a timecode of its own, is not for the public. It
would not be true of a part of the film either. What is to be said of a track, such as its language, is said anew.
"""

from __future__ import annotations

from typing import Final

CLEAN: Final = ("-map_metadata", "-1", "-map_chapters", "-1", "-dn")
"""No tags of the file or of its tracks, no chapters, no tracks of data."""
TRACKS: Final = (*CLEAN, "-write_tmcd", "0", "-f", "mp4")
"""An MP4 file for a later step."""
MP4: Final = ("-movflags", "+faststart", *TRACKS)
"""An MP4 file that is published: players begin before they have all of it."""
GIF: Final = (*CLEAN, "-f", "gif")


def jpeg(*, quality: int, several: bool = False) -> tuple[str, ...]:
    """A JPEG file, or `several` whose name has a number. A lower `quality` is better and larger."""
    one = () if several else ("-update", "1")
    return (*CLEAN, "-c:v", "mjpeg", "-q:v", str(quality), "-pix_fmt", "yuvj420p", "-f", "image2", *one)


def language(name: str, track: int = 0) -> tuple[str, ...]:
    """Options that write the language of an audio track to the output; none if it is not known."""
    return (f"-metadata:s:a:{track}", f"language={name}") if name else ()
