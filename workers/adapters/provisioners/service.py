"""The provisioner that uses an external service over HTTP: docs/reference/provisioning-service.md.

The service receives the desired state, and is polled until it reaches it: only its answers to these requests count. Each order has
a growing number. So a repeated order changes nothing, and an order that a frozen worker sends late is refused.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, StrictInt, StrictStr

from domain.channel.hosts import merge_reported
from domain.kernel.errors import Malformed
from domain.kernel.json_document import Section, checked
from domain.provision.desired import Desired, Provided
from domain.provision.values import name_of
from workers.adapters.provisioners.service_file import Service, ServiceFiles, ServiceUnusable, name_of_key
from workers.ports.outbound import Outbound, OutboundFailed, OutboundRefused, Reply
from workers.ports.provisioners import Halt, ProvisionProgress

MOST: Final = 4 << 20
"""The size limit of an answer in bytes."""
NUMBER: Final = "X-Run"
_GONE: Final = (404, 410)
_OUTDATED: Final = 409
_LATER: Final = (408, 425, 429)
_LONGEST: Final = 500
_MOST_REPORTED: Final = 200
_LEAST: Final = 0.2
"""The minimum time in seconds between two requests for the status, however often the service calls back."""
_INTERRUPTED: Final = "it was interrupted"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Limits in seconds. `request`: for a request. `poll`: between two requests for the status. `patience`: how long faults are
    retried. `pause`: the longest pause between two attempts. `run`: for a run."""

    request: float = 15.0
    poll: float = 2.0
    patience: float = 120.0
    pause: float = 15.0
    run: float = 3600.0


class ServiceAnswer(Section):
    """The progress of the service. `resources` are all existing resources, including those that do not work."""

    run: StrictInt
    status: Literal["working", "ended"]
    resources: Annotated[tuple[dict[str, Any], ...], Field(repr=False)] = ()
    message: StrictStr = ""
    reason: StrictStr = ""


class _Failed(Exception):
    """Raised when a run failed. The message is one sentence without secrets. `unsent` is True if the order has not reached the
    service."""

    def __init__(self, sentence: str, *, unsent: bool = False) -> None:
        super().__init__(sentence)
        self.unsent = unsent


class _Trouble(Exception):
    """Raised for a fault that may be temporary."""

    def __init__(self, sentence: str, *, unsent: bool = False) -> None:
        super().__init__(sentence)
        self.unsent = unsent


class _Halted(Exception):
    """Raised when the run was halted because the desired state has changed."""


class ServiceProvisioner:
    """The provisioner. `files` maps templates to services and their keys."""

    def __init__(self, outbound: Outbound, files: ServiceFiles, *, limits: ServiceLimits | None = None) -> None:
        self._outbound = outbound
        self._files = files
        self._limits = limits or ServiceLimits()
        self._waiting: dict[str, asyncio.Event] = {}

    def hurry(self, infrastructure: str) -> None:
        """Request the status soon, because the service reported a change."""
        if (waiting := self._waiting.get(infrastructure)) is not None:
            waiting.set()

    def serves(self, desired: Desired) -> bool:
        """Return True if the template is a service, or was one when the infrastructure was created."""
        return self._files.is_service(desired.template) or self._files.was_asked(desired.key)

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        asked_before = self._files.was_asked(desired.key)
        if not desired.resources and not asked_before and not self._files.is_service(desired.template):
            return Provided()
        try:
            service = self._files.service(desired.template)
            self._files.note(desired.key)
            hurried = self._waiting.setdefault(name_of_key(desired.key), asyncio.Event())
            remote = _Remote(self._outbound, service, limits=self._limits)
            provided = await _Run(desired, remote, progress=progress, halt=halt, hurried=hurried).provide(self._limits)
        except (_Failed, ServiceUnusable) as failure:
            nothing = not asked_before and (isinstance(failure, ServiceUnusable) or failure.unsent)
            provided = Provided(left=not nothing, exists=not nothing, reason=str(failure))
        except OSError as fault:
            provided = Provided(
                left=True, exists=True, reason=f"the workdir cannot be used: {fault.strerror or type(fault).__name__}"
            )
        finally:
            self._waiting.pop(name_of_key(desired.key), None)
        if not provided.exists:
            with suppress(OSError):
                self._files.forget(desired.key)
        return provided

    async def plan(self, desired: Desired) -> str:
        """Return the plan by the service's report of what exists. The service receives no order."""
        try:
            remote = _Remote(self._outbound, self._files.service(desired.template), limits=self._limits)
            _, answer = await remote.status(_path(desired), number=desired.number)
        except (_Failed, _Trouble, ServiceUnusable) as failure:
            return f"it would fail: {failure}"
        there = list(map(name_of, answer.resources))
        wanted = list(map(name_of, desired.resources))
        lines = [f"{'=' if name in there else '+'} {name}" for name in wanted]
        return "\n".join((*lines, *(f"- {name}" for name in there if name not in desired.names)))

    async def local_keys(self) -> Sequence[str]:
        return ()

    async def forget(self, key: str) -> None:
        """Do nothing: the note that the service was ordered is removed when the service reports that nothing exists."""


