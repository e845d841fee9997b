"""Errors in CPIX documents, their codes and texts; and the dry run, which reports all of them."""

from __future__ import annotations

import re

import pytest

from api.speke.cpix.errors import CpixFault, SpekeError
from api.speke.cpix.request import dry_run, read
from tests.support.cpix.keys import FAIRPLAY, KID, OTHER_KID, PLAYREADY, WIDEVINE, key, rule, system, v1, v2
from tests.support.waiting import ROOT

AES_128 = "81376844-f976-481e-a84e-cc25d39b0b33"
KEY = f'<cpix:ContentKey kid="{KID}"/>'
PERIODS = '<cpix:ContentKeyPeriodList><cpix:ContentKeyPeriod {}/><cpix:ContentKeyPeriod index="2"/></cpix:ContentKeyPeriodList>'
DELIVERY = "<cpix:DeliveryDataList>{}</cpix:DeliveryDataList>"
CERTIFICATE = (
    "<cpix:DeliveryData><cpix:DeliveryKey><ds:X509Certificate>{}</ds:X509Certificate></cpix:DeliveryKey></cpix:DeliveryData>"
)
VIDEO = rule(KID, "VIDEO", "<cpix:VideoFilter/>")
AUDIO = rule(OTHER_KID, "AUDIO", "<cpix:AudioFilter/>")

