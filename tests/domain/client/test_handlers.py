"""Use cases on clients over in-memory twins."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from domain.client.aggregate import NewKey
from domain.client.commands import RegisterClient
from domain.client.handlers import API_KEY, ClientHandlers, PlainApiKey
from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.idempotency import IdempotencyKey
from domain.kernel.ports import Invocation
from tests.domain.memory import Memory

ME = Invocation.by("me")
KEY = PlainApiKey("k1", "mlk_k1_secret")
ADMIN = RegisterClient("admin", ("admin",), NewKey("a1", "aa"))
STUDIO = RegisterClient("studio", ("operator",), NewKey("s1", "bb"))


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def clients(memory: Memory) -> ClientHandlers:
    return ClientHandlers(memory.executor, memory.admins)


async def test_a_registered_client_has_the_hash_of_its_key(memory: Memory, clients: ClientHandlers) -> None:
    outcome = await clients.register("studio", ["viewer"], key=KEY, invocation=ME)
    assert [(key.key_id, key.key_hash) for key in outcome.aggregate.keys] == [("k1", sha256(b"mlk_k1_secret").hexdigest())]
    assert outcome.secrets == {API_KEY: "mlk_k1_secret"}
    assert memory.topics == ["client.registered", "client.key_issued"]
    assert memory.admins.invalidated == 1


async def test_a_key_is_in_no_event_and_no_repeat(memory: Memory, clients: ClientHandlers) -> None:
    keyed = replace(ME, idempotency=IdempotencyKey("me", "once", b"", 201))
    outcome = await clients.register("studio", ["viewer"], key=KEY, invocation=keyed)
    assert "secret" not in repr(memory.happened) + repr(outcome) + repr(KEY)
    repeated = memory.outcome("me", "once")
    assert repeated.secrets == {}
    assert [key.key_id for key in repeated.aggregate.keys] == ["k1"]


async def test_an_issued_key_is_the_last_of_its_client(memory: Memory, clients: ClientHandlers) -> None:
    await memory.given(STUDIO)
    outcome = await clients.issue_key("studio", key=KEY, expire_others_after=60, invocation=ME)
    assert [(key.key_id, key.expires_at is None) for key in outcome.aggregate.keys] == [("s1", False), ("k1", True)]
    assert outcome.secrets == {API_KEY: "mlk_k1_secret"}


async def test_a_repeat_shows_the_key_of_the_first_request(memory: Memory, clients: ClientHandlers) -> None:
    await memory.given(STUDIO)
    keyed = replace(ME, idempotency=IdempotencyKey("me", "once", b"", 201))
    await clients.issue_key("studio", key=KEY, invocation=keyed)
    await clients.issue_key("studio", key=PlainApiKey("k2", "another"), invocation=ME)
    assert memory.outcome("me", "once").aggregate.keys[-1].key_id == "k1"


async def test_the_last_admin_keeps_its_role_and_its_key(memory: Memory, clients: ClientHandlers) -> None:
    await memory.given(ADMIN, STUDIO)
    with pytest.raises(Refused):
        await clients.change("admin", ["viewer"], invocation=ME)
    with pytest.raises(Refused):
        await clients.revoke_key("admin", "a1", invocation=ME)
    with pytest.raises(Refused):
        await clients.delete("admin", invocation=ME)
    assert memory.topics == []


async def test_one_of_two_admins_can_be_deleted(memory: Memory, clients: ClientHandlers) -> None:
    await memory.given(ADMIN, replace(STUDIO, roles=("admin",)))
    outcome = await clients.delete("admin", invocation=ME)
    assert [client.roles for client in outcome.previous] == [("admin",)]
    assert outcome.aggregate.deleted
    with pytest.raises(Refused):
        await clients.delete("studio", invocation=ME)


async def test_a_revoked_key_is_among_the_previous_ones(memory: Memory, clients: ClientHandlers) -> None:
    await memory.given(STUDIO)
    outcome = await clients.revoke_key("studio", "s1", invocation=ME)
    assert [key.key_id for key in outcome.previous[0].keys] == ["s1"]
    assert outcome.aggregate.keys == ()
    with pytest.raises(NotFound):
        await clients.revoke_key("studio", "s1", invocation=ME)


async def test_null_sets_the_default_of_a_drm_setting(memory: Memory, clients: ClientHandlers) -> None:
    await memory.given(STUDIO)
    await clients.configure_drm("studio", {"widevine_provider": "acme", "content_id_in_pssh": True}, invocation=ME)
    outcome = await clients.configure_drm("studio", {"widevine_provider": None}, invocation=ME)
    assert (outcome.aggregate.drm.widevine_provider, outcome.aggregate.drm.content_id_in_pssh) == (None, True)
    assert memory.admins.invalidated == 2
    with pytest.raises(Malformed):
        await clients.configure_drm("studio", {"fairplay_uri_template": "http://x"}, invocation=ME)
