"""The actor of actions in a shell, as shown in the audit."""

from __future__ import annotations

import asyncio
import os
import pwd
from pathlib import Path

import pytest

from api.cli import shell
from api.cli.main import main
from api.wiring.core import Core

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.mark.parametrize(
    ("user", "environment", "actor"),
    [
        (os.geteuid(), {}, f"shell:{ME}"),
        (0, {}, "shell:root"),
        (0, {"SUDO_USER": "maria"}, "shell:maria"),
        (0, {"SUDO_USER": ""}, "shell:root"),
        (0, {"SUDO_USER": 'a b\n:"ü'}, "shell:a_b____"),
        (0, {"SUDO_USER": "x" * 500}, "shell:" + "x" * 64),
        (4_123_456, {}, "shell:4123456"),
        (4_123_456, {"SUDO_USER": "maria"}, "shell:4123456"),
    ],
)
def test_the_actor_is_the_user_and_for_root_the_one_who_called_sudo(user: int, environment: dict[str, str], actor: str) -> None:
    assert shell.actor(user, environment) == actor


async def test_no_client_can_be_called_as_a_user_of_a_shell(
    inner: Core, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "home"))
    assert await asyncio.to_thread(main, ["client", "add", "shell:root", "--role", "viewer"]) != 0


async def test_what_a_command_does_is_the_users_in_the_log(
    inner: Core, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SUDO_USER", raising=False)
    for line in ("client add ann --role viewer", "client rotate ann", "load-sample --events 3"):
        assert await asyncio.to_thread(main, line.split()) == 0
    causes = {metadata["actor"] for (metadata,) in await inner.database.rows("SELECT metadata::jsonb FROM events")}
    assert causes == {f"shell:{ME}"}