REFUSED: list[tuple[str, str]] = [
    ("", "SPEKE-4001 the body is empty"),
    (" \n", "SPEKE-4001 the body is empty"),
    ("<a>", "SPEKE-4002 the body is not well-formed XML at line 1, column 4"),
    (f"<!DOCTYPE a>{v1()}", "SPEKE-4003 a document type declaration is not accepted"),
    (v1(systems=system(AES_128, KID)), f"SPEKE-4004 unsupported systemId {AES_128}"),
    ("<CPIX id='a'/>", "SPEKE-4005 the root element is not CPIX in the namespace urn:dashif:org:cpix"),
    (v1(keys="", systems=system(WIDEVINE, "")), "SPEKE-4006 missing ContentKey in a ContentKeyList"),
    (v1(systems=""), "SPEKE-4006 missing DRMSystem in a DRMSystemList"),
    (v1(more=DELIVERY.format("")), "SPEKE-4006 missing DeliveryData in the DeliveryDataList"),
    (
        v1(more=DELIVERY.format("<cpix:DeliveryData/>")),
        "SPEKE-4006 missing DeliveryKey with an X509Certificate in a DeliveryData",
    ),
    (v1(more="<cpix:ContentKeyList/>"), "SPEKE-4007 more than one ContentKeyList"),
    (v1(systems=system(WIDEVINE, KID, "<cpix:PSSH/>" * 2)), "SPEKE-4007 more than one child of the same name in a DRMSystem"),
    (v1(root=""), "SPEKE-4008 missing CPIX@id"),
    (v1(systems=f'<cpix:DRMSystem kid="{KID}"/>'), "SPEKE-4008 missing DRMSystem@systemId"),
    (v2(keys="<cpix:ContentKey commonEncryptionScheme='cenc'/>"), "SPEKE-4008 missing ContentKey@kid"),
    (v2(systems=system(WIDEVINE, "")), "SPEKE-4008 missing DRMSystem@kid"),
    (v1(more=PERIODS.format("")), "SPEKE-4008 missing ContentKeyPeriod@index"),
    (v1(keys='<cpix:ContentKey kid="42"/>', systems=system(WIDEVINE, "")), "SPEKE-4009 ContentKey@kid is not a UUID"),
    (v1(keys=f'<cpix:ContentKey kid="{KID.replace("-", "")}"/>'), "SPEKE-4009 ContentKey@kid is not a UUID"),
    (v1(systems=system("widevine", KID)), "SPEKE-4009 DRMSystem@systemId is not a UUID"),
    (v1(keys=f'<cpix:ContentKey kid="{KID}" explicitIV="AAAA"/>'), "SPEKE-4011 ContentKey@explicitIV is not base64 of 16 bytes"),
    (v1(keys=f'<cpix:ContentKey kid="{KID}" explicitIV="?é"/>'), "SPEKE-4011 ContentKey@explicitIV is not base64 of 16 bytes"),
    (v1(keys=KEY + KEY.replace(KID, KID.upper())), f"SPEKE-4012 more than one ContentKey has the kid {KID}"),
    (v1(systems=system(WIDEVINE, OTHER_KID)), f"SPEKE-4013 no ContentKey has the kid {OTHER_KID} of a DRMSystem"),
    (
        v1(keys=KEY + f'<cpix:ContentKey kid="{OTHER_KID}"/>', systems=system(WIDEVINE, "")),
        "SPEKE-4014 a DRMSystem without a kid may mean several ContentKeys; give each its kid",
    ),
    (
        v1(keys="<cpix:ContentKey/>", systems=system(WIDEVINE, ""), more=PERIODS.format("index='1'")),
        "SPEKE-4015 a ContentKey without a kid may mean several key periods; give each its kid",
    ),
    (v1(keys=KEY + "<cpix:ContentKey/>" * 200), "SPEKE-4016 more than 200 ContentKey"),
    (v1(systems=system(WIDEVINE, KID) * 601), "SPEKE-4016 more than 600 DRMSystem"),
    (v1(root=f'id="{"a" * 257}"'), "SPEKE-4017 CPIX@id must be at most 256 characters"),
    (v1(more=PERIODS.format(f"id='{'a' * 257}'")), "SPEKE-4017 ContentKeyPeriod@id must be at most 256 characters"),
    (v1(more=PERIODS.format("index='-1'")), "SPEKE-4017 ContentKeyPeriod@index must be a whole number"),
    (v1(more=PERIODS.format(f"index='{'9' * 5000}'")), "SPEKE-4017 ContentKeyPeriod@index must be a whole number"),
    (
        v1(systems=system(WIDEVINE, KID, '<cpix:HLSSignalingData playlist="all"/>')),
        "SPEKE-4017 HLSSignalingData@playlist must be media or master",
    ),
    (v1(more=DELIVERY.format(CERTIFICATE.format("AAAA"))), "SPEKE-4018 X509Certificate is not a certificate (base64 of DER)"),
    (v1(more=DELIVERY.format(CERTIFICATE.format("é"))), "SPEKE-4018 X509Certificate is not a certificate (base64 of DER)"),
    (v1(more=f"<!--{'a' * 256 * 1024}-->"), "SPEKE-4130 the body is over 256 KiB"),
    (v2(root='version="2.3"'), "SPEKE-4201 Missing CPIX@contentId"),
    (v2(root='contentId=" " version="2.3"'), "SPEKE-4201 Missing CPIX@contentId"),
    (v2(root='contentId="a"'), "SPEKE-4202 Missing CPIX@version"),
    (v2(root='contentId="a" version="4.0"'), "SPEKE-4203 Unsupported CPIX@version"),
    (
        v2(keys=f"{KEY}{key(OTHER_KID)}"),
        f"SPEKE-4204 Missing ContentKey@commonEncryptionScheme for KID {KID}",
    ),
    (v2(keys=key(KID) + key(OTHER_KID, "cbcs")), "SPEKE-4205 Non compliant ContentKey@commonEncryptionScheme combination"),
    (
        v2(systems=system(FAIRPLAY, KID)),
        f"SPEKE-4206 ContentKey@commonEncryptionScheme non compatible with DRMSystem {FAIRPLAY}",
    ),
    (
        v2(keys=key(KID, "cens") + key(OTHER_KID, "cens"), systems=system(PLAYREADY, KID, "<cpix:PSSH/>")),
        f"SPEKE-4206 ContentKey@commonEncryptionScheme non compatible with DRMSystem {PLAYREADY}",
    ),
    (
        v2(keys=key(KID, "cbc1") + key(OTHER_KID, "cbc1")),
        f"SPEKE-4206 ContentKey@commonEncryptionScheme non compatible with DRMSystem {WIDEVINE}",
    ),
    (v2(rules=VIDEO), f"SPEKE-4208 Malformed encryption contract: no ContentKeyUsageRule for KID {OTHER_KID}"),
    (v2(rules=""), "SPEKE-4209 Missing CPIX encryption contract"),
    (
        v2(rules=rule(KID, "VIDEO", "") + rule(OTHER_KID, "AUDIO", "")),
        "SPEKE-4209 Missing CPIX encryption contract",
    ),
    (v2(keys=key(KID, "xts") + key(OTHER_KID)), f"SPEKE-4211 Unsupported ContentKey@commonEncryptionScheme for KID {KID}"),
    (
        v2(keys=key(KID, "SAMPLE-AES") + key(OTHER_KID)),
        f"SPEKE-4211 Unsupported ContentKey@commonEncryptionScheme for KID {KID}",
    ),
]


