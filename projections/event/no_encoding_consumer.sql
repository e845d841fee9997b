-- The append that starts an Event takes its channel, so no consumer follows the log for this any more.
DELETE FROM orders WHERE consumer = 'encoding';
DELETE FROM parked_records WHERE consumer = 'encoding';
DELETE FROM consumer_shards WHERE consumer = 'encoding';
DELETE FROM consumer_members WHERE consumer = 'encoding';
