"""Use cases on content keys over in-memory twins."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from domain.content_key.aggregate import KeyMismatch, KidTaken, Purpose, Usage
from domain.content_key.commands import IssueContentKey
from domain.content_key.handlers import ContentKeyHandlers, ImportedKey, KeyRequest, PlainKey, key_of
from domain.kernel.errors import Malformed
from domain.kernel.ports import Invocation
from tests.domain.memory import Memory
from tests.domain.scenario import NOW

ME = Invocation.by("me")
KID = UUID("98ee5596-cd3e-a20d-163a-e382420c6eff")
OTHER_KID = UUID(int=1)


class CountedBytes:
    """Bytes that differ from draw to draw."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, size: int, /) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(size, "big")


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def handlers(memory: Memory) -> ContentKeyHandlers:
    return ContentKeyHandlers(memory.executor, memory.content_keys, vault=memory.vault, random=CountedBytes())


def request_for(content_id: str = "movie-1", client: str = "studio", **more: Any) -> KeyRequest:
    return KeyRequest(client, content_id, **more)


async def issue(handlers: ContentKeyHandlers, *requests: KeyRequest) -> list[PlainKey]:
    return await handlers.issue(requests, invocation=ME)


def values(key: PlainKey) -> tuple[UUID, bytes, bytes]:
    return key.kid, key.key, key.iv


async def test_the_same_request_gets_the_same_key(memory: Memory, handlers: ContentKeyHandlers) -> None:
    [first] = await issue(handlers, request_for())
    [again] = await issue(handlers, request_for())
    assert (first.is_new, again.is_new) == (True, False)
    assert values(again) == values(first)
    assert memory.topics == ["content_key.issued"]


async def test_a_kid_and_an_iv_of_the_packager_are_kept(handlers: ContentKeyHandlers) -> None:
    [first] = await issue(handlers, request_for(kid=KID, iv=bytes(range(16))))
    assert (first.kid, first.iv, first.id) == (KID, bytes(range(16)), key_of(client="studio", kid=KID))
    [again] = await issue(handlers, request_for(kid=KID))
    assert values(again) == values(first)


async def test_a_later_iv_is_given_back_and_not_kept(handlers: ContentKeyHandlers) -> None:
    [first] = await issue(handlers, request_for())
    [other] = await issue(handlers, request_for(iv=bytes(16)))
    assert (other.iv, other.key) == (bytes(16), first.key)
    [again] = await issue(handlers, request_for())
    assert again.iv == first.iv


@pytest.mark.parametrize("other", [{"client": "studio2"}, {"content_id": "movie-2"}, {"period": "1"}, {"slot": "2"}, {"kid": KID}])
async def test_another_request_gets_another_key(handlers: ContentKeyHandlers, other: dict[str, Any]) -> None:
    keys = await issue(handlers, request_for(), request_for(**other))
    assert len({key.key for key in keys}) == len({key.kid for key in keys}) == len({key.iv for key in keys}) == 2


async def test_two_clients_with_the_same_kid_share_no_key(handlers: ContentKeyHandlers) -> None:
    first, other = await issue(handlers, request_for(kid=KID), request_for(client="other", kid=KID))
    assert first.kid == other.kid
    assert first.key != other.key


async def test_a_kid_of_ours_that_is_sent_back_finds_its_key(handlers: ContentKeyHandlers) -> None:
    [first] = await issue(handlers, request_for(period="1"))
    for request in (request_for(kid=first.kid), request_for(kid=first.kid, period="1"), request_for(kid=first.kid, period="2")):
        [again] = await issue(handlers, request)
        assert values(again) == values(first)


async def test_a_kid_of_another_content_is_refused_before_any_key_is_issued(memory: Memory, handlers: ContentKeyHandlers) -> None:
    await issue(handlers, request_for(kid=KID))
    with pytest.raises(KidTaken):
        await issue(handlers, request_for("movie-9"), request_for("movie-9", kid=KID))
    assert memory.topics == ["content_key.issued"]


async def test_a_key_that_another_process_issued_first_is_given(memory: Memory, handlers: ContentKeyHandlers) -> None:
    purpose = request_for().purpose
    key = key_of(client="studio", kid=purpose.kid)
    theirs = memory.vault.encrypt("ab" * 16, owner=f"content_key:{key}")
    memory.meanwhile(IssueContentKey(key, purpose, bytes(16), theirs))
    [lost] = await issue(handlers, request_for())
    assert (lost.key, lost.iv, lost.is_new) == (b"\xab" * 16, bytes(16), False)
    assert memory.topics == ["content_key.issued"]


async def test_known_keys_cost_one_look_up_and_no_append(memory: Memory, handlers: ContentKeyHandlers) -> None:
    requests = [request_for(period=str(number)) for number in range(8)]
    first = await issue(handlers, *requests)
    memory.content_keys.lookups = 0
    assert [values(key) for key in await issue(handlers, *requests)] == [values(key) for key in first]
    assert (memory.content_keys.lookups, len(memory.topics)) == (1, 8)


async def test_a_new_key_records_its_first_use(memory: Memory, handlers: ContentKeyHandlers) -> None:
    [key] = await issue(handlers, request_for(systems=("widevine",), speke_version="2.0"))
    assert memory.topics == ["content_key.issued", "content_key.delivered"]
    content_key: Any = memory.log.load(f"content_key:{key.id}")
    assert content_key.usage == Usage(1, NOW, NOW, ("widevine",), ("2.0",))


def imported(key: bytes = bytes(range(16)), kid: UUID = KID, content_id: str = "movie-1") -> ImportedKey:
    return ImportedKey(Purpose("studio", content_id, "", kid), key)


async def test_an_imported_key_is_given_out(handlers: ContentKeyHandlers) -> None:
    assert await handlers.import_keys([imported(), imported()], invocation=ME) == 1
    [key] = await issue(handlers, request_for(kid=KID))
    assert (key.key, key.is_new) == (bytes(range(16)), False)
    assert await handlers.import_keys([imported(), imported(bytes(16), OTHER_KID)], invocation=ME) == 1


async def test_an_issued_key_is_never_replaced(memory: Memory, handlers: ContentKeyHandlers) -> None:
    [first] = await issue(handlers, request_for(kid=KID))
    other = imported(bytes(16), OTHER_KID)
    for keys in ([other, imported()], [other, imported(bytes(15) + b"\1", OTHER_KID)]):
        with pytest.raises(KeyMismatch):
            await handlers.import_keys(keys, invocation=ME)
    with pytest.raises(KidTaken):
        await handlers.import_keys([imported(first.key, content_id="movie-2")], invocation=ME)
    with pytest.raises(Malformed):
        await handlers.import_keys([imported(bytes(15), OTHER_KID)], invocation=ME)
    assert await handlers.import_keys([imported(first.key)], invocation=ME) == 0
    assert memory.topics == ["content_key.issued"]


async def test_no_repr_shows_a_key(handlers: ContentKeyHandlers) -> None:
    [key] = await issue(handlers, request_for())
    assert key.key.hex() not in repr(key)
    assert "\\x01\\x02\\x03" not in repr(imported())
