"""Playlists that are refused, each with the path of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from domain.composition.checks import check_playlist
from domain.composition.values import MOST_ITEMS, MOST_MARKERS, CompositionKind, Item, ItemType, Marker, MarkerType, Playlist
from domain.kernel.errors import Malformed
from tests.domain.composition.compositions_given import EVENT, SOURCE, item, marked, playlist

STANDARD, ENCODER = CompositionKind.STANDARD, CompositionKind.ENCODER
ISO = "2031-01-02T12:00:00Z"
MARKER = ("00:00:05", "00:00:30")


def errors(wanted: Playlist, kind: CompositionKind = STANDARD) -> list[tuple[str, str]]:
    try:
        check_playlist(wanted, kind=kind, event_id=EVENT, field="items")
    except Malformed as refusal:
        return [(error.field, error.message) for error in refusal.errors]
    return []


def fields(*items: Item, kind: CompositionKind = STANDARD) -> list[str]:
    return [field for field, _ in errors(playlist(*items), kind)]


def file(value: str, **more: Any) -> Item:
    return Item(type=ItemType.DIRECT_FULL_MP4, value=value, **more)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"start": None, "end": None, "frameAccurate": None},
        {"start": "00:00:01", "end": "00:00:01.001"},
        {"end": "00:00:00.001"},
        {"start": ISO, "end": "2031-01-02T14:00:00.001+02:00"},
        {"start": ISO, "end": "00:00:01"},
        {"start": "00:00:01", "end": ISO},
        {"frameAccurate": False, "outputDescription": True},
        {"Start": 7, "anything": {"Nested": [1, {"x": None}]}},
    ],
)
def test_trims_that_may_be(properties: dict[str, Any]) -> None:
    assert fields(item(**properties)) == []


@pytest.mark.parametrize(
    ("properties", "field"),
    [
        ({"start": "00:00:02", "end": "00:00:02"}, "end"),
        ({"start": "00:00:02", "end": "00:00:01"}, "end"),
        ({"end": "00:00:00"}, "end"),
        ({"start": ISO, "end": ISO}, "end"),
        ({"start": 7}, "start"),
        ({"start": "7"}, "start"),
        ({"start": "00:60:00"}, "start"),
        ({"start": ["00:00:01"]}, "start"),
        ({"end": True}, "end"),
        ({"end": ""}, "end"),
        ({"frameAccurate": "true"}, "frameAccurate"),
        ({"outputDescription": 1}, "outputDescription"),
    ],
)
def test_trims_that_may_not_be(properties: dict[str, Any], field: str) -> None:
    assert fields(item(), item(**properties)) == [f"items[1].properties.{field}"]
    assert fields(item(**properties), kind=ENCODER) == [], "these are properties like any others"


@pytest.mark.parametrize(
    ("times", "properties", "wrong"),
    [
        (MARKER, {}, []),
        (("00:00:05.040", "99:59:59"), {"start": "00:00:05.040", "end": "00:00:06"}, []),
        ((ISO, "00:00:01"), {"end": "00:00:01"}, []),
        (MARKER, {"end": "00:00:05"}, ["startAt"]),
        (MARKER, {"start": "00:00:06"}, ["startAt"]),
        (("later", "00:00:30"), {}, ["startAt"]),
        (("", "30"), {}, ["duration", "startAt"]),
        (("00:00:05", "00:00:30.5"), {}, ["duration"]),
        (("00:00:05", "00:61:00"), {}, ["duration"]),
        (("00:00:05", "00:00:30\n"), {}, ["duration"]),
        (("00:00:05", "٠٠:٠٠:٠٠"), {}, ["duration"]),
    ],
)
def test_markers(times: tuple[str, str], properties: dict[str, Any], wrong: list[str]) -> None:
    assert fields(marked(("00:00:05.500", "00:00:01") if not wrong and not properties else times, times, **properties)) == [
        f"items[0].markers[{index}].{name}" for index in (0, 1) for name in wrong
    ]


def test_an_encoder_takes_no_markers() -> None:
    assert fields(marked(MARKER), kind=ENCODER) == ["items[0].markers"]


@pytest.mark.parametrize("value", ["", "film", str(EVENT), f"{SOURCE}x"])
@pytest.mark.parametrize("kind", CompositionKind)
def test_an_item_shows_another_event(value: str, kind: CompositionKind) -> None:
    assert fields(item(), item(value), kind=kind) == ["items[1].value"]


@pytest.mark.parametrize("value", ["https://cdn.example.com/a.mp4?x=1", "http://10.0.0.1/a.mp4", f"{SOURCE}/assets/a.mp4", "a.mp4"])
def test_an_encoder_takes_files(value: str) -> None:
    assert fields(file(value), kind=ENCODER) == []
    assert fields(file(value)) == ["items[0].type"]


@pytest.mark.parametrize(
    "value",
    [
        *("https://me:secret@cdn.example.com/a.mp4", "https://cdn.example.com/a.mp4#t", "ftp://h/a.mp4", "file:///etc/passwd"),
        *("", "/etc/passwd", "../a.mp4", "a/../../b.mp4", ".jobs/1/a.mp4", "a//b.mp4", "a/\0.mp4", "x" * 3000, "a/" * 1500 + "b"),
    ],
)
def test_files_that_an_encoder_does_not_take(value: str) -> None:
    [(field, message)] = errors(playlist(file(value)), ENCODER)
    assert field == "items[0].value"
    assert "secret" not in message


@pytest.mark.parametrize("kind", CompositionKind)
def test_files_that_refer_to_others_are_not_played(kind: CompositionKind) -> None:
    assert fields(Item(type=ItemType.DIRECT_DREF_MP4, value="a.mp4"), kind=kind) == ["items[0].type"]


def test_there_is_an_end_to_items_markers_depth_and_errors() -> None:
    assert errors(Playlist()) == [("items", f"must have 1 to {MOST_ITEMS} items")]
    assert fields(*[item()] * MOST_ITEMS) == []
    assert fields(*[item()] * (MOST_ITEMS + 1)) == ["items"]
    half = marked(*[MARKER] * (MOST_MARKERS // 2))
    assert fields(half, half) == []
    assert fields(half, half, marked(MARKER)) == ["items"]
    assert len(fields(*[item("x")] * MOST_ITEMS)) == 50
    deep: Any = 1
    for _ in range(31):
        deep = [deep]
    assert fields(item(x=deep)) == []
    assert fields(item(x={"y": deep})) == ["items[0].properties"]


def test_a_marker_is_an_insertion_unless_it_says_so() -> None:
    assert Marker(start_at="00:00:01", duration="00:00:01").type is MarkerType.INSERTION
