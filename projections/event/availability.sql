-- The timekeeper publishes and withdraws Events by their availability windows. In an installation that has Events already, times
-- before this update do nothing: a film that was kept private stays private. Without a row, all times count.
CREATE TABLE availability (since timestamptz NOT NULL);
INSERT INTO availability (since) SELECT now() WHERE EXISTS (SELECT FROM events);
