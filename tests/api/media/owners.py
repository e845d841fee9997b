"""The kinds of owners of custom properties; tests run for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from tests.api.asking import add


@dataclass(frozen=True)
class Owner:
    """The paths and field names of one kind of owner, and how to add an owner."""

    kind: str
    owner_kind: str
    path: str
    owner_id: str
    source_id: str
    target_id: str
    shows_owner: bool

    async def make(self, http: httpx.AsyncClient, name: str = "Sport") -> str:
        if self.owner_kind == "category":
            return await add_category(http, name)
        return await add_point(http, (await add(http))["id"], title=name)

    async def of(self, http: httpx.AsyncClient, owner: str) -> list[dict[str, Any]]:
        """The properties as the owner itself shows them."""
        answer = await http.get(f"{self.path.removesuffix('/customproperty')}/{owner}")
        assert answer.status_code == 200, answer.text
        shown: list[dict[str, Any]] = answer.json()[
            "customProperties" if self.owner_kind == "category" else "chapterPointCustomProperties"
        ]
        return shown

    async def put(
        self, http: httpx.AsyncClient, owner: str, category: str = "genre", key: str = "main", **more: Any
    ) -> dict[str, Any]:
        """A property, added or changed."""
        answer = await http.post(f"{self.path}/", json={self.owner_id: owner, "category": category, "key": key, **more})
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    async def find(self, http: httpx.AsyncClient, **filters: Any) -> list[dict[str, Any]]:
        answer = await http.get(f"{self.path}/", params=filters)
        assert answer.status_code == 200, answer.text
        shown: list[dict[str, Any]] = answer.json()
        return shown

    def shown(self, key: str, owner: str, category: str, name: str, value: str | None) -> dict[str, Any]:
        """A property exactly as answers show it."""
        more = {"chapterPointId": owner} if self.shows_owner else {}
        return {"id": key, "category": category, "key": name, "value": value, **more}


CATEGORY = Owner(
    "category_property", "category", "/api/category/customproperty", "categoryId", "sourceCategoryId", "targetCategoryId", False
)
CHAPTER_POINT = Owner(
    "chapter_point_property",
    "chapter_point",
    "/api/chapterpoint/customproperty",
    "chapterPointId",
    "sourceChapterId",
    "targetChapterId",
    True,
)
OWNERS = (CATEGORY, CHAPTER_POINT)


async def add_category(http: httpx.AsyncClient, name: str = "Sport", **fields: Any) -> str:
    answer = await http.post("/api/category/", json={"name": name, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def add_point(http: httpx.AsyncClient, event: str, start: str = "00:00:00", **fields: Any) -> str:
    answer = await http.post("/api/chapterpoint/", json={"eventId": event, "startTime": start, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])
