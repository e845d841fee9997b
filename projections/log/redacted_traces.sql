-- erase_traces() as before, but it leaves alone what is erased already: it runs again for as long as a redaction waits for consumers.
CREATE OR REPLACE FUNCTION erase_traces(since bigint) RETURNS void
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
        WHERE d.ordering_key = n.name AND d.position < n.position AND (d.payload <> '{"redacted":true}' OR d.error IS NOT NULL);
    UPDATE delivery_attempts d SET response = '', address = '', error = CASE WHEN error IS NULL THEN NULL ELSE 'redacted' END
        FROM pg_temp.names n WHERE d.ordering_key = n.name AND d.position < n.position
            AND (d.response <> '' OR d.address <> '' OR d.error <> 'redacted');
    UPDATE logbook l SET message = 'redacted', exception = '', stack_trace = '', call_site = '', tags = '{}' FROM pg_temp.names n
        WHERE l.subject = n.name
            AND (l.message, l.exception, l.stack_trace, l.call_site, l.tags) IS DISTINCT FROM ('redacted', '', '', '', '{}'::text[]);
    DELETE FROM job_log_lines l USING pg_temp.told t WHERE t.kind = 'job' AND l.job::text = t.key;
    DELETE FROM job_progress p USING pg_temp.told t WHERE t.kind = 'job' AND p.job::text = t.key;
    DELETE FROM job_task_view v USING pg_temp.told t WHERE t.kind = 'job' AND v.job::text = t.key AND v.version < t.version;
    DELETE FROM job_search s USING pg_temp.told t WHERE t.kind = 'job' AND s.id::text = t.key;
    DELETE FROM publication_uploads u USING pg_temp.told t WHERE t.kind = 'publication' AND u.publication::text = t.key;
    UPDATE parked_records p SET error = 'redacted' FROM pg_temp.told t WHERE p.stream = t.stream AND p.error <> 'redacted';
    UPDATE orders o SET error = 'redacted' FROM pg_temp.told t WHERE o.target = t.stream AND o.error <> 'redacted';
    UPDATE sessions s SET reason = '' FROM pg_temp.names n WHERE s.key = n.name AND s.reason <> ''
        AND s.changed_at < now() - interval '1 minute';
END $$;
