-- The number of a record of a job's log: version * 2^20 for an event of the job. A line has a number above that of the event before it and
-- above that of the line before it, so that numbers count up in the order in which records were written. The caller has the locks of
-- the job's lines. A query of a volatile function sees what was committed while the caller waited for them.
CREATE FUNCTION last_number_in_job_log(of_job bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    of_event bigint := (
        SELECT version << 20 FROM stream_versions WHERE stream = stream_key('job:' || of_job) ORDER BY version DESC LIMIT 1
    );
    of_line bigint := (SELECT id FROM job_log_lines WHERE job = of_job ORDER BY id DESC LIMIT 1);
BEGIN
    RETURN greatest(of_event, of_line, 0);
END $$;
REVOKE ALL ON FUNCTION last_number_in_job_log FROM PUBLIC;

WITH placed AS (
    SELECT l.job, l.id, (
        SELECT max(s.version) FROM stream_events s
        WHERE s.stream = stream_key('job:' || l.job) AND s.recorded_at <= l.created_at
    ) AS version FROM job_log_lines l
), numbered AS (
    SELECT job, id, (coalesce(version, 0) << 20) + row_number() OVER (PARTITION BY job, version ORDER BY id) AS number FROM placed
)
UPDATE job_log_lines l SET id = n.number FROM numbered n WHERE n.job = l.job AND n.id = l.id;
