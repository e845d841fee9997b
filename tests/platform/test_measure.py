"""The films and the measure that other tests rely on say what is true of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sources.films import (
    AAC,
    CHANGES,
    H264_B,
    MPEG2,
    OPUS,
    VP8,
    Form,
    between_keys,
    changing,
    film,
    sound_first,
    two_programmes,
)
from tests.support.sources.measure import apart, box, picture, sound

EVEN = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_a_plain_film_has_its_flashes_beeps_and_frames(tmp_path: Path) -> None:
    made = film(tmp_path / "film.mp4")
    shown, heard = picture(made), sound(made)
    assert shown.flashes == (0.0, 2.0)
    assert heard.beeps == pytest.approx([0.0, 2.0], abs=0.02)
    assert (len(shown.times), shown.sizes, heard.silences) == (100, ((320, 180),), ())
    assert heard.lasts == pytest.approx(4.0, abs=0.05)
    assert box(made, 2.0) == (0, 0, 320, 180)


@pytest.mark.parametrize(
    ("name", "video", "audio"), [("a.ts", MPEG2, AAC), ("b.ts", H264_B, ("-c:a", "ac3")), ("c.webm", VP8, OPUS)]
)
def test_the_changing_film_changes_and_stays_in_sync(
    tmp_path: Path, name: str, video: tuple[str, ...], audio: tuple[str, ...]
) -> None:
    made = changing(tmp_path / name, video=video, audio=audio)
    shown, heard = picture(made), sound(made)
    assert shown.sizes == tuple(form.size for form in CHANGES)
    assert shown.flashes == pytest.approx(EVEN, abs=0.1)
    assert apart(shown.flashes, heard.beeps) < 0.06
    assert heard.silences == ()


def test_what_is_out_of_sync_is_measured_so(tmp_path: Path) -> None:
    made = sound_first(tmp_path / "film.mp4", earlier=0.4)
    assert apart(picture(made).flashes, sound(made).beeps) == pytest.approx(0.4, abs=0.03)


def test_a_recording_shows_nothing_before_its_first_key_frame(tmp_path: Path) -> None:
    made = between_keys(tmp_path / "film.ts", begins=4.3)
    shown, heard = picture(made), sound(made)
    assert shown.times[0] > 5.8
    assert heard.begins < 4.4
    assert apart(shown.flashes, [beep for beep in heard.beeps if beep > 5]) < 0.05


def test_programmes_have_their_own_sound(tmp_path: Path) -> None:
    made = two_programmes(tmp_path / "film.ts")
    assert len(picture(made, track="v:1").flashes) == len(sound(made, track="a:1").beeps) == 3
    assert sound(made, track="a:0").beeps == ()


def test_a_silence_and_a_missing_part_are_measured(tmp_path: Path) -> None:
    made = film(tmp_path / "film.mkv", Form(), "-af", "volume=0:enable='between(t,1,1.5)'")
    [(begin, end)] = sound(made).silences
    assert (begin, end) == pytest.approx((1.0, 1.5), abs=0.03)
    holed = film(tmp_path / "holed.mkv", Form(), "-af", "aselect='not(between(t,1,1.5))'", audio=("-c:a", "pcm_s16le"))
    [(begin, end)] = sound(holed).silences
    assert (begin, end) == pytest.approx((1.0, 1.5), abs=0.03)
