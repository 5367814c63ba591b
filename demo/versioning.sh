# Part of the tour: policies as they were on any day. Sourced by run.sh.

title 'History: a policy as it was on any day'
say "An insurer must show what a policy said when the hail came. It is declared once; every write is history from then on, whoever" \
  "writes and however."
show "SELECT collection_create('policies')"
show "SELECT versioning_enable('policies', revision_field => 'revision',
                         storage => 'delta', optimistic => true)"
show "INSERT INTO policies (doc) VALUES
  ('{_id: 1, holder: \"Ada Lovelace\", cover: 1000, riders: [\"glass\"]}'),
  ('{_id: 2, holder: \"Grace Hopper\", cover: 500}')"
hail=$(ask 'SELECT clock_timestamp()')
show "UPDATE policies SET doc = bson_update(doc,
  '{\$set: {cover: 2000}, \$push: {riders: \"hail\"}}') WHERE _id = 1"
show "DELETE FROM policies WHERE _id = 2"
say "Was hail covered when it came? The table as it was then, also what is gone since:"
show "SELECT key, revision, doc FROM versioning_as_of('policies',
  '$hail')"
say "Who changed what, when:"
show "SELECT key, revision, operation, who, until IS NULL AS current
FROM policies_history ORDER BY key, revision"
show "SELECT * FROM versioning_diff('policies', 1, 1, 2)"
say "A clerk had the form open since before, and saves it. The document carries the number that it was read with, and is refused:"
show "UPDATE policies SET doc = '{_id: 1, holder: \"Ada King\", cover: 1000, revision: 1}'
WHERE _id = 1" || :
say "What was cancelled by mistake comes back, as a new revision:"
show "SELECT versioning_revert('policies', 2, 1)"
say "A hundred changes of one field, each in a transaction of its own, and what they take beside as many whole documents:"
ask "INSERT INTO policies (doc) SELECT bson_build('_id', 3, 'cover', 0, 'terms', (SELECT string_agg(md5(i::text), ' ') FROM generate_series(1, 120) i))"
ask 'DO $$ BEGIN FOR i IN 1 .. 100 LOOP UPDATE policies SET doc = bson_set(doc, '"'cover'"', i) WHERE _id = 3; COMMIT; END LOOP; END $$' >/dev/null
show "SELECT count(*) AS revisions, sum(coalesce(length(delta), 0)
         + coalesce(bson_size(previous), 0)) AS bytes,
       100 * (SELECT bson_size(doc) FROM policies WHERE _id = 3) AS copies
FROM policies_revisions WHERE key = 3"
show "SELECT doc ->> 'cover' AS then FROM policies_history
WHERE key = 3 AND revision = 42"
show "SELECT * FROM pattern_check('policies')"
[ "$(ask "SELECT count(*) FROM pattern_check('policies')")" = 0 ] || { echo "pattern_check found violations"; exit 1; }
printf '  %s\n' "${green}$(ask 'SELECT count(*) FROM policies_history') revisions checked, 0 violations${plain}"
