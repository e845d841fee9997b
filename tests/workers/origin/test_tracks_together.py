"""Players see a recording once all its tracks have begun, and at the latest some seconds after the first."""

from __future__ import annotations

import pytest

from tests.workers.origin.mp4 import AAC, AVC, box, fragment, init
from tests.workers.origin.studio import ARCHIVE, LIVE, Studio, Track, master_playlist
from workers.origin.limits import RefusalReason, UploadRefused


async def nothing_is_shown(studio: Studio) -> bool:
    matches = [result for view in (LIVE, ARCHIVE) for result in (await studio.master(view), await studio.manifest(view))]
    return matches == [None] * 4


async def test_sound_that_comes_first_waits_for_the_picture(studio: Studio) -> None:
    sound, high, low = (Track(studio, name) for name in ("a0", "v0", "v1"))
    await sound.send()
    assert await nothing_is_shown(studio)
    assert await studio.media("a0") == ""
    studio.clock.forward(seconds=0.9)
    await sound.send()
    await high.send()
    assert await nothing_is_shown(studio), "the encoder has not said what it sends"
    await studio.put("master.m3u8", master_playlist("v0", "v1"))
    assert await nothing_is_shown(studio)
    await low.send()
    for view in (LIVE, ARCHIVE):
        master = str(await studio.master(view))
        assert [name in master for name in ("tracks/a0.m3u8", "tracks/v0.m3u8", "tracks/v1.m3u8")] == [True] * 3
        assert str(await studio.manifest(view)).count("<Representation") == 3


async def test_a_track_that_does_not_come_is_waited_for_some_seconds_only(studio: Studio) -> None:
    sound = Track(studio, "a0")
    await studio.put("master.m3u8", master_playlist("v0"))
    for _ in range(4):
        await sound.send()
        assert await nothing_is_shown(studio)
        studio.clock.forward(seconds=1)
    assert "tracks/a0.m3u8" in str(await studio.master())
    await Track(studio, "v0").send()
    assert "tracks/v0.m3u8" in str(await studio.master())


@pytest.mark.parametrize(("picture", "sound"), [(0, 10**15), (10**15, 0), (0, 2 * 86_400), (2 * 86_400, 0)])
async def test_a_track_whose_time_is_far_from_that_of_the_others_is_refused(studio: Studio, picture: int, sound: int) -> None:
    """The segments of such a track would be at times outside of any calendar, and hide those of the others."""
    await Track(studio, "v0", begins=picture).send()
    with pytest.raises(UploadRefused) as refused:
        await Track(studio, "a0", begins=sound).send()
    assert refused.value.why is RefusalReason.MALFORMED
    await Track(studio, "a0", begins=picture + 3600).send()
    studio.clock.forward(seconds=5)
    assert f"1/a0/{(picture + 3600) * 1000}.m4s" in await studio.media("a0", ARCHIVE)


async def test_what_has_ended_is_not_waited_for(studio: Studio) -> None:
    await Track(studio, "a0").send(ended=True)
    assert "tracks/a0.m3u8" in str(await studio.master())


async def test_the_session_before_is_played_until_the_next_is_complete(studio: Studio) -> None:
    for name in ("a0", "v0"):
        await Track(studio, name).send()
    await studio.put("master.m3u8", master_playlist("v0"))
    await Track(studio, "a0", session=2).send()
    before = await studio.master()
    assert "tracks/v0.m3u8" in str(before)
    assert "#EXT-X-ENDLIST" not in await studio.media("v0"), "it goes on"
    assert "2/a0" not in await studio.media("a0")
    await Track(studio, "v0", session=2).send()
    await studio.put("master.m3u8", master_playlist("v0"), session=2)
    assert await studio.master() == before
    for name in ("a0", "v0"):
        assert f"2/{name}/0.m4s" in await studio.media(name)


async def test_streams_of_fragments_wait_for_those_that_have_begun(studio: Studio) -> None:
    """Without a master playlist, the streams that have begun are those that are sent."""
    sound = [init(AAC), *(fragment(time) for time in range(3))]
    await studio.put("Streams(low)", init(AVC))
    await studio.put("Streams(sound)", *sound)
    assert await nothing_is_shown(studio)
    await studio.put("Streams(high)", init(AVC), *(fragment(time) for time in range(3)))
    assert await nothing_is_shown(studio)
    await studio.put("Streams(low)", *(fragment(time) for time in range(3)))
    master = str(await studio.master())
    assert [name in master for name in ("sound", "high", "low")] == [True] * 3


async def test_a_request_of_one_fragment_does_not_end_the_stream(studio: Studio) -> None:
    """Otherwise players would stop between two fragments. A box `mfra` ends it, and so does the end of a request with the whole
    stream."""
    await studio.put("Streams(all)", init(AVC, AAC))
    for time in range(3):
        await studio.put("Streams(all)", fragment(time))
        assert "#EXT-X-ENDLIST" not in await studio.media("all")
    await studio.put("Streams(all)", fragment(3), box("mfra"))
    assert "#EXT-X-ENDLIST" in await studio.media("all")
    await studio.put("Streams(all)", init(AVC, AAC), *(fragment(time) for time in range(3)), session=2)
    assert "#EXT-X-ENDLIST" in await studio.media("all")


async def test_a_stream_of_fragments_with_sound_and_picture_is_there_at_once(studio: Studio) -> None:
    await studio.put("Streams(all)", init(AVC, AAC), *(fragment(time) for time in range(3)))
    assert "tracks/all.m3u8" in str(await studio.master())
