"""Callbacks: made and named by jobs, removed when no job names them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from uuid import RFC_4122, UUID

import pytest

from domain.kernel.encryption import EncryptedSecret, SecretRef
from domain.kernel.errors import NotFound
from domain.record.record import Record
from domain.webhook.callback import Callback, callback_key
from domain.webhook.commands import NameCallback
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact, given

URL = "https://hooks.test/a"
KEY = callback_key(client="studio", url=URL)
REGISTERED, AMENDED, DELETED, RESTORED = Callback.EVENTS
TODAY = NOW.date()


def ref(number: int) -> SecretRef:
    return SecretRef(reference=UUID(int=number), fingerprint=f"mark {number}")


def sealed(number: int) -> EncryptedSecret:
    return EncryptedSecret(UUID(int=number), f"callback:{KEY}", "k", f"mark {number}", b"", b"")


def details(*, named_on: date = TODAY, secret: int = 1, **values: Any) -> dict[str, Any]:
    return {"client": "studio", "webhook_url": URL, "named_on": named_on, "secrets": {"signing": ref(secret)}, **values}


def a_callback(*then: Fact, named_on: date = TODAY, **values: Any) -> Scenario[Any]:
    return given(Callback, KEY, fact(REGISTERED, **details(named_on=named_on, **values)), *then)


def name(*, secret: int = 5) -> NameCallback:
    return NameCallback(KEY, "studio", URL, sealed(secret))


def holds(callback: Record | None) -> set[int]:
    assert callback is not None
    return {secret.int for secret in callback.secrets()}


def test_the_first_job_makes_it_with_a_secret_of_its_own() -> None:
    made = given(Callback, KEY).when(name(secret=1)).then(fact(REGISTERED, **details()))
    assert (holds(made), made.details.label) == ({1}, TODAY.isoformat())


@pytest.mark.parametrize("disabled_at", [None, THEN])
def test_naming_it_is_an_event_once_a_day_and_changes_nothing_else(disabled_at: Any) -> None:
    yesterday = a_callback(named_on=TODAY - timedelta(days=1), disabled_at=disabled_at)
    for command in (name(), Callback.name.on(KEY)):
        named = yesterday.when(command).then(fact(AMENDED, named_on=TODAY))
        assert (holds(named), named.details.disabled_at) == ({1}, disabled_at)
    a_callback(disabled_at=disabled_at).when(name()).then_nothing()
    a_callback(named_on=TODAY + timedelta(days=1)).when(name()).then_nothing()


def test_a_deleted_one_is_made_again_with_another_secret_by_a_job_only() -> None:
    gone = a_callback(fact(DELETED), disabled_at=THEN)
    back = gone.when(name()).then(fact(RESTORED, **details(secret=5)))
    assert (holds(back), back.details.disabled_at) == ({5}, None)
    gone.when(Callback.name.on(KEY)).then_refused(NotFound)


def test_it_is_removed_only_when_no_job_has_named_it_since_a_day() -> None:
    a_callback(named_on=TODAY).when(Callback.remove_unused.on(KEY, TODAY)).then_nothing()
    removed = a_callback(named_on=TODAY - timedelta(days=1)).when(Callback.remove_unused.on(KEY, TODAY)).then(fact(DELETED))
    assert holds(removed) == set()
    a_callback(fact(DELETED), named_on=TODAY - timedelta(days=1)).when(Callback.remove_unused.on(KEY, TODAY)).then_nothing()


def test_a_rotated_secret_signs_beside_the_new_one() -> None:
    rotated = a_callback().when(Callback.rotate.on(KEY, sealed(3).ref).with_secrets([sealed(3)])).after
    assert holds(rotated) == {1, 3}
    disabled = a_callback().when(Callback.amend.on(KEY, {"disabled_at": NOW})).after
    assert disabled is not None
    assert disabled.details.disabled_at == NOW.replace(microsecond=NOW.microsecond // 1000 * 1000)


def test_the_id_depends_on_client_and_address() -> None:
    asked = [callback_key(client=client, url=url) for client in ("a", "b") for url in ("https://x/", "https://x/1")]
    assert len(set(asked)) == 4
    assert asked[0] == callback_key(client="a", url="https://x/")
    assert {(key.version, key.variant) for key in asked} == {(8, RFC_4122)}
    assert callback_key(client="ab", url="c") != callback_key(client="a", url="bc")
