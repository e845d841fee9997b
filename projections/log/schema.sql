-- The log: facts in the order in which they were committed. Appended by log_append() only, never changed.

-- Which log this is. Whoever appends locks this row first; it is never updated, so it has no old versions however long a snapshot
-- lives. FOR UPDATE needs the right to update the row, which the application's role does not have.
CREATE TABLE log_identity (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    log_id   uuid    NOT NULL DEFAULT gen_random_uuid()
);

INSERT INTO log_identity DEFAULT VALUES;

-- Partitioned by position. The partitions are in a schema of their own: rights that are granted on all tables do not reach them.
CREATE TABLE events (
    position           bigint      PRIMARY KEY,
    originator_id      text        COLLATE "C" NOT NULL,
    originator_version bigint      NOT NULL,
    topic              text        COLLATE "C" NOT NULL,
    event_id           uuid        NOT NULL,
    state              bytea       NOT NULL,
    metadata           json        NOT NULL,
    recorded_at        timestamptz NOT NULL,
    salt               bytea       NOT NULL CHECK (octet_length(salt) = 16)
) PARTITION BY RANGE (position);

CREATE INDEX events_recorded_at ON events USING brin (recorded_at) WITH (pages_per_range = 32, autosummarize = on);

CREATE SCHEMA event_partitions;

-- Which positions each partition is for: without holes, in the order of creation. The tables are event_partitions.events_<first_position>.
CREATE TABLE log_partitions (
    last_position  bigint PRIMARY KEY,
    first_position bigint NOT NULL CHECK (first_position BETWEEN 1 AND last_position)
);

