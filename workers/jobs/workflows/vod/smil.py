"""The server manifest `.ism`: the renditions with their bit rates, in SMIL 2.0, as streaming servers read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>\n<smil xmlns="http://www.w3.org/2001/SMIL20/Language">\n'


def smil(made: Mapping[str, Any], *, folder: str) -> str:
    """`folder` is where the files of the renditions lie."""
    videos = [
        f'<video src="{folder}/{one["file"]}" systemBitrate="{one["bitRate"]}" width="{one["width"]}" height="{one["height"]}"/>'
        for one in made["videos"]
    ]
    audios = [f'<audio src="{folder}/{one["file"]}"{_language(one["language"])}/>' for one in made["audios"]]
    tracks = "".join(f"      {track}\n" for track in (*videos, *audios))
    return f"{_HEAD}  <head/>\n  <body>\n    <switch>\n{tracks}    </switch>\n  </body>\n</smil>\n"


def _language(language: str) -> str:
    return f' systemLanguage="{language}"' if language else ""
