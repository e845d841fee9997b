-- The log store: messages of callers and of the service itself. They are not domain events, so not in the event log. Days
-- are dropped when they are old.
CREATE SEQUENCE logbook_numbers;

CREATE TABLE logbook (
    id           bigint      NOT NULL DEFAULT nextval('logbook_numbers'),
    recorded_at  timestamptz NOT NULL,
    level        smallint    NOT NULL,
    call_site    text        NOT NULL DEFAULT '',
    exception    text        NOT NULL DEFAULT '',
    logger       text        NOT NULL DEFAULT '',
    machine_name text        NOT NULL DEFAULT '',
    message      text        NOT NULL,
    stack_trace  text        NOT NULL DEFAULT '',
    thread       text        NOT NULL DEFAULT '',
    username     text        NOT NULL,
    subject      text        COLLATE "C",
    tags         text[]      NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE TABLE logbook_default PARTITION OF logbook DEFAULT;
CREATE INDEX logbook_level ON logbook (level, id);
CREATE INDEX logbook_subject ON logbook (subject, id) WHERE subject IS NOT NULL;
