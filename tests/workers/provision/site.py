"""A site with the real Terraform, with its built-in `terraform_data` and `local-exec`: no network is used. Each existing resource
is a file, so that all of them are counted from the outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from domain.provision.desired import Desired, Provided
from domain.provision.values import Deployment
from tests.support.engine import once
from workers.adapters.provisioners.terraform import TerraformLimits, TerraformProvisioner
from workers.adapters.provisioners.workdir import Workdir
from workers.ports.provisioners import Halt

A, B = {"name": "a", "type": "origin"}, {"name": "b", "type": "encoder"}

TEMPLATE = """
variable "resources" { type = any }
variable "infrastructure_key" { type = string }
variable "dir" { type = string }
variable "token" {
  type    = string
  default = ""
}
resource "terraform_data" "host" {
  for_each = { for r in var.resources : r.name => r }
  input    = { name = each.key, size = try(each.value.size, "small"), dir = var.dir, key = var.infrastructure_key }
  provisioner "local-exec" {
    command = "echo $$ > started-$N; while test -e hold-$N; do sleep 0.05; done; test ! -e fail-$N && touch up-$K-$N"
    environment = { N = each.key, K = var.infrastructure_key }
    working_dir = var.dir
  }
  provisioner "local-exec" {
    when    = destroy
    command = "while test -e hold-down-$N; do sleep 0.05; done; test ! -e fail-down-$N && rm -f up-$K-$N"
    environment = { N = self.input.name, K = self.input.key }
    working_dir = self.input.dir
  }
}
output "resources" {
  value = { for name, host in terraform_data.host : name => { ipAddress = "198.51.100.7", size = host.output.size } }
}
output "password" {
  value     = "not-shown"
  sensitive = true
}
"""


class Notes:
    def __init__(self) -> None:
        self.messages: list[str] = []

    async def info(self, message: str) -> None:
        self.messages.append(message)


class Site:
    """An operator's templates, and the existing resources."""

    def __init__(self, root: Path, terraform: str, *, key: str | None = None) -> None:
        self.root, self.there, self.templates = root, root / "there", root / "templates"
        if key is None:
            self.there.mkdir()
            (self.templates / "default").mkdir(parents=True)
            (self.templates / "default" / "main.tf").write_text(TEMPLATE)
        self.key = key or str(uuid4())
        self.notes = Notes()
        self.halt = Halt()
        self.provisioner = self.another(terraform)

    def another(self, terraform: str, *, work: Path | None = None, **limits: Any) -> TerraformProvisioner:
        """Return a site with the `work` directory of another machine."""
        root = work or self.root / "work"
        return TerraformProvisioner(Path(terraform), templates=self.templates, root=root, limits=TerraformLimits(**limits))

    @property
    def workdir(self) -> Workdir:
        return self.workdir_of(self.key)

    def workdir_of(self, key: str) -> Workdir:
        return Workdir(self.root / "work", key)

    def desired(
        self,
        *resources: dict[str, Any],
        allow_updates: bool = False,
        template: str = "default",
        made: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> Desired:
        return Desired(
            key=self.key,
            deployment=Deployment.TEMPLATE,
            template=template,
            settings={"TF_VAR_dir": str(self.there)} if settings is None else settings,
            resources=resources,
            allow_updates=allow_updates,
            work=(),
            refused=(),
            made=made,
        )

    async def provide(self, *resources: dict[str, Any], **options: Any) -> Provided:
        return await self.provisioner.provide(self.desired(*resources, **options), progress=self.notes, halt=self.halt)

    @property
    def up(self) -> list[str]:
        return self.up_of(self.key)

    def up_of(self, key: str) -> list[str]:
        return sorted(path.name.removeprefix(f"up-{key}-") for path in self.there.glob(f"up-{key}-*"))

    def apply_output(self, key: str) -> str:
        """Return the output of Terraform in the current apply."""
        return "".join(path.read_text() for path in self.workdir_of(key).path.glob(".apply.*.out"))

    def mark(self, name: str) -> Path:
        path = self.there / name
        path.touch()
        return path

    async def started(self, name: str) -> None:
        async def ask() -> bool:
            return (self.there / f"started-{name}").exists()

        await once(ask)


def names(provided: Provided) -> list[str]:
    return [resource["name"] for resource in provided.resources]
