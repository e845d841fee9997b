"""Names that are not documented: told, or refused with `Prefer: handling=strict`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.http.toy import Toy

STRICT = {"Prefer": "handling=strict"}
BODY = {"title": "a", "titel": "b", "tags": [{"name": "c", "nane": 1}]}
TOLD = '299 - "unknown: titel (did you mean title?); tags[0].nane (did you mean name?)"'


async def test_unknown_fields_are_told_and_refused_where_that_is_preferred(http: httpx.AsyncClient, toy: Toy) -> None:
    answer = await http.post("/api/thing/", json=BODY)
    assert (answer.status_code, answer.headers["warning"], "preference-applied" in answer.headers) == (201, TOLD, False)
    refused = await http.post("/api/thing/", json=BODY, headers=STRICT)
    assert (refused.status_code, refused.headers["preference-applied"]) == (400, "handling=strict")
    assert refused.json()["errors"] == [
        {"field": "titel", "message": "is unknown; did you mean title?"},
        {"field": "tags[0].nane", "message": "is unknown; did you mean name?"},
    ]
    assert toy.shelf.posts == 1
    right = await http.post("/api/thing/", json={"TITLE": "a", "Tags": [{"NAME": "c"}]}, headers=STRICT)
    assert (right.status_code, right.headers["preference-applied"], "warning" in right.headers) == (201, "handling=strict", False)
    assert ["prefer" in each.headers["vary"].split(", ") for each in (right, answer)] == [True, False]


async def test_a_missing_field_is_told_with_what_was_sent_in_its_place(http: httpx.AsyncClient) -> None:
    body = {"titel": "b"}
    for headers, fields in (({}, ["title"]), (STRICT, ["title", "titel"])):
        answer = await http.post("/api/thing/", json=body, headers=headers)
        assert [error["field"] for error in answer.json()["errors"]] == fields
        assert answer.headers.get("warning") == (None if headers else '299 - "unknown: titel (did you mean title?)"')


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/api/thing/?pagesize=3&serch=x&%22%0d%0aX:%20%C3%A9", "serch (did you mean search?); %22%0D%0AX: %C3%A9"),
        ("/api/thing/reference?colour=red&colour=%ff", "colour; colour"),
    ],
)
async def test_unknown_parameters_alike(http: httpx.AsyncClient, path: str, names: str) -> None:
    answer = await http.get(path)
    assert (answer.status_code, answer.headers["warning"]) == (200, f'299 - "unknown: {names}"')
    assert (await http.get(path, headers=STRICT)).status_code == 400


async def test_a_form_and_its_names(http: httpx.AsyncClient) -> None:
    form = {"Title": "a", "Titel": "b"}
    assert (await http.post("/api/thing/", data=form)).headers["warning"] == '299 - "unknown: Titel (did you mean title?)"'
    assert (await http.post("/api/thing/", data=form, headers=STRICT)).status_code == 400


async def test_thousands_of_names_cost_little_and_are_told_in_part(http: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {"title": "a", **{f"titel{number}": 1 for number in range(20_000)}}
    answer = await http.post("/api/thing/", json=body)
    assert answer.status_code == 201
    assert answer.headers["warning"].count("titel") == 20
    assert len((await http.post("/api/thing/", json=body, headers=STRICT)).json()["errors"]) == 20


async def test_surfaces_whose_names_are_others_are_left_alone(http: httpx.AsyncClient) -> None:
    answer = await http.post("/admin/speke?x=1", content=b"<a/>", headers={"Content-Type": "application/xml", **STRICT})
    assert (answer.status_code, {"warning", "preference-applied"} & set(answer.headers)) == (200, set())