class _Run:
    """A call for one infrastructure key."""

    def __init__(
        self, desired: Desired, remote: _Remote, *, progress: ProvisionProgress, halt: Halt, hurried: asyncio.Event
    ) -> None:
        self._desired = desired
        self._remote = remote
        self._progress = progress
        self._halt = halt
        self._hurried = hurried
        self._path = _path(desired)
        self._last: ServiceAnswer | None = None
        self._reported: dict[str, None] = {}
        self._ordered = False

    async def provide(self, limits: ServiceLimits) -> Provided:
        """Order the desired state and return the outcome. After a fault or a halt it comes from the service's last report."""
        until = time.monotonic() + limits.run
        try:
            await self._order()
            while (answer := await self._status()) is None or answer.status == "working":
                if time.monotonic() > until:
                    raise _Failed(f"the service {self._remote.name!r} did not end within {limits.run:g} s")
                if answer is None:
                    await self._order()
                await self._next(limits.poll)
        except _Halted:
            return self._outcome(_INTERRUPTED)
        except _Failed as failure:
            if self._last is None:
                raise _Failed(str(failure), unsent=failure.unsent and not self._ordered) from None
            return self._outcome(str(failure))
        return self._outcome(self._remote.plain(answer.reason))

    async def _order(self) -> None:
        """Send the desired state. A repeated order changes nothing."""
        desired = self._desired
        if not desired.resources:
            await self._send_order("DELETE", fine=_GONE)
            return
        body = {
            "infrastructureKey": desired.key,
            "run": desired.number,
            "allowUpdates": desired.allow_updates,
            "settings": dict(desired.settings),
            "resources": list(desired.resources),
            **self._remote.callback(self._path),
        }
        await self._send_order("PUT", body=json.dumps(body).encode())

    async def _status(self) -> ServiceAnswer | None:
        """Return the progress; None if the service does not know the order."""
        reply, answer = await self._retry(self._request_status)
        if reply.status in _GONE:
            self._last = ServiceAnswer(run=self._desired.number, status="ended")
            return self._last if not self._desired.resources else None
        if answer.run > self._desired.number:
            raise _Failed(f"the service {self._remote.name!r} works for a later request")
        self._last = answer
        await self._tell(answer.message)
        return answer if answer.run == self._desired.number else None

    async def _request_status(self) -> tuple[Reply, ServiceAnswer]:
        return await self._remote.status(self._path, number=self._desired.number)

    async def _send_order(self, method: str, *, body: bytes = b"", fine: tuple[int, ...] = ()) -> None:
        async def ask() -> Reply:
            return await self._remote.request(method, self._path, number=self._desired.number, body=body, fine=fine)

        await self._retry(ask)
        self._ordered = True

    async def _retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Send a request, and repeat it after temporary faults. A halt takes effect between two requests, each of which has a time
        limit."""
        limits, since, pause = self._remote.limits, time.monotonic(), self._remote.limits.poll
        unsent = True
        while not self._halt.forbids:
            try:
                return await ask()
            except _Trouble as trouble:
                unsent = unsent and trouble.unsent
                seconds = time.monotonic() - since
                if seconds >= limits.patience:
                    raise _Failed(f"{trouble}; it was tried for {seconds:.0f} s", unsent=unsent) from None
                await self._tell(f"{trouble}; trying again")
                await self._rest(min(pause, limits.pause, limits.patience - seconds))
                pause *= 2
        raise _Halted

    async def _next(self, seconds: float) -> None:
        """Wait until the next request for the status is due: earlier if the service has called back, but not at once."""
        least = min(seconds / 10, _LEAST)
        await self._rest(least)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds - least):
                await self._hurried.wait()
        self._hurried.clear()
        if self._halt.is_set():
            raise _Halted

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._halt.wait()

    async def _tell(self, message: str) -> None:
        """Report a message once, and not more than `_MOST_TOLD` different ones."""
        text = self._remote.plain(message)
        if text and text not in self._reported and len(self._reported) < _MOST_REPORTED:
            self._reported[text] = None
            await self._progress.info(text)

    def _outcome(self, reason: str) -> Provided:
        """Return the outcome from the service's last report. While a run is in progress, any resource may exist."""
        if self._last is None:
            return Provided(left=True, exists=True, reason=reason)
        settled = self._last.status == "ended" and self._last.run == self._desired.number
        there = {name_of(resource): resource for resource in self._last.resources}
        up = [
            merge_reported(wanted, {name: value for name, value in there[name_of(wanted)].items() if name != "up"})
            for wanted in self._desired.resources
            if name_of(wanted) in there and there[name_of(wanted)].get("up", True) is True
        ]
        lacking = len(self._desired.resources) - len(up)
        left = not settled or bool(there.keys() - self._desired.names)
        why = reason or (f"{lacking} of {len(self._desired.resources)} resources are not up" if lacking else "")
        return Provided(
            resources=up, left=left, exists=not settled or bool(there), reason=why or ("resources remain" if left else "")
        )


