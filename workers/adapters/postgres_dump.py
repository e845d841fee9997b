"""Dumps of a PostgreSQL database, with the programs of the wheel: `pg_dump`, `pg_restore` and `psql`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from workers.adapters.embedded_postgres.programs import MAJOR, error_line, program_directory

_CHUNK: Final = 1 << 20
_HEAD: Final = 40
"""The number of lines at the beginning of a script that set parameters of the session."""
_NEWER: Final = b"SET transaction_timeout"
"""A parameter that servers before 17 do not know."""
_OF_POSTGRESQL: Final = "pg_catalog"
_BEGIN: Final = b"BEGIN;\n"
_COMMIT: Final = b"COMMIT;\n"
"""The commit of the transaction. `psql --single-transaction` would commit at the end of its input, even if its writer was killed
halfway."""


class DumpError(Exception):
    """Raised when a program failed. The text is one line."""


def newest_server() -> int:
    """Return the newest major version that can be dumped."""
    return int(MAJOR)


@contextmanager
def dumping(conninfo: str, *, snapshot: str, without_rows: Sequence[str] = ()) -> Iterator[IO[bytes]]:
    """Yield the bytes of a dump of the snapshot. Raises `DumpError` when the program fails."""
    excluded = [f"--exclude-table-data={name}" for name in without_rows]
    arguments = [*_program("pg_dump", conninfo), "--format=custom", "--no-owner", f"--snapshot={snapshot}", *excluded]
    with TemporaryFile() as errors, _start(arguments, conninfo, stdout=subprocess.PIPE, stderr=errors) as dump:
        try:
            assert dump.stdout is not None
            yield dump.stdout
        except BaseException:
            dump.kill()
            raise
        _check(dump, errors)


def restore(source: IO[bytes], conninfo: str) -> None:
    """Create the tables of a dump with their rows: all of them, or nothing. Raises `DumpError`.

    The privileges on PostgreSQL's own functions stay those of the server: only a superuser may change them, and the embedded
    database has fewer of them than a new one.
    """
    arguments = [
        _path("pg_restore"),
        "--format=custom",
        "--no-owner",
        f"--exclude-schema={_OF_POSTGRESQL}",
        "--exit-on-error",
        "--file=-",
    ]
    once = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-", "--output=/dev/null"]
    pipe = subprocess.PIPE
    with TemporaryFile() as errors, TemporaryFile() as refusals:
        with (
            _start([*_program("psql", conninfo), *once], conninfo, stdin=pipe, stderr=refusals) as psql,
            _start(arguments, conninfo, stdin=pipe, stdout=pipe, stderr=errors) as reader,
        ):
            assert psql.stdin is not None
            assert reader.stdin is not None
            assert reader.stdout is not None
            feeding = Thread(target=_feed, args=(source, reader.stdin), daemon=True)
            feeding.start()
            try:
                psql.stdin.write(_BEGIN)
                _pass_script(reader.stdout, psql.stdin)
                if reader.wait() == 0:
                    psql.stdin.write(_COMMIT)
            except BrokenPipeError:
                reader.kill()  # psql has ended, and reports why
            finally:
                with suppress(BrokenPipeError):
                    psql.stdin.close()
                feeding.join()
        if psql.returncode > 0:
            _check(psql, refusals)
        _check(reader, errors)
        _check(psql, refusals)


def _feed(source: IO[bytes], drain: IO[bytes]) -> None:
    with suppress(BrokenPipeError, ValueError), drain:
        shutil.copyfileobj(source, drain, _CHUNK)


def _pass_script(script: IO[bytes], drain: IO[bytes]) -> None:
    for _ in range(_HEAD):
        line = script.readline()
        if not line.startswith(_NEWER):
            drain.write(line)
    shutil.copyfileobj(script, drain, _CHUNK)


def _check(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    if process.wait():
        errors.seek(0)
        name = Path(str(process.args[0])).name if isinstance(process.args, list) else "the program"
        raise DumpError(f"{name}: {error_line(errors.read().decode(errors='replace'))}")


def _path(name: str) -> str:
    return str(program_directory() / name)


def _program(name: str, conninfo: str) -> list[str]:
    """Return the command without the password, which would be visible to every user of the machine among the arguments."""
    parts = {key: value for key, value in conninfo_to_dict(conninfo).items() if key != "password"}
    return [_path(name), f"--dbname={make_conninfo('', **parts)}", "--no-password"]


def _start(arguments: Sequence[str], conninfo: str, **pipes: Any) -> subprocess.Popen[bytes]:
    password = conninfo_to_dict(conninfo).get("password")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **({"PGPASSWORD": str(password)} if password else {})}
    return subprocess.Popen(arguments, env=environment, **pipes)  # noqa: S603 - no shell
