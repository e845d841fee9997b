-- Work that is shared among processes: who takes part, which shards of a consumer each one holds, and how far each shard has come.
-- All times are the database's own. An epoch grows with every change of owner, so that a former owner cannot write any more.
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

-- Records that a consumer could not take in, and those of the same aggregate behind them. They wait for a person.
CREATE TABLE parked (
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
CREATE INDEX parked_replay ON parked (consumer, position) WHERE replay;
