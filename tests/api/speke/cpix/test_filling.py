"""Rules of filling in a response, one by one: docs/reference/api/key-provider.md#response."""

from __future__ import annotations

from base64 import b64decode
from uuid import UUID

import pytest

from api.speke.cpix.request import read, version_headers
from api.speke.cpix.signalling import Audience
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem
from tests.support.cpix.keys import (
    FAIRPLAY,
    KID,
    NS,
    OTHER_KID,
    PLAYREADY,
    WIDEVINE,
    answered,
    key,
    single,
    system,
    tree,
    v1,
    v2,
)

IV = "OFj2IjCsPJFfMAxmQxLGPw=="


@pytest.mark.parametrize("iv", [None, "", IV])
@pytest.mark.parametrize("system_id", [WIDEVINE, PLAYREADY])
def test_explicit_iv_is_echoed(system_id: str, iv: str | None) -> None:
    sent = "" if iv is None else f' explicitIV="{iv}"'
    root = tree(answered(v1(keys=f'<cpix:ContentKey kid="{KID}"{sent}/>', systems=system(system_id, KID))))
    assert single(root, ".//cpix:ContentKey").get("explicitIV") == iv


@pytest.mark.parametrize("sent", ["", ' explicitIV=""', ' explicitIV=" "'])
def test_fairplay_gets_a_stable_iv(sent: str) -> None:
    document = v1(keys=f'<cpix:ContentKey kid="{KID}"{sent}/>', systems=system(FAIRPLAY, KID))
    first, second = (single(tree(answered(document)), ".//cpix:ContentKey").get("explicitIV", "") for _ in range(2))
    assert first == second
    assert len(b64decode(first)) == 16


def test_fairplay_uses_the_packagers_iv() -> None:
    document = v1(keys=f'<cpix:ContentKey kid="{KID}" explicitIV="{IV}"/>', systems=system(FAIRPLAY, KID))
    audience = Audience("acme", "h", DrmSettings(fairplay_uri_template="skd://{kid}:{iv}"))
    root = tree(answered(document, audience=audience))
    assert single(root, ".//cpix:ContentKey").get("explicitIV") == IV
    assert b64decode(single(root, ".//cpix:URIExtXKey").text or "").decode() == f"skd://{KID}:{b64decode(IV).hex()}"


def test_the_iv_is_the_keys_own_that_fairplay_is_asked_for() -> None:
    keys = f'<cpix:ContentKey kid="{KID}"/><cpix:ContentKey kid="{OTHER_KID}"/>'
    root = tree(answered(v1(keys=keys, systems=system(WIDEVINE, KID) + system(FAIRPLAY, OTHER_KID))))
    assert [element.get("explicitIV") is None for element in root.findall(".//cpix:ContentKey", NS)] == [True, False]


def test_a_sent_plain_value_is_ignored() -> None:
    planted = "AAAAAAAAAAAAAAAAAAAAAA=="
    data = f"<cpix:Data><pskc:Secret><pskc:PlainValue>{planted}</pskc:PlainValue></pskc:Secret></cpix:Data>"
    keys = f'<cpix:ContentKey kid="{KID}">{data}<pskc:PlainValue>{planted}</pskc:PlainValue>behind</cpix:ContentKey>'
    answer = answered(v1(keys=keys))
    assert planted.encode() not in answer
    assert len(tree(answer).findall(".//pskc:PlainValue", NS)) == 1
    assert b"behind" in answer


def test_a_value_that_was_sent_is_replaced() -> None:
    root = tree(answered(v1(systems=system(WIDEVINE, KID, '<cpix:PSSH name="a">old<!-- older --><b/>oldest</cpix:PSSH>'))))
    box = single(root, ".//cpix:PSSH")
    assert len(b64decode(box.text or "", validate=True)) == 56
    assert (len(box), box.get("name")) == (0, "a")


def test_unknown_children_pass() -> None:
    root = tree(answered(v1(systems=system(WIDEVINE, KID, "<cpix:HDCPData>x</cpix:HDCPData><other xmlns='urn:x'>y</other>"))))
    assert [child.text for child in single(root, ".//cpix:DRMSystem")] == ["x", "y"]


def test_a_comment_is_no_child() -> None:
    root = tree(answered(v1(systems=system(WIDEVINE, KID, "<!-- nothing -->"))))
    assert single(root, ".//cpix:PSSH").text


def test_given_kids_stay_as_written_and_empty_ones_are_filled() -> None:
    upper = KID.upper()
    root = tree(answered(v1(keys=f'<cpix:ContentKey kid="{upper}"/>', systems=system(WIDEVINE, KID) + system(PLAYREADY, ""))))
    assert single(root, ".//cpix:ContentKey").get("kid") == upper
    assert [element.get("kid") for element in root.findall(".//cpix:DRMSystem", NS)] == [KID, KID]


def test_several_empty_kids_are_told_apart_by_their_places() -> None:
    keys = "<cpix:ContentKey/><cpix:ContentKey kid=''/>"
    systems = (system(WIDEVINE, "") + system(FAIRPLAY, "")) * 2
    request = read(v1(keys=keys, systems=systems).encode())
    assert [(asked.kid, asked.period, asked.slot) for asked in request.keys] == [(None, "", ""), (None, "", "2")]
    root = tree(answered(v1(keys=keys, systems=systems)))
    first, second = (element.get("kid") for element in root.findall(".//cpix:ContentKey", NS))
    assert first != second
    assert [element.get("kid") for element in root.findall(".//cpix:DRMSystem", NS)] == [first, first, second, second]
    assert all(UUID(kid or "") for kid in (first, second))