-- The key of a stream in stream_versions: the first 16 bytes of the SHA-256 of its name. A third of the size of the name.
CREATE FUNCTION stream_key(stream text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN encode(substring(sha256(convert_to(stream, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid;

-- Where each version of each stream is. A version exists once in all partitions: the key is what expected versions are checked by. Rows
-- are inserted only, so a long snapshot costs the appends nothing.
CREATE TABLE stream_versions (
    stream   uuid   NOT NULL,
    version  bigint NOT NULL,
    position bigint NOT NULL,
    CONSTRAINT stream_versions_taken PRIMARY KEY (stream, version)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_freeze_min_age = 0);

-- The events of a stream: WHERE stream = stream_key(name).
CREATE VIEW stream_events AS
SELECT v.stream, v.version, e.* FROM stream_versions v JOIN events e ON e.position = v.position;

-- One row for each append: its events, the root of the Merkle tree over them, and the hash of all commits up to this one. The last row
-- is the head of the log. Commits are numbered from 1 without holes: in a Merkle tree over them, a commit is leaf number - 1.
CREATE TABLE commits (
    last_position  bigint      PRIMARY KEY,
    number         bigint      NOT NULL CHECK (number > 0),
    first_position bigint      NOT NULL CHECK (first_position BETWEEN 1 AND last_position),
    recorded_at    timestamptz NOT NULL,
    root           bytea       NOT NULL CHECK (octet_length(root) = 32),
    chain_hash     bytea       NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_freeze_min_age = 0);

-- Full partitions whose hashes were computed again. The commits of a partition are those that begin in it; `through` is the last event
-- and `last_commit` the number of the last of them, chain_hash is theirs. What a partition held can be proved by it when it is elsewhere.
CREATE TABLE log_seals (
    last_position bigint      PRIMARY KEY,
    through       bigint      NOT NULL CHECK (through >= last_position),
    last_commit   bigint      NOT NULL,
    chain_hash    bytea       NOT NULL CHECK (octet_length(chain_hash) = 32),
    sealed_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER stream_versions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON stream_versions
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER log_partitions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_partitions
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER commits_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON commits
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER log_seals_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_seals
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER log_identity_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_identity
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();

-- Makes partitions of this size until the log has room for this position. For the owner. Readers, and appends to the other partitions,
-- do not wait for it.
CREATE FUNCTION log_make_partitions(through bigint, size bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    last bigint;
    name text;
BEGIN
    LOCK TABLE public.log_partitions IN EXCLUSIVE MODE;
    SELECT coalesce(max(p.last_position), 0) INTO last FROM log_partitions p;
    WHILE last < through LOOP
        name := 'event_partitions.events_' || last + 1;
        EXECUTE format('CREATE TABLE %s (LIKE public.events INCLUDING ALL) WITH '
                       '(autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_freeze_min_age = 0)', name);
        EXECUTE format('CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s '
                       'FOR EACH STATEMENT EXECUTE FUNCTION public.log_is_append_only()', name);
        EXECUTE format('ALTER TABLE public.events ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', name, last + 1, last + size + 1);
        INSERT INTO log_partitions VALUES (last + size, last + 1);
        last := last + size;
    END LOOP;
END $$;

REVOKE ALL ON FUNCTION log_make_partitions FROM PUBLIC;

-- Makes partitions of this size, or of the size of the last one, until there is room for so many events. Called now and then, ahead of need.
-- Gives the positions that are free.
CREATE FUNCTION log_partitions_ahead(size bigint, needed bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    head bigint;
    last log_partitions;
BEGIN
    SELECT coalesce(max(c.last_position), 0) INTO head FROM commits c;
    SELECT * INTO last FROM log_partitions p ORDER BY p.last_position DESC LIMIT 1;
    size := coalesce(size, last.last_position - last.first_position + 1, 100000000);
    IF size < 1 OR needed > 1000 * size THEN
        RAISE EXCEPTION 'too many partitions' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF last IS NULL OR last.last_position < head + needed THEN
        PERFORM log_make_partitions(head + needed, size);
        SELECT * INTO STRICT last FROM log_partitions p ORDER BY p.last_position DESC LIMIT 1;
    END IF;
    RETURN last.last_position - head;
END $$;

REVOKE ALL ON FUNCTION log_partitions_ahead FROM PUBLIC;

-- An event of a batch: one element of an array, so that the writer packs it once.
CREATE TYPE appended_event AS (
    stream   text,
    version  bigint,
    topic    text,
    event_id uuid,
    state    bytea,
    metadata text,
    salt     bytea
);

-- Appends a batch: takes the lock of the log, numbers the events, inserts them and their commit. One call, no client round trip while
-- the lock is held. The last commit is read after the lock is taken: a volatile function takes a new snapshot for each of its
-- statements, while the statement that calls it keeps the snapshot from before its wait. Gives the position of the batch's last event,
-- and by how many seconds the recorded time, which never decreases, is ahead of the clock. Runs as its owner: the application's role may
-- call it, and may not write to the log in any other way.
--
-- Without partitions for all of the batch it fails with object_not_in_prerequisite_state; the caller makes one, and appends again. It
-- does not make one itself: other sessions could see its events before they are told that the table has one more partition. For the
-- same reason it waits for whoever is making one: the others are told before the locks are released.
CREATE FUNCTION log_append(batch appended_event[], root bytea, OUT last_position bigint, OUT ahead float8)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    log_id   uuid;
    last     commits;
    previous bytea;
    head     bigint := 0;
    count    bigint := cardinality(batch);
    now      timestamptz;
    recorded timestamptz;
BEGIN
    SELECT i.log_id INTO STRICT log_id FROM log_identity i FOR UPDATE;
    SELECT * INTO last FROM commits c ORDER BY c.last_position DESC LIMIT 1;
    IF FOUND THEN
        head := last.last_position;
        previous := last.chain_hash;
    ELSE
        previous := sha256(convert_to('medialedger log 1', 'UTF8') || uuid_send(log_id));
    END IF;
    now := clock_timestamp();
    recorded := greatest(now, last.recorded_at);
    ahead := extract(epoch FROM recorded - now);
    last_position := head + count;
    LOCK TABLE public.log_partitions IN ROW SHARE MODE;
    IF last_position > coalesce((SELECT max(p.last_position) FROM log_partitions p), 0) THEN
        RAISE EXCEPTION 'the log has no partition for position %', last_position USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    WITH inserted AS (
        INSERT INTO events
        SELECT head + e.ordinal, e.stream, e.version, e.topic, e.event_id, e.state, e.metadata::json, recorded, e.salt
        FROM unnest(batch) WITH ORDINALITY AS e(stream, version, topic, event_id, state, metadata, salt, ordinal)
        RETURNING originator_id, originator_version, position
    )
    INSERT INTO stream_versions SELECT stream_key(i.originator_id), i.originator_version, i.position FROM inserted i;
    INSERT INTO commits VALUES (last_position, coalesce(last.number, 0) + 1, head + 1, recorded, root, sha256('\x02'::bytea || previous || sha256(
        '\x00'::bytea || int8send(head + 1) || int8send(count) || int8send((extract(epoch FROM recorded) * 1000000)::bigint) || root)));
END $$;

REVOKE ALL ON FUNCTION log_append FROM PUBLIC;

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

-- The latest snapshot of a long stream, for each form: builds that know different events make different snapshots. Only a short cut:
-- the log alone is the truth.
CREATE TABLE snapshots (
    originator_id      text   COLLATE "C" NOT NULL,
    form               bytea  NOT NULL,
    originator_version bigint NOT NULL,
    state              bytea  NOT NULL,
    PRIMARY KEY (originator_id, form)
);
