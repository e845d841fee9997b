-- What may be linked to, and who links to what: kept by the append itself, so that nothing comes to point at what is gone and
-- nothing goes while somebody points at it, whoever is first. Both are folded from the log like claims.
CREATE TABLE link_targets (
    stream text COLLATE "C" PRIMARY KEY
);

CREATE TABLE links (
    owner  text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, target),
    CONSTRAINT links_target_exists FOREIGN KEY (target) REFERENCES link_targets
);
CREATE INDEX links_target ON links (target, owner);
