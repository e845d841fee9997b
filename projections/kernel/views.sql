-- Which version of each view the tables hold. A view whose version or kinds of aggregate differ from the code's is rebuilt at start-up.
CREATE TABLE view_versions (
    name     text    PRIMARY KEY,
    version  integer NOT NULL,
    position bigint  NOT NULL,
    kinds    text[],
    built_at timestamptz NOT NULL DEFAULT now()
);
