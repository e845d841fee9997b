-- Erasure of what events say. Their leaves stay computable, so every proof of the log stays valid.

-- Of an event whose content was erased, `state` is a fixed text (redacted_state) and state_hash its hidden hash; of one whose cause was
-- erased, `metadata` is a fixed text and metadata_hash its hidden hash. salt is then the derived salt of the part that stays, NULL
-- without one. …_redaction is the position of the event log.redacted that says so.
ALTER TABLE events
    ADD COLUMN metadata_hash      bytea,
    ADD COLUMN state_hash         bytea,
    ADD COLUMN metadata_redaction bigint,
    ADD COLUMN state_redaction    bigint,
    ALTER COLUMN salt DROP NOT NULL,
    DROP CONSTRAINT events_salt_check;

DO $$
DECLARE
    one regclass;
BEGIN
    FOR one IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'public.events'::regclass LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS events_salt_check', one);
    END LOOP;
END $$;

ALTER TABLE events ADD CONSTRAINT events_salt_check CHECK (octet_length(salt) IN (16, 32)) NOT VALID;

CREATE OR REPLACE VIEW stream_events AS
SELECT v.stream, v.version, e.* FROM stream_versions v JOIN events e ON e.position = v.position;

-- What stands in the place of erased content: nothing but the time that the log recorded.
CREATE FUNCTION redacted_state(recorded_at timestamptz) RETURNS bytea LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN convert_to('{"timestamp":"' || to_char(recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '","redacted":true}', 'UTF8');

-- Nobody changes the log but log_redact(), which sets this for itself.
CREATE OR REPLACE FUNCTION log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'events' AND current_setting('medialedger.redacts', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;

-- Erases parts of events before this position: their content (not of redactions), or their cause. What is erased already stays as it is.
CREATE FUNCTION log_erase(first bigint, last bigint, content boolean, cause boolean, redaction bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE events SET
        state_hash = CASE WHEN p.content THEN sha256(p.state_salt || e.state) ELSE e.state_hash END,
        state = CASE WHEN p.content THEN redacted_state(e.recorded_at) ELSE e.state END,
        state_redaction = CASE WHEN p.content THEN redaction ELSE e.state_redaction END,
        metadata_hash = CASE WHEN p.cause THEN sha256(p.metadata_salt || convert_to(e.metadata::text, 'UTF8')) ELSE e.metadata_hash END,
        metadata = CASE WHEN p.cause
            THEN '{"actor":"redacted","correlation_id":"redacted","command_id":"00000000-0000-0000-0000-000000000000"}'::json
            ELSE e.metadata END,
        metadata_redaction = CASE WHEN p.cause THEN redaction ELSE e.metadata_redaction END,
        salt = CASE
            WHEN (p.content OR e.state_hash IS NOT NULL) AND (p.cause OR e.metadata_hash IS NOT NULL) THEN NULL
            WHEN p.content THEN p.metadata_salt
            ELSE p.state_salt END
    FROM events e CROSS JOIN LATERAL (
        SELECT
            log_erase.content AND e.state_hash IS NULL AND e.topic <> 'log.redacted' AS content,
            log_erase.cause AND e.metadata_hash IS NULL AS cause,
            CASE WHEN e.metadata_hash IS NULL THEN sha256(e.salt || '\x02'::bytea) ELSE e.salt END AS state_salt,
            CASE WHEN e.state_hash IS NULL THEN sha256(e.salt || '\x01'::bytea) ELSE e.salt END AS metadata_salt
    ) AS p
    WHERE events.position = e.position AND e.position BETWEEN first AND least(last, redaction - 1) AND (p.content OR p.cause)
$$;

REVOKE ALL ON FUNCTION log_erase FROM PUBLIC;

-- The streams that lost content, with the version that says so: an older snapshot of them is not used any more.
CREATE TABLE redacted_streams (
    stream   text   COLLATE "C" PRIMARY KEY,
    version  bigint NOT NULL,
    position bigint NOT NULL
);
CREATE INDEX redacted_streams_position ON redacted_streams (position);

-- Appends a batch as log_append() does. Each of its events log.redacted names positions before it, and the parts of their events that go:
-- these are erased in the same statement, so nothing is erased that the log does not say.
CREATE FUNCTION log_redact(batch appended_event[], root bytea, OUT last_position bigint, OUT ahead float8)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    told record;
BEGIN
    SELECT a.last_position, a.ahead INTO STRICT last_position, ahead FROM log_append(batch, root) a;
    PERFORM set_config('medialedger.redacts', 'on', true);
    FOR told IN
        SELECT last_position - cardinality(batch) + e.ordinal AS position, convert_from(e.state, 'UTF8')::jsonb AS said
        FROM unnest(batch) WITH ORDINALITY AS e(stream, version, topic, event_id, state, metadata, salt, ordinal)
        WHERE e.topic = 'log.redacted' ORDER BY e.ordinal
    LOOP
        PERFORM log_erase((r.bounds ->> 0)::bigint, (r.bounds ->> 1)::bigint, told.said -> 'parts' ? 'content', told.said -> 'parts' ? 'cause',
                          told.position)
        FROM jsonb_array_elements(told.said -> 'positions') AS r(bounds);
        IF told.said -> 'parts' ? 'cause' THEN
            UPDATE audit_index a SET actor = 'redacted', end_user = NULL, transaction_id = 'redacted'
            FROM jsonb_array_elements(told.said -> 'positions') AS r(bounds)
            WHERE a.position BETWEEN (r.bounds ->> 0)::bigint AND (r.bounds ->> 1)::bigint;
        END IF;
    END LOOP;
    PERFORM set_config('medialedger.redacts', 'off', true);
    INSERT INTO redacted_streams
    SELECT e.stream, max(e.version), last_position
    FROM unnest(batch) AS e(stream, version, topic, event_id, state, metadata, salt)
    WHERE e.topic = split_part(e.stream, ':', 1) || '.redacted' AND e.topic <> 'log.redacted' GROUP BY e.stream
    ON CONFLICT (stream) DO UPDATE SET version = excluded.version, position = excluded.position;
END $$;

REVOKE ALL ON FUNCTION log_redact FROM PUBLIC;

-- Redactions that were asked for. They go through the log from `reached` to `through`, and then wait until what was made of the erased
-- events is gone. The selection may name a person: it is forgotten when all is done. An event says what was erased, and why.
CREATE TABLE redactions (
    id             uuid        PRIMARY KEY,
    reason         text        NOT NULL,
    parts          text[]      NOT NULL,
    selection      jsonb,
    requested_by   text        NOT NULL,
    correlation_id text        NOT NULL,
    through        bigint      NOT NULL,
    reached        bigint      NOT NULL DEFAULT 0,
    events         bigint      NOT NULL DEFAULT 0,
    streams        bigint      NOT NULL DEFAULT 0,
    kept           bigint      NOT NULL DEFAULT 0,
    requested_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at    timestamptz
);
CREATE INDEX redactions_unfinished ON redactions (requested_at) WHERE finished_at IS NULL;

-- Erases what was made of the content of the streams that lost some, up to the position that says so. Views are written by the appends,
-- and search follows them. As the owner: messages of the log store are not changed otherwise.
CREATE FUNCTION erase_traces(since bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    CREATE TEMPORARY TABLE told ON COMMIT DROP AS
        SELECT r.stream, r.version, r.position, split_part(r.stream, ':', 1) AS kind, split_part(r.stream, ':', 2) AS key
        FROM redacted_streams r WHERE r.position > since;
    CREATE TEMPORARY TABLE names ON COMMIT DROP AS
        SELECT t.stream AS name, t.position FROM pg_temp.told t UNION SELECT t.key, t.position FROM pg_temp.told t;
    ANALYZE pg_temp.told, pg_temp.names;
    DELETE FROM snapshots s USING pg_temp.told t WHERE s.originator_id = t.stream AND s.originator_version < t.version;
    DELETE FROM pending_deliveries d USING pg_temp.names n WHERE d.ordering_key = n.name AND d.position < n.position;
    UPDATE finished_deliveries d SET payload = '{"redacted":true}', error = NULL FROM pg_temp.names n
        WHERE d.ordering_key = n.name AND d.position < n.position;
    UPDATE delivery_attempts d SET response = '', address = '', error = CASE WHEN error IS NULL THEN NULL ELSE 'redacted' END
        FROM pg_temp.names n WHERE d.ordering_key = n.name AND d.position < n.position;
    UPDATE logbook l SET message = 'redacted', exception = '', stack_trace = '', call_site = '', tags = '{}' FROM pg_temp.names n
        WHERE l.subject = n.name;
    DELETE FROM job_log_lines l USING pg_temp.told t WHERE t.kind = 'job' AND l.job::text = t.key;
    DELETE FROM job_progress p USING pg_temp.told t WHERE t.kind = 'job' AND p.job::text = t.key;
    DELETE FROM job_task_view v USING pg_temp.told t WHERE t.kind = 'job' AND v.job::text = t.key AND v.version < t.version;
    DELETE FROM job_search s USING pg_temp.told t WHERE t.kind = 'job' AND s.id::text = t.key;
    DELETE FROM publication_uploads u USING pg_temp.told t WHERE t.kind = 'publication' AND u.publication::text = t.key;
    UPDATE parked_records p SET error = 'redacted' FROM pg_temp.told t WHERE p.stream = t.stream;
    UPDATE orders o SET error = 'redacted' FROM pg_temp.told t WHERE o.target = t.stream AND o.error IS NOT NULL;
    UPDATE sessions s SET reason = '' FROM pg_temp.names n WHERE s.key = n.name AND s.changed_at < now() - interval '1 minute';
END $$;

REVOKE ALL ON FUNCTION erase_traces FROM PUBLIC;
