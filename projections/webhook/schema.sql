-- A delivery is one notification for one webhook. Deliveries of a webhook with the same ordering key are sent one after the other; the
-- key is the id of an Event, or the stream of a job. `position` is that of the last domain event of the write. `source` is the fan-out
-- that inserted it. A fan-out inserts in log order, but each has a lag of its own: only within one source do new deliveries have later
-- positions than those that are there.
--
-- A delivery has one row: here while it is pending, then among the finished ones. The statement that deletes the one inserts the other.
CREATE TABLE pending_deliveries (
    webhook     uuid        NOT NULL,
    position    bigint      NOT NULL,
    ordering_key        text        COLLATE "C" NOT NULL,
    source      smallint    NOT NULL,             -- 0 notifications, 1 callbacks
    shard       smallint    NOT NULL,
    payload     text        NOT NULL,
    sealed_url  uuid,                             -- reference of the whole address in the vault; null: it is that of the endpoint
    attempts    smallint    NOT NULL DEFAULT 0,   -- since it was created or resent
    due_at      timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    error       text,
    PRIMARY KEY (webhook, position, ordering_key)
) WITH (fillfactor = 80);
CREATE INDEX pending_deliveries_of_shard ON pending_deliveries (source, shard, position, webhook, ordering_key);
CREATE INDEX pending_deliveries_ordering_keys ON pending_deliveries (webhook, ordering_key, position);

-- Days are dropped when they are old. `finished_at` is never before `created_at`, so whoever looks for a delivery need not look into
-- older days.
CREATE TABLE finished_deliveries (
    webhook     uuid        NOT NULL,
    position    bigint      NOT NULL,
    ordering_key        text        COLLATE "C" NOT NULL,
    source      smallint    NOT NULL,
    shard       smallint    NOT NULL,
    payload     text        NOT NULL,
    sealed_url  uuid,
    state       smallint    NOT NULL CHECK (state IN (1, 2)),   -- delivered, failed; read by the planner too
    attempts    smallint    NOT NULL,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL CHECK (finished_at >= created_at),
    error       text
) PARTITION BY RANGE (finished_at);
CREATE TABLE finished_deliveries_default PARTITION OF finished_deliveries DEFAULT;
CREATE INDEX finished_deliveries_of ON finished_deliveries (webhook, position, ordering_key);
CREATE INDEX finished_deliveries_failed ON finished_deliveries (webhook, position, ordering_key) WHERE state = 2;

CREATE VIEW deliveries AS
SELECT webhook, position, ordering_key, source, shard, payload, sealed_url, 0::smallint AS state, attempts, due_at, created_at,
    NULL::timestamptz AS finished_at, error FROM pending_deliveries
UNION ALL
SELECT webhook, position, ordering_key, source, shard, payload, sealed_url, state, attempts, finished_at AS due_at, created_at,
    finished_at, error FROM finished_deliveries;

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
) PARTITION BY RANGE (started_at);
CREATE TABLE delivery_attempts_default PARTITION OF delivery_attempts DEFAULT;
CREATE INDEX delivery_attempts_of ON delivery_attempts (webhook, position);

-- Health of an endpoint: since when all attempts have failed.
CREATE TABLE delivery_endpoints (
    webhook       uuid        PRIMARY KEY,
    failing_since timestamptz,
    succeeded_at  timestamptz
);
