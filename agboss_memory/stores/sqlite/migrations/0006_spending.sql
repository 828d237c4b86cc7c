-- What a thread has cost, in billionths of a US dollar, and how many of its calls have no known cost. In the thread's own
-- row, which every Tern writes anyway.
ALTER TABLE threads ADD COLUMN nano_usd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;

-- What was booked here, without what imports brought; it stays when threads are deleted. owner: '' for nobody, else
-- '=' and who it is.
CREATE TABLE spending (
  workflow TEXT NOT NULL,
  day TEXT NOT NULL,
  owner TEXT NOT NULL,
  model TEXT NOT NULL,
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  nano_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  PRIMARY KEY (workflow, day, owner, model)
) WITHOUT ROWID;

CREATE TEMP TABLE booked_before AS
SELECT thread_key, seq AS tern, json_extract(one.value, '$[2]') AS model, json_extract(one.value, '$[5]') AS sent,
  json_extract(one.value, '$[6]') AS received, json_extract(one.value, '$[9]') AS usd
FROM terns, json_each(iif(json_valid(terns.usage), terns.usage, '[]')) AS one
UNION ALL SELECT thread_key, tern_seq, model, input_tokens, output_tokens, usd FROM usage;

INSERT INTO spending
SELECT workflow, date(coalesce(started_at, created_at) / 1000000, 'unixepoch'), ifnull('=' || threads.owner, ''), model, count(*),
  sum(ifnull(sent, 0)), sum(ifnull(received, 0)), sum(ifnull(CAST(round(usd * 1e9) AS INTEGER), 0)), sum(usd IS NULL)
FROM booked_before
JOIN threads ON threads.key = booked_before.thread_key
LEFT JOIN terns ON terns.thread_key = booked_before.thread_key AND terns.seq = booked_before.tern
WHERE model IS NOT NULL AND (tern > imported OR (tern = 0 AND imported = 0)) -- NULL: what cannot be read
GROUP BY 1, 2, 3, 4;

UPDATE threads SET nano_usd = before.nano, unpriced = before.unknown
FROM (
  SELECT thread_key, sum(ifnull(CAST(round(usd * 1e9) AS INTEGER), 0)) AS nano, sum(usd IS NULL) AS unknown
  FROM booked_before GROUP BY thread_key
) AS before
WHERE before.thread_key = threads.key;

DROP TABLE booked_before;
