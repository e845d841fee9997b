"""A client that openapi-python-client generates from `/openapi.json` can use the API."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import httpx
import pytest

from tests.api.product_thread import ProductThread
from tests.docs.following import Page
from tests.support.postgres import empty

PACKAGE: Final = "generated_client"
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])| ")
_OMITTED: Final = re.compile(r"WARNING parsing (\w+ \S+) within")
ONLY_XML: Final = {"POST /{client_name}/speke"}
LINES: Final = {"GET /api/audit/export"}
"""Lines of JSON are no JSON for the generator."""
BODY_BESIDE_TEXT: Final = {"POST /api/log/exception/"}
"""The generator warns of the plain text and takes the JSON."""


@dataclass
class GeneratedClient:
    """The generated package, with a client of it for an admin."""

    document: dict[str, Any]
    warnings: str
    package: ModuleType
    client: Any

    def send(self, name: str, body: Any = None, **parameters: Any) -> Any:
        """Calls an operation, such as `POST /api/room/`, with typed arguments."""
        method, _, path = name.partition(" ")
        operation = self.document["paths"][path][method.lower()]
        module = importlib.import_module(f"{PACKAGE}.api.{_snake(operation['tags'][0])}.{_snake(operation['operationId'])}")
        if body is not None:
            content = next(iter(operation["requestBody"]["content"].values()))
            parameters["body"] = self._typed(content["schema"], body)
        return module.sync_detailed(client=self.client, **parameters)

    def model(self, name: str) -> Any:
        return getattr(self.package.models, name)

    def _typed(self, schema: dict[str, Any], body: Any) -> Any:
        if schema.get("type") == "array":
            return [self._typed(schema["items"], item) for item in body]
        return self.model(schema["$ref"].rpartition("/")[2]).from_dict(body)


def _snake(name: str) -> str:
    return _WORDS.sub("_", name).lower()


@pytest.fixture(scope="module")
def generated(migrated: tuple[str, str | None], tmp_path_factory: pytest.TempPathFactory) -> Iterator[GeneratedClient]:
    conninfo, role = migrated
    empty(conninfo)
    product = ProductThread(conninfo, role)
    product.start()
    product.ready.wait()
    folder = tmp_path_factory.mktemp("client")
    try:
        document = httpx.get(f"{product.address}/openapi.json", timeout=60, verify=False).json()
        warnings = _generate(document, folder)
        sys.path.insert(0, str(folder))
        package = importlib.import_module(PACKAGE)
        importlib.import_module(f"{PACKAGE}.models")
        client = package.AuthenticatedClient(product.address, token=product.key, prefix="", auth_header_name="API-KEY")
        yield GeneratedClient(document, warnings, package, client)
    finally:
        sys.path[:] = [path for path in sys.path if path != str(folder)]
        if product.server is not None:
            product.server.should_exit = True
        product.join()


def _generate(document: dict[str, Any], folder: Path) -> str:
    (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "config.yml").write_text("post_hooks: []\n", encoding="utf-8")
    options = ["--path", "openapi.json", "--config", "config.yml", "--meta", "none", "--output-path", PACKAGE]
    command = [sys.executable, "-m", "openapi_python_client", "generate", *options]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "500"})
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def test_every_operation_is_in_the_client(generated: GeneratedClient) -> None:
    assert set(_OMITTED.findall(generated.warnings)) == ONLY_XML | BODY_BESIDE_TEXT | LINES
    assert "Unable to process" not in generated.warnings
    for path, methods in generated.document["paths"].items():
        for method, operation in methods.items():
            if f"{method.upper()} {path}" not in ONLY_XML:
                name = f"{PACKAGE}.api.{_snake(operation['tags'][0])}.{_snake(operation['operationId'])}"
                assert importlib.util.find_spec(name), name


def test_the_client_adds_reads_and_lists_a_room(generated: GeneratedClient) -> None:
    added = generated.send("POST /api/room/", {"name": "Hall A"})
    assert (added.status_code, added.headers["etag"]) == (201, '"1"')
    room = generated.send("GET /api/room/{id}", id=added.parsed.id).parsed
    assert room.to_dict() == added.parsed.to_dict()
    assert [entry.to_dict() for entry in generated.send("GET /api/room/").parsed] == [room.to_dict()]


def test_the_program_of_the_page_adds_and_lists_a_room(generated: GeneratedClient) -> None:
    [(_, program)] = Page("generate-a-client.md").blocks("python")
    names: dict[str, Any] = {}
    exec(program.replace("medialedger_client", PACKAGE), names)
    assert "Hall" in names["rooms"](generated.client._base_url, generated.client.token)


def test_the_client_changes_an_event_at_a_version(generated: GeneratedClient) -> None:
    added = generated.send("POST /api/event/", {"title": "Final", "eventState": "LIVE_PUBLISHED"})
    assert (added.status_code, added.parsed.title, int(added.parsed.state)) == (200, "Final", 2)
    steps, etag = [{"op": "replace", "path": "/Title", "value": "Cup final"}], added.headers["etag"]
    changed = generated.send("PATCH /api/event/{id}", steps, id=added.parsed.id, if_match=etag)
    assert (changed.status_code, changed.parsed.title) == (200, "Cup final")
    refused = generated.send("PATCH /api/event/{id}", steps, id=added.parsed.id, if_match=etag)
    assert refused.status_code == 412
    assert isinstance(refused.parsed, generated.model("Problem"))
    page = generated.send("GET /api/event/", search="cup FINAL", order=generated.model("Order").DESC).parsed
    assert (page.total_count, [event.title for event in page.results]) == (1, ["Cup final"])


def test_the_client_gets_typed_problems(generated: GeneratedClient) -> None:
    problem = generated.model("Problem")
    invalid = generated.send("POST /api/room/", {"name": ""})
    assert (invalid.status_code, invalid.parsed.errors[0].field) == (400, "name")
    absent = generated.send("DELETE /api/room/{id}", id="0f0e0d0c-0b0a-4908-8706-050403020100")
    assert (absent.status_code, isinstance(absent.parsed, problem)) == (404, True)
    assert generated.send("GET /api/room/{id}", id="0f0e0d0c-0b0a-4908-8706-050403020100").status_code == 204
