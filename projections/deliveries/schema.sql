-- A delivery is one notification for one webhook. Deliveries of a webhook with the same ordering key are sent one after the other; the
-- key is the id of an Event, or the stream of a job. `position` is that of the last domain event of the write. `source` is the fan-out
-- that inserted it. A fan-out inserts in log order, but each has a lag of its own: only within one source do new deliveries have later
-- positions than those that are there.
CREATE TABLE deliveries (
    webhook     uuid        NOT NULL,
    position    bigint      NOT NULL,
    ordering_key        text        COLLATE "C" NOT NULL,
    source      smallint    NOT NULL,             -- 0 notifications, 1 callbacks
    shard       smallint    NOT NULL,
    payload     text        NOT NULL,
    sealed_url  uuid,                             -- reference of the whole address in the vault; null: it is that of the endpoint
    state       smallint    NOT NULL DEFAULT 0,   -- 0 pending, 1 delivered, 2 failed
    attempts    smallint    NOT NULL DEFAULT 0,   -- since it was created or resent
    due_at      timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz,
    error       text,
    PRIMARY KEY (webhook, position, ordering_key)
) WITH (fillfactor = 80);
CREATE INDEX deliveries_pending ON deliveries (source, shard, position, webhook, ordering_key) WHERE state = 0;
CREATE INDEX deliveries_pending_webhooks ON deliveries (webhook, position, ordering_key) WHERE state = 0;
CREATE INDEX deliveries_pending_ordering_keys ON deliveries (webhook, ordering_key, position) WHERE state = 0;
CREATE INDEX deliveries_failed ON deliveries (webhook, position, ordering_key) WHERE state = 2;
CREATE INDEX deliveries_finished_at ON deliveries USING brin (finished_at) WITH (autosummarize = on);

CREATE TABLE delivery_attempts (
    webhook    uuid        NOT NULL,
    position   bigint      NOT NULL,
    ordering_key       text        COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    seconds    real        NOT NULL,
    status     smallint,               -- of the answer; null: no answer
    error      text,                   -- null: delivered
    address    text        NOT NULL DEFAULT '',
    response   text        NOT NULL DEFAULT ''    -- the head of the answer's body
);
CREATE INDEX delivery_attempts_of ON delivery_attempts (webhook, position);
CREATE INDEX delivery_attempts_started_at ON delivery_attempts USING brin (started_at) WITH (autosummarize = on);

-- Health of an endpoint: since when all attempts have failed.
CREATE TABLE delivery_endpoints (
    webhook       uuid        PRIMARY KEY,
    failing_since timestamptz,
    succeeded_at  timestamptz
);
