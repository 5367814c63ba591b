-- The fan-out pattern: each new post is put on the walls of those who follow its author.

SET client_min_messages = warning;
SELECT collection_create('posts'), collection_create('followers'), collection_create('timelines');
SELECT fanout_enable('posts', walls => 'timelines', author => 'user', followers => 'followers', follower => 'user', followee => 'following', keep => 3, celebrity_threshold => 2);

-- Who follows somebody has a wall; a post lands on the walls of all followers, and the newest three stay there.
INSERT INTO followers (doc) VALUES ('{_id: 1, user: "oscar", following: "bigbird"}'), ('{_id: 2, user: "elmo", following: "bigbird"}'), ('{_id: 3, user: "elmo", following: "grover"}');
SELECT doc FROM timelines ORDER BY _id;
INSERT INTO posts (doc) SELECT bson_build('_id', i, 'user', CASE WHEN i % 2 = 0 THEN 'grover' ELSE 'bigbird' END, 'text', 'post ' || i) FROM generate_series(1, 7) i;
SELECT doc FROM timelines ORDER BY _id;

-- What is read are the posts as they are now. The text of a post can change without any wall being touched.
UPDATE posts SET doc = bson_set(doc, 'text', 'edited'::text) WHERE _id = 7;
SELECT * FROM fanout_timeline('posts', 'elmo', 2);
SELECT count(*) FROM fanout_timeline('posts', 'bigbird', 10);

-- A post that is deleted, or moves to another author, leaves; walls are filled up again.
DELETE FROM posts WHERE _id = 7;
UPDATE posts SET doc = bson_set(doc, 'user', 'ernie'::text) WHERE _id = 6;
SELECT doc FROM timelines ORDER BY _id;

-- To follow fills the wall with what there is, to unfollow takes it away. Who follows nobody has no wall.
INSERT INTO followers (doc) VALUES ('{_id: 4, user: "oscar", following: "ernie"}');
DELETE FROM followers WHERE _id = 2;
SELECT doc FROM timelines ORDER BY _id;
DELETE FROM followers WHERE _id IN (1, 4);
SELECT doc FROM timelines ORDER BY _id;

-- With the third follower grover is a celebrity: his posts go to nobody's wall, and are looked up when a timeline is read.
INSERT INTO followers (doc) VALUES ('{_id: 5, user: "oscar", following: "grover"}'), ('{_id: 6, user: "bert", following: "grover"}'), ('{_id: 7, user: "bert", following: "bigbird"}');
SELECT doc FROM timelines ORDER BY _id;
INSERT INTO posts (doc) VALUES ('{_id: 10, user: "grover"}');
SELECT * FROM fanout_timeline('posts', 'bert');
-- and back
DELETE FROM followers WHERE _id = 5;
SELECT doc FROM timelines ORDER BY _id;

-- Walls are nobody else's to write to.
UPDATE timelines SET doc = '{posts: [], merged: []}';
SELECT * FROM pattern_check();

-- The tables can be emptied.
TRUNCATE posts;
SELECT doc FROM timelines ORDER BY _id;
TRUNCATE followers;
SELECT doc FROM timelines ORDER BY _id;
SELECT * FROM pattern_check();

-- Tables that have rows already: walls are made by a build. Until then timelines are found without them.
SELECT pattern_disable('posts');
SELECT count(*) FROM timelines;
INSERT INTO followers (doc) VALUES ('{_id: 1, user: "oscar", following: "bigbird"}'), ('{_id: 2, user: "elmo", following: "bigbird"}');
INSERT INTO posts (doc) SELECT bson_build('_id', i, 'user', 'bigbird', 'ts', i % 3) FROM generate_series(1, 7) i;
SELECT fanout_enable('posts', walls => 'walls', author => 'user', followers => 'followers', follower => 'user', followee => 'following', keep => 4, order_by => '{ts: 1}');
SELECT key FROM fanout_timeline('posts', 'oscar');
CALL pattern_build('posts');
SELECT _id, jsonb_path_query_array(bson_to_json(doc)::jsonb, '$.posts[*]._id') FROM walls ORDER BY 1;
UPDATE posts SET doc = bson_set(doc, 'ts', -1) WHERE _id = 2;
SELECT key FROM fanout_timeline('posts', 'oscar');
SELECT * FROM pattern_check();
SELECT pattern_repair('posts');
SELECT pattern_disable('posts', keep_data => true);
SELECT count(*) FROM walls;
DROP TABLE posts, followers, timelines, walls;
