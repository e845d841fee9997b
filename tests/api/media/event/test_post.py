"""POST /event/: add or update an Event. See docs/reference/api/events.md."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import (
    add,
    add_room,
    event,
    fields_of,
    last,
    logged,
    new_id,
    of_event,
    patch,
    replace,
    topics,
)
from tests.support.clock import HandClock

FORM = {"content-type": "application/x-www-form-urlencoded"}
NOON = "2031-01-02T12:00:00.000Z"
DRM = json.dumps({"drm_provider": "THIRDPARTY", "drm_data": [{"name": "CENC", "key_id": "k", "content_id": "c"}]})

TEXTS = {
    "Title": "title",
    "RefId": "refId",
    "ExternalId": "externalId",
    "Description": "description",
    "AdditionalStreamingOptions": "additionalStreamingOptions",
    "Thumbnail": "thumbnail",
}
TIMES = {
    "ScheduledStart": "scheduledStart",
    "ScheduledEnd": "scheduledEnd",
    "ScheduledChannelStart": "scheduledChannelStart",
    "ScheduledChannelEnd": "scheduledChannelEnd",
    "PublishedStart": "publishedStart",
    "PublishedEnd": "publishedEnd",
    "InstantVodStart": "instantVodStart",
    "InstantVodEnd": "instantVodEnd",
    "ScheduledProvisionAt": "scheduledProvisionAt",
    "ScheduledTerminateAt": "scheduledTerminateAt",
    "ArchiverStart": "archiverStart",
    "ArchiverEnd": "archiverEnd",
}
FLAGS = {
    "AutoStart": "autoStart",
    "AutoEnd": "autoEnd",
    "AutoProvisionInfrastructure": "autoProvisionInfrastructure",
    "AutoTerminateInfrastructure": "autoTerminateInfrastructure",
    "AutoPublish": "autoPublish",
    "AutoStartPublications": "autoStartPublications",
    "VodEnableDrm": "vodDrm",
}
LIMITS = {"DvrLength": "dvrLength", "MaxBitrate": "maxBitrateUrlParam", "MinBitrate": "minBitrateUrlParam"}


def all_fields(room: str) -> dict[str, Any]:
    """A value for every field of the body that needs no channel, flow, type, category or profile."""
    return {
        **{name: f"some {name}" for name in TEXTS},
        **{name: f"2031-03-{day:02}T10:00:00.123Z" for day, name in enumerate(TIMES, 1)},
        **dict.fromkeys(FLAGS, True),
        "AutoExpirePublishingPoints": True,
        "RefreshIndex": True,
        "DvrLength": 30,
        "MaxBitrate": 5000,
        "MinBitrate": 100,
        "RoomId": room,
        "TaskEngineJson": '{"task": 1}',
        "DrmJson": DRM,
        "Tags": [{"name": "sport"}, {"name": "live"}],
    }


def shown_of(sent: dict[str, Any]) -> dict[str, Any]:
    """The members of a response for `all_fields`."""
    renamed = {**TEXTS, **TIMES, **FLAGS, **LIMITS, "RoomId": "roomId", "TaskEngineJson": "taskEngineJson", "DrmJson": "drmJson"}
    return {shown: sent[name] for name, shown in renamed.items()}


async def test_an_event_is_added_without_any_field(http: httpx.AsyncClient, inner: Core) -> None:
    response = await http.post("/api/event/", json={})
    shown = response.json()
    assert response.status_code == 200
    assert response.headers["etag"] == '"1"'
    assert (shown["title"], shown["state"], shown["stateString"], shown["mp4StateString"]) == ("", 0, "PRE_LIVE", "NONE")
    assert shown["contentId"] == shown["id"]
    assert (shown["dateCreated"], shown["dateModified"], shown["dateDeleted"]) == (NOON, NOON, None)
    assert shown["video"] is None
    assert await of_event(inner, shown["id"]) == ["registered"]
    assert await event(http, shown["id"]) == shown


async def test_every_field_is_in_the_response_and_in_a_get(http: httpx.AsyncClient, inner: Core) -> None:
    sent = all_fields(await add_room(http))
    shown = await add(http, **sent)
    assert {name: shown[name] for name in shown_of(sent)} == shown_of(sent)
    assert (shown["room"], shown["dvrLengthUrlParam"]) == ("Main hall", 30)
    assert shown["drmData"] == [{"name": "CENC", "key_id": "k", "content_id": "c"}]
    assert await event(http, shown["id"]) == shown
    tags = (await http.get(f"/api/tag/event/{shown['id']}")).json()
    assert [tag["name"] for tag in tags] == ["sport", "live"]
    assert await of_event(inner, shown["id"]) == ["registered"]
    assert (await logged(inner, f"event:{shown['id']}"))[0].data["auto_expire_publishing_points"] is True


async def test_an_update_appends_one_domain_event_for_each_facet(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    key = (await add(http, Title="Final"))["id"]
    clock.forward(minutes=1)
    sent = all_fields(await add_room(http))
    shown = await add(http, Id=key, **sent)
    assert {name: shown[name] for name in shown_of(sent)} == shown_of(sent)
    assert (shown["dateCreated"], shown["dateModified"]) == (NOON, "2031-01-02T12:01:00.000Z")
    assert await of_event(inner, key) == [
        "registered",
        "described",
        "references_changed",
        "rescheduled",
        "publication_window_changed",
        "instant_vod_window_changed",
        "archiver_window_changed",
        "automation_changed",
        "provisioning_plan_changed",
        "room_assigned",
        "tagged",
        "drm_configured",
        "streaming_configured",
        "flow_task_changed",
    ]


async def test_the_same_values_again_change_nothing(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    sent = all_fields(await add_room(http))
    first = await http.post("/api/event/", json=sent)
    before = await last(inner)
    clock.forward(hours=1)
    again = await http.post("/api/event/", json={"Id": first.json()["id"], **sent})
    assert again.json() == first.json()
    assert again.headers["etag"] == first.headers["etag"]
    assert await last(inner) == before


async def test_absent_fields_do_not_change(http: httpx.AsyncClient) -> None:
    first = await add(http, **all_fields(await add_room(http)))
    assert await add(http, Id=first["id"], Title="Other") == {**first, "title": "Other"}


async def test_null_clears_a_field_and_is_false_for_a_flag(http: httpx.AsyncClient) -> None:
    sent = all_fields(await add_room(http))
    key = (await add(http, EventState=2, **sent))["id"]
    shown = await add(http, Id=key, EventState=None, **dict.fromkeys(sent))
    assert {name: shown[name] for name in TIMES.values() if shown[name] is not None} == {}
    assert {name for name in FLAGS.values() if shown[name] is not False} == set()
    assert {name: shown[name] for name in LIMITS.values()} == dict.fromkeys(LIMITS.values(), 0)
    assert [shown[name] for name in ("title", "refId", "externalId", "thumbnail", "drmJson", "taskEngineJson")] == [""] * 6
    assert (shown["description"], shown["roomId"], shown["room"], shown["drmData"]) == (None, None, None, None)
    assert shown["stateString"] == "LIVE_PUBLISHED"
    assert (await http.get(f"/api/tag/event/{key}")).json() == []


async def test_the_flag_of_drm_is_taken_by_the_name_that_answers_have(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http, vodDrm=True)
    key = shown["id"]
    assert shown["vodDrm"] is True
    assert (await add(http, **{**shown, "title": "Read and sent back"}))["vodDrm"] is True
    assert (await add(http, id=key, vodDrm=True, vodEnableDrm=False))["vodDrm"] is False
    assert (await add(http, id=key, VODDRM="true"))["vodDrm"] is True
    assert (await http.post("/api/event/", json={"id": key, "vodDrm": "perhaps"})).status_code == 400
    assert await event(http, key) == {**shown, "title": "Read and sent back", "dateModified": NOON}
    assert await of_event(inner, key) == ["registered", "described", *["drm_configured"] * 2]


async def test_an_unknown_id_creates_the_event_with_it(http: httpx.AsyncClient, inner: Core) -> None:
    key = new_id()
    assert (await add(http, Id=key.upper(), Title="Final"))["id"] == key
    assert await of_event(inner, key) == ["registered"]


async def test_a_null_id_is_the_same_as_no_id(http: httpx.AsyncClient) -> None:
    assert (await add(http, Id=None))["id"]


@pytest.mark.parametrize("keys", [("title", "autostart"), ("TITLE", "AUTOSTART"), ("tItLe", "auto_start")])
async def test_keys_match_in_any_case(http: httpx.AsyncClient, keys: tuple[str, str]) -> None:
    shown = await add(http, **{keys[0]: "Final", keys[1]: True})
    assert (shown["title"], shown["autoStart"]) == ("Final", True)


async def test_a_form_has_the_same_effect_as_json(http: httpx.AsyncClient, inner: Core) -> None:
    sent = all_fields(await add_room(http))
    plain = {name: json.dumps(value) if isinstance(value, bool | int) else value for name, value in sent.items()}
    plain["Tags"] = json.dumps(sent["Tags"])
    for response in (
        await http.post("/api/event/", data=plain),
        await http.post("/api/event/", files={name: (None, value) for name, value in plain.items()}),
    ):
        assert response.status_code == 200, response.text
        shown = response.json()
        assert {name: shown[name] for name in shown_of(sent)} == shown_of(sent)
        assert [tag["name"] for tag in (await http.get(f"/api/tag/event/{shown['id']}")).json()] == ["sport", "live"]
    assert len([entry for entry in await logged(inner) if entry.topic == "tag.registered"]) == 2


@pytest.mark.parametrize("entry", ["Tags[{}].{}", "tags[{}][{}]", "TAGS[{}].{}"])
async def test_the_tags_of_a_form_may_be_fields_of_their_own(http: httpx.AsyncClient, entry: str) -> None:
    names = {entry.format(10, "name"): "third", entry.format(2, "Name"): "second", entry.format(0, "name"): "first"}
    key = new_id()
    form = {"Title": "Final", **names, entry.format(2, "id"): key, entry.format(0, "ID"): ""}
    for body in ({"data": form}, {"files": {name: (None, value) for name, value in form.items()}}):
        response = await http.post("/api/event/", **body)
        assert (response.status_code, response.headers.get("warning")) == (200, None), response.text
        tags = (await http.get(f"/api/tag/event/{response.json()['id']}")).json()
        assert {tag["name"] for tag in tags} == {"first", "second", "third"}
        assert key in {tag["id"] for tag in tags if tag["name"] == "second"}


async def test_wrong_fields_of_tags_in_a_form(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for form, field in (
        ({"Tags[0].name": ""}, "tags[0].name"),
        ({"Tags[0].name": "a", "Tags[1].id": new_id()}, "tags[1].name"),
        ({"Tags[0].name": "a", "Tags[0].id": "x"}, "tags[0].id"),
        ({"Tags[0].name": "a", "tags[0][Name]": "b"}, "tags[0][Name]"),
        ({"Tags[0].name": "a", "Tags": "[]"}, "Tags"),
        ({f"Tags[{n}].name": f"{n}" for n in range(1001)}, "tags"),
    ):
        assert fields_of(await http.post("/api/event/", data=form)) == [field], form
    assert await last(inner) == before
    given = {"Tags[3].name": "a", "Tags[4].name": "b"}
    for name, place in (
        ("Tags[4].nam", "tags[1].nam"),
        ("Tags[4]", "Tags[4]"),
        ("Tag[4].name", "Tag[4].name"),
        ("Tags[4].name.x", "Tags[4].name.x"),
        ("Tags[x].name", "Tags[x].name"),
    ):
        form = {**given, name: "c"}
        response = await http.post("/api/event/", data=form)
        assert response.headers["warning"].startswith(f'299 - "unknown: {place}'), response.headers
        strict = await http.post("/api/event/", data=form, headers={"Prefer": "handling=strict"})
        assert fields_of(strict) == [place]


async def test_an_empty_value_in_a_form_is_null(http: httpx.AsyncClient) -> None:
    shown = await add(http, **all_fields(await add_room(http)))
    cleared = await http.post(
        "/api/event/", data={"Id": shown["id"], "Tags": "", "AutoStart": "", "ScheduledStart": "", "RoomId": ""}
    )
    assert cleared.json() == {**shown, "autoStart": False, "scheduledStart": None, "roomId": None, "room": None}
    assert (await http.get(f"/api/tag/event/{shown['id']}")).json() == []


async def test_invalid_tags_in_a_form_are_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for tags in ("nonsense", '["sport"]', '{"name": "sport"}', '[{"name": "a\\u0000b"}]', '[{"name": " "}]', "[" * 5000):
        assert fields_of(await http.post("/api/event/", data={"Tags": tags}))[0].startswith("tags"), tags
    assert await last(inner) == before


@pytest.mark.parametrize("given", [1, "1", "LIVE_UNPUBLISHED", "live_unpublished"])
async def test_a_state_is_set_by_number_and_by_name_and_is_metadata(http: httpx.AsyncClient, inner: Core, given: object) -> None:
    shown = await add(http, EventState=given)
    assert (shown["state"], shown["actualLiveStart"], shown["publishedStart"]) == (1, NOON, None)
    changed = (await logged(inner, f"event:{shown['id']}"))[1]
    assert changed.topic == "event.state_changed"
    assert (changed.data["state"], changed.data["previous"], changed.data["trigger"]) == (1, 0, "metadata")


async def test_an_unknown_state_is_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    wrong: list[Any] = [26, -1, "LIVE", "", 1.5, True, [], {}]
    for given in wrong:
        assert fields_of(await http.post("/api/event/", json={"EventState": given})) == ["eventState"], given
    assert await last(inner) == before


async def test_a_tag_is_added_once_and_found_by_name(http: httpx.AsyncClient, inner: Core) -> None:
    first = await add(http, Tags=[{"name": "sport"}, {"name": "live"}, {"name": "sport"}])
    two = await add(http, Tags=[{"id": new_id(), "name": "live"}, {"name": "Live"}])
    of_one = (await http.get(f"/api/tag/event/{first['id']}")).json()
    of_two = (await http.get(f"/api/tag/event/{two['id']}")).json()
    assert [tag["name"] for tag in of_one] == ["sport", "live"]
    assert [tag["name"] for tag in of_two] == ["live", "Live"]
    assert of_two[0] == of_one[1]
    registered = [entry.data["name"] for entry in await logged(inner) if entry.topic == "tag.registered"]
    assert sorted(registered) == ["Live", "live", "sport"]


@pytest.mark.parametrize("empty", [[], None])
async def test_tags_replace_all_present_tags(http: httpx.AsyncClient, inner: Core, empty: object) -> None:
    key = (await add(http, Tags=[{"name": "a"}, {"name": "b"}]))["id"]
    await add(http, Id=key, Tags=[{"name": "c"}])
    assert [tag["name"] for tag in (await http.get(f"/api/tag/event/{key}")).json()] == ["c"]
    await add(http, Id=key, Tags=empty)
    assert (await http.get(f"/api/tag/event/{key}")).json() == []
    assert await of_event(inner, key) == ["registered", "tagged", "tagged"]


async def test_invalid_tags_are_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    twins = {"name": "a", "NAME": "b"}
    wrong: list[Any] = [[{}], [{"name": ""}], [{"name": "  "}], [{"name": None}], ["a"], "a", {"name": "a"}, [twins]]
    for tags in wrong:
        response = await http.post("/api/event/", json={"Tags": tags})
        assert fields_of(response)[0].lower().startswith("tags"), tags
    assert await last(inner) == before


@pytest.mark.parametrize("name", LIMITS)
async def test_a_negative_limit_is_400_and_0_clears_it(http: httpx.AsyncClient, inner: Core, name: str) -> None:
    assert [field.lower() for field in fields_of(await http.post("/api/event/", json={name: -1}))] == [name.lower()]
    shown = await add(http, **{name: 7})
    assert shown[LIMITS[name]] == 7
    assert (await add(http, Id=shown["id"], **{name: 0}))[LIMITS[name]] == 0
    before = await last(inner)
    await add(http, Id=shown["id"], **{name: None})
    assert await last(inner) == before


async def test_a_text_with_invalid_json_is_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for name in ("DrmJson", "TaskEngineJson"):
        for text in ("{", "nonsense", "{'a': 1}", '{"a": NaN}', "[1,]", '{"a": 1} x', "[" * 100_000):
            response = await http.post("/api/event/", json={name: text})
            assert [field.lower() for field in fields_of(response)] == [name.lower()], text[:20]
    assert await last(inner) == before


async def test_drm_json_is_kept_as_sent_and_its_data_parsed(http: httpx.AsyncClient) -> None:
    for text, data in [
        ('{"drm_provider": "NONE"}', None),
        ('{"drm_data": []}', []),
        ('{"drm_data": [{"name": "FAIRPLAY", "laurl": "https://é"}]}', [{"name": "FAIRPLAY", "laurl": "https://é"}]),
        ('  {"drm_data": {"any": [1, null]}}  ', {"any": [1, None]}),
        ("[]", None),
        ("null", None),
        ('{"drm_data": "\\ud800"}', None),
        ('{"drm_data": ' + "[" * 900 + "]" * 900 + "}", None),
        ('{"drm_data": 1e400}', None),
    ]:
        shown = await add(http, DrmJson=text)
        assert (shown["drmJson"], shown["drmData"]) == (text, data)
        assert await event(http, shown["id"]) == shown


async def test_any_iso_time_is_accepted_and_shown_in_utc(http: httpx.AsyncClient) -> None:
    for sent, shown in [
        ("2031-01-02T03:04:05.678Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04:05.6789999+02:00", "2031-01-02T01:04:05.678Z"),
        ("2031-01-02T03:04:05-0530", "2031-01-02T08:34:05.000Z"),
        ("2031-01-02T03:04", "2031-01-02T03:04:00.000Z"),
        ("2031-01-02", "2031-01-02T00:00:00.000Z"),
        ("2031-01-02T24:00:00Z", "2031-01-03T00:00:00.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ]:
        added = await add(http, ScheduledStart=sent)
        assert added["scheduledStart"] == shown
        assert (await http.get("/api/event/", params={"from": sent, "to": sent})).json()["results"] == [added]


async def test_an_invalid_time_is_400(http: httpx.AsyncClient) -> None:
    wrong: list[Any] = ["", "soon", "0000-01-01", "99999-01-01", "2031-02-30", "2031-01-02T25:00Z", 1700000000, True, []]
    for name in TIMES:
        for sent in wrong:
            response = await http.post("/api/event/", json={name: sent})
            assert [field.lower() for field in fields_of(response)] == [name.lower()], sent


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("scheduledStart", "scheduledEnd"),
        ("scheduledChannelStart", "scheduledChannelEnd"),
        ("scheduledProvisionAt", "scheduledTerminateAt"),
    ],
)
async def test_a_write_that_leaves_an_end_before_its_start_is_400(
    http: httpx.AsyncClient, inner: Core, start: str, end: str
) -> None:
    early, late = "2031-01-02T11:59:59.999Z", "2031-01-02T12:00:00.001Z"
    key = (await add(http, **{start: NOON, end: NOON}))["id"]
    before = await last(inner)
    patches = [await patch(http, key, replace(f"/{end}", early)), await patch(http, key, replace(f"/{start}", late))]
    composed = {"event": {"id": key, end: early}, "playlist": {"name": "a", "items": [{"type": 1, "value": "a.mp4"}]}}
    answers = [
        await http.post("/api/event/", json={start: late, end: early}),
        await http.post("/api/event/", json={"id": key, start: late}),
        await http.post("/api/event/", content=f"Id={key}&{end}={early}", headers=FORM),
        *patches,
        await http.post("/api/compose/encoder/", json=composed),
    ]
    assert [answer.status_code for answer in answers] == [400] * len(answers), [answer.text for answer in answers]
    assert [fields_of(answer) for answer in answers[:5]] == [[end], [start], [end], [end], [start]]
    assert await last(inner) == before
    assert (await add(http, Id=key, Title="Final"))["title"] == "Final"


async def test_display_times_are_published_else_scheduled_else_actual(http: httpx.AsyncClient) -> None:
    shown = await add(http, EventState=1)
    assert (shown["displayStart"], shown["displayEnd"]) == (NOON, None)
    shown = await add(http, Id=shown["id"], ScheduledStart="2031-01-01", ScheduledEnd="2031-01-03", EventState=4)
    assert (shown["displayStart"], shown["displayEnd"]) == ("2031-01-01T00:00:00.000Z", "2031-01-03T00:00:00.000Z")
    shown = await add(http, Id=shown["id"], PublishedStart="2031-01-05", PublishedEnd="2031-01-06")
    assert (shown["displayStart"], shown["displayEnd"]) == ("2031-01-05T00:00:00.000Z", "2031-01-06T00:00:00.000Z")


async def test_the_urls_of_documents_and_tags_are_absolute_and_work(http: httpx.AsyncClient) -> None:
    shown = await add(http, Tags=[{"name": "sport"}])
    assert shown["documentUrl"] == f"http://media.test/api/document/event/{shown['id']}"
    assert shown["tagUrl"] == f"http://media.test/api/tag/event/{shown['id']}"
    assert (await http.get(shown["documentUrl"])).json() == []
    assert [tag["name"] for tag in (await http.get(shown["tagUrl"])).json()] == ["sport"]
    elsewhere = await http.get(f"/api/event/{shown['id']}", headers={"Host": "media.example:8443"})
    assert elsewhere.json()["tagUrl"] == f"http://media.example:8443/api/tag/event/{shown['id']}"


async def test_a_new_tag_and_its_event_have_one_cause(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http, Tags=[{"name": "sport"}])
    events = (await logged(inner))[-2:]
    assert [entry.topic for entry in events] == ["tag.registered", "event.registered"]
    assert events[0].cause == events[1].cause
    assert (await topics(inner, f"event:{shown['id']}")) == ["event.registered"]


async def test_unknown_and_read_only_members_are_ignored(http: httpx.AsyncClient) -> None:
    shown = await add(http, Title="Final", contentId="mine", dateCreated="2001-01-01", odd={"any": 1}, stateString="STOPPED")
    assert (shown["contentId"], shown["stateString"]) == (shown["id"], "PRE_LIVE")
