# Part of the tour: persons whose documents change their shape while everybody goes on working. Sourced by run.sh.

title 'Vader and the new shape'
say "Persons had telephone numbers for fields, then came twitter and they got a list of ways to reach them. Two functions lead from one shape to the" \
  "other and back; they are declared once:"
show "SELECT collection_create('people')"
show "CREATE FUNCTION people_1_to_2(d bson) RETURNS bson IMMUTABLE
RETURN bson_set(d - 'home' - 'mobile', 'contact_method',
  bson_array(bson_build('home', d -> 'home'), bson_build('mobile', d -> 'mobile')))"
show "CREATE FUNCTION people_2_to_1(d bson) RETURNS bson IMMUTABLE
RETURN (d - 'contact_method') || (
  SELECT bson_merge_agg((u.doc -> 'contact_method')::bson - 'twitter')
  FROM bson_unwind(d, 'contact_method') AS u (doc))"
show "SELECT schema_versioning_enable('people', current => 2, write => 'accept')"
show "SELECT schema_versioning_step('people', 1, 2,
  up => 'people_1_to_2(bson)', down => 'people_2_to_1(bson)')"
ask "INSERT INTO people (doc) VALUES ('{_id: 1, name: \"Anakin\", home: \"503-555-0000\", mobile: \"503-555-0020\"}'), ('{_id: 2, name: \"Vader\", home: \"503-555-0100\", mobile: \"503-555-0120\"}'),
  ('{_id: 3, schema_version: 2, name: \"Anakin (retired)\", contact_method: [{mobile: \"503-555-0220\"}, {twitter: \"@anakin\"}]}')"
say "Documents of both shapes lie side by side, as they were written. Everybody reads them in the shape that he knows:"
show -t "SELECT doc FROM people_current WHERE _id = 2"
show -t "SELECT doc FROM people_v1 WHERE _id = 3"
say "An old application, which has never heard of twitter, writes a new document. Twitter stays:"
show -t "UPDATE people_v1 SET doc = bson_set(doc, 'mobile', '503-555-0299')
WHERE _id = 3"
show -t "SELECT doc FROM people WHERE _id = 3"
say "One index finds a number in documents of any shape:"
show "CREATE INDEX people_mobile ON people ((people_as_v1(doc) ->> 'mobile'))"
show "SELECT _id, doc ->> 'name' AS name, doc ->> 'schema_version' AS stored_as
FROM people WHERE people_as_v1(doc) ->> 'mobile' = '503-555-0299'"
say "Ten thousand more of the old shape. They are brought to the new one, a hundred at a time, and meanwhile an old application goes on changing numbers:"
ask "INSERT INTO people (doc) SELECT bson_build('_id', n, 'name', 'Trooper ' || n, 'home', n::text, 'mobile', '0') FROM generate_series(100, 10099) n"
ask "DO \$\$ BEGIN FOR i IN 1..400 LOOP
    BEGIN
      UPDATE people_v1 SET doc = bson_set(doc, 'mobile', '777') WHERE _id = 100 + i * 20;
    EXCEPTION WHEN serialization_failure THEN NULL;
    END;
    COMMIT;
  END LOOP; END \$\$" &
show "CALL schema_versioning_migrate('people', batch => 100)"
wait $!
show "SELECT * FROM schema_versioning_histogram('people')"
show "SELECT state, documents, passed_over FROM schema_versioning_progress
WHERE rel = 'people'::regclass"
[ "$(ask "SELECT count(*) FROM people_v1 WHERE doc ->> 'mobile' = '777'")" -gt 350 ] || { echo "writes were lost"; exit 1; }
say "The changes that the old application made meanwhile are there: $(ask "SELECT count(*) FROM people WHERE people_as_v1(doc) ->> 'mobile' = '777'") numbers. What nobody knows is refused, and the rest is true:"
show "INSERT INTO people (doc) VALUES ('{_id: 4, schema_version: 7}')" || :
all_true people persons
