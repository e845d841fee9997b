"""The server manifest `.ism`: the renditions with their bit rates, in SMIL 2.0, as streaming servers read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>\n<smil xmlns="http://www.w3.org/2001/SMIL20/Language">\n'


def smil(made: Mapping[str, Any], *, folder: str) -> str:
    """Return the manifest. `folder` is the folder with the files of the renditions."""
    videos = [
        f'<video src="{folder}/{video["file"]}" systemBitrate="{video["bitRate"]}"'
        f' width="{video["width"]}" height="{video["height"]}"/>'
        for video in made["videos"]
    ]
    audios = [f'<audio src="{folder}/{audio["file"]}"{_language(audio["language"])}/>' for audio in made["audios"]]
    tracks = "".join(f"      {track}\n" for track in (*videos, *audios))
    return f"{_HEAD}  <head/>\n  <body>\n    <switch>\n{tracks}    </switch>\n  </body>\n</smil>\n"


def _language(language: str) -> str:
    return f' systemLanguage="{language}"' if language else ""
