"""Our formats equal the published and measured ones, byte for byte: every vector, each kind in a test of its own."""

from __future__ import annotations

import ast
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap

from domain.drm import fairplay, hls, playready, pssh, widevine
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem, KeyMaterial, Scheme, system_of
from tests.domain.drm.vectors_given import IV, Vector, header_text, kinds, material, of_kind, raw, scheme, system_ids

PLAIN = DrmSettings()
CUSTOM_ATTRIBUTES = re.compile(r"<CUSTOMATTRIBUTES>.*</CUSTOMATTRIBUTES>")
FAIRPLAY_TEMPLATES = {
    "9eb4050d-e44b-4802-932e-27d75083e266": "skd://{kid}",
    "297f600f-1234-1234-b060-2ac13cc42585": "skd://fps.ezdrm.com/;{kid}",
}


def test_no_vector_is_left_out() -> None:
    tree = ast.parse(Path(__file__).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    tested = {ast.literal_eval(call.args[0]) for call in calls if isinstance(call.func, ast.Name) and call.func.id == "of_kind"}
    assert tested == set(kinds())
    assert kinds().total() == 44


def test_systems_are_known_by_their_ids() -> None:
    ids = system_ids()
    assert [system_of(ids[system.name.lower()]) for system in DrmSystem] == list(DrmSystem)
    assert system_of(ids["common"]) is None


@of_kind("kid_encoding")
def test_a_kid_is_little_endian_for_playready_alone(vector: Vector) -> None:
    kid = UUID(vector["kid"])
    assert playready.kid_text(kid) == vector["playready_le_base64"]
    box = widevine.box([kid], Scheme.CENC, settings=PLAIN, content_id="a")
    assert bytes.fromhex(vector["iso_bmff_hex"]) in box
    if "mspr_kid_be_base64" in vector:
        assert b64encode(kid.bytes).decode() == vector["mspr_kid_be_base64"]


@of_kind("playready_key_seed")
def test_a_checksum_is_that_of_microsofts_test_key(vector: Vector) -> None:
    """Our keys are random: the seed is only how the vector's key came to be."""
    kid = UUID(vector["kid"])
    key = _key_of_seed(raw(vector, "key_seed_base64"), kid)
    assert key.hex() == vector["content_key_hex"]
    assert playready.checksum(KeyMaterial(kid, key)) == vector.get("checksum_base64", "Me48z71nuqY=")
    assert playready.kid_text(kid) == vector.get("playready_kid_base64", "3kqpi7lunUS0T6W+769DsA==")


@of_kind("playready_object")
def test_a_playready_object_equals_the_published_one(vector: Vector) -> None:
    published = raw(vector, "pro_base64")
    text = header_text(published)
    assert playready.object_of(text) == published
    ours = playready.header(material(vector), Scheme.CENC, la_url=vector["la_url"])
    assert ours == CUSTOM_ATTRIBUTES.sub("", text)
    assert f"<CHECKSUM>{vector['checksum_base64']}</CHECKSUM>" in ours
    if "length" in vector:
        assert (len(published), len(text.encode("utf-16-le"))) == (vector["length"], vector["record_length"])


@of_kind("playready_pssh")
def test_a_playready_box_equals_the_published_one(vector: Vector) -> None:
    published = raw(vector, "pssh_v0_base64")
    box = pssh.parsed(published)
    assert (box.system_id, box.version, box.kids) == (DrmSystem.PLAYREADY.system_id, 0, ())
    text = header_text(box.data)
    assert playready.box(playready.object_of(text)) == published
    assert f"<LA_URL>{vector['la_url']}</LA_URL>" in text
    assert playready.kid_text(UUID(vector["kid"])) in text
    if "wrmheader_text" in vector:
        assert text == vector["wrmheader_text"]
        assert f'CHECKSUM="{playready.checksum(material(vector))}"' in text
        kids = [UUID(vector["kid"])]
        assert pssh.box(box.system_id, raw(vector, "pro_base64"), version=1, kids=kids) == raw(vector, "pssh_v1_base64")


@of_kind("pssh_set")
def test_boxes_equal_those_of_shaka_packager(vector: Vector) -> None:
    ours, wanted = material(vector), scheme(vector)
    payload = widevine.payload([ours.kid], wanted, settings=PLAIN, content_id="a")
    assert payload.hex() == vector["widevine_payload_hex"]
    box = widevine.box([ours.kid], wanted, settings=PLAIN, content_id="a")
    assert (box, len(box)) == (raw(vector, "widevine_pssh_v0_base64"), 56)
    header = playready.header(ours, wanted, la_url=None)
    made = playready.object_of(header)
    assert made == raw(vector, "playready_pro_base64")
    assert playready.box(made) == raw(vector, "playready_pssh_v0_base64")
    assert (len(made), len(playready.box(made))) == ((518, 550) if wanted is Scheme.CENC else (446, 478))
    assert f'version="{vector["playready_header_version"]}"' in header
    assert vector["playready_algid"] in header
    assert (vector["playready_checksum_base64"] or "CHECKSUM") in header or wanted is Scheme.CBCS
    assert pssh.box(system_ids()["common"], b"", version=1, kids=[ours.kid]) == raw(vector, "common_pssh_v1_base64")


@of_kind("widevine_pssh")
def test_a_widevine_box_equals_the_published_one(vector: Vector) -> None:
    published = raw(vector, "pssh_base64")
    box = pssh.parsed(published)
    assert (box.system_id, box.version) == (DrmSystem.WIDEVINE.system_id, vector["version"])
    assert pssh.box(box.system_id, box.data) == published
    if "payload_hex" not in vector:  # of the others we write neither algorithm nor track type, and always the kid
        return
    kids = [UUID(kid) for kid in vector["key_ids"]]
    settings = DrmSettings(widevine_provider=vector.get("provider"), content_id_in_pssh="content_id_text" in vector)
    ours = widevine.payload(kids, Scheme.CENC, settings=settings, content_id=vector.get("content_id_text", ""))
    scheme = b"" if "protection_scheme" in vector else widevine.scheme_field(Scheme.CENC)
    policy = b"\x32\x07default" if "policy" in vector else b""
    assert ours.removesuffix(scheme) + policy == box.data == bytes.fromhex(vector["payload_hex"])
    if "pssh_v1_base64" in vector:
        assert pssh.box(box.system_id, ours, version=1, kids=kids) == raw(vector, "pssh_v1_base64")


@of_kind("widevine_field")
def test_the_protection_scheme_is_a_number(vector: Vector) -> None:
    assert widevine.scheme_field(scheme(vector)).hex() == vector["wire_hex"]
    assert int.from_bytes(vector["protection_scheme"].encode()) == vector["value"]


@of_kind("common_pssh")
def test_a_box_of_version_1_lists_its_kids(vector: Vector) -> None:
    kids = tuple(UUID(kid) for kid in vector["key_ids"])
    published = raw(vector, "pssh_base64")
    assert pssh.parsed(published) == pssh.Pssh(system_ids()["common"], b"", 1, kids)
    assert pssh.box(system_ids()["common"], b"", version=1, kids=kids) == published


@of_kind("base64_text")
def test_fairplay_says_what_aws_and_vendors_say(vector: Vector) -> None:
    ours = {"KeyFormat": fairplay.KEY_FORMAT, "KeyFormatVersions": PLAIN.fairplay_key_format_versions}
    if vector["element"] == "URIExtXKey":
        text = _fairplay_uri(vector["text"].rpartition(";")[2])
    else:
        text = ours.get(vector["element"], "identity")  # AES-128 is no DRM system of ours: its key format is refused by name
    assert text == vector["text"]
    assert b64encode(text.encode()).decode() == vector["base64"]


@of_kind("base64_16_bytes")
def test_keys_and_ivs_are_16_raw_bytes(vector: Vector) -> None:
    value = raw(vector, "base64")
    assert value.hex() == vector["hex"]
    iv_in_uri = DrmSettings(fairplay_uri_template="skd://{kid}:{iv}")
    given = KeyMaterial(UUID(int=1), value, value)
    assert fairplay.uri(given, iv_in_uri, client="a", content_id="b", host="c").endswith(f":{vector['hex']}")
    with pytest.raises(ValueError, match="16 bytes"):
        KeyMaterial(UUID(int=1), value.hex().encode())
    with pytest.raises(ValueError, match="16 bytes"):
        KeyMaterial(UUID(int=1), value, value.hex().encode())


@of_kind("hls_signaling")
def test_playlist_lines_equal_those_of_shaka_packager(vector: Vector) -> None:
    kid, system = UUID(vector["kid"]), DrmSystem[vector["drm"].upper()]
    key = KeyMaterial(kid, bytes(16))
    uris = {
        DrmSystem.WIDEVINE: widevine.hls_uri(widevine.box([kid], Scheme.CBCS, settings=PLAIN, content_id="a")),
        DrmSystem.PLAYREADY: playready.hls_uri(playready.object_of(playready.header(key, Scheme.CBCS, la_url=None))),
        DrmSystem.FAIRPLAY: _fairplay_uri(vector["kid"]),
    }
    line = hls.key_line(system, Scheme.CBCS, uri=uris[system], kid=kid)
    assert line == vector["line"]
    assert b64encode(line.encode()).decode() == vector["cpix_hlssignalingdata_base64"]
    assert hls.session_key_line(system, Scheme.CBCS, uri=uris[system], kid=kid) == vector["master_line"]


@of_kind("hkdf_sha256")
def test_the_derivation_of_the_vaults_keys_is_the_standards(vector: Vector) -> None:
    """domain/kernel/sealed.py derives with it, from the master key."""
    salt, info = bytes.fromhex(vector["salt_hex"]), bytes.fromhex(vector["info_hex"])
    assert HKDF(SHA256(), vector["length"], salt, info).derive(bytes.fromhex(vector["ikm_hex"])).hex() == vector["okm_hex"]


@of_kind("aes_key_wrap")
def test_a_wrapped_key_is_opened_by_the_library(vector: Vector) -> None:
    """The product does not wrap keys in this way, because the vault uses AES-GCM. Imported keys could be wrapped like this."""
    opened = aes_key_unwrap(bytes.fromhex(vector["kek_hex"]), bytes.fromhex(vector["wrapped_hex"]))
    assert opened.hex() == vector["key_hex"]


def _fairplay_uri(kid: str) -> str:
    settings = DrmSettings(fairplay_uri_template=FAIRPLAY_TEMPLATES[kid])
    return fairplay.uri(KeyMaterial(UUID(kid), bytes(16), IV), settings, client="a", content_id="b", host="c")


def _key_of_seed(seed: bytes, kid: UUID) -> bytes:
    """Microsoft, "PlayReady Key Seed": 30 bytes of the seed count."""
    s, k = seed[:30], kid.bytes_le
    digests = [sha256(part).digest() for part in (s + k, s + k + s, s + k + s + k)]
    halves = [half for digest in digests for half in (digest[:16], digest[16:])]
    key = 0
    for half in halves:
        key ^= int.from_bytes(half)
    return key.to_bytes(16)
