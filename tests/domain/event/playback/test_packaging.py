"""The packages of a film that the addresses of one flow lead to. See docs/reference/playback.md#how-a-url-is-made."""

from __future__ import annotations

from typing import Any

import pytest

from domain.channel.flow import FlowDocument
from domain.event.values import Mp4State
from domain.kernel.errors import Malformed
from domain.kernel.json_document import checked
from tests.domain.channel.texts_given import FLOW as WHOLE
from tests.domain.channel.texts_given import changed
from tests.domain.event.playback.channel_and_flow_given import EVENT_ID, live_at, play, urls

STORED: dict[str, Any] = {"mp4_state": Mp4State.AVAILABLE}


def flow(*protocols: str) -> dict[str, Any]:
    streams = [{"streamProtocol": each, "vodCdnPrimaryUrl": "https://cdn/{contentId}/{PACKAGING}/x"} for each in protocols]
    return {"flows": [{"storageUrlPublic": "https://files", "storageUrlPrivate": "http://nas", "outputUrls": streams}]}


@pytest.mark.parametrize("state", [10, 11, 12, 13, 17, 18, 20, 21])
@pytest.mark.parametrize(("drm", "folders"), [(False, ["clear"] * 5), (True, ["cbcs", "cenc", "cenc", "cenc", "cbcs"])])
def test_one_flow_serves_protected_events_and_others(state: int, drm: bool, folders: list[str]) -> None:
    answer = play(state, flow=flow("HLS", "DASH", "HSS", "HDS", "HLSe"), event={**STORED, "vod_drm": drm})
    assert urls(answer.current_state_urls) == [f"https://cdn/{EVENT_ID}/{folder}/x" for folder in folders]


@pytest.mark.parametrize("state", range(22))
def test_nobody_is_told_where_the_film_of_a_protected_event_is_in_the_clear(state: int) -> None:
    mp4 = f"{EVENT_ID}/{EVENT_ID}.mp4"
    clear = play(state, flow=flow("HLS"), event=STORED)
    assert (clear.public_mp4_url, clear.private_mp4_url) == (f"https://files/{mp4}", f"http://nas/{mp4}")
    assert mp4 not in repr(play(state, flow=flow("HLS"), event={**STORED, "vod_drm": True}))


def test_a_live_address_has_no_packaging() -> None:
    assert urls(live_at("https://cdn/{packaging}", event={"vod_drm": True}).live_urls) == ["https://cdn/{packaging}"]


PLACES = [
    ("flows", 0, "outputUrls", 0, "vodCdnPrimaryUrl"),
    ("flows", 0, "outputUrls", 0, "vodCdnSecondaryUrl"),
    ("flows", 0, "outputUrls", 0, "vodOriginPrimaryUrl"),
    ("flows", 0, "outputUrls", 0, "vodOriginSecondaryUrl"),
    ("flows", 0, "outputUrls", 0, "vodPrivateUrl"),
    ("flows", 0, "ismUrl"),
    ("flows", 0, "storageUrlPublic"),
    ("flows", 0, "storageUrlPrivate"),
]


@pytest.mark.parametrize("place", PLACES)
def test_an_unknown_placeholder_is_refused_in_a_new_flow_and_stays_in_a_stored_one(place: Any) -> None:
    for wrong in ("https://cdn/{contentID}/{pakaging}", "https://cdn/{}", "https://cdn/{ipAddress}/{packaging}"):
        text = changed(WHOLE, place, to=wrong)
        with pytest.raises(Malformed) as refused:
            checked(FlowDocument, text, is_new=True)
        assert [error.field.rpartition(".")[2] for error in refused.value.errors] == [place[-1]]
        checked(FlowDocument, text)
    filled = "https://cdn/{contentId}/{Packaging}/x" if "storage" not in place[-1] else "https://files"
    checked(FlowDocument, changed(WHOLE, place, to=filled), is_new=True)
