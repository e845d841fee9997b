-- Which kinds of aggregate a view was built for. One that lacks a kind which the code knows is rebuilt at start-up: an older release
-- may have built it. NULL: built before this was written down.
ALTER TABLE views ADD COLUMN kinds text[];
