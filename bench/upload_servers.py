"""Servers that receive uploads: `python -m bench.upload_servers FOLDER`. Prints their ports and the host key of SSH, as JSON.

HTTP is served by aiohttp, which stores uploads in a file; SFTP by asyncssh, with a password and with the key in FOLDER/key.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import asyncssh
from aiohttp import web

USER, PASSWORD = "bench", "bench-password"


class _Server(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)


async def _take(request: web.Request) -> web.Response:
    with (request.app[_FOLDER] / "http").open("wb") as file:
        async for piece in request.content.iter_any():
            file.write(piece)
    return web.Response(status=201)


_FOLDER = web.AppKey("folder", Path)


async def _serve(folder: Path) -> None:
    own = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    key = asyncssh.generate_private_key("ssh-ed25519")
    own.write_private_key(folder / "key")
    (folder / "key").chmod(0o600)
    (folder / "keys").write_text(own.export_public_key().decode())
    ssh = await asyncssh.listen(
        *("127.0.0.1", 0),
        server_factory=_Server,
        server_host_keys=[key],
        authorized_client_keys=str(folder / "keys"),
        sftp_factory=lambda connection: asyncssh.SFTPServer(connection, chroot=bytes(folder)),
    )
    app = web.Application()
    app[_FOLDER] = folder
    app.router.add_put("/{name}", _take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    servers = {"http": runner.addresses[0][1], "sftp": ssh.get_port(), "hostKey": key.export_public_key().decode()}
    print(json.dumps(servers), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
