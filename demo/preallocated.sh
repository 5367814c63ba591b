# Part of the tour: a theatre whose seats fill while several sessions sell them. Sourced by run.sh.

# The screening as a picture: a dot is a free seat, h one that is held for some time, x one that is sold.
theatre() {
  echo
  ask "SELECT format('  %s  %s', substr(slot, 1, 1), string_agg(CASE WHEN holder IS NULL THEN '.' WHEN until IS NULL THEN 'x' ELSE 'h' END, ' ' ORDER BY substr(slot, 2)::int))
       FROM preallocated_slots('screenings', 1) GROUP BY substr(slot, 1, 1) ORDER BY 1"
  ask "SELECT format(E'\n     %s free', doc ->> 'free') FROM screenings_whole"
}

title 'A theatre'
say "A screening comes with its seats, row by row. Who sells one does not wait for who sells another, nobody sells a seat twice, and a basket that is" \
  "left standing gives its seats back by itself."
show "SELECT collection_create('screenings')"
show "SELECT preallocated_enable('screenings', field => 'seats',
  shape => preallocated_grid(rows => '{20,24,24,28,28}'),
  store => 'slots', available_field => 'free')"
show "INSERT INTO screenings (doc) VALUES ('{_id: 1, title: \"Avatar\"}')"
say "Ada takes two seats into her basket, Bob wants one of them and a third: all or nothing."
show "SELECT preallocated_claim('screenings', 1, '{C12,C13}',
  holder => 'ada', hold_for => '10 min')"
show "SELECT preallocated_claim('screenings', 1, '{C13,C14}', holder => 'bob')"
theatre
say "The box office opens: four sessions at once, each looks for two to five seats side by side and buys them, as long as there are any."
for cashier in 1 2 3 4; do
  ask "DO \$\$
    DECLARE
      seats text[];
      got int := 0;
      lost int := 0;
    BEGIN
      PERFORM setseed(0.$cashier);
      LOOP
        seats := preallocated_find('screenings', 1, 2 + (random() * 3)::int);
        EXIT WHEN seats IS NULL OR got = 7;
        IF preallocated_claim('screenings', 1, seats, holder => 'cashier $cashier') THEN got := got + 1; ELSE lost := lost + 1; END IF;
        COMMIT;
      END LOOP;
    END \$\$" &
done
wait
theatre
say "Ada pays. Every seat has one holder, and what is free is counted:"
show "SELECT preallocated_confirm('screenings', 1, '{C12,C13}', holder => 'ada')"
show "SELECT holder, count(*) AS seats FROM preallocated_slots('screenings', 1)
WHERE holder IS NOT NULL GROUP BY holder ORDER BY holder"
say "A program that writes the document as it likes is not let:"
show "UPDATE screenings_whole SET doc = bson_set(doc, 'seats.2.11', 'eve'::text)" || :
all_true screenings screening
