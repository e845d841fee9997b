-- Consumers that several processes share: the processes (members), the shards with their owners, and the position of each shard.
-- All times are those of the database. The epoch is increased with each change of owner, so a former owner cannot write any more.
CREATE TABLE consumer_members (
    consumer text        COLLATE "C" NOT NULL,
    member   uuid        NOT NULL,
    host     text        NOT NULL,
    busy     integer     NOT NULL DEFAULT 0,
    seen_at  timestamptz NOT NULL,
    PRIMARY KEY (consumer, member)
);

CREATE TABLE consumer_shards (
    consumer   text        COLLATE "C" NOT NULL,
    shard      smallint    NOT NULL,
    position   bigint      NOT NULL DEFAULT 0,
    epoch      bigint      NOT NULL DEFAULT 0,
    owner      uuid,
    held_until timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (consumer, shard)
) WITH (fillfactor = 20);

-- Records that a consumer could not process, and later ones of the same aggregate. They stay until an operator requests a replay.
CREATE TABLE parked_records (
    consumer  text        COLLATE "C" NOT NULL,
    position  bigint      NOT NULL,
    stream    text        COLLATE "C" NOT NULL,
    topic     text        COLLATE "C" NOT NULL,
    error     text        NOT NULL,
    attempts  integer     NOT NULL DEFAULT 1,
    replay    boolean     NOT NULL DEFAULT false,
    parked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, position)
);
CREATE INDEX parked_replay ON parked_records (consumer, position) WHERE replay;
