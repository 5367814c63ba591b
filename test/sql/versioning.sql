-- Document versioning: an insurer shows a policy as it was on any day.
SET timezone = 'UTC';
SET client_min_messages = warning;
\pset null '(nothing)'
SELECT collection_create('policies');
SELECT versioning_enable('policies', revision_field => 'revision', storage => 'delta', optimistic => true);

-- A document is stored as it comes: its first revision is 1. Each change adds one; an update that changes nothing adds none.
INSERT INTO policies (doc) VALUES ('{_id: 1, holder: "Ada", cover: 1000, riders: ["glass"]}');
SELECT clock_timestamp() AS spring \gset
UPDATE policies SET doc = bson_set(doc, 'cover', 2000);
UPDATE policies SET doc = bson_update(doc, '{$push: {riders: "theft"}}');
UPDATE policies SET doc = doc;
SELECT doc FROM policies;

-- All revisions, each valid from since up to, not including, until
SELECT key, revision, since < until AS lasted, operation, who = current_user AS mine, doc FROM policies_history ORDER BY key, revision;
SELECT count(*) AS gaps FROM policies_history a JOIN policies_history b ON b.key = a.key AND b.revision = a.revision + 1 WHERE a.until IS DISTINCT FROM b.since;

-- One revision, what changed between two, and where a field has its value from
SELECT versioning_at('policies', 1, 2);
SELECT * FROM versioning_diff('policies', 1, 1, 3);
SELECT revision, who = current_user AS mine, value FROM versioning_field_history('policies', 1, 'cover');

-- The table as it was
SELECT key, revision, doc FROM versioning_as_of('policies', :'spring');
SELECT key, revision, doc FROM versioning_as_of('policies', '2001-01-01');

-- A document that carries an old number has been changed since it was read. Without a number it counts as just inserted.
UPDATE policies SET doc = '{_id: 1, holder: "Bob", cover: 9, revision: 2}';
UPDATE policies SET doc = '{_id: 1, holder: "Ada", cover: 2500, revision: 3}';
UPDATE policies SET doc = '{_id: 1, holder: "Ada", cover: 3000}';
-- What is to be written whatever is there takes the number over.
UPDATE policies SET doc = '{_id: 1, holder: "Ada", cover: 3000}'::bson || bson_build('revision', doc -> 'revision');
SELECT doc FROM policies;

-- Upserts: what is EXCLUDED is what was written. Without a number it has read nothing, and is not checked.
INSERT INTO policies (doc) VALUES ('{_id: 1, holder: "Ada", cover: 3500}'), ('{_id: 2, holder: "Grace"}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO policies (doc) VALUES ('{_id: 1, holder: "Ada", cover: 4000, revision: 6}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO policies (doc) VALUES ('{_id: 1, holder: "Ada", cover: 4500, revision: 6}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT doc FROM policies ORDER BY _id;

-- An old revision is written again as a new one, also of a document that is gone
SELECT versioning_revert('policies', 1, 2);
DELETE FROM policies WHERE _id = 2;
SELECT versioning_at('policies', 2, 1), versioning_at('policies', 2, 2);
SELECT versioning_revert('policies', 2, 1);
SELECT doc FROM policies ORDER BY _id;
SELECT key, revision, operation, doc FROM policies_history WHERE key = 2 ORDER BY revision;

-- What must not be known any more is taken out of all revisions
SELECT versioning_redact('policies', 1, 'holder');
SELECT count(*) FILTER (WHERE doc ? 'holder') AS with_holder, count(*) FROM policies_history WHERE key = 1;
-- and what nobody needs is forgotten
SELECT versioning_purge('policies', now());
SELECT key, revision, operation, doc FROM policies_history ORDER BY key, revision;

SELECT * FROM pattern_check('policies');
SELECT rel, pattern, name, options FROM pattern_list('policies');
SELECT pattern_disable('policies');
DROP TABLE policies;
