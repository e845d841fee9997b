-- An erasure of causes and a part of the audit's index that is being inserted wait for each other by an advisory lock, which keeps no
-- autovacuum from the table. The statement after it sees what was inserted meanwhile. log_redact() is otherwise as it was.
CREATE OR REPLACE FUNCTION log_redact(batch appended_event[], root bytea, OUT last_position bigint, OUT ahead float8)
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
            PERFORM pg_advisory_xact_lock(x'6d6c206175646974'::bigint);  -- "ml audit"
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
