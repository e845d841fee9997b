"""CEA-608 becomes text: each channel separately, in every mode, at its times, for every frame rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sources.captioned import Line21, triples
from workers.media.captions.a53 import Triple
from workers.media.captions.embedded import MOST_PAIRS, EmbeddedCaptions, Timed
from workers.media.captions.reading import read

CC1 = Line21().pop_on(50, "HELLO", "WORLD", until=100).roll_up(110, "ROLL ONE").roll_up(140, "ROLL TWO").paint_on(170, "PAINT")
CC2 = Line21("CC2").pop_on(205, "SECOND", until=215)
CC3 = Line21("CC3").pop_on(60, "BONJOUR", until=120)


def pictures(data: Sequence[bytes], *, fps: float = 25) -> Iterator[Timed]:
    for number, entry in enumerate(data):
        yield (
            number / fps,
            [Triple(entry[at] & 3, entry[at + 1], entry[at + 2]) for at in range(2, len(entry) - 1, 3) if entry[at] & 4],
        )


@pytest.mark.parametrize("fps", [24, 25, 30, 30_000 / 1001, 50, 60])
def test_every_mode_of_every_channel_is_read_at_its_time(fps: float) -> None:
    result = EmbeddedCaptions(pictures(triples(220, CC1, CC2, CC3), fps=fps))
    assert result.services.channels == ("CC1", "CC2", "CC3")
    expected = {
        "CC1": [(50, "HELLO\nWORLD"), (110, "ROLL ONE"), (140, "ROLL ONE\nROLL TWO"), (170, "ROLL ONE\nPAINT")],
        "CC2": [(205, "SECOND")],
        "CC3": [(60, "BONJOUR")],
    }
    for channel, texts in expected.items():
        cues = read(result.scenarist(channel).encode()).cues
        assert [cue.text for cue in cues] == [text for _, text in texts], channel
        for cue, (frame, _) in zip(cues, texts, strict=True):
            assert cue.begin == pytest.approx(frame / fps * 1000, abs=70), cue


def test_pictures_may_come_in_the_order_of_decoding() -> None:
    shown = list(pictures(triples(220, CC1)))
    decoded = [shown[at + step] for at in range(0, 220, 4) for step in (3, 1, 0, 2)]
    assert EmbeddedCaptions(decoded).scenarist("CC1") == EmbeddedCaptions(shown).scenarist("CC1")


def test_times_of_hours_are_real_times() -> None:
    """Time codes skip the dropped frame numbers."""
    late = [(at + 7_200.0, data) for at, data in pictures(triples(220, CC1))]
    assert read(EmbeddedCaptions(late).scenarist("CC1").encode()).cues[0].begin == pytest.approx(7_202_000, abs=40)


def test_a_channel_that_never_ends_is_cut_off() -> None:
    pair = [Triple(0, 0x94, 0x25), Triple(0, 0x41, 0x41)]
    result = EmbeddedCaptions((number / 30, pair) for number in range(MOST_PAIRS))
    assert result.truncated == ("CC1",)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.lists(st.builds(Triple, st.integers(0, 3), st.integers(0, 255), st.integers(0, 255)))))
)
def test_no_bytes_break_it(data: list[tuple[float, list[Triple]]]) -> None:
    result = EmbeddedCaptions(data)
    for channel in ("CC1", "CC2", "CC3", "CC4"):
        assert result.scenarist(channel).startswith("Scenarist_SCC V1.0\n")