@pytest.mark.parametrize(("body", "line"), REFUSED, ids=[f"{place}-{line[:10]}" for place, (_, line) in enumerate(REFUSED)])
def test_refused(body: str, line: str) -> None:
    with pytest.raises(SpekeError) as caught:
        read(body.encode())
    assert str(caught.value) == line
    assert f"{caught.value.code} {caught.value.text}" == line
    assert str(caught.value.status)[:2] == caught.value.code[6:8]
    assert len(line.encode()) < 300


@pytest.mark.parametrize("header", ["3.0", "2", "2.2", "two"])
def test_an_unsupported_version_of_speke(header: str) -> None:
    with pytest.raises(SpekeError, match=r"^SPEKE-4207 Unsupported SPEKE version$"):
        read(v2().encode(), speke_version=header)


@pytest.mark.parametrize(("header", "version"), [("2.0", "2.4"), ("2.1", "2.3")])
def test_versions_belong_together(header: str, version: str) -> None:
    with pytest.raises(SpekeError, match=r"^SPEKE-4203 Unsupported CPIX@version$"):
        read(v2(root=f'contentId="a" version="{version}"').encode(), speke_version=header)


def test_every_fault_is_refused_here() -> None:
    assert {line.split()[0] for _, line in REFUSED} == {fault.code for fault in CpixFault} - {CpixFault.UNSUPPORTED_SPEKE.code}


CONTRACTS = [
    (VIDEO + VIDEO + AUDIO, f"more than one ContentKeyUsageRule for KID {KID}"),
    (VIDEO + AUDIO + rule(KID.replace("0", "1"), "SD", "<cpix:VideoFilter/>"), "a ContentKeyUsageRule@kid names no ContentKey"),
    (rule(KID, "", "<cpix:VideoFilter/>") + AUDIO, "missing ContentKeyUsageRule@intendedTrackType"),
    (VIDEO + rule(OTHER_KID, "VIDEO", "<cpix:VideoFilter/>"), "more than one ContentKeyUsageRule has the same intendedTrackType"),
    (rule(KID, "ALL", "<cpix:VideoFilter/><cpix:AudioFilter/>") + AUDIO, "intendedTrackType ALL is combined with other types"),
    (VIDEO + rule(OTHER_KID, "AUDIO", ""), "a ContentKeyUsageRule has neither VideoFilter nor AudioFilter"),
    (
        VIDEO + rule(OTHER_KID, "AUDIO", "<cpix:VideoFilter/>"),
        "a ContentKeyUsageRule has filters that do not fit its intendedTrackType",
    ),
    (rule(KID, "SD", '<cpix:VideoFilter maxPixels="x"/>') + AUDIO, "minPixels and maxPixels must be whole numbers"),
    (rule(KID, "SD", '<cpix:VideoFilter minPixels="2" maxPixels="1"/>') + AUDIO, "minPixels is above maxPixels"),
]


