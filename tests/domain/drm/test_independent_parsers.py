"""Parsers that others wrote find in our boxes what we put there: pywidevine and pyplayready, which players' tests are made with.

pyplayready hands out a kid as the base64 that it found: PlayReady's byte order is still to be undone, as pywidevine forgets to do,
whose PlayReady half is therefore not asked.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pymp4.parser import Box
from pyplayready.system import pssh as pyplayready_pssh
from pywidevine import pssh as pywidevine_pssh
from pywidevine.license_protocol_pb2 import WidevinePsshData

from domain.drm import playready, pssh, widevine
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem, KeyMaterial, Scheme
from tests.domain.drm.vectors_given import Vector, of_kind, raw

KEYS = st.builds(KeyMaterial, st.uuids(), st.binary(min_size=16, max_size=16))
SCHEMES = st.sampled_from(Scheme)
PROVIDERS = st.none() | st.text(alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128)
LA_URLS = st.none() | st.sampled_from(["https://licences.test/pr?a=1&b=2", "http://10.0.0.1/'<>"])


@given(
    st.lists(st.uuids(), min_size=1, max_size=4, unique=True), SCHEMES, PROVIDERS, st.text(min_size=1, max_size=200), st.booleans()
)
def test_pywidevine_reads_what_we_wrote(
    kids: list[UUID], scheme: Scheme, provider: str | None, content_id: str, named: bool
) -> None:
    settings = DrmSettings(widevine_provider=provider, content_id_in_pssh=named)
    box = widevine.box(kids, scheme, settings=settings, content_id=content_id)
    parsed_box = pywidevine_pssh.PSSH(b64encode(box).decode())
    assert (parsed_box.version, parsed_box.flags, parsed_box.system_id) == (0, 0, DrmSystem.WIDEVINE.system_id)
    assert parsed_box.key_ids == kids
    message = WidevinePsshData.FromString(parsed_box.init_data)
    assert message.SerializeToString() == parsed_box.init_data == pssh.parsed(box).data
    assert message.protection_scheme == int.from_bytes(scheme.encode())
    assert message.provider == (provider or "")
    assert message.content_id == (content_id.encode() if named else b"")


@given(KEYS, SCHEMES, LA_URLS)
def test_pyplayready_reads_what_we_wrote(key: KeyMaterial, scheme: Scheme, la_url: str | None) -> None:
    made = playready.object_of(playready.header(key, scheme, la_url=la_url))
    for form in (made, playready.box(made)):
        (header,) = pyplayready_pssh.PSSH(form).wrm_headers
        signed, address, *_ = header.read_attributes()
        assert header.version.value == ("4.0.0.0" if scheme.counts else "4.3.0.0")
        assert address == la_url
        assert UUID(bytes_le=b64decode(signed[0].value)) == key.kid
        assert signed[0].alg_id == ("AESCTR" if scheme.counts else "AESCBC")
        assert signed[0].checksum == (playready.checksum(key) if scheme.counts else None)
        assert len(signed) == 1


@given(st.uuids(), st.binary(max_size=64), st.lists(st.uuids(), max_size=3))
def test_pymp4_reads_what_we_wrote(system_id: UUID, data: bytes, kids: list[UUID]) -> None:
    for version in (0, 1):
        listed = kids if version else []
        parsed_box = Box.parse(pssh.box(system_id, data, version=version, kids=listed))
        assert (parsed_box.type, parsed_box.version, parsed_box.flags) == (b"pssh", version, 0)
        assert (parsed_box.system_ID, parsed_box.init_data) == (system_id, data)
        assert list(parsed_box.key_IDs or []) == listed


@of_kind("widevine_pssh")
def test_pywidevine_reads_in_the_published_boxes_what_their_publishers_say(vector: Vector) -> None:
    box = pssh.parsed(raw(vector, "pssh_base64"))
    message = WidevinePsshData.FromString(box.data)
    assert [str(UUID(bytes=kid)) for kid in message.key_ids] == vector["key_ids"]
    assert message.provider == vector.get("provider", "")
    assert message.content_id.decode() == vector.get("content_id_text", "")
    assert message.policy == vector.get("policy", "")
    assert message.algorithm == vector.get("algorithm", 0)
