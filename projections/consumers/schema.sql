-- Consumers that several processes share: the processes (members), the shards with their owners, and the position of each shard; none
-- for a consumer that reads a table and not the log.
-- All times are those of the database. The epoch is increased with each change of owner, so a former owner cannot write any more.
CREATE TABLE consumer_members (
    consumer text        COLLATE "C" NOT NULL,
    member   uuid        NOT NULL,
    host     text        NOT NULL,
    busy     integer     NOT NULL DEFAULT 0,
    seen_at  timestamptz NOT NULL,
    failing_since timestamptz,
    fault    text,
    warning  text,
    PRIMARY KEY (consumer, member)
);

CREATE TABLE consumer_shards (
    consumer   text        COLLATE "C" NOT NULL,
    shard      smallint    NOT NULL,
    position   bigint,
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
    write_id  text        COLLATE "C" NOT NULL DEFAULT gen_random_uuid(),
    attempts  integer     NOT NULL DEFAULT 1,
    replay    boolean     NOT NULL DEFAULT false,
    requested_at timestamptz,
    parked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, position)
);
CREATE INDEX parked_replay ON parked_records (consumer, position) WHERE replay;

-- The epochs of the log after the first one: each begins where the log was restored, or lost its latest commits, and positions after
-- since_position were given out again. Never changed.
CREATE TABLE log_epochs (
    epoch          integer     PRIMARY KEY CHECK (epoch > 1),
    since_position bigint      NOT NULL CHECK (since_position >= 0),
    begun_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason         text        NOT NULL
);

CREATE TRIGGER log_epochs_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_epochs
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
