"""A process with one encoder, for tests that kill or freeze it: URL of a point, and seconds that it may send from the first
time that it asks."""

from __future__ import annotations

import asyncio
import sys
import time

from tests.contract.encoder.ffmpeg_stage import LOCAL, ffmpeg_encoder, ffmpeg_plan
from workers.adapters.outbound_http import GuardedClient


async def main(url: str, *, seconds: float) -> None:
    until: float | None = None

    def may_send() -> bool:
        nonlocal until
        until = until or time.monotonic() + seconds
        return time.monotonic() < until

    run = await ffmpeg_encoder(GuardedClient(LOCAL)).start(ffmpeg_plan(url), channel="news", session=7, may_send=may_send)
    await run.ended()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], seconds=float(sys.argv[2]) if len(sys.argv) > 2 else 3_600))
