"""A sound that runs away from its picture is told; what only comes late is not."""

from __future__ import annotations

import pytest

from workers.adapters.encoders.ffmpeg import SyncWatch

HELD_BACK = 1.5
"""Seconds of the picture that an encoder holds back."""


def watched(*, seconds: float = 90, jump: float = 0.0, back: float = 1e9, still: tuple[float, float] = (0, 0)) -> str:
    """Fragments of half a second of the picture and of a quarter of the sound, which jumps by so much at 20 s until it is back."""
    watch, now = SyncWatch(), 0.0
    while now < seconds:
        moved = jump if 20 <= now < back else 0.0
        watch.take(picture=False, end=now + moved, now=now)
        if now % 0.5 == 0 and now > HELD_BACK and not still[0] <= now < still[1]:
            watch.take(picture=True, end=now - HELD_BACK, now=now)
        now += 0.25
    return watch.fault


@pytest.mark.parametrize("options", [{}, {"jump": 0.5}, {"jump": -0.5}, {"still": (20, 80)}, {"jump": 12.0, "back": 45.0}])
def test_what_is_usual_is_no_fault(options: dict[str, float]) -> None:
    """A picture that is held back, steps of fragments, a picture that stands still for a minute, a distance that does not last."""
    assert watched(**options) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("jump", "fault"),
    [
        (12.0, "The sound has run 12.0 s ahead of the picture."),
        (-62.0, "The sound has run 62.0 s behind the picture."),
        (1.8, "The sound has run 1.8 s ahead of the picture."),
    ],
)
def test_a_sound_that_runs_away_is_told(jump: float, fault: str) -> None:
    """Within half a second, in which fragments come."""
    watch = watched(jump=jump)
    assert watch.split()[:4] == fault.split()[:4]
    assert watch.split()[6:] == fault.split()[6:]
    assert float(watch.split()[4]) == pytest.approx(abs(jump), abs=0.5)


def test_it_is_told_after_half_a_minute() -> None:
    assert watched(jump=12.0, seconds=49) == ""
    assert watched(jump=12.0, seconds=52) != ""
