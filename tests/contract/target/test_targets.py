"""The common behaviour of all targets of publications, against real servers and the twin."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from tests.support.targets.stages import Killed, Memory, Stage, order, uploaded
from workers.ports.targets import TargetFailed, UploadSource

OVERHEAD = 96 * 1024
"""Bytes on the wire besides the file: requests, encryption, greetings."""
PARTS = (1, 2, 3)
HOSTILE = ("..", ".", "", "a/../../b", "/etc/passwd", "a\\b", "a\nb", "a\0b", ".hidden", "x" * 300)
STATES: tuple[Any, ...] = (
    {},
    {"at": 10**9, "sha256": "?"},
    {"upload": "x", "key": "y", "part": 0, "sha256": ""},
    {"at": "1"},
    {"a": [1]},
)


async def test_a_check_leaves_nothing(stage: Stage) -> None:
    await stage.target().check()
    assert (dict(stage.files()), stage.unfinished()) == ({}, 0)


async def test_a_file_is_uploaded_whole(stage: Stage, file: UploadSource) -> None:
    wanted, memory = order(), Memory()
    details = await uploaded(stage.target(), file, wanted, memory)
    assert list(stage.files().values()) == [file.path.read_bytes()]
    assert (details["size"], details["sha256"], stage.unfinished()) == (file.size, file.sha256, 0)
    assert details["link"]
    assert not stage.by_name or str(wanted.id) in details["link"]
    assert memory.progress[-1].sent == file.size
    assert not any(secret in repr((details, memory.state)) for secret in stage.secrets)


@pytest.mark.parametrize("part", PARTS)
async def test_an_upload_goes_on_where_its_process_ended(stage: Stage, file: UploadSource, part: int) -> None:
    wanted, memory = order(), Memory(kill_at=part)
    if "resume" not in stage.target().capabilities:
        return
    with pytest.raises(Killed):
        await uploaded(stage.target(), file, wanted, memory)
    assert stage.files() == {}
    memory.kill_at = None
    await uploaded(stage.target(), file, wanted, memory)
    assert list(stage.files().values()) == [file.path.read_bytes()]
    assert stage.unfinished() == 0
    assert stage.sent() <= file.size + stage.part + OVERHEAD


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
async def test_an_upload_goes_on_after_the_connection_was_cut(stage: Stage, file: UploadSource, share: float) -> None:
    if stage.wire is None:
        return
    wanted, memory = order(), Memory()
    stage.wire.cut_after(int(file.size * share))
    with pytest.raises(TargetFailed) as caught:
        await uploaded(stage.target(), file, wanted, memory)
    assert caught.value.kind == "retry"
    await uploaded(stage.target(), file, wanted, memory)
    assert list(stage.files().values()) == [file.path.read_bytes()]
    assert stage.unfinished() == 0
    assert stage.sent() <= file.size + stage.part + OVERHEAD + stage.part // 16


async def test_a_finished_upload_is_not_sent_again(stage: Stage, file: UploadSource) -> None:
    wanted, memory, target = order(), Memory(), stage.target()
    first = await uploaded(target, file, wanted, memory)
    sent = stage.sent()
    if "resume" not in target.capabilities:
        return
    assert await uploaded(target, file, wanted, memory) == first
    assert stage.sent() <= sent + OVERHEAD


@pytest.mark.parametrize("state", STATES, ids=str)
async def test_a_state_of_another_file_is_not_gone_on_with(stage: Stage, file: UploadSource, state: Any) -> None:
    memory = Memory()
    memory.state = state
    await uploaded(stage.target(), file, order(), memory)
    assert list(stage.files().values()) == [file.path.read_bytes()]


async def test_a_changed_file_begins_anew(stage: Stage, file: UploadSource) -> None:
    wanted, memory = order(), Memory(kill_at=1)
    with pytest.raises(Killed):
        await uploaded(stage.target(), file, wanted, memory)
    content = bytearray(file.path.read_bytes())
    content[0] ^= 255
    file.path.write_bytes(content)
    changed = UploadSource(file.path, file.size, sha256(content).hexdigest())
    memory.kill_at = None
    await uploaded(stage.target(), changed, wanted, memory)
    assert (list(stage.files().values()), stage.unfinished()) == ([bytes(content)], 0)


async def test_a_deleted_file_is_gone_and_others_of_the_content_stay(stage: Stage, file: UploadSource) -> None:
    target, first, second = stage.target(), order(), order()
    details = await uploaded(target, file, first, Memory())
    await uploaded(target, file, second, Memory())
    answer = await target.query(first, details)
    assert answer is not None
    assert answer["size"] == file.size
    await target.delete(first, details)
    await target.delete(first, details)
    assert await target.query(first, details) is None
    assert [name for name in stage.files() if str(second.id) in name] == list(stage.files())


async def test_what_an_unfinished_upload_left_is_deleted(stage: Stage, file: UploadSource) -> None:
    wanted = order()
    with pytest.raises(Killed):
        await uploaded(stage.target(), file, wanted, Memory(kill_at=1))
    await stage.target().delete(wanted, None)
    assert (dict(stage.files()), stage.unfinished()) == ({}, 0)


@pytest.mark.parametrize("content", HOSTILE, ids=repr)
async def test_a_content_id_that_is_no_name_is_refused(stage: Stage, file: UploadSource, content: str) -> None:
    for act in (lambda target, wanted: uploaded(target, file, wanted, Memory()), lambda target, wanted: target.delete(wanted, {})):
        with pytest.raises(TargetFailed) as caught:
            await act(stage.target(), order(content))
        assert caught.value.kind == "publication"
    assert dict(stage.files()) == {}


async def test_files_are_only_there_or_not(stage: Stage) -> None:
    target = stage.target()
    if "publish" in target.capabilities:
        return
    for act in (target.publish, target.unpublish, target.update):
        with pytest.raises(TargetFailed) as caught:
            await act(order(), {})
        assert caught.value.kind == "publication"


async def test_a_missing_place_is_the_destinations_fault(stage: Stage, file: UploadSource) -> None:
    if not stage.place:
        return
    for wrong in ("not-there-0123", ""):
        target = stage.target(**{stage.place: wrong})
        for act in (target.check(), uploaded(target, file, order(), Memory())):
            with pytest.raises(TargetFailed) as caught:
                await act
            assert caught.value.kind == "destination"


async def test_a_target_that_says_nothing_is_given_up(stage: Stage, file: UploadSource) -> None:
    if stage.wire is None:
        return
    target = stage.target(seconds=0.3)
    stage.wire.swallow()
    for act in (target.check(), uploaded(target, file, order(), Memory()), target.delete(order(), {})):
        with pytest.raises(TargetFailed) as caught:
            await act
        assert caught.value.kind == "retry"