@pytest.mark.parametrize(("rules", "why"), CONTRACTS)
def test_malformed_contracts(rules: str, why: str) -> None:
    with pytest.raises(SpekeError, match=f"^SPEKE-4208 Malformed encryption contract: {re.escape(why)}$"):
        read(v2(rules=rules).encode())


@pytest.mark.parametrize(
    ("kind", "filters"),
    [
        ("SD+HD1", '<cpix:VideoFilter maxPixels="921600"/>'),
        ("SD+AUDIO", "<cpix:VideoFilter/><cpix:AudioFilter/>"),
        ("a packager's own", "<cpix:AudioFilter/>"),
    ],
)
def test_good_contracts(kind: str, filters: str) -> None:
    assert (
        dry_run(v2(rules=rule(KID, kind, filters) + rule(OTHER_KID.upper(), "STEREO_AUDIO", "<cpix:AudioFilter/>")).encode()) == []
    )


def test_one_key_for_all_tracks() -> None:
    rules = rule(KID, "ALL", "<cpix:VideoFilter/><cpix:AudioFilter/>")
    assert dry_run(v2(keys=key(KID), systems=system(WIDEVINE, KID), rules=rules).encode()) == []
    bounded = rules.replace("<cpix:VideoFilter/>", '<cpix:VideoFilter minPixels="1"/>')
    (output,) = dry_run(v2(keys=key(KID), systems=system(WIDEVINE, KID), rules=bounded).encode())
    assert "intendedTrackType ALL has a filter with bounds" in output


def test_a_track_type_again_in_another_period_is_no_fault() -> None:
    video = "<cpix:KeyPeriodFilter periodId='{}'/><cpix:VideoFilter/>"
    rules = rule(KID, "VIDEO", video.format("a")) + rule(OTHER_KID, "VIDEO", video.format("b"))
    assert dry_run(v2(rules=rules).encode()) == []


def test_a_dry_run_tells_all_that_is_wrong() -> None:
    systems = f"{system(AES_128, KID)}\n{system(WIDEVINE, OTHER_KID)}\n{system('x', KID)}"
    document = v1(root="", keys='<cpix:ContentKey kid="x" explicitIV="AA=="/>', systems=systems)
    assert dry_run(document.encode()) == [
        "line 1: missing CPIX@id (SPEKE-4008)",
        "line 1: ContentKey@kid is not a UUID (SPEKE-4009)",
        "line 1: ContentKey@explicitIV is not base64 of 16 bytes (SPEKE-4011)",
        f"line 1: unsupported systemId {AES_128} (SPEKE-4004)",
        f"line 1: no ContentKey has the kid {KID} of a DRMSystem (SPEKE-4013)",
        f"line 2: no ContentKey has the kid {OTHER_KID} of a DRMSystem (SPEKE-4013)",
        "line 3: DRMSystem@systemId is not a UUID (SPEKE-4009)",
        f"line 3: no ContentKey has the kid {KID} of a DRMSystem (SPEKE-4013)",
    ]
    assert dry_run(b"<a") == ["the body is not well-formed XML at line 1, column 3 (SPEKE-4002)"]
    assert dry_run(v1().encode()) == dry_run(v2().encode()) == []


def test_the_page_of_errors_has_every_fault_and_no_other() -> None:
    page = (ROOT / "docs/reference/speke-errors.md").read_text(encoding="utf-8")
    for fault in CpixFault:
        assert f"| `{fault.code}` | {fault.status} | `{fault.text}` |" in page, fault
    documents = page.partition("## The document")[2].partition("\n## ")[0]
    of_the_store = {"SPEKE-4221", "SPEKE-4222"}  # what the document asks for, not how it is written: api/speke/routes.py
    assert set(re.findall(r"SPEKE-\d+", documents)) == {fault.code for fault in CpixFault} | of_the_store
