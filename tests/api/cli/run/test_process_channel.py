"""The channel between the supervisor and a process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from api.cli.run.process_channel import ChannelClosed, ProcessChannel


@asynccontextmanager
async def pair(output: list[Any]) -> AsyncIterator[tuple[ProcessChannel, ProcessChannel]]:
    """Two connected ends. `double` is answered; `both` asks a question first; `never` has no answer."""

    async def double(value: int) -> int:
        return 2 * value

    async def both(value: int) -> int:
        return int(await answering.ask("double", value, seconds=30)) + 1

    async def never(_: object) -> None:
        await asyncio.Event().wait()

    asking = ProcessChannel(answers={"double": double}, notices={})
    answering = ProcessChannel(answers={"double": double, "both": both, "never": never}, notices={"say": output.append})
    ends = socket.socketpair()
    for channel, end in zip((asking, answering), ends, strict=True):
        await channel.connect(end)
    try:
        yield asking, answering
    finally:
        await asking.close()
        await answering.close()


async def test_questions_in_both_directions_at_the_same_time() -> None:
    async with pair([]) as (asking, _):
        assert await asyncio.gather(*(asking.ask("both", number, seconds=30) for number in range(100))) == [
            2 * number + 1 for number in range(100)
        ]


async def test_a_notice_larger_than_the_buffers_arrives_before_the_end() -> None:
    output: list[Any] = []
    async with pair(output) as (asking, answering):
        asking.tell("say", "x" * 3_000_000)
        await asking.close()
        await answering.ended()
    assert [len(text) for text in output] == [3_000_000]


async def test_a_closed_end_answers_no_questions() -> None:
    async with pair([]) as (asking, answering):
        question = asyncio.create_task(asking.ask("never", seconds=30))
        await asking.ask("double", 1, seconds=30)
        await answering.close()
        with pytest.raises(ChannelClosed):
            await question
        with pytest.raises(ChannelClosed):
            await asking.ask("double", 1, seconds=30)


async def test_a_question_without_an_answer_ends() -> None:
    async with pair([]) as (asking, _):
        with pytest.raises(TimeoutError):
            await asking.ask("never", seconds=0.01)
