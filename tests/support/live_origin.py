"""An origin that is on the air: ffmpeg makes HLS of a test picture with two sounds, as CMAF and as MPEG-TS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from tests.support.sessions import until
from workers.adapters.ffmpeg import find

_HLS = ("-f", "hls", "-hls_time", "0.5", "-hls_list_size", "8", "-hls_flags", "delete_segments+independent_segments")
_VIDEO = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "12", "-b:v", "60k", "-c:a", "aac", "-b:a", "32k")


@dataclass
class LiveOrigin:
    """`gone`: it answers 404, as when nothing is on the air. `frozen`: playlists, by their path, that stay as they are."""

    folder: Path
    url: str = ""
    gone: bool = False
    process: asyncio.subprocess.Process | None = None
    asked: list[str] = field(default_factory=list)
    frozen: dict[str, bytes] = field(default_factory=dict)

    @property
    def cmaf(self) -> str:
        return f"{self.url}/cmaf/master.m3u8"

    @property
    def ts(self) -> str:
        return f"{self.url}/ts/index.m3u8"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = self.folder / request.match_info["path"]
        self.asked.append(request.path)
        if self.gone or not path.is_file():
            return web.Response(status=404)
        if request.path in self.frozen:
            return web.Response(body=self.frozen[request.path])
        return web.Response(body=path.read_bytes())

    def freeze(self, sign: str) -> None:
        """The playlists that were asked for and have this in their path."""
        files = {path: self.folder / path.lstrip("/") for path in self.asked if sign in path and path.endswith(".m3u8")}
        self.frozen = {path: file.read_bytes() for path, file in files.items() if file.is_file()}

    async def begin(self) -> None:
        """On the air, or on the air again: the files of before are gone."""
        command = [str(find("ffmpeg")), "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=s=128x96:r=25"]
        for tone in (440, 880):
            command += ["-f", "lavfi", "-i", f"sine=frequency={tone}:sample_rate=44100"]
        cmaf, ts = self.folder / "cmaf", self.folder / "ts"
        for folder in (cmaf, ts):
            folder.mkdir(exist_ok=True)
        streams = "v:0,agroup:s a:0,agroup:s,language:en,name:en a:1,agroup:s,language:de,name:de"
        command += ["-map", "0:v", "-map", "1:a", "-map", "2:a", *_VIDEO, *_HLS, "-hls_segment_type", "fmp4"]
        command += ["-master_pl_name", "master.m3u8", "-var_stream_map", streams, "-hls_fmp4_init_filename", "init_%v.mp4"]
        command += ["-hls_segment_filename", str(cmaf / "%v_%d.m4s"), str(cmaf / "%v.m3u8")]
        command += ["-map", "0:v", "-map", "1:a", "-map", "2:a", *_VIDEO, *_HLS]
        command += ["-hls_segment_filename", str(ts / "%d.ts"), str(ts / "index.m3u8")]
        self.process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
        await until(lambda: (ts / "index.m3u8").exists() and (cmaf / "master.m3u8").exists(), seconds=60)

    async def end(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


@asynccontextmanager
async def live_origin(folder: Path) -> AsyncIterator[LiveOrigin]:
    origin = LiveOrigin(folder)
    app = web.Application()
    app.router.add_get("/{path:.*}", origin.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    origin.url = f"http://{host}:{port}"
    try:
        await origin.begin()
        yield origin
    finally:
        await origin.end()
        await runner.cleanup()
