"""GET of one Event by id, reference id or external id, and the parameters of its Video object."""

from __future__ import annotations

from typing import Any

import httpx

from tests.api.asking import AWKWARD, UNKNOWN, add, fields_of
from tests.support.clock import HandClock


async def test_references_and_external_ids_of_any_character_find_their_event(http: httpx.AsyncClient) -> None:
    for text in AWKWARD:
        by_reference = await add(http, RefId=text)
        by_external = await add(http, ExternalId=text)
        for path, shown in (("reference", by_reference), ("external", by_external)):
            for slash in ("", "/"):
                response = await http.get(f"/api/event/{path}{slash}", params={"id": text})
                assert (response.status_code, response.json()) == (200, shown), (path, text)


async def test_a_look_up_is_exact_and_204_without_a_match(http: httpx.AsyncClient) -> None:
    await add(http, RefId="Ref_1", ExternalId="Ext%1")
    for path, texts in (("reference", ("ref_1", "Ref", "Ref_1 ", "Ref%", "Refx1")), ("external", ("Ext%", "ExtX1", "Ext%1%"))):
        for text in texts:
            response = await http.get(f"/api/event/{path}", params={"id": text})
            assert (response.status_code, response.content) == (204, b""), text
    assert (await http.get(f"/api/event/{UNKNOWN}")).status_code == 204


async def test_an_empty_or_missing_id_is_400(http: httpx.AsyncClient) -> None:
    for path in ("reference", "external", "external/unique"):
        for query in ("", "?id=", "?ID=", "?other=x"):
            assert fields_of(await http.get(f"/api/event/{path}{query}")) == ["id"]
    assert fields_of(await http.get("/api/event/no-guid")) == ["id"]


async def test_of_several_events_the_newest_is_shown(http: httpx.AsyncClient, clock: HandClock) -> None:
    keys = []
    for _ in range(3):
        keys.append((await add(http, RefId="r", ExternalId="x"))["id"])
        clock.forward(seconds=1)
    await add(http, Id=keys[0], Title="modified last")
    for key in reversed(keys):
        for path in ("reference?id=r", "external?id=x"):
            assert (await http.get(f"/api/event/{path}")).json()["id"] == key
        await http.delete(f"/api/event/{key}")


async def test_whether_an_external_id_is_unique(http: httpx.AsyncClient) -> None:
    async def unique(text: str) -> dict[str, Any]:
        response: dict[str, Any] = (await http.get("/api/event/external/unique", params={"id": text})).json()
        return response

    assert await unique("abc") == {"IsUnique": True, "Value": "abc", "ValueType": "ExternalId"}
    key = (await add(http, ExternalId="abc"))["id"]
    assert await unique("abc") == {"IsUnique": False, "Value": "abc", "ValueType": "ExternalId"}
    assert (await unique("ABC"))["IsUnique"] is True
    await http.delete(f"/api/event/{key}")
    assert (await unique("abc"))["IsUnique"] is True
    for text in AWKWARD:
        assert await unique(text) == {"IsUnique": True, "Value": text, "ValueType": "ExternalId"}


async def test_the_video_is_shown_only_with_process_video(http: httpx.AsyncClient) -> None:
    key = (await add(http, RefId="r", ExternalId="x", EventState=2))["id"]
    for path in (f"{key}?", "reference?id=r&", "external?id=x&"):
        assert (await http.get(f"/api/event/{path}in=00:00:01&audioOnly=true")).json()["video"] is None
        assert (await http.get(f"/api/event/{path}processVideo=false")).json()["video"] is None
        assert (await http.get(f"/api/event/{path}PROCESSVIDEO=True")).json()["video"] is not None


