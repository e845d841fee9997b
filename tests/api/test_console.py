"""The files of the console over HTTP: which path leads to what, with which headers."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.console.files import ConsoleFiles
from api.wiring.core import Core
from api.wiring.parsers import media_origins
from tests.api.serving import serving

PAGE, SCRIPT = b"<!doctype html><title>console</title>", b"export {}"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(PAGE)
    (tmp_path / "assets/index-1a2b.js").write_bytes(SCRIPT)
    (tmp_path / "assets/index-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    return tmp_path


async def _get(
    inner: Core, database_url: str, folder: Path | None, *paths: str, codings: Sequence[str] = ("identity",)
) -> list[httpx.Response]:
    def replaced(services_by_type: dict[Any, Any]) -> dict[Any, object]:
        return {ConsoleFiles: ConsoleFiles(folder, media_origins=["https://cdn.example"])}

    async with serving(inner, database_url, replaced) as http:
        return [await http.get(path, headers={"accept-encoding": coding}) for path in paths for coding in codings]


async def test_every_path_is_the_page_but_those_of_files(inner: Core, database_url: str, built: Path) -> None:
    paths = ("/console", "/console/", "/console/events/x%2Fy", "/console/../../etc/passwd", "/console/%2e%2e/secret")
    files = ("/console/assets/index-1a2b.js", "/console/assets/other.js", "/console/assets")
    *pages, file, unknown, folder = await _get(inner, database_url, built, *paths, *files)
    for response in pages:
        if response.status_code != 404:  # a client may take the dots away itself
            assert (response.status_code, response.content) == (200, PAGE)
            assert response.headers["cache-control"] == "no-cache"
    assert (file.content, file.headers["cache-control"]) == (SCRIPT, "public, max-age=31536000, immutable")
    assert (unknown.status_code, folder.status_code) == (404, 404)
    assert unknown.headers["content-type"] == "application/problem+json"


async def test_the_policy_lets_nothing_in_from_elsewhere_but_what_players_load(inner: Core, database_url: str, built: Path) -> None:
    [page] = await _get(inner, database_url, built, "/console/")
    rules = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert "unsafe" not in page.headers["content-security-policy"]
    assert (rules["default-src"], rules["frame-ancestors"]) == ("'none'", "'none'")
    assert (rules["script-src"], rules["style-src"]) == ("'self'", "'self'")
    assert rules["connect-src"] == "'self' https://cdn.example"
    assert rules["media-src"] == "'self' blob: https://cdn.example"
    assert page.headers["x-content-type-options"] == "nosniff"


async def test_a_file_is_sent_compressed_to_who_takes_it(inner: Core, database_url: str, built: Path) -> None:
    path = "/console/assets/index-1a2b.js"
    [zipped, plain] = await _get(inner, database_url, built, path, codings=("br, gzip", "gzip;q=0"))
    assert (zipped.headers["content-encoding"], zipped.headers["vary"], zipped.content) == ("gzip", "Accept-Encoding", SCRIPT)
    assert "content-encoding" not in plain.headers
    assert plain.content == SCRIPT


async def test_without_a_build_it_says_how_to_make_one(inner: Core, database_url: str) -> None:
    [page, root] = await _get(inner, database_url, None, "/console/", "/")
    assert (page.status_code, page.json()["detail"]) == (404, "The console is not built; `make console` builds it.")
    assert (root.status_code, root.headers["location"]) == (302, "/console/")


def test_an_origin_cannot_begin_another_rule_of_the_policy() -> None:
    assert media_origins("https://cdn.example, https://*.b.example:8443/") == ("https://cdn.example", "https://*.b.example:8443")
    for text in ("https://a;script-src *", "*", "https://a/path", "'unsafe-inline'", "https://a https://b"):
        with pytest.raises(ValueError, match="origins"):
            media_origins(text)
