"""The receivers of the demo: a webhook that fails, a folder that receives a film, and a server that cannot be reached. The failing
receivers have names below `.invalid`, which no resolver knows, so nothing leaves the machine."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Final

from api.cli.demo.ledger import DemoRequest, Ledger
from api.cli.demo.product import RequestRefused
from api.cli.run.home import PUBLISHED
from api.wiring.settings import Settings
from domain.kernel.clock import iso, system_clock
from workers.adapters.step_account import NAME
from workers.adapters.system_account import grant_traversal, system_account

FOLDER: Final = "demo"
_NOBODY: Final = "https://{}.broadcast.invalid"


async def make_webhook(ledger: Ledger) -> str:
    address = {"webhookUrl": f"{_NOBODY.format('hooks')}/medialedger"}
    return await ledger.once(DemoRequest("webhook", "POST", "/api/webhook/", address, by="tomas.novak"))


async def set_webhook(ledger: Ledger, webhook: str, *, on: bool) -> None:
    """Switch the webhook off or on. The notifications in between are failed deliveries, which can be sent again."""
    name, by, at = ("on", "anna.keller", None) if on else ("off", "tomas.novak", iso(system_clock()))
    await ledger.once(DemoRequest(f"webhook/{name}", "PUT", f"/api/webhook/{webhook}", {"disabledAt": at}, by=by))


async def make_publications(ledger: Ledger, film: str, *, settings: Settings) -> str:
    """Create a publication that is completed and one that fails. Return why one was omitted, or ""."""
    server = await _destination(
        ledger, "server", "Partner archive", "HTTP", {"url": f"{_NOBODY.format('archive')}/{{contentId}}.mp4"}
    )
    await _publish(ledger, film, server)
    try:
        folder = await _destination(ledger, "folder", "Archive share", "FILESYSTEM", {"path": FOLDER})
    except RequestRefused as refusal:
        return f"no film was published to a folder: {refusal}"
    await asyncio.to_thread(_make_folder, published_root(settings))
    await ledger.once(DemoRequest(f"activate/{folder}", "PUT", f"/api/media/destination/activate/{folder}", by="tomas.novak"))
    await _publish(ledger, film, folder)
    return ""


async def _destination(ledger: Ledger, key: str, name: str, target: str, configuration: dict[str, str]) -> str:
    body = {"name": name, "target": target, "destinationJson": json.dumps(configuration)}
    return await ledger.once(DemoRequest(f"destination/{key}", "POST", "/api/media/destination/", body, by="tomas.novak"))


async def _publish(ledger: Ledger, film: str, destination: str) -> None:
    """Publish the film and wait for the end of the upload. A publication that was made before is not repeated: it may have been
    deleted."""
    text = json.dumps({"title": "From the demo", "description": "Test pictures."})
    body = {"eventId": film, "publications": [{"destinationId": destination, "publicationJson": text}]}
    name = f"publication/{destination}"
    if ledger.find(name) is not None:
        return
    publication = await ledger.once(
        DemoRequest(name, "POST", "/api/media/vodpublication/", body, by="anna.keller", about="publication")
    )
    while True:
        document = await ledger.product.get(f"/api/vodpublications/{publication}", destinationId=destination)
        if document["publicationStateString"] != "Processing":
            return
        await asyncio.sleep(0.5)


def published_root(settings: Settings) -> Path:
    """Return the folder of the product that `up --demo` has started, or the configured one."""
    return settings.filesystem_root or settings.home / PUBLISHED


def _make_folder(root: Path) -> None:
    """Create the folder for the account that uploads, and the root too if it is missing. An existing root keeps its owner and
    mode."""
    made = not root.exists()
    root.mkdir(mode=0o750, parents=True, exist_ok=True)
    (root / FOLDER).mkdir(mode=0o750, exist_ok=True)
    account = system_account(NAME)
    if account is None:
        return
    for path in (root, root / FOLDER) if made else (root / FOLDER,):
        os.chown(path, account.pw_uid, account.pw_gid)
    if made:
        grant_traversal(account, root)
