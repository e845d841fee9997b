"""A pssh box read back says what it was made of; what is not exactly one box is refused."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.drm.pssh import Pssh, box, parsed
from domain.drm.systems import DrmSystem

WIDEVINE = DrmSystem.WIDEVINE.system_id
KID = UUID("9eb4050d-e44b-4802-932e-27d75083e266")
PLAIN = box(WIDEVINE, b"data")
LISTED = box(WIDEVINE, b"data", version=1, kids=[KID, KID])

boxes = st.one_of(
    st.builds(Pssh, st.uuids(), st.binary(max_size=64)),
    st.builds(Pssh, st.uuids(), st.binary(max_size=64), st.just(1), st.lists(st.uuids(), max_size=4).map(tuple)),
)


@given(boxes)
def test_a_box_is_read_back_as_it_was_made(given_box: Pssh) -> None:
    made = box(given_box.system_id, given_box.data, version=given_box.version, kids=given_box.kids)
    assert parsed(made) == given_box
    assert int.from_bytes(made[:4]) == len(made)


@given(boxes, st.data())
def test_a_cut_or_lengthened_box_is_refused(given_box: Pssh, data: st.DataObject) -> None:
    made = box(given_box.system_id, given_box.data, version=given_box.version, kids=given_box.kids)
    cut = made[: data.draw(st.integers(0, len(made) - 1))]
    longer = made + data.draw(st.binary(min_size=1, max_size=8))
    for wrong in (cut, longer, _resized(cut), _resized(longer)):
        with pytest.raises(ValueError, match="pssh box"):
            parsed(wrong)


@given(st.binary(max_size=200) | st.binary(max_size=80).map(lambda body: _resized(bytes(4) + b"pssh\1\0\0\0" + bytes(16) + body)))
def test_anything_else_is_a_box_or_refused(given_bytes: bytes) -> None:
    try:
        parsed_box = parsed(given_bytes)
    except ValueError:
        return
    assert box(parsed_box.system_id, parsed_box.data, version=parsed_box.version, kids=parsed_box.kids) == given_bytes


@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        PLAIN[32:],
        PLAIN + PLAIN,
        PLAIN[:4] + b"moov" + PLAIN[8:],
        PLAIN[:8] + b"\2" + PLAIN[9:],
        PLAIN[:11] + b"\1" + PLAIN[12:],
        b"\0\0\0\0" + PLAIN[4:],
        b"\0\0\0\1" + PLAIN[4:8] + len(PLAIN).to_bytes(8) + PLAIN[8:],
        PLAIN[:28] + b"\xff\xff\xff\xff" + PLAIN[32:],
        PLAIN[:28] + b"\0\0\0\3" + PLAIN[32:],
        LISTED[:28] + b"\xff\xff\xff\xff" + LISTED[32:],
        LISTED[:28] + b"\0\0\0\3" + LISTED[32:],
        LISTED[:28] + b"\0\0\0\1" + LISTED[32:],
    ],
)
def test_a_hostile_box_is_refused(hostile: bytes) -> None:
    with pytest.raises(ValueError, match="pssh box"):
        parsed(hostile)


def test_only_version_1_lists_kids() -> None:
    with pytest.raises(ValueError, match="version"):
        box(WIDEVINE, b"", kids=[KID])
    with pytest.raises(ValueError, match="version"):
        box(WIDEVINE, b"", version=2)


def _resized(made: bytes) -> bytes:
    """With the outer size put right, so that the inner ones are looked at."""
    return len(made).to_bytes(4) + made[4:]
