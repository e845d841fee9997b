"""DRM settings of a client: docs/reference/api/clients.md#drm-settings."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import assert_problem, fields_of, last, logged, topics
from tests.support.application import introduce

DEFAULT = {
    "playreadyLaUrl": None,
    "widevineProvider": None,
    "contentIdInPssh": False,
    "fairplayUriTemplate": "skd://{host}/{client}/{content_id}?kid={kid}",
    "fairplayKeyFormatVersions": "1",
    "fairplayDirectPlainValue": False,
    "fairplayHexForm": False,
}
PATH = "/api/client/packager/drm/"


async def test_settings_are_changed_one_by_one_and_null_is_the_default(http: httpx.AsyncClient, inner: Core) -> None:
    await introduce(inner, "packager", "keys")
    first = await http.get(PATH)
    assert first.json() == DEFAULT
    changed = await http.put(PATH, json={"widevineProvider": "acme", "CONTENTIDINPSSH": "true"})
    assert changed.json() == {**DEFAULT, "widevineProvider": "acme", "contentIdInPssh": True}
    assert changed.headers["etag"] != first.headers["etag"]
    assert (await http.get(PATH)).headers["etag"] == changed.headers["etag"]
    back = await http.put(PATH, json={"widevineProvider": None})
    assert back.json() == {**DEFAULT, "contentIdInPssh": True}
    before = await last(inner)
    assert (await http.put(PATH, json={"widevineProvider": None})).json() == back.json()
    assert await last(inner) == before
    assert (await topics(inner, "client:packager"))[2:] == ["client.drm_configured"] * 2
    assert (await logged(inner, "client:packager"))[-1].data["content_id_in_pssh"] is True


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("playreadyLaUrl", "drm.example.com"),
        ("playreadyLaUrl", "https://" + "x" * 600 + ".example.com"),
        ("widevineProvider", "two words"),
        ("widevineProvider", ""),
        ("contentIdInPssh", "perhaps"),
        ("fairplayUriTemplate", "skd://{host}"),
        ("fairplayUriTemplate", "skd://{kid}/{secret}"),
        ("fairplayUriTemplate", 'skd://{kid}"'),
        ("fairplayKeyFormatVersions", "one"),
        ("fairplayDirectPlainValue", 2),
        ("fairplayHexForm", "hex"),
    ],
)
async def test_what_no_answer_could_be_worded_with_is_400(http: httpx.AsyncClient, inner: Core, field: str, value: Any) -> None:
    await introduce(inner, "packager", "keys")
    before = await last(inner)
    for path in (PATH, "/api/client/nobody/drm/"):
        assert fields_of(await http.put(path, json={field: value})) == [field]
    assert await last(inner) == before


async def test_a_client_that_is_not_there_or_was_changed_meanwhile(http: httpx.AsyncClient, inner: Core) -> None:
    await introduce(inner, "packager", "keys")
    assert_problem(await http.get("/api/client/nobody/drm/"), 404)
    assert_problem(await http.put("/api/client/nobody/drm/", json={}), 404)
    body = {"widevineProvider": "acme"}
    assert_problem(await http.put(PATH, json=body, headers={"If-Match": '"99"'}), 412)
    tag = (await http.get(PATH)).headers["etag"]
    assert (await http.put(PATH, json=body, headers={"If-Match": tag})).status_code == 200
    assert_problem(await http.put(PATH, json={"widevineProvider": "x"}, headers={"If-Match": tag}), 412)
