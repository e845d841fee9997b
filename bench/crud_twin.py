"""The application that a user would write instead of medialedger: FastAPI, SQLAlchemy 2 async, one table, one INSERT and commit per
request.

It has no history, conflicts, callers, idempotency or metrics, and fewer indexes than the Event view: every doubt favours the twin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID, uuid4

from fastapi import Depends, FastAPI
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from sqlalchemy import DateTime
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class _Base(DeclarativeBase):
    type_annotation_map = {datetime: DateTime(timezone=True)}  # noqa: RUF012 - SQLAlchemy's own convention


class EventRecord(_Base):
    """The fields of a media Event as columns."""

    __tablename__ = "twin_events"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    version: Mapped[int] = mapped_column(default=1)
    state: Mapped[int] = mapped_column(default=0)
    mp4_state: Mapped[int] = mapped_column(default=0)
    title: Mapped[str | None]
    ref_id: Mapped[str | None] = mapped_column(index=True)
    external_id: Mapped[str | None] = mapped_column(index=True)
    description: Mapped[str | None]
    thumbnail: Mapped[str | None]
    scheduled_start: Mapped[datetime | None] = mapped_column(index=True)
    scheduled_end: Mapped[datetime | None]
    scheduled_channel_start: Mapped[datetime | None]
    scheduled_channel_end: Mapped[datetime | None]
    published_start: Mapped[datetime | None]
    published_end: Mapped[datetime | None]
    instant_vod_start: Mapped[datetime | None]
    instant_vod_end: Mapped[datetime | None]
    archiver_start: Mapped[datetime | None]
    archiver_end: Mapped[datetime | None]
    auto_start: Mapped[bool] = mapped_column(default=False)
    auto_end: Mapped[bool] = mapped_column(default=False)
    auto_publish: Mapped[bool] = mapped_column(default=False)
    auto_start_publications: Mapped[bool] = mapped_column(default=False)
    room_id: Mapped[UUID | None] = mapped_column(index=True)
    event_type_id: Mapped[UUID | None]
    channel_id: Mapped[UUID | None]
    flow_id: Mapped[UUID | None]
    drm_json: Mapped[str | None]
    vod_drm: Mapped[bool] = mapped_column(default=False)
    additional_streaming_options: Mapped[str | None]
    dvr_length: Mapped[int | None]
    max_bitrate: Mapped[int | None]
    min_bitrate: Mapped[int | None]
    task_engine_json: Mapped[str | None]
    date_created: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC))
    date_modified: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC))


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class NewEvent(_Model):
    """The body of a POST."""

    title: str | None = None
    ref_id: str | None = None
    external_id: str | None = None
    description: str | None = None
    thumbnail: str | None = None
    scheduled_start: datetime | None = None
    scheduled_end: datetime | None = None
    scheduled_channel_start: datetime | None = None
    scheduled_channel_end: datetime | None = None
    published_start: datetime | None = None
    published_end: datetime | None = None
    instant_vod_start: datetime | None = None
    instant_vod_end: datetime | None = None
    archiver_start: datetime | None = None
    archiver_end: datetime | None = None
    auto_start: bool = False
    auto_end: bool = False
    auto_publish: bool = False
    auto_start_publications: bool = False
    room_id: UUID | None = None
    event_type_id: UUID | None = None
    channel_id: UUID | None = None
    flow_id: UUID | None = None
    drm_json: str | None = None
    vod_drm: bool = False
    additional_streaming_options: str | None = None
    dvr_length: int | None = None
    max_bitrate: int | None = None
    min_bitrate: int | None = None
    task_engine_json: str | None = None


class Event(NewEvent):
    """The response to a POST."""

    id: UUID
    version: int
    state: int
    mp4_state: int
    date_created: datetime
    date_modified: datetime


def engine(url: str) -> AsyncEngine:
    """Return an engine with a connection for each client of the benchmark."""
    return create_async_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), pool_size=32, max_overflow=8)


async def create_table(url: str) -> None:
    made = engine(url)
    async with made.begin() as connection:
        await connection.run_sync(_Base.metadata.create_all)
    await made.dispose()


def application(url: str) -> FastAPI:
    made = engine(url)
    sessions = async_sessionmaker(made, expire_on_commit=False)

    async def session() -> AsyncIterator[AsyncSession]:
        async with sessions() as opened:
            yield opened

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await made.dispose()

    app = FastAPI(openapi_url=None, lifespan=lifespan)

    @app.post("/event", status_code=201, response_model=Event)
    async def add(body: NewEvent, opened: AsyncSession = Depends(session)) -> EventRecord:  # noqa: B008 - FastAPI's own way
        record = EventRecord(**body.model_dump())
        opened.add(record)
        await opened.commit()
        return record

    return app
