-- A session is work that runs until it is stopped, such as the encoders of a channel: one row for each kind and key, the present session
-- or the last one. `wish` names the order that it follows, `number` is the fence: it is drawn at every start, higher than all numbers of
-- the key before, and whoever has a lower one writes nothing to the row. Numbers begin at the seconds of the clock, so that those of a
-- restored or a new database are higher too than what a publishing point remembers. `shard` is that of the lease under which it runs.
CREATE TABLE sessions (
    kind          text        COLLATE "C" NOT NULL,
    key           text        COLLATE "C" NOT NULL,
    shard         integer     NOT NULL,
    owner         text        COLLATE "C" NOT NULL,
    wish          bigint      NOT NULL,
    number        bigint      NOT NULL,
    state         text        NOT NULL,
    host          text        NOT NULL,
    failures      integer     NOT NULL DEFAULT 0,
    restarts      integer     NOT NULL DEFAULT 0,
    reason        text        NOT NULL DEFAULT '',
    started_at    timestamptz NOT NULL,
    changed_at    timestamptz NOT NULL,
    statistics    jsonb,
    statistics_at timestamptz,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);