class _Remote:
    """The address and the key of the service."""

    def __init__(self, outbound: Outbound, service: Service, *, limits: ServiceLimits) -> None:
        self._outbound = outbound
        self._service = service
        self.limits = limits
        self.name = service.name

    def callback(self, path: str) -> Mapping[str, str]:
        return {"callbackUrl": self._service.callback_url.rstrip("/") + path} if self._service.callback_url else {}

    async def request(self, method: str, path: str, *, number: int, body: bytes = b"", fine: tuple[int, ...] = ()) -> Reply:
        """Send a request and return the reply. Raises `_Trouble` and `_Failed`."""
        headers = {"Accept": "application/json", NUMBER: str(number), "Idempotency-Key": f"{path[1:]}/{number}"}
        if self._service.key:
            headers["Authorization"] = f"Bearer {self._service.key}"
        if body:
            headers["Content-Type"] = "application/json"
        url, seconds = self._service.url.rstrip("/") + path, self.limits.request
        try:
            reply = await self._outbound.request(method, url, headers=headers, body=body, seconds=seconds, most=MOST + 1)
        except OutboundRefused as refusal:
            raise _Failed(self._sentence(f"cannot be called: {refusal}"), unsent=True) from None
        except OutboundFailed as fault:
            raise _Trouble(self._sentence(f"cannot be reached: {fault}"), unsent=fault.unsent) from None
        if 200 <= reply.status < 300 or reply.status in fine:
            return reply
        raise self._refusal(method, reply)

    async def status(self, path: str, *, number: int) -> tuple[Reply, ServiceAnswer]:
        """Return the progress that the service reports. If nothing exists there, the run has ended."""
        reply = await self.request("GET", path, number=number, fine=_GONE)
        return reply, ServiceAnswer(run=number, status="ended") if reply.status in _GONE else self._answer(reply)

    def _answer(self, reply: Reply) -> ServiceAnswer:
        if len(reply.body) > MOST:
            raise _Trouble(self._sentence(f"answers with more than {MOST >> 20} MiB"))
        try:
            return checked(ServiceAnswer, reply.body.decode(), field="answer")
        except UnicodeDecodeError:
            raise _Trouble(self._sentence("answers with data that is not text")) from None
        except Malformed as wrong:
            raise _Trouble(self._sentence(f"gives an invalid answer: {wrong}")) from None

    def plain(self, text: str) -> str:
        """Return a text of the service on one line, without its key."""
        shown = self._service.masked("".join(character if character.isprintable() else " " for character in text[: _LONGEST * 2]))
        return " ".join(shown.split())[:_LONGEST]

    def _refusal(self, method: str, reply: Reply) -> _Failed | _Trouble:
        if reply.status == _OUTDATED and method != "GET":
            return _Failed(self._sentence("has a later request"))
        if 300 <= reply.status < 400:
            return _Failed(self._sentence(f"answers with status {reply.status}: it redirects, which is not followed"), unsent=True)
        reason = ""
        with suppress(ValueError, RecursionError):
            answer = json.loads(reply.body)
            reason = answer.get("reason", "") if isinstance(answer, dict) else ""
        suffix = f": {reason.rstrip('.')}" if isinstance(reason, str) and reason else ""
        sentence = self._sentence(f"answers with status {reply.status}{suffix}")
        if reply.status >= 500 or reply.status in _LATER:
            return _Trouble(sentence)
        return _Failed(sentence, unsent=True)

    def _sentence(self, text: str) -> str:
        return self.plain(f"the service {self.name!r} {text}").rstrip(".")


def _path(desired: Desired) -> str:
    return f"/{name_of_key(desired.key)}"
