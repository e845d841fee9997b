-- Recordings at the built-in origin that had to make room before the Event that waited for them was captured.
CREATE TABLE lost_recordings (
    point   text        COLLATE "C" NOT NULL,
    session bigint      NOT NULL,
    lost_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (point, session)
);
