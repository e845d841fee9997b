"""Parsers of headers, with whatever a client may send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.headers import accepts_gzip, entity_tags, preference
from api.http.unknown_names import UnknownName, unknown_in_body, warning
from api.kernel.tracing import trace_parent
from tests.api.http.toy import Thing

PIECES = ["gzip", "*", "identity", "q=", ";", ",", " ", "0.5", "0", "1", '"', "\\", "W/", "a", "-", "é"]
JUNK = st.lists(st.sampled_from(PIECES)).map(lambda parts: "".join(parts).encode("latin-1"))
INNER = st.none() | st.dictionaries(st.text(max_size=20), st.integers(), max_size=3)
BODIES = st.dictionaries(st.text(max_size=60), INNER, max_size=30)
HEX = "0123456789abcdef"


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        *(("gzip", True), ("gzip, deflate, br, zstd", True), ("gzip,br", True), ("GZIP", True), ("x-gzip", True), ("*", True)),
        *(("gzip;q=0", False), ("gzip; q=0.000", False), ("gzip;q=1.000", True), ("identity", False), ("", False), ("br", False)),
        *(("*;q=0", False), ("gzip;q=0, *", False), ("*;q=0, gzip;q=0.1", True), ("gzip;q=0.2, identity;q=0.3", False)),
        *(("gzip;q=x", False), ("gzip;q=1.1", False), ("gzip;q=-1", False), ("gzip;q=1;x=2", False), ("deflate, gzip;q=0.5", True)),
    ],
)
def test_accept_encoding_by_weights(header: str, accepted: bool) -> None:
    assert accepts_gzip(header.encode()) is accepted


@given(st.binary(max_size=200) | JUNK)
def test_no_header_stops_a_request(header: bytes) -> None:
    assert accepts_gzip(header) in (True, False)
    assert all(b'"' not in tag for tag in entity_tags(header))
    assert preference(header, "handling") is None or isinstance(preference(header, "handling"), str)
    assert trace_parent(header) is None


@given(st.lists(st.from_regex(rb"[!#-~]{0,9}", fullmatch=True), max_size=5), st.booleans(), st.sampled_from([b",", b" ,\t"]))
def test_entity_tags_are_found_in_any_list(tags: list[bytes], weak: bool, comma: bytes) -> None:
    header = comma.join((b"W/" if weak else b"") + b'"' + tag + b'"' for tag in tags)
    assert list(entity_tags(header)) == tags


@pytest.mark.parametrize(
    ("header", "value"),
    [
        *(("handling=strict", "strict"), ("respond-async, Handling = Strict", "strict"), ('handling="strict"', "strict")),
        *(("handling=strict;a=b, wait=5", "strict"), ("handling=lenient, handling=strict", "lenient"), ("handling", "")),
        *(("wait=5", None), ('note="a, handling=strict"', None), ("", None), ('handling="str ict"', "")),
    ],
)
def test_a_preference_is_found(header: str, value: str | None) -> None:
    assert preference(header.encode(), "handling") == value


@given(st.text(HEX, min_size=32, max_size=32), st.text(HEX, min_size=16, max_size=16), st.text(HEX, min_size=2, max_size=2))
def test_a_trace_parent_is_taken_as_it_is(trace: str, parent: str, flags: str) -> None:
    header = f"00-{trace}-{parent}-{flags}"
    good = set(trace) != {"0"} and set(parent) != {"0"}
    assert trace_parent(header.encode()) == (header if good else None)
    assert trace_parent(b"cc" + header[2:].encode() + b"-more") == (header if good else None)
    for wrong in (header + "-", header + "-more", header.upper() + "A", "ff" + header[2:], header[:-1], f"{header},{header}"):
        assert trace_parent(wrong.encode()) is None


@given(
    st.dictionaries(st.text(max_size=60), st.none() | st.dictionaries(st.text(max_size=20), st.integers(), max_size=3), max_size=30)
)
def test_unknown_names_fit_a_header_whatever_they_are(body: dict[str, object]) -> None:
    result = unknown_in_body(Thing, body)
    assert len(result) <= 20
    assert {name.place for name in result}.isdisjoint(("title", "refId", "tags"))
    name, value = warning(result)
    assert name == b"warning"
    assert value.startswith(b'299 - "unknown: ')
    assert value.count(b'"') == 2
    assert value.decode("ascii").isprintable()


def test_unknown_names_are_told_with_their_place() -> None:
    body = {"titel": "x", "tags": [{"name": "a"}, {"nam": 1, "name": "b"}], "parameters": {"free": 1}, "x" * 47: 1}
    assert unknown_in_body(Thing, body) == [
        UnknownName("titel", "title"),
        UnknownName("tags[1].nam", "name"),
        UnknownName("xxxxxxxx... (47 characters)", None),
    ]
