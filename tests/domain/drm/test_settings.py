"""Settings from which no sound data could be made are refused by name, all at once; sound ones are used as they are."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.drm import content_protection, fairplay, hls, playready, widevine
from domain.drm.settings import DrmSettings, checked
from domain.drm.systems import DrmSystem, KeyMaterial, Scheme
from domain.kernel.errors import Malformed, Refused

KID = UUID("9eb4050d-e44b-4802-932e-27d75083e266")
KEY = KeyMaterial(KID, b"a secret key 16b", bytes(range(16)))
GOOD = DrmSettings(
    playready_la_url="https://licences.test/pr?a=1&b=2",
    widevine_provider="acme",
    content_id_in_pssh=True,
    fairplay_uri_template="https://{host}/{client}/{content_id};{kid}:{iv}",
    fairplay_key_format_versions="1/2/5",
)
BAD_LA_URLS = ["", "licences.test", "/a", "ftp://a.test/", "https://a.test/?a=1&amp;b=2", "https://a.test/é", "https://a.test/ b"]
BAD_TEMPLATES = [
    "", "skd://", "{kid}", "http://{kid}", "skd:{kid}", "skd://fixed", "skd://{content_id}", 'skd://{kid}"', "skd://{kid} ",
    "skd://{kid}\n", "skd://{kid}{key}", "skd://{kid}{", "skd://{kid}}", "skd://{{kid}}", "skd://{kid!r}", "skd://{kid:>9}",
    "skd://{kid.hex}{kid}", "skd://{kid}é", "skd://{kid}\\", "skd://{kid}<", "skd://{KID}", "skd://{kid}" + "a" * 512,
]  # fmt: skip
BAD_VERSIONS = ["", "0", "a", "1,2", "1/", "/1", "1//2", " 1", "1\n", '1"', "-1", "٣"]
BAD = {
    "playreadyLaUrl": ("playready_la_url", [*BAD_LA_URLS, "https://a.test/" + "a" * 500]),
    "widevineProvider": ("widevine_provider", ["", "a b", "é", "a\0", "a" * 129]),
    "fairplayUriTemplate": ("fairplay_uri_template", BAD_TEMPLATES),
    "fairplayKeyFormatVersions": ("fairplay_key_format_versions", BAD_VERSIONS),
}


def test_the_defaults_and_sound_settings_stand() -> None:
    for settings in (DrmSettings(), GOOD, replace(GOOD, playready_la_url="http://10.0.0.1:8080/")):
        assert checked(settings) is settings


@pytest.mark.parametrize(
    ("wire", "name", "value"), [(wire, name, value) for wire, (name, values) in BAD.items() for value in values]
)
def test_a_setting_that_would_break_players_is_refused_by_name(wire: str, name: str, value: str) -> None:
    change: dict[str, Any] = {name: value}
    with pytest.raises(Malformed) as refused:
        checked(replace(DrmSettings(), **change))
    assert [error.field for error in refused.value.errors] == [wire]


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(Malformed) as refused:
        checked(DrmSettings("x", "", False, "x", "x"))
    assert [error.field for error in refused.value.errors] == list(BAD)


def test_a_licence_address_is_escaped_once() -> None:
    for scheme in Scheme:
        text = playready.header(KEY, scheme, la_url=GOOD.playready_la_url)
        assert "a=1&amp;b=2<" in text
        la_url = ElementTree.fromstring(text).find(".//{*}LA_URL")
        assert la_url is not None
        assert la_url.text == GOOD.playready_la_url


@given(st.text(min_size=1, max_size=256), st.text(alphabet="abcXYZ019._-", min_size=1, max_size=64))
def test_a_fairplay_uri_names_the_key_and_nothing_ends_its_attribute(content_id: str, client: str) -> None:
    content_id = content_id.encode("utf-8", "replace").decode()
    uri = fairplay.uri(KEY, GOOD, client=client, content_id=content_id, host="keys.test:8443")
    assert uri.isascii()
    assert not set(uri) & set('"\\ \r\n\t{}<>')
    assert uri.startswith(f"https://keys.test:8443/{client}/")
    assert uri.endswith(f";{KID}:000102030405060708090a0b0c0d0e0f")
    line = hls.key_line(DrmSystem.FAIRPLAY, Scheme.CBCS, uri=uri, kid=KID, versions="1/2")
    assert line.count('"') == 6


def test_the_default_fairplay_uri_differs_for_each_content() -> None:
    uri = fairplay.uri(KEY, DrmSettings(), client="acme", content_id="a/b?c {kid}", host="keys.test")
    assert uri == f"skd://keys.test/acme/a%2Fb%3Fc%20%7Bkid%7D?kid={KID}"


def test_a_fairplay_key_has_an_iv() -> None:
    with pytest.raises(ValueError, match="IV"):
        fairplay.uri(KeyMaterial(KID, KEY.key), GOOD, client="a", content_id="b", host="c")


def test_a_key_is_in_no_representation_of_it() -> None:
    assert "secret" not in repr(KEY)
    assert KEY.key.hex() not in repr(KEY)


def test_hls_knows_two_schemes() -> None:
    assert "METHOD=SAMPLE-AES-CTR," in hls.key_line(DrmSystem.WIDEVINE, Scheme.CENC, uri="data:,", kid=KID)
    for scheme in (Scheme.CENS, Scheme.CBC1):
        with pytest.raises(Refused, match=scheme):
            hls.session_key_line(DrmSystem.WIDEVINE, scheme, uri="data:,", kid=KID)


def test_content_protection_holds_the_box_and_for_playready_the_object() -> None:
    box = widevine.box([KID], Scheme.CENC, settings=GOOD, content_id="movie")
    widevine_element = ElementTree.fromstring(content_protection.xml(box))
    assert widevine_element.tag == "{urn:mpeg:cenc:2013}pssh"
    assert b64decode(widevine_element.text or "") == box
    made = playready.object_of(playready.header(KEY, Scheme.CENC, la_url=None))
    protection = content_protection.xml(playready.box(made), playready_object=made)
    elements = list(ElementTree.fromstring(b"<a>" + protection + b"</a>"))
    assert [element.tag for element in elements] == ["{urn:mpeg:cenc:2013}pssh", "{urn:microsoft:playready}pro"]
    assert [b64decode(element.text or "") for element in elements] == [playready.box(made), made]
