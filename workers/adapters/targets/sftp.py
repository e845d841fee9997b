"""A target on an SSH server, over SFTP. The server is identified by its host key: without it nothing is sent, not even the
password.

What the server confirmed is saved after each part: many requests are in progress at a time, so the size of an unfinished file
proves nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, cast
from uuid import uuid4

import asyncssh
from asyncssh import SFTPClient, SFTPClientFile, SSHKey

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import published_names
from workers.adapters.targets.answers import SECONDS, translate_client_faults
from workers.adapters.targets.files import FileTarget
from workers.ports.targets import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

PART: Final = 8 * 1024 * 1024
_SLOW: Final = 4
"""The time limit for a part as a multiple of the limit for an answer."""
_LOGIN_SECONDS: Final = 15.0
_CIPHERS: Final = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes192-ctr",
    "aes128-ctr",
)
"""The ciphers, the fastest first."""
_FULL: Final = (asyncssh.sftp.SFTPNoSpaceOnFilesystem, asyncssh.sftp.SFTPQuotaExceeded)


class SftpTarget(FileTarget):
    """The target. Its configuration is `host`, `port`, `path` of a directory there, `username`, `password` and `hostKey`: a public
    key as in known_hosts, or its fingerprint such as `SHA256:…`."""

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, part: int = PART, seconds: float = SECONDS) -> None:
        self._config = config
        self._client = client
        self._part = part
        self._seconds = seconds

    async def check(self) -> None:
        probe, moved = (self._path(f"{published_names.PROBE}{uuid4().hex}") for _ in range(2))
        async with self._session() as sftp:
            try:
                async with sftp.open(probe, "wb") as file:
                    await file.write(probe.encode())
                await _rename(sftp, probe, moved)
            finally:
                for path in (probe, moved):
                    await _remove(sftp, path)

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        name = published_names.file_name(order)
        partial, final = self._path(f".{name}.part"), self._path(name)
        at = _offset(state, source)
        async with self._session() as sftp:
            if at == source.size and await _hash(sftp, final, source.size) == source.sha256:
                return self._details(name, source)
            at = await _resume_offset(sftp, partial, source, at)
            async with sftp.open(partial, "r+b" if at else "wb") as file:
                while at < source.size:
                    at = await self._send_part(file, source, at)
                    progress(UploadProgress(at, source.size))
                    await save({"at": at, "sha256": source.sha256})
                with suppress(asyncssh.sftp.SFTPOpUnsupported):
                    await file.fsync()
            if (await sftp.stat(partial)).size != source.size:
                await _remove(sftp, partial)
                raise TargetFailed(
                    "retry", "The file on the SFTP server differs from the one that was sent: its size is different."
                )
            await _rename(sftp, partial, final)
        return self._details(name, source)

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        async with self._session() as sftp:
            path = self._path(published_names.file_name(order))
            return {**details, "size": (await sftp.stat(path)).size} if await sftp.isfile(path) else None

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        name = published_names.file_name(order)
        async with self._session() as sftp:
            for path in (self._path(f".{name}.part"), self._path(name)):
                await _remove(sftp, path)

    async def close(self) -> None:
        await self._client.close()

    async def _send_part(self, file: SFTPClientFile, source: UploadSource, at: int) -> int:
        """Send one part, wait until the server confirmed it, and return its end."""
        with source.path.open("rb") as read:
            read.seek(at)
            part = await asyncio.to_thread(read.read, self._part)
        if not part:
            raise TargetFailed("media", "The file became shorter while it was uploaded.")
        async with asyncio.timeout(_SLOW * self._seconds):
            await file.write(part, at)
        return at + len(part)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[SFTPClient]:
        """Connect, and check that the directory exists."""
        with _translate_faults():
            async with await self._connect() as connection:
                async with asyncio.timeout(self._seconds):
                    sftp = await connection.start_sftp_client()
                    if not await sftp.isdir(self._directory):
                        raise TargetFailed(
                            "destination", "The path is not a directory on the SFTP server: create it, or correct path."
                        )
                yield sftp

    async def _connect(self) -> asyncssh.SSHClientConnection:
        host, port = published_names.text(self._config, "host"), published_names.port(self._config, 22)
        expected = _HostKey(published_names.text(self._config, "hostKey"))
        authority = f"[{host}]" if ":" in host else host
        with translate_client_faults():
            socket = await self._client.socket(authority, port=port)
        try:
            return await asyncssh.connect(
                host,
                port,
                sock=socket,
                config=None,
                username=published_names.text(self._config, "username"),
                password=published_names.text(self._config, "password"),
                client_keys=None,
                agent_path=None,
                known_hosts=expected.known_hosts,
                client_factory=lambda: _Client(expected),
                preferred_auth="password,keyboard-interactive",
                encryption_algs=_CIPHERS,
                compression_algs=None,
                login_timeout=min(_LOGIN_SECONDS, self._seconds),
                keepalive_interval=_LOGIN_SECONDS,
            )
        except asyncssh.HostKeyNotVerifiable:
            raise TargetFailed("destination", expected.mismatch()) from None
        finally:
            if expected.refused:
                socket.close()

    @property
    def _directory(self) -> str:
        path = published_names.text(self._config, "path")
        if ".." in path.split("/") or not path.isprintable():
            raise TargetFailed("destination", "The path may contain neither '..' nor unprintable characters.")
        return path

    def _path(self, name: str) -> str:
        return posixpath.join(self._directory, name)

    def _details(self, name: str, source: UploadSource) -> Details:
        return {"link": self._path(name), "size": source.size, "sha256": source.sha256}


class _HostKey:
    """The host key in the configuration of the destination."""

    def __init__(self, given: str) -> None:
        self.key: SSHKey | None = None
        self.fingerprint = given.strip()
        self.presented: SSHKey | None = None
        if not self.fingerprint.startswith(("SHA256:", "MD5:")):
            self.key = _public_key(self.fingerprint)
            self.fingerprint = self.key.get_fingerprint()

    @property
    def known_hosts(self) -> tuple[list[SSHKey], list[SSHKey], list[SSHKey]]:
        """The key in the form of the library, which then requests a key of the same kind from the server."""
        return ([self.key] if self.key is not None else [], [], [])

    @property
    def refused(self) -> bool:
        return self.presented is not None and not self.matches(self.presented)

    def matches(self, key: SSHKey) -> bool:
        self.presented = key
        return any(key.get_fingerprint(name) == self.fingerprint for name in ("sha256", "md5"))

    def mismatch(self) -> str:
        other = "another host key" if self.presented is None else f"the host key {self.presented.get_fingerprint()}"
        return (
            f"The SFTP server presents {other} instead of the configured hostKey, so nothing was sent. Ask its operator for the "
            "right key: if the key is new, set it together with the password; if not, another server answers there."
        )


class _Client(asyncssh.SSHClient):
    """Compares the host key if only its fingerprint is configured."""

    def __init__(self, expected: _HostKey) -> None:
        self._expected = expected

    def validate_host_public_key(self, host: str, addr: str, port: int, key: SSHKey) -> bool:
        return self._expected.matches(key)


def _public_key(text: str) -> SSHKey:
    """Parse a key as in a file of public keys, or as in known_hosts with names before it."""
    words = text.split()
    at = next((index for index, word in enumerate(words) if word.startswith(("ssh-", "ecdsa-", "sk-"))), 0)
    try:
        return asyncssh.import_public_key(" ".join(words[at : at + 2]))
    except (asyncssh.KeyImportError, ValueError):
        raise TargetFailed(
            "destination", "The hostKey is not valid: set a public key such as 'ssh-ed25519 AAAA…', or 'SHA256:…'."
        ) from None


def _offset(state: UploadState | None, source: UploadSource) -> int:
    match state:
        case {"at": int(at), "sha256": source.sha256} if 0 <= at <= source.size:
            return at
    return 0


async def _resume_offset(sftp: SFTPClient, partial: str, source: UploadSource, at: int) -> int:
    """Return the offset at which the upload continues. What exists already is read and compared, and must be the beginning of the
    file."""
    if not at or not await sftp.isfile(partial):
        return 0
    with source.path.open("rb") as file:
        expected = await asyncio.to_thread(_digest_of, file, at)
    if await _hash(sftp, partial, at) != expected:
        return 0
    await sftp.truncate(partial, at)
    return at


def _digest_of(file: Any, size: int) -> str:
    digest = hashlib.sha256()
    while size and (piece := file.read(min(size, PART))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


async def _hash(sftp: SFTPClient, path: str, size: int) -> str | None:
    """Return the hash of the first `size` bytes; None if the file is shorter."""
    if not await sftp.isfile(path):
        return None
    digest, at = hashlib.sha256(), 0
    async with sftp.open(path, "rb") as file:
        while at < size:
            async with asyncio.timeout(_SLOW * SECONDS):
                piece = await file.read(min(PART, size - at), at)
            if not piece:
                return None
            digest.update(cast("bytes", piece))
            at += len(piece)
    return digest.hexdigest()


async def _rename(sftp: SFTPClient, path: str, to: str) -> None:
    """Rename a file, replacing an existing one. Servers without this extension remove the existing file first."""
    try:
        await sftp.posix_rename(path, to)
    except asyncssh.sftp.SFTPOpUnsupported:
        await _remove(sftp, to)
        await sftp.rename(path, to)


async def _remove(sftp: SFTPClient, path: str) -> None:
    with suppress(asyncssh.sftp.SFTPNoSuchFile):
        await sftp.remove(path)


@contextmanager
def _translate_faults() -> Iterator[None]:
    """Translate faults to `TargetFailed`. Texts of the server are not included, because they may contain anything."""
    try:
        yield
    except asyncssh.PermissionDenied:
        raise TargetFailed("destination", "The SFTP server refuses the login: check username and password.") from None
    except asyncssh.KeyExchangeFailed:
        raise TargetFailed(
            "destination", "No host key or cipher could be agreed with the SFTP server: check the kind of hostKey."
        ) from None
    except _FULL:
        raise TargetFailed("destination", "The SFTP server has no space left: make room there.") from None
    except asyncssh.sftp.SFTPPermissionDenied:
        raise TargetFailed(
            "destination", "The user may not write to the directory on the SFTP server: grant the permission."
        ) from None
    except asyncssh.sftp.SFTPNoSuchFile:
        raise TargetFailed("retry", "A file disappeared from the SFTP server while it was written.") from None
    except asyncssh.sftp.SFTPError as fault:
        raise TargetFailed("retry", f"The SFTP server fails ({type(fault).__name__}); it may have no space left.") from None
    except TimeoutError:
        raise TargetFailed("retry", "The SFTP server does not answer in time.") from None
    except (asyncssh.Error, OSError, EOFError) as fault:
        raise TargetFailed("retry", f"The connection to the SFTP server is lost ({type(fault).__name__}).") from None
