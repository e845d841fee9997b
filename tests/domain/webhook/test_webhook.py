"""Decisions of webhooks, and which secrets they keep."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret, SecretRef
from domain.kernel.errors import Malformed, NotFound
from domain.record.record import Record, RegisterRecord
from domain.webhook.aggregate import Webhook, extra_headers
from domain.webhook.details import WebhookDetails
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact, given

KEY = UUID(int=7)
REGISTERED, AMENDED, DELETED, _ = Webhook.EVENTS
URL = "https://hooks.test/a"


def ref(number: int, mark: str = "") -> SecretRef:
    return SecretRef(reference=UUID(int=number), fingerprint=mark or f"mark {number}")


def text(**headers: str | None) -> str:
    """Names with _ for -."""
    return json.dumps({"headers": [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items()]})


SIGNED = {"signing": ref(1)}
WITH_TOKEN = text(X_Site="main", X_Token=None)


def no_webhook() -> Scenario[Any]:
    return given(Webhook, KEY)


def a_webhook(*since: Fact, **fields: Any) -> Scenario[Any]:
    return given(Webhook, KEY, fact(REGISTERED, **{"webhook_url": URL, "secrets": SIGNED, **fields}), *since)


def amend(**changes: Any) -> Command[Any]:
    return Webhook.amend.on(KEY, changes)


def rotate(number: int) -> Command[Webhook]:
    secret = EncryptedSecret(UUID(int=number), f"webhook:{KEY}", "k", f"mark {number}", b"", b"")
    return Webhook.rotate.on(KEY, secret.ref).with_secrets([secret])


def register(**values: Any) -> RegisterRecord:
    return RegisterRecord(KEY, Webhook, {"webhook_url": URL, "secrets": SIGNED, **values})


def holds(webhook: Record | None) -> set[int]:
    assert webhook is not None
    return {secret.int for secret in webhook.secrets()}


def fields_of(refusal: Malformed) -> list[str]:
    return [error.field for error in refusal.errors]


def test_a_new_webhook_holds_its_secrets() -> None:
    sent = {**SIGNED, "password": ref(2), "header:x-token": ref(3)}
    made = no_webhook().when(register(additional_properties_json=WITH_TOKEN, secrets=sent))
    webhook = made.then(fact(REGISTERED, webhook_url=URL, additional_properties_json=WITH_TOKEN, secrets=sent))
    assert holds(webhook) == {1, 2, 3}
    assert webhook.linkable()
    assert not webhook.links()


def test_an_address_is_required_and_must_be_valid() -> None:
    missing = no_webhook().when(RegisterRecord(KEY, Webhook, {"secrets": SIGNED})).then_refused(Malformed)
    assert fields_of(missing) == ["webhookUrl"]
    assert fields_of(no_webhook().when(register(webhook_url="ftp://a")).then_refused(Malformed)) == ["webhookUrl"]
    assert fields_of(a_webhook().when(amend(webhook_url="ftp://a")).then_refused(Malformed)) == ["webhookUrl"]
    assert fields_of(a_webhook().when(amend(username="a:b")).then_refused(Malformed)) == ["username"]


def test_basic_authentication_needs_a_username_whichever_comes_first() -> None:
    basic = {"use_http_basic_authentication": True}
    assert fields_of(no_webhook().when(register(**basic)).then_refused(Malformed)) == ["username"]
    assert fields_of(a_webhook().when(amend(**basic)).then_refused(Malformed)) == ["username"]
    assert fields_of(a_webhook(**basic, username="u").when(amend(username=None)).then_refused(Malformed)) == ["username"]
    a_webhook(username="u").when(amend(**basic)).then(fact(AMENDED, **basic))
    a_webhook().when(amend(**basic, username="u")).then(fact(AMENDED, **basic, username="u"))


def test_an_authorization_header_and_basic_authentication_exclude_each_other() -> None:
    headers = {"additional_properties_json": text(X_Site="main", AUTHORIZATION=None)}
    basic = {"use_http_basic_authentication": True, "username": "u"}
    stored = {"secrets": {**SIGNED, "header:authorization": ref(2)}}
    both = no_webhook().when(register(**headers, **basic, **stored)).then_refused(Malformed)
    later = a_webhook(**basic).when(amend(**headers, secrets={"header:authorization": ref(2)})).then_refused(Malformed)
    assert fields_of(both) == fields_of(later) == ["additionalPropertiesJson.headers[1].name"]
    assert fields_of(a_webhook(**headers, **stored).when(amend(**basic)).then_refused(Malformed)) == ["useHttpBasicAuthentication"]
    instead = a_webhook(**headers, **stored).when(amend(**basic, additional_properties_json=None))
    assert holds(instead.then(fact(AMENDED, **basic, additional_properties_json=None, secrets=SIGNED))) == {1}


def test_fields_that_are_not_sent_are_kept_and_a_repeat_changes_nothing() -> None:
    secrets = {**SIGNED, "password": ref(2), "header:x-token": ref(3)}
    webhook = a_webhook(additional_properties_json=WITH_TOKEN, secrets=secrets)
    same: list[dict[str, Any]] = [
        {},
        {"secrets": {}},
        {"additional_properties_json": WITH_TOKEN, "webhook_url": URL, "secrets": {}},
        {"secrets": {"password": ref(9, "mark 2"), "header:x-token": ref(8, "mark 3")}},
    ]
    for again in same:
        assert holds(webhook.when(amend(**again)).then_nothing()) == {1, 2, 3}


def test_a_password_is_replaced_and_cleared() -> None:
    webhook = a_webhook(secrets={**SIGNED, "password": ref(2)})
    changed = webhook.when(amend(secrets={"password": ref(3)}))
    assert holds(changed.then(fact(AMENDED, secrets={**SIGNED, "password": ref(3)}))) == {1, 3}
    assert holds(webhook.when(amend(secrets={"password": None})).then(fact(AMENDED, secrets=SIGNED))) == {1}
    a_webhook().when(amend(secrets={"password": None})).then_nothing()


def test_a_credential_belongs_to_its_header_and_null_keeps_it() -> None:
    webhook = a_webhook(additional_properties_json=WITH_TOKEN, secrets={**SIGNED, "header:x-token": ref(2)})
    moved = text(x_TOKEN=None, Cookie=None)
    both = {**SIGNED, "header:x-token": ref(2), "header:cookie": ref(3)}
    more = webhook.when(amend(additional_properties_json=moved, secrets={"header:cookie": ref(3)}))
    assert holds(more.then(fact(AMENDED, additional_properties_json=moved, secrets=both))) == {1, 2, 3}
    other = text(X_Site="main")
    assert holds(
        webhook.when(amend(additional_properties_json=other)).then(fact(AMENDED, additional_properties_json=other, secrets=SIGNED))
    ) == {1}
    refused = webhook.when(amend(additional_properties_json=text(X_Token=None, Cookie=None, X_Site=None))).then_refused(Malformed)
    assert fields_of(refused) == [f"additionalPropertiesJson.headers[{index}].value" for index in (1, 2)]
    new = no_webhook().when(register(additional_properties_json=WITH_TOKEN)).then_refused(Malformed)
    assert fields_of(new) == ["additionalPropertiesJson.headers[1].value"]


def test_a_rotated_secret_signs_for_one_more_day_and_an_older_one_is_forgotten() -> None:
    later = NOW + timedelta(hours=24)
    once = {"signing": ref(2), "previous": ref(1)}
    rotated = a_webhook().when(rotate(2))
    assert holds(rotated.then(fact(AMENDED, secrets=once, previous_until=later))) == {1, 2}
    twice = a_webhook(fact(AMENDED, secrets=once, previous_until=THEN)).when(rotate(3))
    remaining = {"signing": ref(3), "previous": ref(2)}
    assert holds(twice.then(fact(AMENDED, secrets=remaining, previous_until=later))) == {2, 3}
    a_webhook(fact(AMENDED, secrets=once)).when(amend(secrets={"password": None})).then_nothing()
    assert [secret.ref for secret in rotate(4).sealed] == [ref(4)]


def test_a_missing_webhook_gets_no_new_secret() -> None:
    no_webhook().when(rotate(2)).then_refused(NotFound)
    gone = a_webhook().when(Webhook.delete.on(KEY)).then(fact(DELETED))
    assert holds(gone) == set()
    a_webhook(fact(DELETED)).when(rotate(2)).then_refused(NotFound)


@pytest.mark.parametrize("microsecond", [123_000, 123_456])
def test_the_time_of_disabling_is_kept_as_a_get_shows_it(microsecond: int) -> None:
    shown = NOW.replace(microsecond=123_000)
    disabled = a_webhook().when(amend(disabled_at=NOW.replace(microsecond=microsecond)))
    disabled.then(fact(AMENDED, disabled_at=shown))
    a_webhook(disabled_at=shown).when(amend(disabled_at=shown)).then_nothing()
    a_webhook(disabled_at=shown).when(amend(disabled_at=None)).then(fact(AMENDED, disabled_at=None))


def test_extra_headers_are_in_the_order_of_the_text_with_stored_credentials() -> None:
    headers = text(X_Site="main", Authorization=None, x_site="other", Cookie=None)
    details = WebhookDetails(webhook_url=URL, additional_properties_json=headers)
    opened = {"header:authorization": "Bearer 1", "header:cookie": "a=b", "password": "p", "signing": "s"}
    site, authorization, other, cookie = ("X-Site", "main"), ("Authorization", "Bearer 1"), ("x-site", "other"), ("Cookie", "a=b")
    assert extra_headers(details, opened) == [site, authorization, other, cookie]
    assert extra_headers(details, {"header:cookie": "a=b"}) == [site, other, cookie]
    assert extra_headers(WebhookDetails(webhook_url=URL), opened) == []


@pytest.mark.parametrize(
    "url", ["http://hooks.test/a", "https://other.test/a", "https://hooks.test:8443/a", "https://x.hooks.test/"]
)
def test_credentials_do_not_go_to_another_origin(url: str) -> None:
    stored = {**SIGNED, "password": ref(2), "header:x-token": ref(3)}
    webhook = a_webhook(secrets=stored, additional_properties_json=WITH_TOKEN)
    refused = webhook.when(amend(webhook_url=url)).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["additionalPropertiesJson.headers[1].value", "password"]
    again = {"password": ref(4), "header:x-token": ref(5, "mark 3")}
    assert holds(webhook.when(amend(webhook_url=url, secrets=again)).after) == {1, 3, 4}
    without = {"additional_properties_json": text(X_Site="main"), "secrets": {"password": None}}
    assert holds(webhook.when(amend(webhook_url=url, **without)).after) == {1}


@pytest.mark.parametrize("url", ["https://hooks.test/b?c", "https://HOOKS.test:443/a", "https://hooks.test./a"])
def test_credentials_stay_at_their_origin(url: str) -> None:
    webhook = a_webhook(secrets={**SIGNED, "password": ref(2)})
    assert holds(webhook.when(amend(webhook_url=url)).after) == {1, 2}
