-- Which version of each view the tables hold, and of which kinds of aggregates.
CREATE TABLE view_versions (
    name     text    PRIMARY KEY,
    version  integer NOT NULL,
    position bigint  NOT NULL,
    kinds    text[]  NOT NULL,
    built_at timestamptz NOT NULL DEFAULT now()
);
