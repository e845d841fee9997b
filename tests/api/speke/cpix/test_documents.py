"""Whole documents, as packagers send them, and their responses.

documents/NAME.answer.xml is the response to NAME.request.xml, byte for byte.
"""

from __future__ import annotations

from base64 import b64decode

import cpix
import pytest
from lxml import etree

from domain.drm import pssh
from tests.support.cpix.keys import DOCUMENTS, FAIRPLAY, NS, PLAYREADY, WIDEVINE, answered, single, tree

NAMES = sorted(path.name.removesuffix(".request.xml") for path in DOCUMENTS.glob("*.request.xml"))
AS_SHOWN = ("spec-widevine-playready", "spec-widevine", "spec-fairplay")


def request_of(name: str) -> bytes:
    return (DOCUMENTS / f"{name}.request.xml").read_bytes()


def answer_of(name: str) -> bytes:
    return (DOCUMENTS / f"{name}.answer.xml").read_bytes()


def readable(answer: bytes) -> etree._Element:
    """python-cpix fails on comments, and on the windows of CPIX 2.4."""
    root = etree.fromstring(answer, etree.XMLParser(remove_comments=True))
    for period in root.findall(".//cpix:ContentKeyPeriod[@start]", NS):
        for name in ("start", "end"):
            period.attrib.pop(name)
    return root


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_file(name: str) -> None:
    assert answered(request_of(name)) == answer_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_python_cpix_reads_keys_and_systems_of_every_answer(name: str) -> None:
    sent = tree(answer_of(name))
    read = cpix.parse(readable(answer_of(name)))
    plain = [element.text for element in sent.findall(".//cpix:Data/pskc:Secret/pskc:PlainValue", NS)]
    assert [key.cek for key in read.content_keys] == plain
    assert len(read.drm_systems) == len(sent.findall(".//cpix:DRMSystem", NS))
    boxes = [b64decode(system.pssh) for system in read.drm_systems if system.pssh]
    kids = {key.kid for key in read.content_keys}
    for box in map(pssh.parsed, boxes):
        assert str(box.system_id) in (WIDEVINE, PLAYREADY)
    assert {system.kid for system in read.drm_systems} == kids


@pytest.mark.parametrize("name", NAMES)
def test_all_but_what_is_filled_stays(name: str) -> None:
    """Every element, attribute and comment of the request, in its order."""
    before, after = tree(request_of(name)), tree(answer_of(name))
    own = {"Data", "Secret", "PlainValue"}
    if name in AS_SHOWN:
        own |= {"ProtectionHeader", "PSSH", "URIExtXKey", "KeyFormat", "KeyFormatVersions"}
    reported = [node for node in after.iter() if not (isinstance(node.tag, str) and node.tag.rpartition("}")[2] in own)]
    asked = [node for node in before.iter() if not (isinstance(node.tag, str) and node.tag.rpartition("}")[2] in own)]
    assert [node.tag for node in reported] == [node.tag for node in asked]
    for old, new in zip(asked, reported, strict=True):
        assert [(name, new.get(name)) for name, value in old.items() if value] == [
            (name, value) for name, value in old.items() if value
        ]


def test_widevine_and_playready_as_document_1_shows_them() -> None:
    answer = answer_of("spec-widevine-playready")
    root = tree(answer)
    kid = single(root, ".//cpix:ContentKey").get("kid")
    assert single(root, ".//cpix:ContentKey").get("explicitIV") == ""
    assert [system.get("kid") for system in root.findall(".//cpix:DRMSystem", NS)] == [kid, kid]
    playready = single(root, f".//cpix:DRMSystem[@systemId='{PLAYREADY}']")
    assert [child.tag for child in playready] == [f"{{{NS['speke']}}}ProtectionHeader", f"{{{NS['cpix']}}}PSSH"]
    header, box = (b64decode(child.text or "") for child in playready)
    assert pssh.parsed(box).data == header
    assert b"<speke:ProtectionHeader>" in answer
    assert b"<cpix:PSSH>" in answer
    assert b'<PSSH xmlns="urn:dashif:org:cpix">' in answer
    assert b"<cpix:Data><pskc:Secret><pskc:PlainValue>" in answer


def test_fairplay_as_document_1_shows_it() -> None:
    answer = answer_of("spec-fairplay")
    root = tree(answer)
    key = single(root, ".//cpix:ContentKey")
    assert len(b64decode(key.get("explicitIV", ""), validate=True)) == 16
    assert len(b64decode(single(root, ".//pskc:PlainValue").text or "", validate=True)) == 16
    uri, key_format, versions = single(root, f".//cpix:DRMSystem[@systemId='{FAIRPLAY}']")
    assert b64decode(uri.text or "").decode() == f"skd://keys.example/acme/match-17?kid={key.get('kid')}"
    assert (key_format.text, versions.text) == ("Y29tLmFwcGxlLnN0cmVhbWluZ2tleWRlbGl2ZXJ5", "MQ==")
    for shown in (b'<URIExtXKey xmlns="urn:dashif:org:cpix">', b'<KeyFormat xmlns="urn:aws:amazon:com:speke">'):
        assert shown in answer


def test_the_drm_set_asked_for_does_not_matter() -> None:
    keys = {single(tree(answer_of(name)), ".//pskc:PlainValue").text for name in AS_SHOWN}
    assert len(keys) == 1


def test_what_a_system_has_no_use_for_stays_empty() -> None:
    root = tree(answer_of("all-six-children-v1"))
    empty = {
        (system.get("systemId"), child.tag.rpartition("}")[2])
        for system in root.findall(".//cpix:DRMSystem", NS)
        for child in system
        if not child.text
    }
    assert empty == {
        (WIDEVINE, "ProtectionHeader"),
        (FAIRPLAY, "ProtectionHeader"),
        (FAIRPLAY, "PSSH"),
        (FAIRPLAY, "ContentProtectionData"),
    }


def test_eight_keys_and_three_systems_as_awss_suite_wants_them() -> None:
    root = tree(answer_of("eight-keys-v2"))
    assert len({key.text for key in root.findall(".//pskc:PlainValue", NS)}) == 8
    for system in root.findall(".//cpix:DRMSystem", NS):
        media, master = (
            b64decode(single(system, f"cpix:HLSSignalingData[@playlist='{of}']").text or "") for of in ("media", "master")
        )
        assert media.startswith(b"#EXT-X-KEY:METHOD=SAMPLE-AES,URI=")
        assert master == media.replace(b"#EXT-X-KEY", b"#EXT-X-SESSION-KEY")
        box = single(system, "cpix:PSSH").text
        if system.get("systemId") == FAIRPLAY:
            assert box is None
            assert b'KEYFORMAT="com.apple.streamingkeydelivery"' in media
            continue
        protection = b"<all>" + b64decode(single(system, "cpix:ContentProtectionData").text or "") + b"</all>"
        assert tree(protection)[0].text == box
    smooth = [element.text for element in root.findall(".//cpix:SmoothStreamingProtectionHeaderData", NS)]
    assert all(smooth)
    assert len(set(smooth)) == 8


def test_v2_1_is_echoed_with_its_windows() -> None:
    root = tree(answer_of("widevine-cenc-v2.1"))
    assert (root.get("version"), root.get("contentId"), root.get("id")) == ("2.4", "live-1", None)
    period = single(root, ".//cpix:ContentKeyPeriod")
    assert (period.get("start"), period.get("end")) == ("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z")
