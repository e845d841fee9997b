"""Settings of serving: the location of the data, the address of the API, and its accepted callers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from api.wiring import parsers
from api.wiring.parsers import Network, stripped, whole_number
from api.wiring.settings_checks import PREFIX

HOME = "./.medialedger"


class ServingSettings(BaseSettings):
    """The first settings of all commands that serve."""

    model_config = SettingsConfigDict(frozen=True, env_prefix=PREFIX, validate_default=False, hide_input_in_errors=True)

    home: Annotated[Path, stripped(parsers.path)] = Field(
        default_factory=lambda: parsers.path(HOME), description="data directory: embedded database, key files, media"
    )
    host: Annotated[str, stripped(parsers.host)] = Field("127.0.0.1", description="address that the API listens on")
    port: Annotated[int, stripped(whole_number(0, 65535))] = Field(
        8080, description="port that the API listens on; 0: any free port"
    )
    metrics_port: Annotated[int | None, stripped(whole_number(0, 65535))] = Field(
        None, description="port on which `workers` answers /metrics and /livez, on MEDIALEDGER_HOST; 0: any free port. Empty: none"
    )
    api_processes: Annotated[int, stripped(whole_number(1, 64))] = Field(
        1, description="processes of the API, which share the port; about one for each core"
    )
    worker_processes: Annotated[int, stripped(whole_number(0, 64))] = Field(
        0, description="processes of the workers; 0: `up` runs the workers in the processes of the API"
    )
    public_url: Annotated[str | None, stripped(parsers.public_url)] = Field(
        None,
        description="address by which callers reach the API, such as https://media.example: for links, and the only accepted "
        "host name. "
        "Empty: links have the host of the request, and every name is accepted; with a loopback MEDIALEDGER_HOST only localhost",
    )
    console_media_origins: Annotated[tuple[str, ...], NoDecode, stripped(parsers.media_origins)] = Field(
        (), description="other origins that players in the console may load from, such as https://cdn.example; comma-separated"
    )
    console_hours: Annotated[int, stripped(whole_number(1, 720))] = Field(12, description="how long a login to the console lasts")
    console_idle_minutes: Annotated[int, stripped(whole_number(2, 43_200))] = Field(
        60, description="minutes without a request after which the login ends"
    )
    connections: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        10_000, description="open connections of clients to a process of the API; further ones get 503"
    )
    connections_per_address: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        2_000,
        description="connections among these from one address; also requests under way that MEDIALEDGER_TRUSTED_PROXIES "
        "forward for it",
    )
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode, stripped(parsers.networks)] = Field(
        (), description="networks of the proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted, comma-separated"
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode, stripped(parsers.origins)] = Field(
        (), description="origins whose pages may call the API, such as https://app.example, comma-separated; *: all"
    )
