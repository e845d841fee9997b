"""Registry of workflows, and the check of parameters.

Other packages add workflows through entry points. A workflow that cannot be loaded, or whose name is taken, is left out with an
error in the log: the product starts, and other workflows are not affected.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from inspect import cleandoc
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from domain.job.ports import CheckedJob
from domain.job.values import TaskPlan
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.strict_json import path_inside
from workers.job.workflow import JobParameters, Workflow
from workers.job.workflows.assets.gif import ASSET_GIF
from workers.job.workflows.assets.image import ASSET_IMAGE
from workers.job.workflows.assets.video import ASSET_VIDEO
from workers.job.workflows.captions import CAPTIONS
from workers.job.workflows.capture.capture import VOD_CAPTURE
from workers.job.workflows.compose.compose import COMPOSE
from workers.job.workflows.http_fetch_verify import HTTP_FETCH_VERIFY
from workers.job.workflows.probe_media import PROBE_MEDIA
from workers.job.workflows.publication_upload import PUBLICATION_UPLOAD
from workers.job.workflows.vod.ingest import VOD_INGEST
from workers.job.workflows.vod.package import VOD_PACKAGE
from workers.job.workflows.vod.quality import QUALITY_CHECK
from workers.kernel.plugins import plugins

GROUP: Final = "medialedger.workflows"

_log = logging.getLogger(__name__)
_MOST_ERRORS: Final = 50
_SIMILARITY: Final = 0.7
_WHERE: Final = "parameters"
_MESSAGES: Final = {
    "missing": "is required",
    "extra_forbidden": "is not a parameter of this workflow",
    "model_type": "must be an object",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "tuple_type": "must be an array",
    "too_long": "has too many entries",
}


class Registry:
    """Workflows by their names."""

    def __init__(self, workflows: Iterable[Workflow]) -> None:
        self._workflows: dict[str, Workflow] = {}
        self._tasks: dict[str, tuple[TaskPlan, ...]] = {}
        for workflow in workflows:
            self._add(workflow)

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._workflows)

    def named(self, name: str) -> Workflow:
        return self._workflows[name]

    def checked(self, name: str, parameters: object) -> tuple[Workflow, JobParameters]:
        """Return the workflow with this name and its validated parameters. Raises `Malformed`.

        Its messages name what is expected, never the value that was sent, which may be a password.
        """
        workflow = self._workflows.get(name)
        if workflow is None:
            raise Malformed.at("job.workflow", f"must be one of {', '.join(self.names)}")
        try:
            sent = to_json(parameters)
            if len(sent) > workflow.most_parameters:
                raise Malformed.at(_WHERE, f"must have at most {workflow.most_parameters} bytes as JSON in UTF-8")
            # Validated as JSON: only then does a strict model accept an array as a tuple or a text as a time.
            return workflow, workflow.parameters.model_validate_json(sent)
        except ValidationError as error:
            entries = error.errors(include_url=False, include_input=False)[:_MOST_ERRORS]
        except PydanticSerializationError:
            raise Malformed.at(_WHERE, "must be JSON") from None
        names = list(workflow.parameters.model_fields)
        raise Malformed(*dict.fromkeys(_field_error(entry, names) for entry in entries))

    def needs_network(self, name: str, step: str) -> bool:
        workflow = self._workflows.get(name)
        return workflow is not None and any(candidate.needs_network for candidate in workflow.steps if candidate.name == step)

    def checked_job(self, name: str, parameters: object) -> CheckedJob:
        """Return a job whose parameters are valid; this implements the port `domain.job.ports.Workflows`. Raises `Malformed`."""
        _, fit = self.checked(name, parameters)
        sent = cast("Mapping[str, Any]", parameters)
        return CheckedJob(name, fit.content_id, sent, fit.callback_urls, self._tasks[name])

    def _add(self, workflow: Workflow) -> None:
        if workflow.name in self._workflows:
            raise ValueError(f"the workflow {workflow.name} already exists")
        self._workflows[workflow.name] = workflow
        self._tasks[workflow.name] = workflow.graph()

    def _add_all(self, workflows: Sequence[Workflow]) -> None:
        """Add all workflows of one entry point, or none."""
        before = dict(self._workflows)
        try:
            for workflow in workflows:
                self._add(workflow)
        except ValueError:
            self._workflows = before
            raise

    def extend(self, plugins: Iterable[EntryPoint]) -> None:
        for plugin in plugins:
            try:
                self._add_all(_workflows_of(plugin.load()))
            except (Exception, SystemExit) as fault:  # a module of another package may raise anything
                _log.error("the workflows of %s (%s) are left out: %s: %s", plugin.name, plugin.value, type(fault).__name__, fault)


def builtin() -> Registry:
    return Registry(
        [
            ASSET_GIF,
            ASSET_IMAGE,
            ASSET_VIDEO,
            CAPTIONS,
            COMPOSE,
            HTTP_FETCH_VERIFY,
            PROBE_MEDIA,
            PUBLICATION_UPLOAD,
            VOD_CAPTURE,
            VOD_INGEST,
            VOD_PACKAGE,
            QUALITY_CHECK,
        ]
    )


@cache
def installed() -> Registry:
    """The built-in workflows and those of other packages. Cached, since it reads the metadata of every installed distribution."""
    registry = builtin()
    registry.extend(plugins(GROUP))
    return registry


def summary(workflow: Workflow) -> str:
    """Return what a workflow does; without a description, the first paragraph about its parameters."""
    return workflow.description or cleandoc(workflow.parameters.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _workflows_of(loaded: object) -> Sequence[Workflow]:
    several = loaded if isinstance(loaded, Sequence) else [loaded]
    workflows = [workflow for workflow in several if isinstance(workflow, Workflow)]
    if not workflows or len(workflows) < len(several):
        raise TypeError("neither a Workflow nor a sequence of them")
    return workflows


def _field_error(entry: ErrorDetails, names: Sequence[str]) -> FieldError:
    """Return the error of one parameter. If it is unknown and close to a name in `names`, the message suggests that name."""
    message = _MESSAGES.get(entry["type"]) or entry["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if entry["type"] == "extra_forbidden" and len(entry["loc"]) == 1:
        message += _suggestion(str(entry["loc"][0]), names)
    return FieldError(path_inside(_WHERE, entry["loc"]), message)


def _suggestion(word: str, candidates: Iterable[str]) -> str:
    """Return the end of a sentence that suggests a similar word; empty if no word is similar enough."""
    from difflib import get_close_matches  # a request that is spelled right does not need it

    matches = get_close_matches(word, list(candidates), n=1, cutoff=_SIMILARITY)
    return f"; did you mean {matches[0]}?" if matches else ""
