-- AUTOINCREMENT: the key of a deleted thread is never given again, so that late writers find nothing.
CREATE TABLE threads (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow TEXT NOT NULL,
  id TEXT NOT NULL,
  owner TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  holder TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  running INTEGER NOT NULL,
  UNIQUE (workflow, id)
);
CREATE INDEX threads_by_workflow ON threads (workflow);
CREATE INDEX threads_by_owner ON threads (workflow, owner) WHERE owner IS NOT NULL;

CREATE TABLE configs (
  id INTEGER PRIMARY KEY,
  version TEXT NOT NULL,
  hash TEXT NOT NULL,
  UNIQUE (version, hash)
);

CREATE TABLE terns (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  status TEXT NOT NULL,
  memory_pending INTEGER NOT NULL,
  config_id INTEGER NOT NULL REFERENCES configs,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  tokens INTEGER,
  start TEXT NOT NULL,
  finish TEXT NOT NULL,
  agent TEXT NOT NULL,
  path TEXT NOT NULL,
  error TEXT NOT NULL,
  error_code TEXT NOT NULL,
  owner TEXT,
  idempotency_key TEXT,
  task TEXT NOT NULL,
  answer TEXT NOT NULL,
  output TEXT,
  metadata TEXT,
  PRIMARY KEY (thread_key, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX terns_by_idempotency_key ON terns (ifnull(owner, ''), idempotency_key)
  WHERE idempotency_key IS NOT NULL;

-- content NULL: the text is the Tern's own, text_ref says which: 1 = task, 2 = answer.
CREATE TABLE messages (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  agent TEXT NOT NULL,
  seq INTEGER NOT NULL,
  tern_seq INTEGER NOT NULL,
  place INTEGER NOT NULL,
  role TEXT NOT NULL,
  text_ref INTEGER NOT NULL,
  token_count INTEGER,
  compressed_token_count INTEGER,
  tokenizer TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  tool_call_id TEXT,
  tool_name TEXT,
  content TEXT,
  compressed_content TEXT,
  extra TEXT,
  PRIMARY KEY (thread_key, agent, seq)
) WITHOUT ROWID;
CREATE INDEX messages_by_tern ON messages (thread_key, tern_seq);

CREATE TABLE summaries (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  id INTEGER NOT NULL,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  from_seq INTEGER NOT NULL,
  to_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  superseded_by INTEGER,
  tern_seq INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  model TEXT NOT NULL,
  usd TEXT,
  prompt_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (thread_key, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX summaries_active ON summaries (thread_key, agent, kind, from_seq, to_seq) WHERE state = 'active';

CREATE TABLE blocks (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  last INTEGER NOT NULL,
  first INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (thread_key, last)
) WITHOUT ROWID;
CREATE INDEX blocks_unsettled ON blocks (thread_key) WHERE state IN ('open', 'due');

CREATE TABLE work (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  tern_seq INTEGER NOT NULL,
  strategy TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  PRIMARY KEY (thread_key, tern_seq, strategy)
) WITHOUT ROWID;

CREATE TABLE usage (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  tern_seq INTEGER NOT NULL,
  step_key TEXT NOT NULL,
  place INTEGER NOT NULL,
  caller TEXT NOT NULL,
  model TEXT NOT NULL,
  purpose TEXT NOT NULL,
  source TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  usd TEXT,
  PRIMARY KEY (thread_key, tern_seq, step_key)
) WITHOUT ROWID;

CREATE TABLE ledger (
  workflow TEXT NOT NULL,
  day TEXT NOT NULL,
  model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL,
  PRIMARY KEY (workflow, day)
) WITHOUT ROWID;
