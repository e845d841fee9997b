"""Hostile documents get a response or a SpekeError, and no error contains a key."""

from __future__ import annotations

import re
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from api.speke.cpix.errors import SpekeError
from api.speke.cpix.request import dry_run, read
from tests.support.cpix.keys import AUDIENCE, DOCUMENTS, answered, given_for, tree, v1

SEEDS = sorted(path.read_bytes() for path in DOCUMENTS.glob("*.request.xml"))
ENTITY = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
PARAMETER = '<!DOCTYPE x [<!ENTITY % e SYSTEM "http://127.0.0.1:9/x"> %e;]>'
LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(f"<!ENTITY a{i} '{'&a;' * 10}'>" for i in range(9)) + "]>"
PIECES = (
    *(
        b"<",
        b">",
        b"/",
        b'"',
        b"'",
        b"&",
        b"&#0;",
        b"&#x10FFFF;",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?a b?>",
        b"\x00",
        b"\xff",
    ),
    *(
        b"kid",
        b'kid=""',
        b'explicitIV="AAAA"',
        b'version="2.3"',
        b'contentId="x"',
        b"cpix:",
        b"xmlns:cpix",
        b' xmlns=""',
        b"\xef\xbb\xbf",
    ),
    *(b"<cpix:PSSH/>", b"<cpix:DeliveryDataList/>", b"<!DOCTYPE a>", "é".encode(), b"-", b"0", b"=" * 40, b"A" * 40),
)
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp037", "utf-7")


def checked(error: SpekeError) -> str:
    line = str(error)
    assert error.status in (400, 413, 422)
    assert line.isprintable()
    assert len(line.encode()) < 300
    return line


def said_of(body: bytes, header: str | None = None) -> str | None:
    """The one line of a refusal; None for an answer, which must be XML with the keys in it."""
    try:
        request = read(body, speke_version=header)
    except SpekeError as error:
        return checked(error)
    keys = given_for(request.keys)
    answer = tree(answered(body, speke_version=header, audience=AUDIENCE))
    reported = {element.text for element in answer.iter("{urn:ietf:params:xml:ns:keyprov:pskc}PlainValue")}
    assert reported == {b64encode(key.key).decode() for key in keys}
    return None


@pytest.mark.parametrize("declared", [ENTITY, PARAMETER, LAUGHS, "<!DOCTYPE x>", '<!DOCTYPE x SYSTEM "file:///etc/passwd">'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_no_document_type(declared: str, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("e") else ""
    body = (mark + declared + v1(root='id="&e;"' if "ENTITY e" in declared else 'id="a"')).encode(encoding)
    output = said_of(body)
    assert output is not None
    assert output.startswith(("SPEKE-4003", "SPEKE-4002"))
    assert "root:" not in output


@pytest.mark.parametrize("sibling", ["<?a?>", "<!---->"])
@pytest.mark.parametrize("place", ["{}{{}}", "{{}}{}"])
def test_few_comments_and_instructions_outside_the_root(sibling: str, place: str) -> None:
    """An answer with a thousand takes a tenth of a second, one with 45,000 minutes."""
    assert said_of(place.format(sibling * 100).format(v1()).encode()) is None
    assert said_of(place.format(sibling * 101).format(v1()).encode()) == (
        "SPEKE-4016 more than 100 comments and instructions outside the root"
    )


def test_a_document_type_behind_a_comment_in_utf_16() -> None:
    assert said_of(f"<!-- a -->\n<!DOCTYPE x>{v1()}".encode("utf-16")) == "SPEKE-4003 a document type declaration is not accepted"


def test_deep_and_wide_documents() -> None:
    assert (said_of(b"<a>" * 20_000) or "").startswith("SPEKE-4002")
    assert said_of(v1(more="<!---->" * 35_000).encode()) is None
    assert (said_of(v1(systems="<cpix:DRMSystem/>" * 14_000).encode()) or "").startswith("SPEKE-4016")
    assert (said_of(v1(keys="<cpix:ContentKey/>" * 14_000).encode()) or "").startswith("SPEKE-4016")


def test_a_crowd_of_namespaces() -> None:
    crowd = " ".join(f'xmlns:a{place}="u"' for place in range(101))
    output = said_of(v1(root=f'id="a" {crowd}').encode())
    assert output == "SPEKE-4016 more than 100 namespace declarations"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_key_in_what_is_said(seed: bytes) -> None:
    """A key, put where each attribute and text can be, is in no sentence."""
    secret = "c2VjcmV0LWtleS1zZWNyZQ=="
    for place in range(len(list(tree(seed).iter(etree.Element)))):
        for name in (None, *list(tree(seed).iter(etree.Element))[place].attrib):
            root = tree(seed)
            node = list(root.iter(etree.Element))[place]
            if name is None:
                node.text = secret
            else:
                node.set(name, secret)
            assert not any(secret in sentence for sentence in dry_run(etree.tostring(root)))


def test_a_dry_run_of_a_wide_document_is_bounded() -> None:
    assert len(dry_run(v1(systems="<cpix:DRMSystem/>" * 14_000).encode())) < 2_000


def test_bodies_in_other_encodings_are_answered_in_utf_8() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        answer = answered(v1(root='id="é"').encode(encoding))
        assert answer.startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
        assert etree.fromstring(answer).get("id") == "é"


@given(
    seed=st.sampled_from(SEEDS), edits=st.lists(st.tuples(st.integers(0), st.integers(0, 60), st.sampled_from(PIECES)), max_size=6)
)
@settings(max_examples=400, deadline=None)
def test_mutated_documents(seed: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    for at, length, piece in edits:
        at %= len(seed) + 1
        seed = seed[:at] + piece + seed[at + length :]
    said_of(seed)
    dry_run(seed)


@given(seed=st.sampled_from(SEEDS), drop=st.lists(st.integers(0), max_size=4), header=st.sampled_from([None, "1.0", "2.0", "2.1"]))
@settings(max_examples=200, deadline=None)
def test_documents_without_some_of_their_attributes_and_elements(seed: bytes, drop: list[int], header: str | None) -> None:
    root = tree(seed)
    for place in drop:
        nodes = list(root.iter(etree.Element))
        node = nodes[place % len(nodes)]
        if node.attrib and place % 2:
            node.attrib.pop(sorted(node.attrib)[place % len(node.attrib)])
        elif (parent := node.getparent()) is not None:
            parent.remove(node)
    said_of(etree.tostring(root), header)


@given(
    seed=st.sampled_from(SEEDS),
    prefixes=st.tuples(*[st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)] * 2),
    where=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_any_prefixes(seed: bytes, prefixes: tuple[str, str], where: bool) -> None:
    text = seed.decode()
    cpix, speke = ("c" + prefixes[0], "s" + prefixes[1])
    for old, new in (("cpix", cpix), ("speke", speke)):
        text = re.sub(rf"(</?|xmlns:){old}\b", rf"\g<1>{new}", text) if where else text
    assert said_of(text.encode()) is None


@given(seed=st.sampled_from(SEEDS), encoding=st.sampled_from(ENCODINGS), declared=st.sampled_from([*ENCODINGS, "x-none", ""]))
@settings(max_examples=150, deadline=None)
def test_any_encodings(seed: bytes, encoding: str, declared: str) -> None:
    text = re.sub(r"^<\?xml.*?\?>\n?", "", seed.decode())
    mark = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    said_of((mark + text).encode(encoding, "replace"))


@given(body=st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes(body: bytes) -> None:
    assert said_of(body) is not None
