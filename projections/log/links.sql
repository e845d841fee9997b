-- What may be linked to, and who links to what: kept by the append itself, so that nothing comes to point at what is gone and
-- nothing goes while somebody points at it, whoever is first. Both are folded from the log like claims.
CREATE TABLE standing (
    stream text COLLATE "C" PRIMARY KEY
);

CREATE TABLE links (
    owner  text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, target),
    CONSTRAINT links_target_stands FOREIGN KEY (target) REFERENCES standing
);
CREATE INDEX links_target ON links (target, owner);

-- A log that is older than these tables has its records and links in its views. Of links only rooms and tags could be made.
DO $$
BEGIN
    IF to_regclass('record_view') IS NOT NULL THEN
        INSERT INTO standing SELECT kind || ':' || id FROM record_view WHERE NOT withdrawn;
    END IF;
    IF to_regclass('event_view') IS NOT NULL THEN
        INSERT INTO links
        SELECT 'event:' || e.id, l.target
        FROM event_view e
        CROSS JOIN LATERAL (
            SELECT 'room:' || e.room_id AS target WHERE e.room_id IS NOT NULL
            UNION SELECT 'tag:' || t FROM unnest(e.tag_ids) t
        ) l
        JOIN standing s ON s.stream = l.target
        WHERE NOT e.deleted;
    END IF;
END $$;
