-- Which version of each view the tables hold, and of which kinds of aggregates.
CREATE TABLE view_versions (
    name     text    PRIMARY KEY,
    version  integer NOT NULL,
    position bigint  NOT NULL,
    kinds    text[]  NOT NULL,
    built_at timestamptz NOT NULL DEFAULT now()
);

-- Totals of lists. Triggers of a view write what each statement adds to its totals; a background task adds these rows up, so that
-- no append updates a row that another one updates. A view that is built again has new totals, under a generation of its own.
-- Appends write in the order of the log, so the rows after the position `through` are those that are not added up yet.
CREATE TABLE view_tally_changes (
    id         bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    generation uuid    NOT NULL,
    dimension  text    COLLATE "C" NOT NULL,
    deleted    boolean NOT NULL,
    day        date    NOT NULL,
    value      text    COLLATE "C" NOT NULL,
    change     bigint  NOT NULL
);

CREATE TABLE view_tallies (
    generation uuid    NOT NULL,
    dimension  text    COLLATE "C" NOT NULL,
    deleted    boolean NOT NULL,
    day        date    NOT NULL,
    value      text    COLLATE "C" NOT NULL,
    total      bigint  NOT NULL,
    PRIMARY KEY (generation, dimension, deleted, day, value)
);

CREATE TABLE view_tally_progress (
    generation uuid   PRIMARY KEY,
    through    bigint NOT NULL DEFAULT 0
);

-- The generation is the argument of the triggers: it belongs to the table, whatever its name is, and a dump keeps it.
-- None for a table that has another version of the view.
CREATE FUNCTION view_generation(view regclass, version integer) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT encode(substring(tgargs FROM 1 FOR 36), 'escape')::uuid FROM pg_trigger
    WHERE tgrelid = view AND tgname = ('tally_inserted_' || version)::name
$$;
