-- The search index of Events: the hashed 3-grams of their texts; NULL for a text with very many. Filled by the consumer `search`.
CREATE TABLE event_search (
    id    uuid      PRIMARY KEY,
    grams integer[]
);
CREATE INDEX event_search_grams ON event_search USING gin (grams);
CREATE INDEX event_search_long ON event_search (id) WHERE grams IS NULL;
