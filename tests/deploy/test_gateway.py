"""The gateway definition in deploy/gateway, row by row: docs/reference/api/key-provider.md#packager-and-gateway."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from deploy.gateway.fill import DEFINITION, InvalidValue, fill_definition, main

KEY = "mlk_0123_verysecret-"

# The requirements of Swagger 2.0 for the members that are used here: https://swagger.io/specification/v2/
SWAGGER: dict[str, Any] = {
    "type": "object",
    "required": ["swagger", "info", "paths"],
    "properties": {
        "swagger": {"const": "2.0"},
        "info": {"required": ["title", "version"], "properties": {"title": {"type": "string"}, "version": {"type": "string"}}},
        "basePath": {"type": "string", "pattern": "^/"},
        "schemes": {"type": "array", "uniqueItems": True, "items": {"enum": ["http", "https", "ws", "wss"]}},
        "paths": {"patternProperties": {"^/": {"additionalProperties": {"$ref": "#/definitions/operation"}}}},
    },
    "additionalProperties": False,
    "definitions": {
        "operation": {
            "required": ["responses"],
            "properties": {
                "produces": {"type": "array", "items": {"type": "string", "pattern": "^[^/]+/[^/]+$"}},
                "parameters": {
                    "items": {
                        "required": ["name", "in", "type"],
                        "properties": {
                            "name": {"type": "string"},
                            "in": {"enum": ["header", "query", "path", "formData"]},
                            "required": {"type": "boolean"},
                            "type": {"enum": ["string", "number", "integer", "boolean", "array"]},
                        },
                        "additionalProperties": False,
                    }
                },
                "responses": {"patternProperties": {"^([0-9]{3}|default)$": {"required": ["description"]}}, "minProperties": 1},
            },
            "patternProperties": {"^x-": {}},
            "additionalProperties": False,
        }
    },
}


def definition(**changed: str) -> dict[str, Any]:
    values = {"base_url": "https://keys.example.com/", "client": "packager", "api_key": KEY, **changed}
    read: dict[str, Any] = yaml.safe_load(fill_definition(values["base_url"], values["client"], api_key=values["api_key"]))
    return read


def test_it_is_swagger_2_with_and_without_values() -> None:
    for document in (definition(), yaml.safe_load(DEFINITION.read_text())):
        jsonschema_rs.validate(SWAGGER, document)


def test_it_says_what_document_1_says() -> None:
    document = definition()
    assert (document["swagger"], document["info"]["title"], document["basePath"], document["schemes"]) == (
        "2.0",
        "speke proxy",
        "/speke",
        ["https"],
    )
    assert list(document["paths"]) == ["/"]
    assert list(document["paths"]["/"]) == ["post"]
    post = document["paths"]["/"]["post"]
    assert post["produces"] == ["application/json"]
    assert post["parameters"] == [{"name": "API-KEY", "in": "header", "required": False, "type": "string"}]
    assert list(post["responses"]) == ["200"]
    integration = post["x-amazon-apigateway-integration"]
    assert (integration["type"], integration["httpMethod"]) == ("http_proxy", "POST")
    assert integration["uri"] == "https://keys.example.com/packager/speke"
    assert integration["requestParameters"] == {"integration.request.header.API-KEY": f"'{KEY}'"}


@pytest.mark.parametrize(
    ("changed", "about"),
    [
        ({"base_url": "keys.example.com"}, "base URL"),
        ({"base_url": "ftp://keys.example.com"}, "base URL"),
        ({"base_url": 'https://x"\nfoo: "bar'}, "base URL"),
        ({"base_url": "https://keys.example.com?a=b"}, "base URL"),
        ({"client": "a/b"}, "name"),
        ({"client": "api"}, "name"),
        ({"api_key": "it's"}, "API key"),
        ({"api_key": "two words"}, "API key"),
        ({"api_key": ""}, "API key"),
        ({"api_key": "{client_name}"}, "API key"),
    ],
)
def test_what_would_break_out_of_the_definition_is_refused_and_not_shown(changed: dict[str, str], about: str) -> None:
    with pytest.raises(InvalidValue, match=about) as refused:
        definition(**changed)
    assert changed.get("api_key") in (None, "") or changed["api_key"] not in str(refused.value)


def test_the_command_writes_a_file_that_others_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, output = tmp_path / "key", tmp_path / "proxy.yaml"
    key.write_text(KEY + "\n")
    key.chmod(0o600)
    line = ["--base-url", "https://keys.example.com", "--client", "packager", "--api-key-file", str(key)]
    assert main([*line, "--output", str(output)]) == 0
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert yaml.safe_load(output.read_text()) == definition()
    assert KEY not in "".join(capsys.readouterr())
    assert main(line) == 0
    assert yaml.safe_load(capsys.readouterr().out) == definition()


def test_a_key_file_that_others_can_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(0o644)
    assert main(["--base-url", "https://keys.example.com", "--client", "packager", "--api-key-file", str(key)]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert KEY not in output.err
