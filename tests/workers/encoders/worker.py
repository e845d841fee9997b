"""A process with one encoder, for tests that kill or freeze it: URL of a point, and seconds that it may send."""

from __future__ import annotations

import asyncio
import sys
import time

from tests.contract.encoder.ffmpeg_stage import LOCAL, ffmpeg_encoder, ffmpeg_plan
from workers.adapters.outbound_http import GuardedClient


async def main(url: str, *, seconds: float) -> None:
    until = time.monotonic() + seconds
    run = await ffmpeg_encoder(GuardedClient(LOCAL)).start(
        ffmpeg_plan(url), channel="news", session=7, may_send=lambda: time.monotonic() < until
    )
    await run.ended()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], seconds=float(sys.argv[2]) if len(sys.argv) > 2 else 3_600))
