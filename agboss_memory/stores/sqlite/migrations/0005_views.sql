-- What a model call was shown, as JSON: ids, states, tokens and reasons, no text. Written only when it is asked for.
CREATE TABLE views (
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  tern_seq INTEGER NOT NULL,
  agent TEXT NOT NULL,
  call INTEGER NOT NULL,
  composition TEXT NOT NULL,
  PRIMARY KEY (thread_key, tern_seq, agent, call)
) WITHOUT ROWID;
