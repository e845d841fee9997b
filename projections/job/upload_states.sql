-- What an upload of a publication needs to go on where it was cut off. `job` and `run` are those of the run that has it: a later run takes
-- it over, and what an earlier one still saves is refused.
CREATE TABLE publication_uploads (
    publication uuid        PRIMARY KEY,
    job         bigint      NOT NULL,
    run         integer     NOT NULL,
    state       jsonb,
    changed_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
