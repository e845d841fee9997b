"""Which webhooks a job is told to, and what making them leaves in the log. Issue 7, "Callbacks"."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import httpx
import pytest

from api.core import Core
from domain.kernel.cause import Cause
from domain.kernel.errors import Malformed
from domain.webhook.callback import MOST
from tests.api.asking import add, add_flow, last, logged, new_id
from tests.api.media.webhook.callbacks_given import callbacks, named
from tests.domain.configuration.texts_given import FLOW

A, B = "https://hooks.test/a", "https://hooks.test/b"


def flow(*urls: str, second: tuple[str, ...] = ()) -> Any:
    document = copy.deepcopy(FLOW)
    document["flows"].append(copy.deepcopy(document["flows"][0]))
    for configuration, those in zip(document["flows"], (urls, second), strict=False):
        configuration["taskEngineSpecific"]["callbackUrls"] = list(those)
    return document


async def test_each_address_is_one_webhook_of_its_client_made_once(inner: Core) -> None:
    first = await named(inner, A, B, A)
    assert len(first) == 2
    assert await last(inner) == 2
    assert await named(inner, B, A) == first[::-1]
    assert await last(inner) == 2
    other = await named(inner, A, client="studio")
    assert not set(other) & set(first)
    events = await logged(inner)
    assert [(event.topic, event.data["job_client"], event.data["webhook_url"]) for event in events] == [
        ("webhook.registered", "admin", A),
        ("webhook.registered", "admin", B),
        ("webhook.registered", "studio", A),
    ]
    assert all(event.data["secrets"].keys() == {"signing"} for event in events)


async def test_what_is_secret_in_an_address_tells_webhooks_apart_and_is_in_no_event(inner: Core) -> None:
    urls = [A, f"{A}?token=s3cret", f"{A}?token=s3cret2", "https://u:s3cret@hooks.test/a"]
    keys = await named(inner, *urls)
    assert len(set(keys)) == 4
    assert await named(inner, *urls) == keys
    events = await logged(inner)
    assert [event.data["webhook_url"] for event in events] == [A] * 4
    assert [sorted(event.data["secrets"]) for event in events] == [["signing"], *[["signing", "url"]] * 3]
    assert "s3cret" not in repr(events)
    assert await inner.database.row("SELECT count(*) FROM vault") == (7,)
    _, commands = await callbacks(inner).of("other", [("url", urls[1])], "")
    assert "s3cret" not in repr(commands)


async def test_all_addresses_that_cannot_be_called_are_named_and_none_is_repeated(inner: Core) -> None:
    urls = [A, "ftp://very-secret", "https://u:very-secret@", B]
    with pytest.raises(Malformed) as refused:
        await callbacks(inner).of("admin", [(f"parameters.callback_urls[{n}]", url) for n, url in enumerate(urls)], "film")
    assert [error.field for error in refused.value.errors] == [f"parameters.callback_urls[{n}]" for n in (1, 2)]
    assert "very-secret" not in str(refused.value)
    assert await last(inner) == 0


async def test_a_job_has_so_many_callbacks_and_no_more(http: httpx.AsyncClient, inner: Core) -> None:
    many = [f"{A}/{n}" for n in range(MOST)]
    assert len(await named(inner, *many, A + "/0")) == MOST
    with pytest.raises(Malformed, match=r"callback_urls\[16\]: is one too many"):
        await named(inner, *many, B)
    event = await add(http, FlowId=await add_flow(http, configuration=flow(B)))
    assert await named(inner, *many, content_id=event["id"]) == await named(inner, *many)
    assert len(await named(inner, *many[1:], content_id=event["id"])) == MOST


async def test_the_flow_of_the_jobs_event_has_its_say(http: httpx.AsyncClient, inner: Core) -> None:
    unusable = ("", "nonsense", "ftp://hooks.test", "https://" + "a" * 3000)
    event = await add(http, FlowId=await add_flow(http, configuration=flow(A, *unusable, second=(B, A))))
    of_flow = await named(inner, content_id=event["id"])
    assert of_flow == await named(inner, A, B)
    assert await named(inner, B, content_id=event["id"].upper()) == of_flow[::-1]
    await http.delete(f"/api/event/{event['id']}")
    assert await named(inner, content_id=event["id"]) == []


async def test_what_is_no_event_or_has_no_flow_has_none(http: httpx.AsyncClient, inner: Core) -> None:
    for content_id in ((await add(http))["id"], new_id(), "", "film", "\x00", "x" * 10_000):
        assert await named(inner, content_id=content_id) == []


async def test_two_first_jobs_at_once_make_one_webhook(inner: Core) -> None:
    """Each has a command of its own: the second finds what the first made, with the first one's secret."""

    async def first_job() -> None:
        _, commands = await callbacks(inner).of("admin", [("url", f"{A}?b=c")], "film")

        async def ask() -> Any:
            return commands

        await inner.ledger.execute_all(ask, cause=Cause.by("admin"))

    await asyncio.gather(*(first_job() for _ in range(5)))
    assert [event.topic for event in await logged(inner)] == ["webhook.registered"]
    assert await inner.database.row("SELECT count(*) FROM vault") == (2,)
