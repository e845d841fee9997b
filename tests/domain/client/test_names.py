"""Names of clients: reserved ones, and those that look the same."""

from __future__ import annotations

import pytest

from domain.client.aggregate import Client, NewKey
from domain.client.commands import RegisterClient
from domain.client.names import SEGMENTS, check_spelling, likeness
from domain.kernel.errors import Malformed
from tests.domain.scenario import NOW

KEY = NewKey("k", "h")
OURS = ["system", "SYSTEM", "Anonymous", "redacted", "REDACTED", "shell", "Shel1", "medialedger", "MediaLedger",
        "product", "service", "person", "ADMIN", "adm1n", "AdmIn", "API", "ap1", "Console", "speke", "l1vez"]  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_no_new_client_is_called_as_the_product_calls_itself(name: str) -> None:
    with pytest.raises(Malformed):
        RegisterClient(name, ("viewer",), KEY).decide(None, at=NOW)


def test_admin_is_the_first_client_only() -> None:
    assert RegisterClient("admin", ("admin",), KEY).decide(None, at=NOW).key == "admin"
    with pytest.raises(Malformed):
        RegisterClient("admin", ("viewer",), KEY, founding=False).decide(None, at=NOW)


def test_names_that_look_the_same_make_the_same_claim() -> None:
    for first, other in (("studio", "STUDIO"), ("studio10", "stud1olO"), ("ill", "1I1".lower()), ("news-0", "News-o")):
        assert likeness(first) == likeness(other)
        assert {
            (claim.scope, claim.value) for name in (first, other) for claim in Client.register(name, NOW, ["viewer"]).claims()
        } == {("client.name", likeness(first))}
    assert likeness("studio-a") != likeness("studio-b")


def test_clients_of_earlier_builds_go_on() -> None:
    check_spelling("system")
    for segment in SEGMENTS:
        with pytest.raises(Malformed):
            check_spelling(segment)
