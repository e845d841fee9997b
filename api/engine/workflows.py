"""The workflows of this installation, with the JSON Schemas of their parameters: docs/reference/api/job-engine.md#workflows."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Final

from fastapi import APIRouter
from pydantic import Field
from pydantic.errors import PydanticUserError

from api.engine.requests import EngineModel
from api.engine.surface import EngineRoute
from api.http.response import Response
from api.http.routing import Service
from api.kernel.auth import READ
from api.kernel.request import Request
from domain.kernel.errors import NotFound
from workers.job.registry import Registry, summary
from workers.job.workflow import JobParameters, Workflow

routes = APIRouter(prefix="/engine/workflows", tags=["Job engine"], route_class=EngineRoute)

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_log = logging.getLogger(__name__)


class WorkflowTask(EngineModel):
    """A task of the jobs of a workflow."""

    id: int = Field(description="Number of the task, from 1.")
    name: str = Field(description="Name of the step.")
    queue: str = Field(description="The queue whose workers run it.")
    needs_network: bool = Field(description="True if it connects to other machines.")
    after: list[int] = Field(description="Numbers of the tasks that must be completed before it starts.")


class WorkflowDescription(EngineModel):
    """A workflow with its parameters and the tasks of its jobs."""

    name: str = Field(description="The name that a job is submitted with.", examples=["http_fetch_verify"])
    description: str = Field(description="A description of its input and its result; empty if its package has none.")
    parameters: dict[str, Any] = Field(
        description="JSON Schema (2020-12) of the parameters, with titles, descriptions, defaults and examples. It is "
        "generated from the "
        "model that validates them; the model may check more."
    )
    most_parameters: int = Field(description="Maximum size of the parameters as JSON, in bytes.", examples=[65536])
    queues: list[str] = Field(description="The queues that must have workers.", examples=[["work"]])
    needs_network: bool = Field(description="True if one of the tasks connects to other machines.")
    submitted_by: str | None = Field(
        description="The kind of resource that exclusively submits its jobs, such as `composition`; null: any client that may "
        "submit jobs."
    )
    tasks: list[WorkflowTask] = Field(description="The tasks, each after those that it waits for.")

    @classmethod
    def of(cls, workflow: Workflow) -> WorkflowDescription:
        needs = {step.name: step.needs_network for step in workflow.steps}
        graph = workflow.graph()
        tasks = [
            WorkflowTask(id=task.id, name=task.name, queue=task.queue, needs_network=needs[task.name], after=list(task.after))
            for task in graph
        ]
        return cls(
            name=workflow.name,
            description=summary(workflow),
            parameters=_schema(workflow.parameters),
            most_parameters=workflow.most_parameters,
            queues=list(dict.fromkeys(task.queue for task in graph)),
            needs_network=any(needs.values()),
            submitted_by=workflow.submitted_by,
            tasks=tasks,
        )


@cache
def _schema(model: type[JobParameters]) -> dict[str, Any]:
    """Return the JSON Schema of a model. Models of other packages may not have one; any object is allowed then."""
    try:
        return {"$schema": _DIALECT, **model.model_json_schema()}
    except PydanticUserError as fault:
        _log.warning("the parameters %s have no JSON Schema: %s", model.__name__, fault)
        return {"$schema": _DIALECT, "type": "object"}


@routes.get("", dependencies=[READ], response_model=list[WorkflowDescription])
async def list_workflows(request: Request, registry: Service[Registry]) -> Response:
    """The workflows of this installation by name, including those of other packages."""
    return Response([WorkflowDescription.of(registry.named(name)) for name in registry.names])


@routes.get("/{name}", dependencies=[READ], response_model=WorkflowDescription)
async def get_workflow(request: Request, name: str, registry: Service[Registry]) -> Response:
    """The workflow with this name, with the JSON Schema of its parameters."""
    if name not in registry.names:
        raise NotFound("workflow", name)
    return Response(WorkflowDescription.of(registry.named(name)))
