"""The Dockerfile and the Compose file: everything that they copy, name and start exists."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any, Final

import yaml

from api.cli.main import COMMANDS
from api.wiring.settings import Settings
from tests.support.waiting import ROOT

DOCKERFILE: Final = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
OURS: Final = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "medialedger"}


def test_all_that_the_wheel_is_made_of_is_copied_into_the_build() -> None:
    copied = {name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()}
    for name in copied:
        assert (ROOT / name).exists(), name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    target = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*target["packages"], project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml", "console"}
    assert needed <= copied
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    assert {name.split("/")[0] for name in copied} == sent, "what the engine is sent is what is copied"


def test_compose_starts_commands_that_exist_with_settings_that_exist() -> None:
    assert set(OURS) == {"migrate", "api", "workers"}
    names = {f"MEDIALEDGER_{name.upper()}" for name in Settings.model_fields}
    for name, service in OURS.items():
        assert service["command"][0] in COMMANDS
        assert set(service["environment"]) <= names
        assert service["read_only"] is True
        assert ("MEDIALEDGER_OWNER_DATABASE_URL" in service["environment"]) == (name == "migrate")


def test_no_password_is_in_the_compose_file() -> None:
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    for name in ("POSTGRES_PASSWORD", "OWNER_PASSWORD", "PRODUCT_PASSWORD"):
        assert set(re.findall(rf"\${{{name}([^}}]*)}}", text)) == {":?set it"}, name


def test_compose_mounts_files_that_exist_and_depends_on_what_is_started_with_it() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        for source in (volume.split(":")[0] for volume in service.get("volumes", [])):
            assert (ROOT / "deploy" / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], source
        for needed in service.get("depends_on", []):
            assert set(services[needed].get("profiles", [])) <= set(service.get("profiles", [])), f"{name} without {needed}"
    assert os.access(ROOT / "deploy" / "postgres" / "roles.sh", os.X_OK)
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines(), "it has the passwords"


def test_the_image_listens_outside_its_loopback() -> None:
    assert "MEDIALEDGER_HOST=0.0.0.0" in DOCKERFILE
