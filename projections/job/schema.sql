-- The job engine's own tables: who works on what at the moment, how far they are, and what steps have to say. None of it is a fact of
-- the log; without these tables nothing would be lost but what is under way. All times are the database's.

-- A sequence never gives a number twice, whatever becomes of the job that got it.
CREATE SEQUENCE job_numbers;

-- A process that runs tasks is alive until then. The tasks that it has started are its own so long: the view of tasks names it.
CREATE TABLE job_workers (
    worker text        PRIMARY KEY,
    until  timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE job_progress (
    job        bigint      NOT NULL,
    task       integer     NOT NULL,
    run        integer     NOT NULL,
    fraction   real        NOT NULL,   -- 0 to 1
    message    text        NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, task)
) WITH (fillfactor = 50);

-- What steps write to their job's log, and what became of callbacks. What the engine itself did is in the log of events. Days are
-- dropped when they are old.
CREATE SEQUENCE job_log_line_numbers;

CREATE TABLE job_log_lines (
    id         bigint      NOT NULL DEFAULT nextval('job_log_line_numbers'),
    job        bigint      NOT NULL,
    task       integer     NOT NULL,
    program    text,                   -- who wrote it; null: a step, or the scheduler where there is no task
    severity   smallint    NOT NULL,
    message    text        NOT NULL,
    created_at timestamptz NOT NULL
) PARTITION BY RANGE (created_at);
CREATE TABLE job_log_lines_default PARTITION OF job_log_lines DEFAULT;
CREATE INDEX job_log_lines_of ON job_log_lines (job, id);
