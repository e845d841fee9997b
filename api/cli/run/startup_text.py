"""The text that is printed when the product is ready: its addresses, its database, and how to stop it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from api.kernel.shell_access import announce
from api.kernel.version import product_version
from api.wiring.origin import base_url
from api.wiring.settings import Settings


def print_ready(settings: Settings, *, address: str, port: int, database: str, summary: Sequence[tuple[str, str]]) -> None:
    """Print the text, and announce the address to commands on this home. `address` is the IP address that the first socket is bound
    to."""
    url = None if settings.database_url is None else settings.database_url.get_secret_value()
    announce(settings.home, url=base_url(address, port=port), database=url)
    print_status(ready_text(settings, port=port, database=database, summary=summary))


def ready_text(settings: Settings, *, port: int, database: str, summary: Sequence[tuple[str, str]]) -> str:
    base = base_url(settings.host, port=port)
    lines = [
        ("media API", f"{base}/api"),
        ("audit", f"{base}/api/audit"),
        ("console", f"{base}/console/"),
        ("keys", f"{base}/CLIENT/speke"),
        ("docs", f"{base}/docs"),
        ("health", f"{base}/livez  {base}/readyz"),
        ("metrics", f"{base}/metrics"),
        ("database", database),
        ("data", str(settings.home)),
        *summary,
        ("stop", "Ctrl-C, or SIGTERM"),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join(
        [f"medialedger {product_version()} is ready", "", *(f"  {name:<{width}}  {value}" for name, value in lines), ""]
    )


def working_text(database: str, *, summary: Sequence[tuple[str, str]]) -> str:
    """Return the text for processes that serve no API."""
    shown = dict(summary)
    where = f" ({shown['processes']})" if "processes" in shown else ""
    metrics = f"; {shown['metrics']}" if "metrics" in shown else ""
    return f"medialedger {product_version()} runs {shown['workers']} on {database}{where}{metrics}; Ctrl-C or SIGTERM stops it"


def print_status(text: str) -> None:
    """Print to stdout. A closed terminal is no error."""
    with suppress(OSError):
        print(text, flush=True)
