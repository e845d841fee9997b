-- What is to be sent to whom, and what became of it. A delivery is one notification for one webhook; a lane is what keeps order: the
-- Event's id. `position` is that of the last domain event of the write that is told of.
CREATE TABLE deliveries (
    webhook     uuid        NOT NULL,
    position    bigint      NOT NULL,
    lane        text        COLLATE "C" NOT NULL,
    shard       smallint    NOT NULL,
    payload     text        NOT NULL,
    state       smallint    NOT NULL DEFAULT 0,   -- 0 pending, 1 delivered, 2 failed
    attempts    smallint    NOT NULL DEFAULT 0,   -- since it was made, or sent again by hand
    due_at      timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz,
    error       text,
    PRIMARY KEY (webhook, position, lane)
) WITH (fillfactor = 80);
CREATE INDEX deliveries_pending ON deliveries (position, webhook, lane) WHERE state = 0;
CREATE INDEX deliveries_pending_webhooks ON deliveries (webhook, position, lane) WHERE state = 0;
CREATE INDEX deliveries_pending_lanes ON deliveries (webhook, lane, position) WHERE state = 0;
CREATE INDEX deliveries_failed ON deliveries (webhook, position, lane) WHERE state = 2;
CREATE INDEX deliveries_finished_at ON deliveries USING brin (finished_at) WITH (autosummarize = on);

CREATE TABLE delivery_attempts (
    webhook    uuid        NOT NULL,
    position   bigint      NOT NULL,
    lane       text        COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    seconds    real        NOT NULL,
    status     smallint,               -- of the answer; null: there was none
    error      text,                   -- null: delivered
    address    text        NOT NULL DEFAULT '',
    response   text        NOT NULL DEFAULT ''    -- the head of the answer's body
);
CREATE INDEX delivery_attempts_of ON delivery_attempts (webhook, position);
CREATE INDEX delivery_attempts_started_at ON delivery_attempts USING brin (started_at) WITH (autosummarize = on);

-- What is remembered of an endpoint beyond a process: since when it has only failed.
CREATE TABLE delivery_endpoints (
    webhook       uuid        PRIMARY KEY,
    failing_since timestamptz,
    succeeded_at  timestamptz
);
