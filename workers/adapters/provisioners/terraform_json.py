"""Reading of Terraform's JSON: a plan, the state, and the lines of its progress. These functions are pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from domain.channel.hosts import merge_reported
from domain.provision.values import name_of

_LOCK: Final = re.compile(r"Error acquiring the state lock")
_LOCK_INFO: Final = re.compile(r"^\s*(ID|Who|Created):\s*(\S.*?)\s*$", re.MULTILINE)
_LOCKED_BY: Final = re.compile(r"already locked: ID=(\S+)")
_TAINTED: Final = "replace_because_tainted"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The change of one object in a plan. `index` is its key in a `for_each`."""

    address: str
    index: object
    actions: tuple[str, ...]
    reason: str

    @property
    def sign(self) -> str:
        return {"create": "+", "update": "~", "delete": "-"}.get("/".join(self.actions), "-/+")

    def is_allowed(self, names: frozenset[str], *, destroy: bool) -> bool:
        """Return True if the change needs no permission to update: missing objects are created, tainted objects are created again,
        and objects of a resource that is no longer desired are deleted."""
        if self.actions == ("create",) or (self.reason == _TAINTED and "create" in self.actions):
            return True
        return self.actions == ("delete",) and (destroy or (isinstance(self.index, str) and self.index not in names))


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a state, which another Terraform process has or has left behind. `holder` names its owner and time, if they are
    reported."""

    id: str
    holder: str

    def __str__(self) -> str:
        return f"the state is locked{self.holder} (lock {self.id})"


def lock_in(errors: str) -> Lock | None:
    """Return the lock in the errors of Terraform; None if the errors are about something else."""
    if (error := _LOCK.search(errors)) is None:
        return None
    text = errors[error.end() :]
    if (other := _LOCKED_BY.search(text)) is not None:  # the rest of the text is then about the requested lock
        return Lock(other.group(1), "")
    reported = dict(_LOCK_INFO.findall(text))
    return Lock(reported.get("ID", ""), f" by {reported.get('Who', 'someone')} since {reported.get('Created', 'an unknown time')}")


def changes(plan: Mapping[str, Any]) -> list[PlannedChange]:
    """Return the changes of managed objects, without unchanged ones."""
    result = []
    for change in plan.get("resource_changes", ()):
        actions = tuple(change["change"]["actions"])
        if change.get("mode") == "managed" and actions not in (("no-op",), ("read",)):
            result.append(PlannedChange(change["address"], change.get("index"), actions, change.get("action_reason") or ""))
    return result


@dataclass(frozen=True, slots=True)
class TerraformState:
    """A state. `objects` maps the addresses of existing objects to the index and True if it is tainted."""

    objects: Mapping[str, tuple[object, bool]] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, shown: Mapping[str, Any]) -> TerraformState:
        values = shown.get("values") or {}
        objects = {
            resource["address"]: (resource.get("index"), bool(resource.get("tainted")))
            for resource in _resources(values.get("root_module") or {})
            if resource.get("mode") == "managed"
        }
        outputs = {
            name: output.get("value") for name, output in (values.get("outputs") or {}).items() if not output.get("sensitive")
        }
        return cls(objects, outputs)

    def up(self, wanted: Sequence[dict[str, Any]], *, missing: Iterable[PlannedChange], complete: bool) -> list[dict[str, Any]]:
        """Return the resources that are up, each with its member of the output `resources`. A resource is up if all objects with
        its name as their index exist and none is tainted. A resource without such objects is up after a run without a fault."""
        lacking = {change.index for change in missing if change.address not in self.objects}
        reported, running = _by_name(self.outputs.get("resources")), []
        for resource in wanted:
            name = name_of(resource)
            tainted = [taint for index, taint in self.objects.values() if index == name]
            is_up = name not in lacking and (not any(tainted) if tainted else complete)
            if is_up:
                running.append(merge_reported(resource, reported.get(name, {})))
        return running


def _resources(module: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield from module.get("resources", ())
    for child in module.get("child_modules", ()):
        yield from _resources(child)


def _by_name(output: object) -> dict[str, dict[str, Any]]:
    """Return the members of an object of objects, or an array of named objects, by their names."""
    if isinstance(output, dict):
        return {name: resource for name, resource in output.items() if isinstance(resource, dict)}
    if isinstance(output, list):
        return {name_of(resource): resource for resource in output if isinstance(resource, dict)}
    return {}


class TerraformProgress:
    """The progress that Terraform reports: changes that have begun and not ended, and errors."""

    def __init__(self) -> None:
        self.in_progress: dict[str, None] = {}
        self.errors: list[str] = []

    def line(self, text: str) -> str | None:
        """Process a line. Return its message if it belongs into the log store."""
        try:
            message = json.loads(text)
        except ValueError:
            return None
        if not isinstance(message, dict):
            return None
        kind, address = message.get("type"), ((message.get("hook") or {}).get("resource") or {}).get("addr", "")
        match kind:
            case "apply_start":
                self.in_progress[address] = None
            case "apply_complete":
                self.in_progress.pop(address, None)
                return str(message.get("@message", ""))
            case "apply_errored":  # what exists of it is in the state at the end of the program
                return str(message.get("@message", ""))
            case "diagnostic" if message.get("@level") == "error":
                diagnostic = message.get("diagnostic") or {}
                where = f"{diagnostic['address']}: " if diagnostic.get("address") else ""
                self.errors.append(f"{where}{diagnostic.get('summary', '')}: {diagnostic.get('detail', '')}".strip().rstrip(":"))
        return None
