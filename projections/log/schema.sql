-- The log: facts in the order in which they were committed. Appended by log_append() only, never changed.

CREATE TABLE log_head (
    only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    position    bigint      NOT NULL DEFAULT 0,
    chain_hash        bytea       NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    recorded_at timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);

INSERT INTO log_head DEFAULT VALUES;

CREATE TABLE events (
    position           bigint      PRIMARY KEY,
    originator_id      text        COLLATE "C" NOT NULL,
    originator_version bigint      NOT NULL,
    topic              text        COLLATE "C" NOT NULL,
    event_id           uuid        NOT NULL,
    state              bytea       NOT NULL,
    metadata           json        NOT NULL,
    recorded_at        timestamptz NOT NULL,
    chain_hash               bytea       NOT NULL,
    CONSTRAINT events_version UNIQUE (originator_id, originator_version)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_freeze_min_age = 0);

CREATE INDEX events_recorded_at ON events USING brin (recorded_at) WITH (pages_per_range = 32, autosummarize = on);

CREATE FUNCTION log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();

-- Appends a batch: takes the head row, numbers the events, extends the chain, inserts, moves the head. One call, no client round
-- trip while the head row is held. chain hash = SHA-256(previous chain hash || leaf || position || time). Gives the position of the
-- batch's last event.
CREATE FUNCTION log_append(ids text[], versions bigint[], topics text[], event_ids uuid[], states bytea[], metadatas text[],
                           leaves bytea[], OUT last_position bigint, OUT recorded timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    base  bigint;
    last  bytea;
    stamp bytea;
    hashes bytea[] := '{}';
BEGIN
    SELECT h.position, h.chain_hash, greatest(clock_timestamp(), h.recorded_at) INTO base, last, recorded FROM log_head h FOR UPDATE;
    stamp := int8send((extract(epoch FROM recorded) * 1000000)::bigint);
    FOR i IN 1 .. cardinality(leaves) LOOP
        last := sha256(last || leaves[i] || int8send(base + i) || stamp);
        hashes := hashes || last;
    END LOOP;
    INSERT INTO events
    SELECT base + e.ordinal, e.id, e.version, e.topic, e.event_id, e.state, e.metadata::json, recorded, e.chain_hash
    FROM unnest(ids, versions, topics, event_ids, states, metadatas, hashes)
         WITH ORDINALITY AS e(id, version, topic, event_id, state, metadata, chain_hash, ordinal);
    last_position := base + cardinality(leaves);
    UPDATE log_head SET position = last_position, chain_hash = last, recorded_at = recorded;
END $$;

-- Values that only one stream may hold.
CREATE TABLE unique_claims (
    scope text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    CONSTRAINT unique_claims_taken PRIMARY KEY (scope, value)
);

-- Requests with an Idempotency-Key: what is needed to word the first response again. Written in the transaction of the events that
-- the request caused.
CREATE TABLE idempotency_keys (
    client      text        COLLATE "C" NOT NULL,
    key         text        COLLATE "C" NOT NULL,
    fingerprint bytea       NOT NULL,
    status      smallint    NOT NULL,
    base_url    text        NOT NULL,
    position    bigint      NOT NULL,
    streams     text[]      COLLATE "C" NOT NULL,
    result      jsonb       NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT idempotency_keys_used PRIMARY KEY (client, key)
);
CREATE INDEX idempotency_keys_recorded_at ON idempotency_keys USING brin (recorded_at);

-- The latest snapshot of a long stream. Only a short cut: the log alone is the truth.
CREATE TABLE snapshots (
    originator_id      text   COLLATE "C" PRIMARY KEY,
    originator_version bigint NOT NULL,
    state              bytea  NOT NULL
);
