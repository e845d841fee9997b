"""A workflow: a named graph of steps.

Workflows of other packages are made of the same parts and found through the entry points of the group `medialedger.workflows`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from re import compile as regex
from typing import Annotated, Any, Final

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from domain.job.values import TaskPlan
from domain.kernel.errors import Malformed
from domain.kernel.urls import check_url
from domain.webhook.callback import MOST_CALLBACKS, parse_callback_url
from workers.job.context import StepContext, StepResult
from workers.job.media_paths import Segment

QUEUES: Final = ("work", "windows_capture")
MOST_PARAMETERS: Final = 65_536
"""The largest size of a job's parameters in bytes. They are in each list of jobs, in memory while it is under way, and in the log
for ever."""
_NAME: Final = regex(r"[a-z][a-z0-9_]{0,99}")


def _validator(check: Callable[[str], object]) -> AfterValidator:
    """Make a pydantic validator from a check of the domain. Its message does not repeat the value."""

    def judge(url: str) -> str:
        try:
            check(url)
        except Malformed as refusal:
            raise PydanticCustomError("url", "{fault}", {"fault": refusal.errors[0].message}) from None
        return url

    return AfterValidator(judge)


WebUrl = Annotated[str, _validator(lambda url: check_url(url, field="url"))]
"""An http or https URL without user info."""

_CallbackUrl = Annotated[str, _validator(lambda url: parse_callback_url(url, field="callback_urls"))]


class JobParameters(BaseModel):
    """The parameters of every workflow. A workflow adds its own; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    content_id: Segment = Field(
        description="The content that the job is about; its files are in the folder of this name below the media root.",
        examples=["match-17"],
    )
    custom_data: Any = Field(None, description="Any JSON value; it is passed to callbacks unchanged.")
    callback_urls: Annotated[
        tuple[_CallbackUrl, ...],
        Field(max_length=MOST_CALLBACKS, validation_alias=AliasChoices("callback_urls", "callbackUrls")),
    ] = Field((), description="Addresses that are notified of each change of the job's state.")


@dataclass(frozen=True, slots=True)
class Step:
    """A function of a workflow.

    `after` holds the names of the steps whose results it needs. Without `needs_network`, the step and its programs reach no other
    machine, and not this one either.
    """

    name: str
    run: Callable[[StepContext[Any]], StepResult | None]
    queue: str = "work"
    after: Sequence[str] = ()
    needs_network: bool = False


@dataclass(frozen=True, slots=True)
class Workflow:
    """A named graph of steps. Names, queues and dependencies are checked when it is created.

    `most_parameters` is the largest size of a job's parameters in bytes. `description` is a sentence for people about what the
    workflow makes from what. `submitted_by` is the only kind of resource that submits its jobs; None if every caller who may submit
    jobs may do so.
    """

    name: str
    parameters: type[JobParameters]
    steps: Sequence[Step]
    most_parameters: int = MOST_PARAMETERS
    description: str = ""
    submitted_by: str | None = None

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        for name in (self.name, *names):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid name: use lower-case letters, digits and underscores")
        if not names or len(set(names)) < len(names):
            raise ValueError(f"workflow {self.name}: it needs at least one step, and the names of its steps must differ")
        for step in self.steps:
            if step.queue not in QUEUES:
                raise ValueError(
                    f"workflow {self.name}: step {step.name} is for an unknown queue; the queues are {', '.join(QUEUES)}"
                )
            if not set(names).issuperset(step.after):
                raise ValueError(f"workflow {self.name}: step {step.name} comes after a step that does not exist")
        self._order()

    def graph(self) -> tuple[TaskPlan, ...]:
        """Return the steps as tasks numbered from 1, each after all tasks that it depends on."""
        ordered = self._order()
        number = {step.name: index for index, step in enumerate(ordered, 1)}
        return tuple(
            TaskPlan(
                id=number[step.name], name=step.name, queue=step.queue, after=tuple(sorted(number[name] for name in step.after))
            )
            for step in ordered
        )

    def step(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)

    def _order(self) -> Sequence[Step]:
        ordered: list[Step] = []
        waiting = list(self.steps)
        while waiting:
            done = {step.name for step in ordered}
            following = next((step for step in waiting if done.issuperset(step.after)), None)
            if following is None:
                raise ValueError(f"workflow {self.name}: its steps depend on each other in a cycle")
            ordered.append(following)
            waiting.remove(following)
        return ordered
