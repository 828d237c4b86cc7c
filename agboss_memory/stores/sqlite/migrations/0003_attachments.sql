-- JSON list of [name, media type, bytes, id]; NULL = none. Those of a message are in its extra.
ALTER TABLE terns ADD COLUMN attachments TEXT;

-- Which thread names which content, so that the bytes go with the last thread that does.
CREATE TABLE files (
  id TEXT NOT NULL,
  thread_key INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  PRIMARY KEY (id, thread_key)
) WITHOUT ROWID;
CREATE INDEX files_by_thread ON files (thread_key);
