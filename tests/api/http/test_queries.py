"""Query strings."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {}),
        ("PAGESIZE=7", {"pageSize": 7}),
        ("pageSize=7&pagesize=8", {"pageSize": 8}),
        ("States=1&states=2&STATES=3", {"states": [1, 2, 3]}),
        ("states=1", {"states": [1]}),
        ("search=a+b%2Bc%C3%A9", {"search": "a b+cé"}),
        ("search", {}),
        ("search=&pageSize=&states=&deleted=", {}),
        ("pageSize=7&PAGESIZE=", {"pageSize": 7}),
        ("states=&states=2", {"states": [2]}),
        ("&&search=a=b&", {"search": "a=b"}),
        ("unknown=%41&Unknown=2", {}),
        ("deleted=TRUE", {"deleted": True}),
    ],
)
async def test_queries(http: httpx.AsyncClient, query: str, shown: dict[str, Any]) -> None:
    defaults: dict[str, Any] = {"pageSize": 20, "search": None, "states": [], "deleted": False}
    answer = await http.get(f"/api/thing/?{query}")
    assert answer.json() == {**defaults, **shown}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("search=%", "query"),
        ("search=%4", "query"),
        ("search=%g0", "query"),
        ("search=%ff", "query"),
        ("search=%00", "query"),
        ("%ff=1", "query"),
        ("PageSize=x", "pageSize"),
        ("states=1&states=x", "states[1]"),
        ("deleted=yes", "deleted"),
    ],
)
async def test_broken_queries_are_400(http: httpx.AsyncClient, query: str, field: str) -> None:
    answer = await http.get(f"/api/thing/?{query}")
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]
