# Part of the tour: athletes of different sports in one collection, and what several systems know of one customer. Sourced by
# run.sh.

title 'Athletes'
say "A bowler and a tennis player have a name in common, and little more. They are documents of one collection, and each has the shape that its" \
  "sport asks for."
show "SELECT collection_create('athletes')"
show "SELECT polymorphic_enable('athletes', by => 'sport',
  common => '{required: [\"athlete_name\"], properties: {
                athlete_name: {bsonType: \"string\"}}}')"
show "SELECT polymorphic_variant('athletes', 'ten_pin_bowling', closed => true,
  schema => '{required: [\"career_earnings\"], properties: {
                \"300_games\": {bsonType: \"int\"},
                career_earnings: {bsonType: \"object\"}}}')"
show "SELECT polymorphic_variant('athletes', 'tennis',
  schema => '{required: [\"event\"], properties: {event: {
                bsonType: \"object\", properties: {
                  career_titles: {bsonType: \"int\"}}}}}')"
show "INSERT INTO athletes (doc) VALUES
  ('{sport: \"ten_pin_bowling\", athlete_name: \"Earl Anthony\",
     career_earnings: {value: NumberDecimal(\"1441061\"), currency: \"USD\"},
     \"300_games\": 25}'),
  ('{sport: \"tennis\", athlete_name: \"Martina Navratilova\",
     career_earnings: {value: NumberDecimal(\"216226089\"), currency: \"USD\"},
     event: {type: \"singles\", career_titles: 167}}')"
say "A tennis event in a bowler's document:"
show -t "INSERT INTO athletes (doc) VALUES ('{sport: \"ten_pin_bowling\",
  athlete_name: \"X\", career_earnings: {}, event: {career_titles: 1}}')" || :
say "All of them in one query, and each kind with columns of its own:"
show "SELECT sport, athlete_name FROM athletes_common"
show "SELECT athlete_name, \"event.career_titles\" FROM athletes_tennis"

say "Schemas need not be written by hand. What do the documents look like that are there?"
show -t "SELECT command FROM polymorphic_infer('athletes') LIMIT 2"

say "The other way round: the customer whom three systems know, in one document. Each system writes to its own table."
show "SELECT collection_create('crm'), collection_create('billing'),
       collection_create('support')"
show "SELECT polymorphic_merge('customers_360', merge_on => 'customer_id',
  sources => '{crm,billing,support}', arrays => '{support}',
  fields => '{crm: {name: 1}, billing: {balance: 1}, support: {subject: 1}}')"
show "INSERT INTO crm (doc) VALUES ('{customer_id: 7, name: \"Ada\"}')"
show "INSERT INTO billing (doc) VALUES ('{customer_id: 7, balance: 10}')"
show "INSERT INTO support (doc) VALUES ('{customer_id: 7, subject: \"printer\"}'),
  ('{customer_id: 7, subject: \"ink\"}')"
show "UPDATE billing SET doc = bson_set(doc, 'balance', 12)"
show -t "SELECT bson_unset(doc, '_id') FROM customers_360"
all_true athletes athletes
all_true customers_360 customer
