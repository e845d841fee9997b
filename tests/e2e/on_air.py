"""A test picture on the built-in origin of the product, and the origin's record of it. Each of its frames shows its number."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import httpx

from domain.kernel.clock import system_clock
from domain.kernel.encryption import IngestKeys
from tests.support.sources.numbered_frames import tool
from tests.support.waiting import until
from workers.adapters.encoders.encode_command import BITS
from workers.kernel.point_tokens import PointTokens

RENDITION: Final = {"width": 128, "height": 96, "fps": 25, "bitrate": 200_000}
_BLOCK: Final = 8
"""The width that each block is scaled to."""
_HEIGHT: Final = 96


class Station:
    """A channel with two publishing points on the origin: NAME and NAME-b. `home` has the master key, for requests that need a
    token."""

    def __init__(self, http: httpx.Client, name: str, *, home: Path | None = None) -> None:
        self.http = http
        self.name = name
        self.home = home
        self.url = f"{str(http.base_url).rstrip('/')}/origin/live/{name}"
        self.channel = self._made("/api/channel/", name=name, configurationJson=self._configuration())

    @property
    def _home(self) -> Path:
        assert self.home is not None, "what needs a token needs a home"
        return self.home

    def _configuration(self) -> str:
        points = {
            "primaryPublishingPoint": {"publishingPointUrl": self.url},
            "secondaryPublishingPoint": {"publishingPointUrl": f"{self.url}-b"},
        }
        encoder = {
            "type": "ffmpeg",
            "encoderSpecific": {"source": {"type": "test"}, "renditions": [RENDITION]},
            "streamingServer": {"streamingServerSpecific": points},
            "outputUrls": [
                {"streamProtocol": protocol, "liveCdnPrimaryUrl": url, "liveOriginPrimaryUrl": url}
                for protocol, url in (("HLS", f"{self.url}/master.m3u8"), ("DASH", f"{self.url}/manifest.mpd"))
            ],
        }
        return json.dumps({"encoders": [encoder]})

    def _made(self, path: str, **fields: object) -> str:
        return str(self.http.post(path, json=fields).raise_for_status().json()["id"])

    def event(self, **fields: object) -> str:
        return self._made("/api/event/", channelId=self.channel, **fields)

    def to_state(self, event: str, state: int) -> None:
        self.http.put(f"/api/event/state/{event}", json={"state": state}).raise_for_status()

    def health(self, event: str) -> list[dict[str, Any]]:
        """Return the health of its publishing points; empty while it is not live."""
        statuses = self.http.get(f"/api/health/live/stream/event/{event}").raise_for_status().json()
        return list(statuses.get(event, {}).get("urls", ()))

    def pictures(self, point: str = "") -> list[tuple[int, str]]:
        """Return the session and the name of each segment with pictures that the origin received, oldest first. `point`: `-b` for
        the second."""
        tokens = PointTokens(IngestKeys((self._home / "master.key").read_bytes()), system_clock, origin=None)
        token = tokens.to_read(f"{self.name}{point}")
        headers = {"authorization": f"Bearer {token}"}
        answer = httpx.get(f"{self.url}{point}/archive/tracks/v0.m3u8", headers=headers, timeout=60, verify=False)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        segments = re.findall(r"^(?:\.\./)*(\d+)/v0/(\S+\.m4s)$", answer.raise_for_status().text, re.MULTILINE)
        return [(int(session), name) for session, name in segments]

    def sessions(self) -> list[int]:
        """Return the sessions that sent pictures, in their order."""
        return list(dict.fromkeys(session for session, _ in self.pictures()))

    def state(self, point: str = "") -> str:
        return str(self.http.get(f"{self.url}{point}/status.php").json().get("state"))


def captured(http: httpx.Client, event: str, *, to: Path, state: str = "VOD_PUBLIC") -> Path:
    """Capture the Event and return the film; the job gets all parameters from the Event."""
    order = {"job": {"workflow": "vod_capture"}, "parameters": {"content_id": event, "renditions": [96]}}
    job = http.post("/engine/job", json=order, headers={"client": "admin"}).raise_for_status().json()["id"]

    def shown() -> dict[str, Any]:
        details: dict[str, Any] = http.get(f"/api/event/{event}").raise_for_status().json()
        return details

    until(lambda: shown()["stateString"] in (state, "VOD_ERROR"))
    assert shown()["stateString"] == state, http.get(f"/engine/jobs/{job}").text
    to.write_bytes(http.get(f"/media/{event}/{event}.mp4").raise_for_status().content)
    return to


def frame_numbers(file: Path | str) -> list[int]:
    """Return the numbers at the bottom of the pictures of a film, or of one picture, given as a file or a URL."""
    size = f"scale={BITS * _BLOCK}:{_HEIGHT}:flags=area,format=gray"
    shown = ("-map", "0:v:0", "-fps_mode", "passthrough", "-vf", size, "-f", "rawvideo", "-")
    raw = subprocess.run([tool("ffmpeg"), "-v", "error", "-i", str(file), *shown], stdout=subprocess.PIPE, check=True).stdout
    frame, row = BITS * _BLOCK * _HEIGHT, (_HEIGHT - 4) * BITS * _BLOCK
    return [
        sum((raw[at + row + bit * _BLOCK + _BLOCK // 2] > 128) << bit for bit in range(BITS)) for at in range(0, len(raw), frame)
    ]
