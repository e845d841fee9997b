"""What Terraform's JSON says: of a plan, of the state, and line by line while it works. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from domain.configuration.hosts import merge_reported
from domain.provision.values import name_of

_LOCK: Final = re.compile(r"Error acquiring the state lock")
_LOCK_INFO: Final = re.compile(r"^\s*(ID|Who|Created):\s*(\S.*?)\s*$", re.MULTILINE)
_LOCKED_BY: Final = re.compile(r"already locked: ID=(\S+)")
_TAINTED: Final = "replace_because_tainted"


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan does with one object. `index` is its key in a `for_each`."""

    address: str
    index: object
    actions: tuple[str, ...]
    reason: str

    @property
    def sign(self) -> str:
        return {"create": "+", "update": "~", "delete": "-"}.get("/".join(self.actions), "-/+")

    def is_allowed(self, names: frozenset[str], *, destroy: bool) -> bool:
        """Without leave to change what exists: what is missing is made, what did not come up is made again, and what belongs to a
        resource that is not desired any more goes."""
        if self.actions == ("create",) or (self.reason == _TAINTED and "create" in self.actions):
            return True
        return self.actions == ("delete",) and (destroy or (isinstance(self.index, str) and self.index not in names))


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a state that another Terraform holds, or has left. `holder`: by whom and since when, where that is told."""

    id: str
    holder: str

    def __str__(self) -> str:
        return f"the state is locked{self.holder} (lock {self.id})"


def lock_in(errors: str) -> Lock | None:
    """What the errors of Terraform say of a lock; None where that is not what is wrong."""
    if (found := _LOCK.search(errors)) is None:
        return None
    text = errors[found.end() :]
    if (other := _LOCKED_BY.search(text)) is not None:  # what follows is then the lock that was asked for
        return Lock(other.group(1), "")
    told = dict(_LOCK_INFO.findall(text))
    return Lock(told.get("ID", ""), f" by {told.get('Who', 'somebody')} since {told.get('Created', 'an unknown time')}")


def changes(plan: Mapping[str, Any]) -> list[Change]:
    """Of managed objects, without those that stay as they are."""
    found = []
    for one in plan.get("resource_changes", ()):
        actions = tuple(one["change"]["actions"])
        if one.get("mode") == "managed" and actions not in (("no-op",), ("read",)):
            found.append(Change(one["address"], one.get("index"), actions, one.get("action_reason") or ""))
    return found


@dataclass(frozen=True, slots=True)
class State:
    """`objects` are the addresses of what there is, with the index and whether it is tainted."""

    objects: Mapping[str, tuple[object, bool]] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, shown: Mapping[str, Any]) -> State:
        values = shown.get("values") or {}
        objects = {
            one["address"]: (one.get("index"), bool(one.get("tainted")))
            for one in _resources(values.get("root_module") or {})
            if one.get("mode") == "managed"
        }
        outputs = {name: one.get("value") for name, one in (values.get("outputs") or {}).items() if not one.get("sensitive")}
        return cls(objects, outputs)

    def up(self, wanted: Sequence[dict[str, Any]], *, missing: Iterable[Change], complete: bool) -> list[dict[str, Any]]:
        """The resources that are up, each with what the output `resources` says of it. A resource is up if all objects with its
        name as their index are there and none is tainted. One that no object is named after is up after a run without a fault."""
        lacking = {change.index for change in missing if change.address not in self.objects}
        told, found = _by_name(self.outputs.get("resources")), []
        for resource in wanted:
            name = name_of(resource)
            tainted = [taint for index, taint in self.objects.values() if index == name]
            is_up = name not in lacking and (not any(tainted) if tainted else complete)
            if is_up:
                found.append(merge_reported(resource, told.get(name, {})))
        return found


def _resources(module: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield from module.get("resources", ())
    for child in module.get("child_modules", ()):
        yield from _resources(child)


def _by_name(output: object) -> dict[str, dict[str, Any]]:
    """An object of objects by name, or an array of objects with names."""
    if isinstance(output, dict):
        return {name: told for name, told in output.items() if isinstance(told, dict)}
    if isinstance(output, list):
        return {name_of(told): told for told in output if isinstance(told, dict)}
    return {}


class TerraformProgress:
    """What Terraform told while it worked: what began and did not end, and its errors."""

    def __init__(self) -> None:
        self.under_way: dict[str, None] = {}
        self.errors: list[str] = []

    def line(self, text: str) -> str | None:
        """What is worth an entry in the log store."""
        try:
            told = json.loads(text)
        except ValueError:
            return None
        if not isinstance(told, dict):
            return None
        kind, address = told.get("type"), ((told.get("hook") or {}).get("resource") or {}).get("addr", "")
        match kind:
            case "apply_start":
                self.under_way[address] = None
            case "apply_complete":
                self.under_way.pop(address, None)
                return str(told.get("@message", ""))
            case "apply_errored":  # what is there of it is in the state at the end of the program
                return str(told.get("@message", ""))
            case "diagnostic" if told.get("@level") == "error":
                found = told.get("diagnostic") or {}
                where = f"{found['address']}: " if found.get("address") else ""
                self.errors.append(f"{where}{found.get('summary', '')}: {found.get('detail', '')}".strip().rstrip(":"))
        return None