async def test_all_members_of_a_video_without_streams_are_empty(http: httpx.AsyncClient) -> None:
    for state in (0, 1, 2, 4, 10, 11, 12, 17):
        key = (await add(http, EventState=state))["id"]
        video = (await http.get(f"/api/event/{key}?processVideo=true&viewUnpublished=true")).json()["video"]
        assert {name: value for name, value in video.items() if value not in ("", [], {})} == {
            "requestedStreamTime": {
                "inPointOriginalString": None,
                "outPointOriginalString": None,
                "inPointDateTime": None,
                "outPointDateTime": None,
                "inPointTimeSpan": "00:00:00",
                "outPointTimeSpan": "00:00:00",
                "inPointHasValue": False,
                "outPointHasValue": False,
                "inPointIsAbsoluteDateTime": False,
                "outPointIsAbsoluteDateTime": False,
            },
            "requestedAudioOnly": False,
            "requestedAutoStart": False,
        }


async def test_stream_times_are_shown_as_sent_and_as_understood(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]

    async def stream_time(**points: str) -> dict[str, Any]:
        response = await http.get(f"/api/event/{key}", params={"processVideo": "true", **points})
        assert response.status_code == 200, response.text
        shown: dict[str, Any] = response.json()["video"]["requestedStreamTime"]
        return shown

    moment = "2031-01-02T03:04:05.000Z"
    absolute = await stream_time(**{"in": moment})
    assert absolute == {
        "inPointOriginalString": moment,
        "outPointOriginalString": None,
        "inPointDateTime": moment,
        "outPointDateTime": None,
        "inPointTimeSpan": "00:00:00",
        "outPointTimeSpan": "00:00:00",
        "inPointHasValue": True,
        "outPointHasValue": False,
        "inPointIsAbsoluteDateTime": True,
        "outPointIsAbsoluteDateTime": False,
    }
    spans = await stream_time(**{"in": "00:01:30", "out": "00:02:00.500"})
    assert (spans["inPointOriginalString"], spans["inPointDateTime"], spans["inPointTimeSpan"]) == ("00:01:30", None, "00:01:30")
    assert (spans["inPointHasValue"], spans["inPointIsAbsoluteDateTime"]) == (True, False)
    assert (spans["outPointOriginalString"], spans["outPointTimeSpan"]) == ("00:02:00.500", "00:02:00.500")
    zoned = await stream_time(out="2031-01-02T05:04:05.678+02:00")
    assert (zoned["outPointOriginalString"], zoned["outPointDateTime"]) == (
        "2031-01-02T05:04:05.678+02:00",
        "2031-01-02T03:04:05.678Z",
    )


async def test_an_invalid_parameter_is_400_with_and_without_a_video(http: httpx.AsyncClient) -> None:
    key = (await add(http, RefId="r"))["id"]
    wrong = {
        "in": ["", "soon", "90", "1:2:3", "00:60:00", "00:00:60", "-00:01:00", "2031-02-30", "99999-01-01", "00:00:00.1234"],
        "out": ["x"],
        "audioOnly": ["maybe"],
        "autoStart": ["2"],
        "processVideo": ["x"],
        "viewUnpublished": [""],
        "streamSource": ["CDN", "CDN_PRIMARY", "CDN_PRIMARY_INDEX_", "9", "-1", "CDN_PRIMARY_INDEX_99999"],
        "livePlayoutProfileId": ["x", ""],
        "noCache": ["x"],
    }
    for path in (f"/api/event/{key}", "/api/event/reference?id=r", "/api/event/reference?id=none"):
        for name, values in wrong.items():
            for value in values:
                address = httpx.URL(path).copy_merge_params({name: value})
                assert fields_of(await http.get(address)) == [name], (path, name, value)
                assert fields_of(
                    await http.get(address.copy_merge_params({"processVideo": "true"} if name != "processVideo" else {}))
                ) == [name]
    later = {"in": "2031-01-02", "out": "2031-01-01"}
    assert fields_of(await http.get(f"/api/event/{key}", params=later)) == ["out"]
    assert fields_of(await http.get(f"/api/event/{key}", params={"in": "00:01:00", "out": "00:00:59"})) == ["out"]


async def test_the_video_repeats_the_parameters(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    parameters = "processVideo=1&audioOnly=1&autoStart=TRUE&streamSource=cdn_primary_index_0&livePlayoutProfileId=" + UNKNOWN
    video = (await http.get(f"/api/event/{key}?{parameters}&noCache=true")).json()["video"]
    assert (video["requestedAudioOnly"], video["requestedAutoStart"]) == (True, True)
