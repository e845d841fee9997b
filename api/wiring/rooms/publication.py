"""Publications: contents at destinations."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.publication.aggregate import Publication
from domain.publication.ports import PublicationLookup, PublishedContents, StreamingServers
from projections.publication.queries import PublicationQueries
from projections.publication.view import PUBLICATION_VIEW
from workers.ports.pushes import Pusher
from workers.ports.targets import OpenDestination
from workers.publication.contents import TargetContents
from workers.publication.served import ChannelServers, MakeStreamTargets

PUBLICATION = Room(
    name="publication",
    aggregates=(Publication,),
    views=(PUBLICATION_VIEW,),
    routes=(
        "api.media.publication.live:routes",
        "api.media.publication.media:routes",
        "api.media.publication.media:plural",
        "api.media.publication.vod:routes",
    ),
    services={
        MakeStreamTargets: "api.wiring.providers:stream_targets",
        OpenDestination: "workers.publication.trial:UploadOpening",
        PublicationLookup: PublicationQueries,
        PublishedContents: TargetContents,
        Pusher: "api.wiring.providers:pusher",
        StreamingServers: ChannelServers,
        "workers.session.pushes:LiveTargets": "workers.publication.live_follower:OpenedLiveTargets",
    },
    past_states=("api.media.publication.presenter:past_states",),
    owners={Publication.KIND: "domain.publication.handlers:command_of"},
    worker_roles=(WorkerRole("syndication", "workers.publication.role:syndication"),),
)
