"""The payload of a notification, byte for byte."""

from __future__ import annotations

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from domain.event.values import EventDetails, EventState, Mp4State
from tests.properties.histories import texts
from workers.webhook.fanout import payload
from workers.webhook.policy import Effect, EventChange, PayloadAction
from workers.webhook.sender.attempt import form_body

EVENT = "1f0c0a5e-0000-4000-8000-000000000001"
FIELDS = [
    *("EventId", "ReferenceId", "ExternalId", "State", "StateChanged", "MetadataChanged", "ThumbnailChanged", "IsForced"),
    *("AudioChanged", "Mp4State", "Mp4StateChanged", "ChapterPointsChanged", "AssetsChanged", "ProvisionState"),
    *("ProvisionStateChanged", "CapturingLive2VodFlagChanged", "Action"),
]
PUBLISHED = EventDetails(ref_id="match 7/ä&=+", external_id=None, state=EventState.LIVE_PUBLISHED, mp4_state=Mp4State.NONE)
WENT_LIVE = Effect(PayloadAction.UPDATED, EventChange.STATE)

_FLAGS = {
    EventChange.STATE: "stateChanged",
    EventChange.METADATA: "metadataChanged",
    EventChange.THUMBNAIL: "thumbnailChanged",
    EventChange.FORCED: "isForced",
    EventChange.AUDIO: "audioChanged",
    EventChange.MP4_STATE: "mp4StateChanged",
    EventChange.CHAPTER_POINTS: "chapterPointsChanged",
    EventChange.ASSETS: "assetsChanged",
    EventChange.PROVISION_STATE: "provisionStateChanged",
    EventChange.CAPTURING: "capturingLive2VodFlagChanged",
}


def test_json_has_all_fields_in_order_and_states_by_name() -> None:
    assert payload(EVENT, PUBLISHED, effect=WENT_LIVE) == (
        '{"eventId":"1f0c0a5e-0000-4000-8000-000000000001","referenceId":"match 7/ä&=+","externalId":"",'
        '"state":"LIVE_PUBLISHED","stateChanged":true,"metadataChanged":false,"thumbnailChanged":false,"isForced":false,'
        '"audioChanged":false,"mp4State":"NONE","mp4StateChanged":false,"chapterPointsChanged":false,"assetsChanged":false,'
        '"provisionState":null,"provisionStateChanged":false,"capturingLive2VodFlagChanged":false,"action":"Updated"}'
    )


def test_a_form_has_the_same_fields_in_pascal_case() -> None:
    assert form_body(payload(EVENT, PUBLISHED, effect=WENT_LIVE)) == (
        b"EventId=1f0c0a5e-0000-4000-8000-000000000001&ReferenceId=match+7%2F%C3%A4%26%3D%2B&ExternalId="
        b"&State=LIVE_PUBLISHED&StateChanged=true&MetadataChanged=false&ThumbnailChanged=false&IsForced=false"
        b"&AudioChanged=false&Mp4State=NONE&Mp4StateChanged=false&ChapterPointsChanged=false&AssetsChanged=false"
        b"&ProvisionState=&ProvisionStateChanged=false&CapturingLive2VodFlagChanged=false&Action=Updated"
    )


def test_every_change_has_its_own_flag() -> None:
    for change in EventChange:
        shown = from_json(payload(EVENT, PUBLISHED, effect=Effect(PayloadAction.UPDATED, change)))
        assert [name for name, value in shown.items() if value is True] == [_FLAGS[change]]


@given(st.none() | texts, st.none() | texts, st.sampled_from(EventState), st.sampled_from(Mp4State), st.sampled_from(PayloadAction))
def test_json_and_form_have_the_same_values_for_any_text(
    ref_id: str | None, external_id: str | None, state: EventState, mp4_state: Mp4State, action: PayloadAction
) -> None:
    details = EventDetails(ref_id=ref_id, external_id=external_id, state=state, mp4_state=mp4_state)
    body = payload(EVENT, details, effect=Effect(action, EventChange.MP4_STATE))
    shown = from_json(body)
    form = dict(parse_qsl(form_body(body).decode("ascii"), keep_blank_values=True, strict_parsing=True))
    assert list(form) == FIELDS
    assert [name[0].upper() + name[1:] for name in shown] == FIELDS
    assert (shown["referenceId"], shown["externalId"]) == (ref_id or "", external_id or "")
    assert (form["ReferenceId"], form["ExternalId"]) == (ref_id or "", external_id or "")
    assert (form["State"], form["Mp4State"], form["Action"]) == (state.name, mp4_state.name, action.value)
