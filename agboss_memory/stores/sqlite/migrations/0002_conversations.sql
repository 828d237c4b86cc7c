-- One row per agent's conversation: the newest number and the running sum of live text tokens. A message without a count
-- adds nothing to the sum and one to uncounted.
CREATE TABLE conversations (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  agent TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  live_tokens INTEGER NOT NULL,
  uncounted INTEGER NOT NULL,
  PRIMARY KEY (thread_key, agent)
) WITHOUT ROWID;

INSERT INTO conversations
SELECT thread_key, agent, max(seq), sum(coalesce(compressed_token_count, token_count, 0)), sum(token_count IS NULL)
FROM messages GROUP BY thread_key, agent;

CREATE INDEX summaries_live ON summaries (thread_key, agent, from_seq, to_seq) WHERE state = 'active' AND agent <> '';
