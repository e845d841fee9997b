"""Clients, their roles and API keys: docs/reference/api/clients.md."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta

import pytest

from domain.client import events
from domain.client.aggregate import ApiKey, Client, NewKey
from domain.client.commands import ConfigureClientDrm, RegisterClient
from domain.client.roles import Role
from domain.drm.settings import DrmSettings
from domain.kernel.command import Command
from domain.kernel.errors import Conflict, Malformed, NotFound, Refused
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact, given

NAME = "studio-1"
FIRST = NewKey("k1", "aa")
SECOND = NewKey("k2", "bb")


def nobody(name: str = NAME) -> Scenario[Client]:
    return given(Client, name)


def a_client(*since: Fact, roles: tuple[str, ...] = ("operator",)) -> Scenario[Client]:
    return given(Client, NAME, fact(events.ClientRegistered, roles=roles), issued(FIRST), *since)


def an_admin(*since: Fact) -> Scenario[Client]:
    return a_client(*since, roles=("admin",))


def issued(key: NewKey) -> Fact:
    return fact(events.KeyIssued, key_id=key.key_id, key_hash=key.key_hash)


def ends(key: NewKey, at: datetime) -> Fact:
    return fact(events.KeyExpirySet, key_id=key.key_id, expires_at=at)


DELETED = fact(events.ClientDeleted)


class TestRegistering:
    def test_a_client_comes_with_its_first_key(self) -> None:
        client = (
            nobody()
            .when(RegisterClient(NAME, ("keys",), FIRST))
            .then(fact(events.ClientRegistered, roles=("keys",)), issued(FIRST))
        )
        assert (client.key, client.roles, client.registered_at) == (NAME, ("keys",), NOW)
        assert client.keys == (ApiKey("k1", "aa", NOW),)

    def test_roles_come_without_twins_and_in_the_order_of_the_contract(self) -> None:
        command = RegisterClient(NAME, ("admin", "viewer", "admin", "keys"), FIRST)
        nobody().when(command).then(fact(events.ClientRegistered, roles=("viewer", "keys", "admin")), issued(FIRST))
        assert tuple(Role) == ("viewer", "operator", "auditor", "keys", "admin")

    @pytest.mark.parametrize("roles", [(), ("viewer", "root"), ("Viewer",), ("",)])
    def test_no_role_or_an_unknown_one_is_bad_input(self, roles: tuple[str, ...]) -> None:
        refused = nobody().when(RegisterClient(NAME, roles, FIRST)).then_refused(Malformed)
        assert [error.field for error in refused.errors] == ["roles"]

    @pytest.mark.parametrize(
        "name",
        ["", "a" * 65, "a/b", "a b", "ä", "a\n", "%", "api", "engine", "console", "livez", "readyz", "metrics", "docs", ".", ".."],
    )
    def test_a_name_that_is_malformed_or_reserved_is_bad_input(self, name: str) -> None:
        refused = nobody(name).when(RegisterClient(name, ("keys",), FIRST)).then_refused(Malformed)
        assert [error.field for error in refused.errors] == ["name"]

    @pytest.mark.parametrize("name", ["openapi.json", "asyncapi.json", "favicon.ico"])
    def test_a_file_that_is_served_is_no_name(self, name: str) -> None:
        nobody(name).when(RegisterClient(name, ("keys",), FIRST)).then_refused(Malformed)

    @pytest.mark.parametrize("name", ["a", "a" * 64, "FILM", "...", "a.b_c-d", "0"])
    def test_names_of_the_contract_are_taken(self, name: str) -> None:
        client = (
            nobody(name)
            .when(RegisterClient(name, ("keys",), FIRST))
            .then(fact(events.ClientRegistered, roles=("keys",)), issued(FIRST))
        )
        assert client.id == f"client:{name}"

    def test_a_name_in_use_is_a_conflict(self) -> None:
        a_client().when(RegisterClient(NAME, ("keys",), SECOND)).then_refused(Conflict)

    def test_a_removed_name_may_be_used_again_by_a_client_without_the_old_keys(self) -> None:
        again = a_client(DELETED).when(RegisterClient(NAME, ("keys",), SECOND))
        client = again.then(fact(events.ClientRestored, roles=("keys",)), issued(SECOND))
        assert (client.roles, client.registered_at, client.deleted) == (("keys",), NOW, False)
        assert [key.key_id for key in client.keys] == ["k2"]

    def test_a_removed_name_is_used_again_with_known_roles_only(self) -> None:
        a_client(DELETED).when(RegisterClient(NAME, (), SECOND)).then_refused(Malformed)


class TestRoles:
    def test_other_roles_replace_the_old_ones(self) -> None:
        command = Client.change.on(NAME, ("auditor", "viewer"), other_admins=False)
        client = a_client().when(command).then(fact(events.RolesChanged, roles=("viewer", "auditor")))
        assert client.roles == ("viewer", "auditor")

    def test_the_same_roles_are_no_news(self) -> None:
        a_client().when(Client.change.on(NAME, ("operator", "operator"), other_admins=False)).then_nothing()

    def test_the_last_admin_keeps_its_role(self) -> None:
        an_admin().when(Client.change.on(NAME, ("viewer",), other_admins=False)).then_refused(Refused)
        an_admin().when(Client.change.on(NAME, ("viewer", "admin"), other_admins=False)).then(
            fact(events.RolesChanged, roles=("viewer", "admin"))
        )

    def test_an_admin_beside_others_may_lose_its_role(self) -> None:
        an_admin().when(Client.change.on(NAME, ("viewer",), other_admins=True)).then(fact(events.RolesChanged, roles=("viewer",)))

    def test_bad_roles_are_bad_input(self) -> None:
        a_client().when(Client.change.on(NAME, ("root",), other_admins=True)).then_refused(Malformed)


class TestIssuingKeys:
    def test_a_new_key_stands_beside_the_others(self) -> None:
        client = a_client().when(Client.issue_key.on(NAME, SECOND)).then(issued(SECOND))
        assert client.keys == (ApiKey("k1", "aa", THEN), ApiKey("k2", "bb", NOW))

    def test_a_rotation_ends_the_others_after_an_overlap(self) -> None:
        end = NOW + timedelta(seconds=60)
        client = a_client().when(Client.issue_key.on(NAME, SECOND, expire_others_after=60)).then(issued(SECOND), ends(FIRST, end))
        old, new = client.keys
        assert (old.expires_at, new.expires_at) == (end, None)
        assert old.usable(end - timedelta(milliseconds=1))
        assert not old.usable(end)
        assert new.usable(end)

    def test_a_rotation_without_an_overlap_ends_them_now(self) -> None:
        client = a_client().when(Client.issue_key.on(NAME, SECOND, expire_others_after=0)).then(issued(SECOND), ends(FIRST, NOW))
        assert [key.usable(NOW) for key in client.keys] == [False, True]

    def test_an_earlier_end_of_a_key_is_kept(self) -> None:
        soon, late = NOW + timedelta(seconds=1), NOW + timedelta(days=1)
        a_client(ends(FIRST, soon)).when(Client.issue_key.on(NAME, SECOND, expire_others_after=60)).then(issued(SECOND))
        a_client(ends(FIRST, late)).when(Client.issue_key.on(NAME, SECOND, expire_others_after=60)).then(
            issued(SECOND), ends(FIRST, NOW + timedelta(seconds=60))
        )


class TestRevokingKeys:
    def test_a_revoked_key_is_gone(self) -> None:
        client = (
            a_client(issued(SECOND))
            .when(Client.revoke_key.on(NAME, "k1", other_admins=False))
            .then(fact(events.KeyRevoked, key_id="k1"))
        )
        assert [key.key_id for key in client.keys] == ["k2"]

    def test_an_unknown_key_is_not_found(self) -> None:
        refused = a_client().when(Client.revoke_key.on(NAME, "k9", other_admins=True)).then_refused(NotFound)
        assert refused.key == "k9"

    def test_the_last_admin_keeps_its_last_usable_key(self) -> None:
        revoke = Client.revoke_key.on(NAME, "k1", other_admins=False)
        an_admin().when(revoke).then_refused(Refused)
        an_admin(issued(SECOND), ends(SECOND, NOW)).when(revoke).then_refused(Refused)
        an_admin(issued(SECOND)).when(revoke).then(fact(events.KeyRevoked, key_id="k1"))

    def test_an_admin_beside_others_and_everybody_else_may_lose_the_last_key(self) -> None:
        an_admin().when(Client.revoke_key.on(NAME, "k1", other_admins=True)).then(fact(events.KeyRevoked, key_id="k1"))
        a_client().when(Client.revoke_key.on(NAME, "k1", other_admins=False)).then(fact(events.KeyRevoked, key_id="k1"))


class TestRemoving:
    def test_a_removed_client_has_no_keys(self) -> None:
        client = a_client().when(Client.delete.on(NAME, other_admins=False)).then(DELETED)
        assert (client.deleted, client.keys) == (True, ())

    def test_the_last_admin_stays(self) -> None:
        an_admin().when(Client.delete.on(NAME, other_admins=False)).then_refused(Refused)
        an_admin().when(Client.delete.on(NAME, other_admins=True)).then(DELETED)


COMMANDS: list[Command[Client]] = [
    Client.change.on(NAME, ("viewer",), other_admins=True),
    Client.issue_key.on(NAME, SECOND),
    Client.revoke_key.on(NAME, "k1", other_admins=True),
    Client.delete.on(NAME, other_admins=True),
    ConfigureClientDrm(NAME, {"widevine_provider": "x"}),
]


@pytest.mark.parametrize("command", COMMANDS, ids=[type(command).__name__ for command in COMMANDS])
def test_nothing_can_be_asked_of_a_client_that_is_not_there(command: Command[Client]) -> None:
    nobody().when(command).then_refused(NotFound)
    a_client(DELETED).when(command).then_refused(NotFound)


def test_no_event_holds_a_key() -> None:
    members = {name for event in events.EVENTS for name in event.model_fields} - {field.name for field in fields(DrmSettings)}
    assert members == {"originator_id", "originator_version", "timestamp", "roles", "key_id", "key_hash", "expires_at", "trusted"}


def drm(**changed: object) -> Fact:
    return fact(events.ClientDrmConfigured, **asdict(replace(DrmSettings(), **changed)))  # type: ignore[arg-type]


class TestDrmSettings:
    def test_what_is_not_named_stays_and_none_is_the_default(self) -> None:
        changed = a_client().when(ConfigureClientDrm(NAME, {"widevine_provider": "acme", "content_id_in_pssh": True}))
        changed.then(drm(widevine_provider="acme", content_id_in_pssh=True))
        after = a_client(drm(widevine_provider="acme", content_id_in_pssh=True))
        after.when(ConfigureClientDrm(NAME, {"widevine_provider": None})).then(drm(content_id_in_pssh=True))

    def test_the_same_settings_again_change_nothing(self) -> None:
        a_client(drm(widevine_provider="acme")).when(ConfigureClientDrm(NAME, {"widevine_provider": "acme"})).then()
        a_client().when(ConfigureClientDrm(NAME, {"widevine_provider": None})).then()

    def test_settings_that_no_key_could_be_worded_with_are_not_even_a_command(self) -> None:
        with pytest.raises(Malformed) as refused:
            ConfigureClientDrm(NAME, {"fairplay_uri_template": "skd://x", "playready_la_url": "no address"})
        assert [error.field for error in refused.value.errors] == ["playreadyLaUrl", "fairplayUriTemplate"]

    def test_who_takes_a_name_over_does_not_take_its_settings_over(self) -> None:
        again = a_client(drm(widevine_provider="acme"), DELETED).when(RegisterClient(NAME, ("keys",), SECOND))
        assert again.then(fact(events.ClientRestored, roles=("keys",)), issued(SECOND)).drm == DrmSettings()

    def test_a_snapshot_keeps_them_and_an_older_one_has_the_defaults(self) -> None:
        client = a_client().when(ConfigureClientDrm(NAME, {"widevine_provider": "acme"})).then(drm(widevine_provider="acme"))
        snapshot = client.snapshot()
        assert Client.from_snapshot(stream=client.id, version=client.version, state=snapshot).drm == client.drm
        del snapshot["details"]["drm"]
        assert Client.from_snapshot(stream=client.id, version=client.version, state=snapshot).drm == DrmSettings()
