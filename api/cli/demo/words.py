"""Invented names and titles of the demo: a regional broadcaster between a port and a parliament."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

PEOPLE: Final = ("anna.keller", "jonas.meyer", "priya.nair", "tomas.novak", "lucia.ferrari")

ROOMS: Final[Mapping[str, str]] = {
    "studio-1": "Studio 1",
    "studio-2": "Studio 2",
    "plenary": "Plenary hall",
    "concert-hall": "Concert hall",
    "harbour-stadium": "Harbour stadium",
    "press-room": "Press room",
}
TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "news": ("News", "#c62828"),
    "parliament": ("Parliament", "#1565c0"),
    "sport": ("Sport", "#2e7d32"),
    "music": ("Music", "#6a1b9a"),
    "talk": ("Talk", "#ef6c00"),
    "documentary": ("Documentary", "#00838f"),
}
CATEGORIES: Final[Mapping[str, str]] = {
    "current-affairs": "Current affairs",
    "culture": "Arts and culture",
    "sport": "Sport and outdoors",
    "regional": "Regional life",
}
CHANNELS: Final[Mapping[str, tuple[str, str]]] = {
    "one": ("Channel One", "testsrc2"),
    "two": ("Channel Two", "smptehdbars"),
}
PROFILE: Final = "Outside broadcast van"
FLOW: Final = "Films"


@dataclass(frozen=True, slots=True)
class Series:
    """A programme of the week. `hour` is its start in UTC."""

    key: str
    title: str
    type: str
    category: str
    room: str
    hour: float
    minutes: int
    tags: Sequence[str]
    parts: Sequence[str]
    channel: str | None = None
    weekdays: Sequence[int] = range(7)


_TEAMS: Final = (
    "Harbour City – Northgate",
    "Riverside – St Olave",
    "Old Mill – Harbour City",
    "Northgate – Kestrel Bay",
    "Kestrel Bay – Riverside",
)

SERIES: Final = (
    Series(
        "daybreak",
        "Daybreak",
        "news",
        "current-affairs",
        "studio-1",
        6.5,
        60,
        ("news", "morning"),
        ("Ferries resume after the storm", "What the new timetable changes", "The price of bread", "Frost and what comes after it"),
        weekdays=range(5),
    ),
    Series(
        "plenary",
        "From the plenary",
        "parliament",
        "current-affairs",
        "plenary",
        9,
        150,
        ("parliament", "debate"),
        (
            "Second reading: coastal defence",
            "Questions on transport",
            "The budget, part four",
            "Water and who pays for it",
        ),
        weekdays=range(4),
    ),
    Series(
        "table-nine",
        "Table Nine",
        "talk",
        "culture",
        "studio-2",
        13,
        45,
        ("talk", "books"),
        ("A lighthouse keeper writes", "Translating silence", "The last printer of Dock Street", "Maps that never were"),
    ),
    Series(
        "tideline",
        "Tideline",
        "documentary",
        "regional",
        "studio-2",
        16,
        50,
        ("nature", "coast"),
        ("The seal colony", "Peat and fire", "A year on the mudflats", "The herring road"),
        weekdays=(1, 3, 5, 6),
    ),
    Series(
        "evening-bulletin",
        "Evening bulletin",
        "news",
        "current-affairs",
        "studio-1",
        18,
        30,
        ("news",),
        ("Regional edition", "With the weather", "Weekend edition", "Election special"),
        channel="one",
    ),
    Series(
        "harbour-league",
        "Harbour League",
        "sport",
        "sport",
        "harbour-stadium",
        19,
        120,
        ("football", "league"),
        _TEAMS,
        weekdays=(2, 4, 5, 6),
    ),
    Series(
        "second-movement",
        "Second Movement",
        "music",
        "culture",
        "concert-hall",
        20.25,
        100,
        ("concert", "orchestra"),
        ("Chamber night: Ilse Brandt", "Brass by the water", "A requiem for the canal", "Young soloists"),
        channel="two",
        weekdays=(0, 2, 4, 5),
    ),
)
