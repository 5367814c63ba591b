-- Walks through documents that lead to each other: graphs of any kind, with circles.
SELECT collection_create('employees') \g /dev/null
INSERT INTO employees (doc) VALUES ('{_id: 1, name: "Dev"}'), ('{_id: 2, name: "Eliot", reportsTo: "Dev"}'), ('{_id: 3, name: "Ron", reportsTo: "Eliot"}'),
  ('{_id: 4, name: "Andrew", reportsTo: "Eliot"}'), ('{_id: 5, name: "Asya", reportsTo: "Ron"}'), ('{_id: 6, name: "Dan", reportsTo: "Andrew"}');

-- upwards: the chain of managers of Asya
SELECT depth, node, path, doc FROM graph_lookup('employees', 'Ron', connect_from => 'reportsTo', connect_to => 'name');
-- downwards: everybody below Eliot, with the depth in the documents; at most one level more
SELECT key, doc FROM graph_lookup('employees', 'Eliot', connect_from => 'name', connect_to => 'reportsTo', depth_field => 'below') ORDER BY key;
SELECT key, doc ->> 'name' AS name FROM graph_lookup('employees', 'Eliot', connect_from => 'name', connect_to => 'reportsTo', max_depth => 0) ORDER BY key;

-- airports, whose connections are arrays, in both directions: every airport once, by the fewest flights
CREATE TABLE airports (code text PRIMARY KEY, doc bson);
INSERT INTO airports SELECT doc ->> 'airport', doc FROM (VALUES ('{airport: "JFK", connects: ["BOS", "ORD"]}'::bson), ('{airport: "BOS", connects: ["JFK", "PWM"]}'),
  ('{airport: "ORD", connects: ["JFK"]}'), ('{airport: "PWM", connects: ["BOS", "LHR"]}'), ('{airport: "LHR", connects: ["PWM"]}')) v (doc);
SELECT key, depth, path FROM graph_lookup('airports', 'JFK', connect_from => 'connects', connect_to => 'airport') ORDER BY depth, key;
SELECT key, depth FROM graph_lookup('airports', ARRAY['LHR', 'ORD'], connect_from => 'connects', connect_to => 'airport', max_depth => 1) ORDER BY depth, key;
SELECT step, node, doc FROM graph_shortest_path('airports', 'ORD', 'LHR', connect_from => 'connects', connect_to => 'airport');
-- without Boston there is no way
SELECT count(*) FROM graph_shortest_path('airports', 'ORD', 'LHR', 'connects', 'airport', restrict => '{airport: {$ne: "BOS"}}');

-- documents may be edges: followers of followers
CREATE TABLE followers (id int PRIMARY KEY, doc bson);
INSERT INTO followers VALUES (1, '{user: "bigbird", following: "elmo"}'), (2, '{user: "bigbird", following: "oscar"}'), (3, '{user: "elmo", following: "bigbird"}');
SELECT key, depth, path FROM graph_lookup('followers', 'oscar', connect_from => 'user', connect_to => 'following');
DROP TABLE employees, airports, followers;
