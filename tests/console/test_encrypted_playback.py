"""A film with DRM in the console's player: what the product has encrypted is decrypted with a licence of ClearKey."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from uuid import UUID

import httpx
import pytest
from lxml import etree
from playwright.async_api import Browser, Page, expect

from tests.console.browser import visitor
from tests.console.conftest import KEY
from tests.support.product import client, migrated_home, products
from tests.support.sources.numbered_frames import film, tool
from tests.support.waiting import until

WIDEVINE = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
TONE = ("-f", "lavfi", "-i", "sine=frequency=440:duration=8")
CODED = (
    "-map",
    "0:v",
    "-map",
    "1:a",
    "-vf",
    "scale=256:192:flags=neighbor",
    "-c:v",
    "libx264",
    "-pix_fmt",
    "yuv420p",
    "-c:a",
    "aac",
)


class Licences:
    """A licence server of ClearKey: gives the keys that it has, to pages of every origin."""

    def __init__(self) -> None:
        self.keys: dict[bytes, bytes] = {}
        self.asked = 0
        self.address = ""

    def answer(self, body: bytes) -> bytes:
        self.asked += 1
        kids = [urlsafe_b64decode(kid + "==") for kid in json.loads(body)["kids"]]
        result = [{"kty": "oct", "kid": _text(kid), "k": _text(self.keys[kid])} for kid in kids if kid in self.keys]
        return json.dumps({"keys": result, "type": "temporary"}).encode()


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@contextmanager
def licence_server() -> Iterator[Licences]:
    class Handler(BaseHTTPRequestHandler):
        def do_OPTIONS(self) -> None:
            self._give(204, b"")

        def do_POST(self) -> None:
            self._give(200, made.answer(self.rfile.read(int(self.headers["content-length"]))))

        def _give(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Headers", "*")
            if status == 200:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    made = Licences()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def protected_film(http: httpx.Client, media: Path) -> str:
    """The id of an Event whose film is packaged with DRM."""
    event = str(http.post("/api/event/", json={"title": "Secret film", "vodEnableDrm": True}).raise_for_status().json()["id"])
    http.put(f"/api/event/state/{event}", json={"state": "PRE_VOD"}).raise_for_status()
    (media / event).mkdir(parents=True)
    film(media / event / f"{event}.mp4", *CODED, frames=200, inputs=TONE)
    order = {"job": {"workflow": "vod_package"}, "parameters": {"content_id": event, "renditions": [192]}}
    job = http.post("/engine/job", json=order, headers={"client": "admin"}).raise_for_status().json()["id"]

    until(lambda: shown(http, event)["stateString"] in ("VOD_PRIVATE", "VOD_ERROR"))
    assert shown(http, event)["stateString"] == "VOD_PRIVATE", http.get(f"/engine/jobs/{job}").text
    return event


def shown(http: httpx.Client, event: str) -> dict[str, object]:
    result: dict[str, object] = http.get(f"/api/event/{event}").raise_for_status().json()
    return result


def content_key(http: httpx.Client, event: str, kid: UUID) -> bytes:
    """Return the key as a licence server gets it: from the key provider."""
    names = 'xmlns:c="urn:dashif:org:cpix" xmlns:s="urn:aws:amazon:com:speke"'
    asked = (
        f'<c:CPIX {names} id="{event}"><c:ContentKeyList><c:ContentKey kid="{kid}"/></c:ContentKeyList><c:DRMSystemList>'
        f'<c:DRMSystem kid="{kid}" systemId="{WIDEVINE}"/></c:DRMSystemList></c:CPIX>'
    )
    answer = http.post("/admin/speke", content=asked, headers={"Content-Type": "application/xml"}).raise_for_status()
    [key] = etree.fromstring(answer.content).iter("{urn:ietf:params:xml:ns:keyprov:pskc}PlainValue")
    return b64decode(key.text or "")


async def plays(page: Page) -> None:
    await page.wait_for_function("() => document.querySelector('video')?.readyState >= 2", timeout=120_000)
    video = page.get_by_label("Film", exact=True)
    await video.evaluate("video => { video.muted = true; return video.play() }")
    await page.wait_for_function("() => document.querySelector('video').currentTime > 1", timeout=120_000)
    await video.evaluate("video => { video.controls = false }")
    dark, bright = extremes(await video.screenshot(type="jpeg"))
    assert dark < 80 < 170 < bright, "the frames show their numbers in black and white"


def extremes(picture: bytes) -> tuple[int, int]:
    """The darkest and the brightest grey in the middle of a picture. A canvas shows no protected film."""
    command = [
        tool("ffmpeg"),
        "-v",
        "error",
        "-f",
        "jpeg_pipe",
        "-i",
        "-",
        "-vf",
        "crop=iw/2:ih/2,format=gray",
        "-f",
        "rawvideo",
        "-",
    ]
    greys = subprocess.run(command, input=picture, capture_output=True, check=True, timeout=60).stdout
    return min(greys), max(greys)


@pytest.mark.long
async def test_a_protected_film_plays_with_a_licence_and_not_without(browser: Browser, tmp_path: Path) -> None:
    with licence_server() as licences, products() as started:
        home = migrated_home(tmp_path / "home")
        product = started.start(home, admin_api_key=KEY, console_media_origins=licences.address).until_ready()
        with client(product, KEY) as http:
            event = protected_film(http, home / "media")
            described = json.loads(str(shown(http, event)["drmJson"]))
            kid = UUID(described["drm_data"][0]["key_id"])
            async with visitor(browser, product.address, key=KEY) as came:
                page = await came.open()
                await page.goto(f"{product.address}/console/events/{event}?tab=playback")
                await expect(page.get_by_role("alert")).to_contain_text("licence server", timeout=120_000)

                described["drm_data"].append({"name": "CLEARKEY", "laurl": f"{licences.address}/licence"})
                change = [{"op": "replace", "path": "/drmJson", "value": json.dumps(described)}]
                patch = {"Content-Type": "application/json-patch+json"}
                http.patch(f"/api/event/{event}", content=json.dumps(change), headers=patch).raise_for_status()
                licences.keys[kid.bytes] = content_key(http, event, kid)
                await page.get_by_label("Stream").select_option(label="DASH, package with DRM (cenc)")
                await plays(page)
                assert licences.asked >= 1
                assert (home / "media" / event / f"{event}.mp4").is_file()
                assert "MP4 file" not in await page.get_by_label("Stream").inner_text(), "the file is in the clear"
                assert licences.keys[kid.bytes].hex() not in await page.content()
