"""The hosts that provisioning reports, and the addresses that are filled with them."""

from __future__ import annotations

import pytest

from domain.channel.hosts import LISTED, fill_placeholders, has_placeholder, hosts_in, is_listed, merge_reported


def test_the_hosts_of_resources_are_found_in_any_case() -> None:
    resources = [
        {"Name": "origin-1", "ipaddress": " 192.0.2.7 ", "DNS": "o.example", "size": "large"},
        {"name": "origin-2", "internalIpAddress": "2001:db8::7", "internalDns": "o-2"},
        {"name": "origin-3"},
    ]
    assert hosts_in(resources) == {
        "origin-1": {"ipAddress": "192.0.2.7", "dns": "o.example"},
        "origin-2": {"internalIpAddress": "[2001:db8::7]", "internalDns": "o-2"},
        "origin-3": {},
    }


@pytest.mark.parametrize(
    "value",
    [
        *("evil.example/", "evil.example:80", "u@evil.example", "a b", "a?", "a#", "a\\b", "{dns}", "fe80::1%eth0", ""),
        *(7, None, ["a"], "x" * 254),
    ],
)
def test_what_is_no_host_fills_nothing(value: object) -> None:
    assert hosts_in([{"name": "o", "dns": value}]) == {"o": {}}


def test_what_a_profile_alone_says_of_a_host_is_marked() -> None:
    listed = {"name": "o", "DNS": "evil.example", "dns": "evil.example", "IPAddress": "192.0.2.7", "internalDns": None}
    some = merge_reported(listed, {"name": "o", "dns": "o.example"})
    assert some == {"name": "o", "dns": "o.example", "IPAddress": "192.0.2.7", "internalDns": None, LISTED: ["ipAddress"]}
    assert merge_reported({"name": "o"}, {"dns": "o.example"}) == {"name": "o", "dns": "o.example"}
    forged = merge_reported({**listed, LISTED: []}, {})
    for resource, static, of_profile in (
        (some, False, ["http://{ipaddress}/"]),
        (some, True, ["http://{DNS}/", "http://{ipaddress}/"]),
        (forged, False, ["http://{DNS}/", "http://{ipaddress}/"]),
        ({**some, LISTED: 7}, False, []),
    ):
        [host] = hosts_in([resource], static=static).values()
        urls = ("http://{DNS}/", "http://{ipaddress}/", "http://{internalDns}/", "http://a/")
        assert [url for url in urls if is_listed(url, host)] == of_profile


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://{dns}:8080/{DNS}/live", "http://o.example:8080/o.example/live"),
        ("rtmp://{ipAddress}/app/key", "rtmp://[2001:db8::7]/app/key"),
        ("rtmp://[{ipaddress}]/app/key", "rtmp://[2001:db8::7]/app/key"),
        ("http://{internalDns}/{dns}", "http://{internalDns}/o.example"),
        ("http://{contentId}/[[a]]", "http://{contentId}/[[a]]"),
    ],
)
def test_addresses_are_filled_with_what_is_known(url: str, expected: str) -> None:
    [host] = hosts_in([{"name": "o", "dns": "o.example", "ipAddress": "2001:db8::7"}]).values()
    assert fill_placeholders(url, host) == expected
    assert has_placeholder(expected) == ("{" in expected)
