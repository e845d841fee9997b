"""Fixtures of targets: one stage for each kind of target, for all tests of a module that leave it unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.s3 import versity_endpoint as versity_endpoint
from tests.support.targets.stages import Stage, in_bucket, in_directory, in_memory, in_ssh, on_facebook, on_web, on_youtube, source
from workers.ports.targets import UploadSource


@pytest.fixture(params=["memory", "directory", "moto", "versitygw", "sftp", "http", "youtube", "facebook"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        match request.param:
            case "memory":
                made = in_memory()
            case "directory":
                made = in_directory(tmp_path / "root")
            case "moto":
                made = await stack.enter_async_context(in_bucket(request.getfixturevalue("moto_endpoint")))
            case "versitygw":
                made = await stack.enter_async_context(in_bucket(request.getfixturevalue("versity_endpoint")))
            case "sftp":
                made = await stack.enter_async_context(in_ssh(tmp_path / "root"))
            case "youtube":
                made = await stack.enter_async_context(on_youtube())
            case "facebook":
                made = await stack.enter_async_context(on_facebook())
            case _:
                made = await stack.enter_async_context(on_web())
        yield made
        for target in made.opened:
            await target.close()


@pytest.fixture
def file(stage: Stage, tmp_path: Path) -> UploadSource:
    return source(tmp_path, stage.size)