_TWO_PERIODS = '<cpix:ContentKeyPeriod id="a" index="07"/><cpix:ContentKeyPeriod id="b"/>'
PERIODS = f"<cpix:ContentKeyPeriodList>{_TWO_PERIODS}</cpix:ContentKeyPeriodList>"


def test_the_period_is_the_index_else_the_id() -> None:
    rules = "".join(f'<cpix:ContentKeyUsageRule><cpix:KeyPeriodFilter periodId="{of}"/></cpix:ContentKeyUsageRule>' for of in "ba")
    document = v1(
        keys="<cpix:ContentKey/><cpix:ContentKey/>",
        systems=system(WIDEVINE, "") * 2,
        more=f"{PERIODS}<cpix:ContentKeyUsageRuleList>{rules}</cpix:ContentKeyUsageRuleList>",
    )
    assert [(asked.period, asked.slot) for asked in read(document.encode()).keys] == [("b", ""), ("7", "")]
    root = tree(answered(document))
    named = [[element.get("kid") for element in root.findall(f".//cpix:{of}", NS)] for of in ("ContentKey", "ContentKeyUsageRule")]
    assert named[0] == named[1]


def test_without_rules_the_periods_are_in_the_order_of_the_keys() -> None:
    document = v1(keys="<cpix:ContentKey/><cpix:ContentKey/>", systems=system(WIDEVINE, "") * 2, more=PERIODS)
    assert [asked.period for asked in read(document.encode()).keys] == ["7", "b"]


def test_what_is_not_declared_is_declared_where_it_is_used() -> None:
    document = (
        f'<CPIX xmlns="urn:dashif:org:cpix" id="a"><ContentKeyList><ContentKey/></ContentKeyList><DRMSystemList>'
        f'<DRMSystem systemId="{PLAYREADY}"/><DRMSystem systemId="{WIDEVINE.upper()}"/></DRMSystemList></CPIX>'
    )
    answer = answered(document)
    assert answer.count(b"<PSSH") == 2
    assert b'<speke:ProtectionHeader xmlns:speke="urn:aws:amazon:com:speke">' in answer
    assert b'<pskc:Secret xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc"><pskc:PlainValue>' in answer
    assert answer.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<CPIX ')


def test_v2_drops_the_id_and_adds_what_nobody_named() -> None:
    root = tree(answered(v2(root='id="a" contentId="match-17" version="2.3"')))
    assert (root.get("id"), root.get("contentId"), root.get("version")) == (None, "match-17", "2.3")
    names = [child.tag.rpartition("}")[2] for child in root.findall(".//cpix:DRMSystem", NS)[0]]
    assert names == ["PSSH", "ContentProtectionData", "HLSSignalingData", "HLSSignalingData"]


def test_the_scheme_is_in_the_widevine_box() -> None:
    reported = {}
    for scheme in ("cenc", "cbcs", "cens", "cbc1"):
        keys = f'<cpix:ContentKey kid="{KID}" commonEncryptionScheme="{scheme}"/>'
        root = tree(answered(v1(keys=keys, systems=system(WIDEVINE, KID, "<cpix:PSSH/>"))))
        reported[scheme] = b64decode(single(root, ".//cpix:PSSH").text or "")[-6:].hex()
    assert reported == {"cenc": "48e3dc959b06", "cbcs": "48f3c6899b06", "cens": "48f3dc959b06", "cbc1": "48b1c6899b06"}


def test_v2_1_takes_hls_names_of_schemes() -> None:
    document = v2(keys=key(KID, "SAMPLE-AES") + key(OTHER_KID, "SAMPLE-AES"), root='contentId="a" version="2.4"')
    assert b"METHOD=SAMPLE-AES," in b64decode(single(tree(answered(document))[1][0], "*[@playlist='media']").text or "")


def test_which_keys_are_for_which_systems() -> None:
    request = read(v2(systems=system(WIDEVINE, KID) + system(PLAYREADY, KID) + system(PLAYREADY, OTHER_KID)).encode())
    assert request.systems_of(0) == [DrmSystem.WIDEVINE, DrmSystem.PLAYREADY]
    assert request.systems_of(1) == [DrmSystem.PLAYREADY]
    assert not request.encrypted


@pytest.mark.parametrize(
    ("document", "header", "version"),
    [
        (v1(), None, "1"),
        (v1(), "", "1"),
        (v1(), "1.0", "1"),
        (v2(), None, "2.0"),
        (v2(), "2.0", "2.0"),
        (v2(root='contentId="a" version="2.4"'), None, "2.1"),
        (v2(root='contentId="a" version="2.4"'), " 2.1 ", "2.1"),
    ],
)
def test_the_version_is_told(document: str, header: str | None, version: str) -> None:
    assert read(document.encode(), speke_version=header).version == version


def test_the_headers_of_an_answer() -> None:
    assert version_headers("1", "us/1") == [("speke-user-agent", "us/1")]
    assert version_headers("2.1", "us/1") == [("x-speke-user-agent", "us/1"), ("x-speke-version", "2.1")]
