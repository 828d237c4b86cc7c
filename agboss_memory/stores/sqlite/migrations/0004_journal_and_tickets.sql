-- stop: the Tern that was asked to end. resumes: how often the running Tern was taken over. traces: it has steps or was
-- booked for already, so that its end looks for them. imported: the last Tern that an import brought; what those cost is
-- in no ledger of this file.
ALTER TABLE threads ADD COLUMN stop INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN resumes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN traces INTEGER NOT NULL DEFAULT 1;
ALTER TABLE threads ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;

-- said: where the Tern's messages are, as a JSON list of agent, first number, last number, agent, ...
-- usage: what the final transaction booked, a JSON list of rows. Later bookings are rows of the table.
ALTER TABLE terns ADD COLUMN said TEXT;
ALTER TABLE terns ADD COLUMN usage TEXT;
UPDATE terns SET said = (
  SELECT '[' || group_concat(json_quote(agent) || ',' || low || ',' || high) || ']' FROM (
    SELECT agent, min(seq) AS low, max(seq) AS high FROM messages
    WHERE messages.thread_key = terns.thread_key AND messages.tern_seq = terns.seq GROUP BY agent
  )
);
DROP INDEX messages_by_tern;

CREATE TABLE steps (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  tern_seq INTEGER NOT NULL,
  step_key TEXT NOT NULL,
  place INTEGER NOT NULL,
  kind TEXT NOT NULL,
  input_hash TEXT NOT NULL,
  outcome TEXT NOT NULL,
  PRIMARY KEY (thread_key, tern_seq, step_key)
) WITHOUT ROWID;

-- By name: a ticket may wait for a thread whose first Tern is about to make it. AUTOINCREMENT: no id comes twice.
CREATE TABLE tickets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow TEXT NOT NULL,
  thread TEXT NOT NULL,
  holder TEXT NOT NULL,
  until INTEGER NOT NULL
);
CREATE INDEX tickets_by_thread ON tickets (workflow, thread);
