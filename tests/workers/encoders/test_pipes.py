"""The pipes that an encode writes to: all of it is read, and a descriptor is closed once, on the event loop of the product too."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest
import uvloop

from workers.adapters.encoders.process import Pipes

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
ROUNDS = 20


def run(loop: str, main: Callable[[], object]) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())  # type: ignore[arg-type]


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_written_is_read_to_its_end(loop: str) -> None:
    got: list[bytes] = []
    body = os.urandom(1_000_000)

    async def main() -> None:
        pipes = Pipes()
        writing = int(pipes.open(got.append).removeprefix("pipe:"))
        theirs = os.dup(writing)
        pipes.started()
        reading = asyncio.create_task(pipes.read())
        with os.fdopen(theirs, "wb") as file:
            await asyncio.to_thread(file.write, body)
        await reading

    run(loop, main)
    assert b"".join(got) == body


@pytest.mark.parametrize("loop", LOOPS)
def test_a_descriptor_that_was_read_is_free_for_others_at_once(loop: str) -> None:
    async def main() -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(ROUNDS):
            pipes = Pipes()
            pipes.open(lambda _: None)
            pipes.started()
            await pipes.read()
            fresh = [descriptor for _ in range(3) for descriptor in os.pipe()]
            for _ in range(5):
                await asyncio.sleep(0)
            for descriptor in fresh:
                os.close(descriptor)  # fails where somebody else has closed it
        assert len(os.listdir("/proc/self/fd")) == before

    run(loop, main)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_reader_that_fails_ends_the_reading(loop: str) -> None:
    def refuse(_: bytes) -> None:
        raise ValueError("cannot be read")

    async def main() -> None:
        pipes = Pipes()
        writing = int(pipes.open(refuse).removeprefix("pipe:"))
        os.write(writing, b"x")
        with pytest.raises(ValueError, match="cannot be read"):
            await pipes.read()
        pipes.close()

    run(loop, main)
