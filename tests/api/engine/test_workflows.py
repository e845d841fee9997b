"""`/engine/workflows`: docs/reference/api/job-engine.md#workflows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator, meta
from pydantic import ConfigDict

from api.cli.main import main
from api.engine.workflows import WorkflowDescription
from api.wiring.core import Core
from tests.api.asking import add, engine_error, topics
from workers.job.registry import builtin, installed
from workers.job.workflow import JobParameters, Step, Workflow


async def test_a_job_of_the_example_of_each_workflow_is_accepted(engine: httpx.AsyncClient, inner: Core) -> None:
    answer = await engine.get("/engine/workflows")
    assert answer.status_code == 200
    result: list[dict[str, Any]] = answer.json()
    assert [record["name"] for record in result] == list(installed().names)
    assert [record["name"] for record in result if record["submitted_by"] is not None] == [
        "captions",
        "compose",
        "publication_upload",
    ]
    for record in result:
        name, schema = record["name"], record["parameters"]
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        meta.validate(schema)
        assert record["description"], name
        for parameter, described in schema["properties"].items():
            assert described.get("description"), f"{name}: {parameter}"
        [example] = schema["examples"]
        Draft202012Validator(schema).validate(example)
        if record["submitted_by"] is not None:
            installed().checked(name, example)
            continue
        if name.startswith("vod_"):  # the content is an Event
            example = {**example, "content_id": (await add(engine, title="Match"))["id"]}
        accepted = await engine.post("/engine/job", json={"job": {"workflow": name}, "parameters": example})
        assert accepted.status_code == 200, (name, accepted.text)
        assert (await topics(inner, f"job:{accepted.json()['id']}"))[0] == "job.accepted"
        assert (await engine.get(f"/engine/workflows/{name}")).json() == record


async def test_a_workflow_names_its_tasks_and_what_they_need(engine: httpx.AsyncClient) -> None:
    shown = (await engine.get("/engine/workflows/http_fetch_verify")).json()
    assert (shown["queues"], shown["needs_network"], shown["most_parameters"]) == (["work"], True, 65_536)
    assert shown["tasks"] == [
        {"id": 1, "name": "fetch", "queue": "work", "needs_network": True, "after": []},
        {"id": 2, "name": "store", "queue": "work", "needs_network": False, "after": [1]},
    ]
    assert shown["parameters"]["required"] == ["content_id", "url"]
    assert engine_error(await engine.get("/engine/workflows/nothing"), 400)


def test_a_workflow_of_another_package_needs_no_description_and_no_schema() -> None:
    class Odd(JobParameters):
        """Takes what JSON does not know."""

        model_config = ConfigDict(arbitrary_types_allowed=True)

        thing: httpx.Client | None = None

    shown = WorkflowDescription.of(Workflow("odd", Odd, (Step("run", lambda context: None),)))
    assert shown.description == "Takes what JSON does not know."
    assert shown.parameters == {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}


@pytest.mark.usefixtures("inner")
async def test_the_command_prints_the_workflows_of_the_api(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))
    assert await asyncio.to_thread(main, ["workflows", "list", "-o", "ndjson"]) == 0
    listed = {workflow["name"]: workflow for workflow in map(json.loads, capsys.readouterr().out.splitlines())}
    assert set(listed) >= set(builtin().names)
    for name in builtin().names:
        assert listed[name]["description"] == builtin().named(name).description != ""
    assert await asyncio.to_thread(main, ["workflows", "show", "asset_gif"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"asset_gif: {builtin().named('asset_gif').description}\nPARAMETER")
    assert "content_id" in shown
