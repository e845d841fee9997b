"""The product's request: the framework's request with the members for commands and repeated requests."""

from __future__ import annotations

from starlette.requests import empty_receive, empty_send
from starlette.types import Receive, Send

from api.guards.proxies import share_of
from api.http import request as http
from api.http.request import ANONYMOUS, Caller, Scope
from api.kernel.tracing import sent_trace_parent
from domain.kernel.cause import ActorKind, Cause, usual_kind
from domain.kernel.idempotency import IdempotencyKey
from domain.kernel.ids import new_id
from domain.kernel.ports import Invocation
from projections.kernel.database.readers import READER, ClientBudgets


class Request(http.Request):
    """The request that the endpoints of the product receive."""

    def __init__(self, scope: Scope, receive: Receive = empty_receive, send: Send = empty_send) -> None:
        super().__init__(scope, receive, send)
        self._cause: Cause | None = None
        self.idempotency: IdempotencyKey | None = None

    def new_transaction_id(self) -> str:
        """Return an id from the product's source of ids. A system call for each request would cost as much as parsing its body."""
        return str(new_id())

    @property
    def cause(self) -> Cause:
        """The client, end user and correlation id that every event of this request carries. A request has one command id."""
        if self._cause is None:
            self._cause = Cause.by(
                self.caller.name,
                correlation_id=self.transaction_id,
                end_user=self.caller.end_user,
                trace_parent=self.trace_parent or sent_trace_parent(self),
                kind=_kind(self.caller),
            )
        return self._cause

    @property
    def invocation(self) -> Invocation:
        """The invocation for handlers: the cause and the conditions."""
        return Invocation(self.cause, self.if_match, self.idempotency)


def _kind(caller: Caller) -> ActorKind:
    """Return the kind of actor. A client is never the product, whatever its name is."""
    if caller.person:
        return ActorKind.PERSON
    return ActorKind.SHELL if usual_kind(caller.name) is ActorKind.SHELL else ActorKind.CLIENT


class Admission:
    """Assigns the reads of a request to its client, or to its address if it has no key."""

    def __init__(self) -> None:
        self._budgets = ClientBudgets()

    def __call__(self, request: http.Request) -> None:
        if request.caller is not ANONYMOUS:
            name = request.caller.name
        else:
            client = request.scope.get("client")
            name = f"address {share_of(client[0])}" if client else ANONYMOUS.name
        READER.set(self._budgets.sent(name))
