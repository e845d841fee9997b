"""The API description is valid, and it says what every operation, field and parameter is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from api.http.openapi import describe
from api.kernel.description import API
from api.speke.cpix.request import read
from api.wiring.services import ROUTES

Operation = dict[str, Any]
_CAMEL: Final = re.compile(r"[a-z][a-zA-Z0-9]*")
_VERBS: Final = (
    "activate|add|amend|cancel|change|check|clone|compare|confirm|copy|count|create|delete|export|find|follow|force|forget|"
    "get|give|issue|list|move|notify|patch|probe|provision|publish|put|read|recover|recreate|redact|rename|replace|replay|"
    "request|rerun|resend|reset|restore|retry|review|revoke|rotate|search|send|set|show|start|stop|stream|submit|switch|"
    "sync|terminate|test|unpublish|update|verify|watch|write"
)
_VERB: Final = re.compile(f"({_VERBS})([A-Z0-9]|$)")
KINDS: Final = ("fields", "parameters", "examples", "names")
"""The checks of `_missing`: descriptions of fields and parameters, examples of bodies, and names that begin with a verb."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return describe(ROUTES, title="medialedger", version="0", about=API)


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> dict[str, Operation]:
    return _operations(document)


def test_it_is_a_valid_openapi_document(document: dict[str, Any]) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_a_field_that_may_be_left_out_has_no_default_that_generators_take_for_required(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert [(name, field) for name, schema in schemas.items() for field in _with_default(schema)] == []
    options = schemas["JobOptions"]
    assert "priority" not in options["required"]
    assert "default 5" in options["properties"]["priority"]["description"]


def test_an_object_of_any_members_says_so(document: dict[str, Any]) -> None:
    reported = {"properties", "additionalProperties", "allOf", "anyOf", "oneOf"}
    assert [node for node in _nodes(document) if node.get("type") == "object" and not node.keys() & reported] == []
    assert document["components"]["schemas"]["SubmitJobRequest"]["properties"]["parameters"]["additionalProperties"] is True


def _with_default(schema: dict[str, Any]) -> list[str]:
    return [name for name, field in schema.get("properties", {}).items() if "default" in field]


def test_every_default_of_an_enumeration_is_one_of_its_values(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    seen = 0
    for node in _nodes(document):
        if "default" in node and "$ref" in node:
            schema = schemas[node["$ref"].rpartition("/")[2]]
            if "enum" in schema:
                assert node["default"] in schema["enum"]
                seen += 1
    assert seen


def test_every_component_is_used_and_has_a_plain_name(document: dict[str, Any]) -> None:
    used = {node["$ref"].rpartition("/")[2] for node in _nodes(document) if isinstance(node.get("$ref"), str)}
    assert document["components"]["schemas"].keys() - used == set()
    assert [name for name in document["components"]["schemas"] if not name.isalnum() or "Wire" in name] == []


def test_an_enumeration_of_numbers_has_their_names(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    states = schemas["EventState"]
    assert (states["type"], states["enum"][2], states["x-enum-varnames"][2]) == ("integer", 2, "LIVE_PUBLISHED")
    assert schemas["EventStateName"]["enum"] == states["x-enumNames"]
    assert [option["$ref"].rpartition("/")[2] for option in schemas["EventStateInput"]["anyOf"]] == ["EventState", "EventStateName"]


def test_a_form_has_the_model_of_the_json_body(operations: dict[str, Operation]) -> None:
    content = operations["POST /api/event/"]["requestBody"]["content"]
    assert content["multipart/form-data"] == content["application/x-www-form-urlencoded"]
    assert content["multipart/form-data"]["schema"] == content["application/json"]["schema"]
    assert content["multipart/form-data"]["encoding"] == {"tags": {"contentType": "application/json"}}


def test_operations_have_names_of_their_own_in_camel_case(operations: dict[str, Operation]) -> None:
    names = [operation["operationId"] for operation in operations.values()]
    assert len(set(names)) == len(names)
    assert [name for name in names if not _CAMEL.fullmatch(name)] == []


def test_every_tag_and_the_whole_are_described(document: dict[str, Any]) -> None:
    assert [tag["name"] for tag in document["tags"] if not tag.get("description")] == []
    assert document["tags"]
    assert document["info"]["description"]
    assert document["servers"]
    assert "X-Auth-Key" in document["components"]["securitySchemes"]["API-KEY"]["description"]


def test_every_response_says_what_it_is(operations: dict[str, Operation]) -> None:
    texts = [response["description"] for operation in operations.values() for response in operation["responses"].values()]
    assert [text for text in texts if not text or "Successful" in text] == []


def test_responses_have_their_headers(document: dict[str, Any], operations: dict[str, Operation]) -> None:
    added = operations["POST /api/room/"]["responses"]["201"]["headers"]
    usual = {"X-Transaction-ID", "Warning", "Preference-Applied"}
    assert set(added) == {*usual, "ETag", "Location", "Idempotency-Replayed"}
    assert set(operations["GET /api/event/"]["responses"]["200"]["headers"]) == {*usual, "Link"}
    for path in (
        "api/asset",
        "api/media/vodpublication",
        "api/media/livepublication",
        "api/log",
        "engine/jobs",
        "engine/logs/{job_id}",
    ):
        name = f"GET /{path}" if path.startswith("engine") else f"GET /{path}/"
        assert "Link" in operations[name]["responses"]["200"]["headers"], path
    assert set(operations["GET /api/audit/events/"]["responses"]["200"]["headers"]) == {"X-Transaction-ID"}
    assert "Retry-After" in operations["GET /api/room/"]["responses"]["503"]["headers"]
    assert "ETag" not in operations["GET /api/room/"]["responses"]["200"]["headers"]
    assert set(document["components"]["headers"]) >= set(added)


def test_no_id_is_an_empty_text(document: dict[str, Any]) -> None:
    """A typed client cannot read "" as a GUID or a number. Names in other systems are texts."""
    names = {"refId", "referenceId", "externalId"}
    schemas = document["components"]["schemas"]
    ids = {
        f"{schema}.{name}": described
        for schema, entry in schemas.items()
        for name, described in entry.get("properties", {}).items()
        if re.search(r"^[iI]d$|Id$|_id$", name) and name[:1].lower() + name[1:] not in names and "Request" not in schema
    }
    assert len(ids) > 100
    assert [name for name, described in ids.items() if '""' in str(described.get("description"))] == []


def test_errors_are_where_they_can_occur(operations: dict[str, Operation]) -> None:
    assert "404" in operations["DELETE /api/room/{id}"]["responses"]
    assert "404" not in operations["GET /engine/jobs/{job_id}"]["responses"]
    assert "503" in operations["GET /readyz"]["responses"]
    provider = operations["POST /{client_name}/speke"]["responses"]
    assert {"400", "401", "422", "429", "503"} <= set(provider)
    assert not {"404", "412"} & set(provider)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_without_a_description(document: dict[str, Any], kind: str) -> None:
    assert _missing(document)[kind] == []


def test_examples_fit_their_schemas(document: dict[str, Any], operations: dict[str, Operation]) -> None:
    validator = _validator(document)
    for name, operation in operations.items():
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            if "example" in content and media_type.endswith("json"):
                assert validator(content["schema"], content["example"]) == [], name


def test_the_example_of_a_key_request_can_be_read(operations: dict[str, Operation]) -> None:
    content = operations["POST /{client_name}/speke"]["requestBody"]["content"]
    for media_type in ("application/xml", "text/xml"):
        document = read(content[media_type]["example"].encode(), speke_version=None)
        assert (document.content_id, len(document.keys)) == ("match-17", 1)


def _missing(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return the parts of the document that lack a description, an example or a verb, by kind."""
    missing: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for name, operation in _operations(document).items():
        missing["fields"].update(_fields_without_description(document, operation))
        missing["parameters"].update(
            f"{name}: {parameter['name']}"
            for parameter in operation["parameters"]
            if "name" in parameter and not parameter.get("description")
        )
        if _lacks_example(operation):
            missing["examples"].add(name)
        if not _VERB.match(operation["operationId"]):
            missing["names"].add(f"{name}: {operation['operationId']}")
    return {kind: sorted(places) for kind, places in missing.items()}


def _fields_without_description(document: dict[str, Any], operation: Operation) -> Iterator[str]:
    schemas = document["components"]["schemas"]
    pending, seen = [operation], set()
    while pending:
        for node in _nodes(pending.pop()):
            name = str(node.get("$ref", "")).removeprefix("#/components/schemas/")
            if name in schemas and name not in seen:
                seen.add(name)
                pending.append(schemas[name])
                fields = schemas[name].get("properties", {})
                yield from (f"{name}.{field}" for field, schema in fields.items() if not schema.get("description"))


def _lacks_example(operation: Operation) -> bool:
    return "requestBody" in operation and not any("example" in content for content in operation["requestBody"]["content"].values())


def _operations(document: dict[str, Any]) -> dict[str, Operation]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def _validator(document: dict[str, Any]) -> Any:
    def errors(schema: dict[str, Any], example: Any) -> list[str]:
        whole = {**schema, "components": document["components"]}
        return [error.message for error in OAS31Validator(whole).iter_errors(example)]

    return errors


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)
