"""`medialedger client` over the REST API: adds, lists and revokes clients and keys. It needs the key of an admin."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Final

from api.cli.client_list import print_clients
from api.cli.remote.lookup import unique
from api.cli.remote.rest_api import RestApi, segment
from api.cli.shell import confirm

_PATH: Final = "/api/client"


def run(args: Namespace, api: RestApi) -> int:
    _ACTIONS[args.action](args, api)
    return 0


def _list(args: Namespace, api: RestApi) -> None:
    print_clients(api.documents(f"{_PATH}/"), form=args.form)


def _add(args: Namespace, api: RestApi) -> None:
    body = {"name": args.name, "roles": args.roles, "trustActor": args.trust_actor}
    print(api.call("POST", f"{_PATH}/", body=body).document["key"])


def _rotate(args: Namespace, api: RestApi) -> None:
    body = {} if args.expire_others_after is None else {"expireOthersAfter": args.expire_others_after}
    print(api.call("POST", f"{_PATH}/{segment(args.name)}/keys/", body=body).document["key"])


def _revoke(args: Namespace, api: RestApi) -> None:
    """Revoke a key; without a key id, delete the client."""
    path = f"{_PATH}/{segment(args.name)}"
    client = api.document(path)
    if args.key_id is None:
        confirm(args, f"delete the client {args.name} with all its keys at {api.label}")
        api.call("DELETE", path)
    else:
        key = unique(
            [str(client_key.get("keyId")) for client_key in client.get("keys") or ()], args.key_id, what=f"key of {args.name}"
        )
        confirm(args, f"revoke the key {key} of {args.name} at {api.label}")
        api.call("DELETE", f"{path}/keys/{segment(key)}")
    print("revoked")


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], None]]] = {
    "list": _list,
    "add": _add,
    "rotate": _rotate,
    "revoke": _revoke,
}
