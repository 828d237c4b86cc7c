-- remembering: the Tern whose memory work keeps the lease after its end, 0 = none. stalled: how often the running Tern was
-- taken over since its last new step.
ALTER TABLE threads ADD COLUMN remembering INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
