"""The product as processes, started as by a person or a supervisor, and ended after every test."""

from __future__ import annotations

import atexit
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic
from typing import Any

import httpx

from tests.support.forks import Forked
from tests.support.postgres_homes import made_once
from tests.support.waiting import ROOT, until
from workers.adapters.embedded_postgres import EmbeddedPostgres

FOLDER_OF_THE_RUN = "TESTS_FOLDER"
"""The environment variable that names the folder of a run of tests."""
READY = 120.0
END = 120.0


class Product:
    """A `medialedger` process, and its address once it is ready. It runs in one process unless its settings ask for several, since
    each costs processor time."""

    def __init__(
        self,
        command: str,
        home: Path,
        environment: Mapping[str, str],
        *,
        root: Path = ROOT,
        files: tuple[int, int] | None = None,
        forked: bool = True,
    ) -> None:
        """Start the process. `root` is its source tree. For a tree other than this one, and unless it is `forked`, it runs in a
        separate interpreter. `files`: see `Forked`."""
        self.home = home
        self.address = ""
        self._stderr = home.parent / f"{home.name}.{command.split()[0]}.{os.getpid()}.{monotonic()}.log"
        ours = ("MEDIALEDGER_",) if root == ROOT else ("MEDIALEDGER_", "PYTHONPYCACHEPREFIX")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        own = {"MEDIALEDGER_HOME": str(home), "MEDIALEDGER_PORT": "0", "MEDIALEDGER_PROCESSES": "1"}
        environment = {**inherited, "PYTHONPATH": str(root), **own, **environment}
        with self._stderr.open("wb") as stderr:
            if root == ROOT and forked:
                self.process: subprocess.Popen[str] = Forked(
                    "medialedger", *command.split(), environment=environment, stdout=subprocess.PIPE, stderr=stderr, files=files
                )
            else:
                program = [sys.executable, "-m", "api.cli.main", *command.split()]
                self.process = subprocess.Popen(
                    program, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
                )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    @property
    def errors(self) -> str:
        return self._stderr.read_text()

    def until_ready(self) -> Product:
        """Wait until it is ready. The ready screen is printed when the socket listens, so no polling is needed."""
        screen = self.until_printed("SIGTERM", seconds=READY)
        address = re.search(r"http://127\.0\.0\.1:\d+", screen)
        assert address is not None, screen
        self.address = address[0]
        return self

    def until_printed(self, text: str, *, seconds: float) -> str:
        """Return what it prints from now on, up to the line with this text."""
        screen, deadline = "", monotonic() + seconds
        while text not in screen:
            try:
                line = self._lines.get(timeout=max(deadline - monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(f"no {text!r} within {seconds} s\n{screen}{self.errors}") from None
            assert line is not None, f"ended before it printed {text!r}\n{screen}{self.errors}"
            screen += line
        return screen

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=END)

    def ended(self) -> int:
        """Wait until it ends without being asked, and return its exit code."""
        return self.process.wait(timeout=END)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=END)
        self._reader.join(timeout=END)
        if self.process.stdout is not None:
            self.process.stdout.close()

    @property
    def refuses(self) -> bool:
        """Return True if it accepts no more requests."""
        try:
            httpx.get(self.address + "/livez", timeout=60, verify=False)
        except httpx.TransportError:
            return True
        return False


class Products:
    """Starts products, and remembers them and their homes for the end of the test."""

    def __init__(self) -> None:
        self._started: list[Product] = []
        self._homes: set[Path] = set()

    def start(self, home: Path, command: str = "up", **settings: str) -> Product:
        """Start a product. `settings` are named without their prefix, in lower case: `database_url`."""
        return self.start_from(ROOT, home, command, **settings)

    def start_anew(self, home: Path, **settings: str) -> Product:
        """Start a product that shares no memory with the fork server of the tests."""
        environment = {f"MEDIALEDGER_{name.upper()}": value for name, value in settings.items()}
        return self._remember(Product("up", home, environment, forked=False))

    def start_with_files(self, home: Path, soft: int, hard: int) -> Product:
        """Start a product with these limits of open files."""
        return self._remember(Product("up", home, {}, files=(soft, hard)))

    def start_in(self, environment: Mapping[str, str], home: Path) -> Product:
        """Start a product with these environment variables, given by their full names."""
        return self._remember(Product("up", home, environment))

    def start_from(self, root: Path, home: Path, command: str, /, **settings: str) -> Product:
        """Start a product from another source tree."""
        environment = {f"MEDIALEDGER_{name.upper()}": value for name, value in settings.items()}
        return self._remember(Product(command, home, environment, root=root))

    def _remember(self, product: Product) -> Product:
        self._homes.add(product.home)
        self._started.append(product)
        return product

    def migrate(self, home: Path, **settings: str) -> None:
        """Migrate the database that `api` and `workers` start on."""
        assert self.start(home, "migrate", **settings).ended() == 0

    @property
    def running(self) -> Sequence[Product]:
        return [product for product in self._started if product.process.poll() is None]

    def close(self) -> None:
        try:
            for product in self._started:
                product.close()
        finally:
            for home in self._homes:
                EmbeddedPostgres(home).stop()


def migrated_home(home: Path) -> Path:
    """Return a new home, a copy of one that `migrate` has made, which takes a fraction of the time of a first start."""
    home.mkdir(mode=0o700)
    subprocess.run(["cp", "-a", f"{_migrated_home()}/.", str(home)], check=True)
    return home


@cache
def _migrated_home() -> Path:
    """Return the home for copies. All processes of a test run share it; another program, such as `faults`, makes its own."""
    if run := os.environ.get(FOLDER_OF_THE_RUN):
        return made_once(Path(run), "migrated-home", make=_migrate_below) / "home"
    folder = Path(mkdtemp(prefix="medialedger-migrated-"))
    folder.chmod(0o755)
    atexit.register(rmtree, folder, ignore_errors=True)
    _migrate_below(folder)
    return folder / "home"


def _migrate_below(folder: Path) -> None:
    with products() as started:
        started.migrate(folder / "home")


@contextmanager
def products() -> Iterator[Products]:
    started = Products()
    try:
        yield started
    finally:
        started.close()


def client(product: Product, key: str, **options: Any) -> httpx.Client:
    """Return a client without TLS, since reading the certificates of the system takes as long as some requests. It asks for plain
    bodies."""
    headers = {"API-KEY": key, "Accept-Encoding": "identity"}
    return httpx.Client(base_url=product.address, headers=headers, timeout=120, verify=False, **options)


def kill_postgres(home: Path) -> None:
    """Kill the whole database server."""
    postgres = EmbeddedPostgres(home)
    pid = int((postgres.data / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGKILL)
    until(lambda: not _works_in(pid, postgres.data))


def _works_in(pid: int, directory: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", directory)
    except OSError:
        return False
