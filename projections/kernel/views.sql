-- Which version of each view the tables hold. A view whose version differs from the code's is rebuilt at start-up.
CREATE TABLE views (
    name     text    PRIMARY KEY,
    version  integer NOT NULL,
    position bigint  NOT NULL,
    built_at timestamptz NOT NULL DEFAULT now()
);
