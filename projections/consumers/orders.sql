-- An order is a command that follows from an event of the log, until it is carried out. The consumer that found it inserts it together
-- with its checkpoint, under a key that the same event gives again. `target` is the stream of the aggregate that the command is for;
-- the orders of one target are carried out in the log's order. `attempts` is the fencing token: who began an attempt settles the order
-- only while no other began a later one. A retry is an order with a later due time.
CREATE TABLE orders (
    consumer       text        COLLATE "C" NOT NULL,
    position       bigint      NOT NULL,
    target         text        COLLATE "C" NOT NULL,
    body           text        NOT NULL,
    event_id       uuid        NOT NULL,
    correlation_id text        NOT NULL,
    attempts       integer     NOT NULL DEFAULT 0,
    due_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    error          text,
    PRIMARY KEY (consumer, target, position)
) WITH (fillfactor = 80);
CREATE INDEX orders_due ON orders (consumer, position);
