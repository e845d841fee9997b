"""A POST that is sent twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from domain.kernel.errors import Refused
from domain.kernel.idempotency import IdempotencyRecord
from tests.api.http.toy import SECRET, Toy

KEY = {"Idempotency-Key": "k1"}


async def test_a_repeat_gets_the_first_answer_without_its_secrets(toy: Toy, http: httpx.AsyncClient) -> None:
    first = await http.post("/api/thing/", json={"title": "a"}, headers=KEY)
    again = await http.post("/api/thing/", json={"title": "a"}, headers={**KEY, "X-Transaction-ID": "t2"})
    assert toy.shelf.posts == 1
    assert first.json()["secret"] == "s3"
    assert again.json() == {**first.json(), "secret": None}
    assert again.status_code == first.status_code == 201
    assert [again.headers[name] for name in ("etag", "location")] == ['"1"', "/api/thing/1"]
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["x-transaction-id"] == "t2"
    assert "idempotency-replayed" not in first.headers


async def test_another_body_or_path_under_the_same_key_is_409(toy: Toy, http: httpx.AsyncClient) -> None:
    await http.post("/api/thing/", json={"title": "a"}, headers=KEY)
    for path, title in (("/api/thing/", "b"), ("/api/thing/?x=1", "a"), ("/api/thing", "a")):
        assert (await http.post(path, json={"title": title}, headers=KEY)).status_code == 409
    assert toy.shelf.posts == 1


async def test_a_key_belongs_to_its_client(toy: Toy, http: httpx.AsyncClient) -> None:
    await http.post("/api/thing/", json={"title": "a"}, headers=KEY)
    async with toy.client("mlk_operator") as other:
        await other.post("/api/thing/", json={"title": "b"}, headers=KEY)
    assert toy.shelf.posts == 2


async def test_while_the_first_runs_a_repeat_is_409_with_retry_after(toy: Toy, http: httpx.AsyncClient) -> None:
    first = asyncio.create_task(http.post("/api/thing/slow/", headers={**KEY, "X-Transaction-ID": "t1"}))
    await toy.shelf.entered.wait()
    second = await http.post("/api/thing/slow/", headers=KEY)
    toy.shelf.hold.set()
    assert (second.status_code, second.headers["retry-after"]) == (409, "1")
    assert (await first).json() == {"actor": "admin", "correlation": "t1"}
    assert (await http.post("/api/thing/slow/", headers=KEY)).json() == (await first).json()


async def test_refusals_are_not_kept(toy: Toy, http: httpx.AsyncClient) -> None:
    toy.shelf.failure = Refused("not now")
    assert (await http.post("/api/thing/", json={"title": "a"}, headers=KEY)).status_code == 409
    assert (await http.post("/api/thing/", json={}, headers=KEY)).status_code == 400
    toy.shelf.failure = None
    assert (await http.post("/api/thing/", json={"title": "a"}, headers=KEY)).status_code == 201
    assert toy.idempotency.writes == 1


async def test_a_key_that_the_append_has_recorded_is_not_written_again(toy: Toy, http: httpx.AsyncClient) -> None:
    first = await http.post("/api/thing/appended/", headers=KEY)
    again = await http.post("/api/thing/appended/", headers=KEY)
    assert toy.idempotency.writes == 1
    assert again.content == first.content


async def test_a_repeat_has_the_status_of_the_first_response_and_its_links(toy: Toy, http: httpx.AsyncClient) -> None:
    assert (await http.post("/api/thing/", json={"title": "a"}, headers=KEY)).status_code == 201
    [(owner, record)] = toy.idempotency.rows.items()
    toy.idempotency.rows[owner] = replace(record, of=replace(record.of, status=200, base_url="https://first.example"))
    again = await http.post("/api/thing/", json={"title": "a"}, headers=KEY)
    assert (again.status_code, again.json()["base"]) == (200, "https://first.example")


async def test_when_another_process_was_first_its_answer_counts(toy: Toy, http: httpx.AsyncClient) -> None:
    first = asyncio.create_task(http.post("/api/thing/slow/", headers=KEY))
    await toy.shelf.entered.wait()
    elsewhere = Toy(idempotency=toy.idempotency)
    elsewhere.shelf.hold.set()
    async with elsewhere.client() as other:
        theirs = await other.post("/api/thing/slow/", headers={**KEY, "X-Transaction-ID": "theirs"})
    toy.shelf.hold.set()
    ours = await first
    assert ours.json() == theirs.json()
    assert ours.headers["idempotency-replayed"] == "true"


async def test_an_answer_that_cannot_be_recorded_is_given_all_the_same(toy: Toy, http: httpx.AsyncClient) -> None:
    async def broken(record: IdempotencyRecord) -> None:
        raise OSError

    toy.idempotency.record = broken  # type: ignore[method-assign]
    assert (await http.post("/api/thing/", json={"title": "a"}, headers=KEY)).status_code == 201


@pytest.mark.parametrize("key", [b"", b"x" * 256, b"\xc3\xa9", b"a\tb"])
async def test_a_malformed_key_is_400(toy: Toy, http: httpx.AsyncClient, key: bytes) -> None:
    headers = [(b"idempotency-key", key), (b"api-key", SECRET.encode())]
    answer = await http.post("/api/thing/", json={"title": "a"}, headers=headers)
    assert (answer.status_code, toy.shelf.posts) == (400, 0)


async def test_other_methods_ignore_the_key(toy: Toy, http: httpx.AsyncClient) -> None:
    assert (await http.get("/api/thing/", headers=KEY)).status_code == 200
    assert toy.idempotency.writes == 0
