-- Which version of each view the tables hold. A view whose version differs from the code's is rebuilt at start-up.
CREATE TABLE views (
    name     text    PRIMARY KEY,
    version  integer NOT NULL,
    position bigint  NOT NULL,
    built_at timestamptz NOT NULL DEFAULT now()
);

-- What this database was sealed with: a fingerprint of the master key, never the key.
CREATE TABLE sealed_with (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    fingerprint text    NOT NULL
);
