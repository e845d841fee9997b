"""Whole jobs keep colours: their output of colour bars is compared as viewers of pictures show it, and in Chromium."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.packages import run
from tests.support.programs import program
from tests.support.sources.bars import BARS, JFIF, SOURCES, Rgb, agree, colours_of, rgb_bars, shown_stream
from tests.workers.job.chromium import opened
from tests.workers.job.sources import ffmpeg
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

CLIP: dict[str, Any] = {"start": "00:00:00.400", "end": "00:00:01.200"}
CHROMIUM = 12
"""The deviation of Chromium without a graphics processor with BT.709, since it rounds the coefficients."""
PAGE = """<!doctype html><script>
async function read(name) {
  const video = document.createElement("video");
  video.muted = true;
  video.src = name;
  await new Promise((done, failed) => { video.onloadeddata = done; video.onerror = () => failed(video.error.message); });
  video.currentTime = 0.4;
  await new Promise((done) => { video.onseeked = done; });
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
  const drawn = canvas.getContext("2d");
  drawn.drawImage(video, 0, 0);
  const at = (bar) => drawn.getImageData((bar + 0.5) * canvas.width / BARS, canvas.height / 2, 1, 1).data;
  return Array.from({ length: BARS }, (_, bar) => Array.from(at(bar)).slice(0, 3));
}
read("film.mp4").catch(String).then((seen) => fetch("told", { method: "POST", body: JSON.stringify(seen) }));
</script>"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("colours") / "media"
    (root / "in").mkdir(parents=True)
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[ip_network("127.0.0.1/32")], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.mark.parametrize("name", ["709 in SD", "nothing named, SD", "PQ", "rgb"])
async def test_a_film_and_its_pictures_show_the_colours_of_the_source(
    hosts: StepProcessPool, root: Path, tmp_path: Path, name: str
) -> None:
    wanted: Sequence[Rgb] = BARS
    if name == "rgb":
        source = rgb_bars(root / "in" / "rgb.mov")
    else:
        source = SOURCES[name].make(root / "in" / f"{name}.mkv")
        wanted = [SOURCES[name].wanted(colour) for colour in BARS]
    made = await run(hosts, root, "vod_ingest", content_id=name, file=f"in/{source.name}")
    assert not isinstance(made, StepFailure), made
    agree(colours_of(root / name / "thumbnail.jpg", how=JFIF), wanted)
    agree(colours_of(root / name / "sprites-1.jpg", how=f"{JFIF},crop=160:ih:0:0"), wanted, near=8)
    shown = root / name / "clear" / made["renditions"]["videos"][0]["file"]
    for film in (root / name / f"{name}.mp4", shown):
        agree(colours_of(film, how=_decoded(film)), wanted)
    agree(await _in_chromium(shown, home=tmp_path), wanted, near=CHROMIUM)

    for workflow, file, how in (("asset_image", "image.jpg", JFIF), ("asset_gif", "clip.gif", "null")):
        times: dict[str, Any] = {"time": "00:00:00.400"} if workflow == "asset_image" else CLIP
        asset = await run(hosts, root, workflow, content_id="in", source=source.name, name=f"{name}/{file}", **times)
        assert not isinstance(asset, StepFailure), asset
        agree(colours_of(root / "in" / name / file, how=how), wanted)
    clip = await run(
        hosts, root, "asset_video", content_id="in", source=source.name, name=f"{name}/clip.mp4", frame_accurate=True, **CLIP
    )
    assert not isinstance(clip, StepFailure), clip
    agree(colours_of(root / "in" / name / "clip.mp4", how=_decoded(root / "in" / name / "clip.mp4")), wanted)


def _decoded(film: Path) -> str:
    """Return the filter that decodes a film as a player does. The film must state everything that is needed for it."""
    stream = shown_stream(film)
    assert {"unknown", None}.isdisjoint(stream.get(f"color_{what}") for what in ("space", "primaries", "transfer", "range"))
    return f"scale=in_color_matrix={stream['color_space']}:in_range=tv"


async def _in_chromium(film: Path, *, home: Path) -> Sequence[Rgb]:
    reports: asyncio.Queue[Sequence[Rgb]] = asyncio.Queue()

    async def give(_: web.Request) -> web.FileResponse:
        return web.FileResponse(film)

    async def tell(request: web.Request) -> web.Response:
        await reports.put(json.loads(await request.text()))
        return web.Response()

    app = web.Application()
    app.router.add_get("/", _page)
    app.router.add_get("/film.mp4", give)
    app.router.add_post("/told", tell)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with opened(program("chromium"), f"http://127.0.0.1:{runner.addresses[0][1]}/", home=home / "profile"):
            return await asyncio.wait_for(reports.get(), 120)
    finally:
        await runner.cleanup()


async def test_a_film_of_several_colours_has_those_that_most_of_it_has(hosts: StepProcessPool, root: Path) -> None:
    names = {"709 in SD": "3" * 8, "601, 525 lines": "6" * 8, "HLG": "9" * 8}
    for name, start in names.items():
        event = f"{start}-0000-4000-8000-000000000000"
        (root / event).mkdir()
        made = SOURCES[name].make(root / "in" / f"{event}.mkv")
        codec = (
            ("libx265", "-x265-params", "log-level=none:lossless=1")
            if name == "HLG"
            else ("libx264", "-qp", "4", "-pix_fmt", "yuv420p")
        )
        ffmpeg("-i", str(made), "-c:v", *codec, str(root / event / f"{event}.mp4"))
    items = [{"type": 0, "value": f"{start}-0000-4000-8000-000000000000"} for start in names.values()]
    playlist = {"items": [*items, items[0]]}
    composed = await run(hosts, root, "compose", generation=0, playlist=playlist)
    assert not isinstance(composed, StepFailure), composed
    assert composed["sources"]["copied"] == 2, "what has the colours of the film already"
    film = root / "film" / "film.mp4"
    assert shown_stream(film)["color_space"] == "bt709"
    for place, name in enumerate((*names, "709 in SD")):
        wanted = [SOURCES[name].wanted(colour) for colour in BARS]
        agree(colours_of(film, how=f"select=eq(n\\,{10 * place + 5}),{_decoded(film)}"), wanted)


async def _page(_: web.Request) -> web.Response:
    return web.Response(text=PAGE.replace("BARS", str(len(BARS))), content_type="text/html")
