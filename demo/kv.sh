# Part of the tour: hashes and a leaderboard in tables, as in a key-value store, and a board that follows documents. Sourced by
# run.sh; packages are loaded.

title 'A leaderboard filling live'
say "A space has hashes, sets and sorted sets with the commands that people know from elsewhere. They are in the transaction:"
ask 'DROP SCHEMA IF EXISTS game CASCADE' 2>/dev/null
show "SELECT kv_create('game')"
show "SELECT kv_hset('game', 'user:123', 'name', 'Peter', 'age', 30)"
show "SELECT kv_hgetall('game', 'user:123')"
say "Two clients play: thirty thousand players, ten points at a time. Who is in front while they do?"
board=build/demo.board.sql
printf '%s\n' '\set player random_gaussian(1, 30000, 3)' "SELECT kv_zincrby('game', 'board', 10, 'player ' || :player::int);" >"$board"
"$cluster" run pgbench -n -M prepared -c 2 -j 2 -T 2 -f - <"$board" >/dev/null 2>&1 &
playing=$!
for _ in 1 2; do
  sleep 0.7
  show "SELECT member::text, score, kv_zrevrank('game', 'board', member) AS rank,
       kv_zcard('game', 'board') AS players
FROM kv_zrevrange('game', 'board', 0, 2)"
done
wait $playing
rm -f "$board"
all_true game.keys keys

title 'A board of documents'
say "A board can follow a table: the largest packages, kept from the catalogue's documents in the transactions that write them."
show "SELECT kv_leaderboard('game', 'largest', 'packages',
  score_path => 'installed_size')"
show "SELECT member::text, score FROM kv_zrevrange('game', 'largest', 0, 2)"
first=$(ask "SELECT member::text FROM kv_zrevrange('game', 'largest', 0, 0)")
show "UPDATE packages SET doc = bson_set(doc, 'installed_size', 1)
WHERE _id = '$first'::text"
show "SELECT member::text, score FROM kv_zrevrange('game', 'largest', 0, 2)"
ask 'ANALYZE game.scores'
middle=$(ask "SELECT member::text FROM kv_zrange('game', 'largest', kv_zcard('game', 'largest') / 2, kv_zcard('game', 'largest') / 2)")
rank_count=$(time_of "SELECT count(*) FROM game.scores a JOIN game.scores b ON b.key = a.key AND (a.score, a.member) < (b.score, b.member) WHERE a.key = 'largest' AND b.member = '$middle'::text")
rank_time=$(time_of "SELECT kv_zrank('game', 'largest', '$middle')")
echo
printf '  %-34s %10s %10s\n' 'milliseconds' 'count(*)' kv_zrank 'the rank of one in the middle' "$rank_count" "$rank_time"
all_true packages packages
