/*
 * accumulate.c
 *		Exact sums, states of groups and sketches: right ones come back, damaged
 *		ones are refused or read.
 *
 *		accumulate ITERATIONS SEED [FIRST]
 *
 * Each iteration checks that
 *	1. an exact sum of integers and doubles is the one that integers of 128 bits
 *	   give, after numbers were added and taken out, merged and packed;
 *	2. a group's state and a packed group are read back as they were written;
 *	3. a sketch does not depend on the order of the values, and comes back;
 *	4. when bytes of these are damaged, reading them gives something or raises an
 *	   error of corrupt data.
 *
 * The sanitizers that it is built with end it at the first fault.
 */
#include "shim.h"

#include <math.h>

#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "bson/distinct.h"
#include "mql/expression_node.h"
#include "mql/accumulate_node.h"

static uint64 seed;
static uint64 iteration;
static uint64 state;

static struct
{
	uint64 sums;
	uint64 states;
	uint64 damaged;
	uint64 refused;
} counts;

static void fail(const char *what) pg_attribute_noreturn();

/* Says what went wrong, and ends the program. */
static void
fail(const char *what)
{
	printf("FAILED: %s\nseed %llu, iteration %llu\nlast error: %s (%s)\n", what,
		   (unsigned long long) seed, (unsigned long long) iteration, fuzz_message, fuzz_detail);
	exit(1);
}

/* A random number (splitmix64). */
static uint64
draw(void)
{
	uint64 z = (state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* One below n. */
static int
below(int n)
{
	return (int) (draw() % (uint64) n);
}

/* A damaged copy of bytes; *len may become less. */
static uint8 *
damage(const uint8 *bytes, uint32 *len)
{
	uint8 *copy;

	if (below(4) == 0)
		*len = below(*len + 1);
	copy = malloc(Max(*len, 1));
	memcpy(copy, bytes, *len);
	for (int i = below(4); i >= 0 && *len > 0; i--)
		copy[below(*len)] ^= 1 << below(8);
	if (below(8) == 0 && *len > 0)
		copy[below(*len)] = (uint8) draw();
	counts.damaged++;
	return copy;
}

/* After an error: it must be one of corrupt data. */
static void
expect_corrupted(void)
{
	if (fuzz_sqlstate != ERRCODE_DATA_CORRUPTED)
		fail("an error that is not of corrupt data");
	counts.refused++;
}

/* ---------------------------------------------------------------- values */

static uint8 value_room[64][24];
static int nvalues;

/* A random value in static memory: numbers and some others. */
static DpValue
random_value(bool numbers)
{
	uint8 *room = value_room[nvalues++ % 64];
	DpValue v = { room, 0, DP_TYPE_NULL };

	switch (below(numbers ? 4 : 6))
	{
		case 0:
			v.type = DP_TYPE_INT32;
			v.len = 4;
			dp_put_int32(room, (int32) draw() >> below(31));
			break;
		case 1:
			v.type = DP_TYPE_INT64;
			v.len = 8;
			dp_put_int64(room, (int64) draw() >> below(63));
			break;
		case 2:
			v.type = DP_TYPE_DOUBLE;
			v.len = 8;
			dp_put_int64(room, (int64) draw()); /* any exponent, NaN among them */
			break;
		case 3:
			v.type = DP_TYPE_DECIMAL128;
			v.len = DP_DECIMAL128_SIZE;
			dp_put_int64(room, (int64) draw() >> below(63));
			dp_put_int64(room + 8, below(2)
									   ? INT64CONST(0x3040000000000000) - ((int64) below(4) << 49)
									   : (int64) draw());
			break;
		case 4:
			v.type = DP_TYPE_BOOL;
			v.len = 1;
			room[0] = below(2);
			break;
		default:
			break;
	}
	return v;
}

/* ---------------------------------------------------------------- sums */

/* An integer of 128 bits times 2^-e, rounded to a double, half to even, by hand. */
static double
reference_double(__int128 sum, int e)
{
	bool negative = sum < 0;
	unsigned __int128 m = negative ? -(unsigned __int128) sum : (unsigned __int128) sum;
	int drop = 0;
	double d;

	while ((m >> drop) >= ((unsigned __int128) 1 << 53))
		drop++;
	if (drop > 0)
	{
		unsigned __int128 rest = m & (((unsigned __int128) 1 << drop) - 1);
		unsigned __int128 half = (unsigned __int128) 1 << (drop - 1);

		m >>= drop;
		if (rest > half || (rest == half && (m & 1) != 0))
			m++;
	}
	d = ldexp((double) m, drop - e);
	return negative && d != 0 ? -d : d;
}

/* Numbers come and go; the sum must be that of integers. */
static void
try_sum(void)
{
	DpExactSum sum;
	DpExactSum other;
	DpExactSum read;
	StringInfoData packed;
	StringInfoData again;
	DpPacked p;
	__int128 total = 0;
	uint8 room[DP_SUM_RESULT_SIZE];
	DpValue result;
	int n = below(60);
	int doubles = 0;
	int e = below(1000);
	uint8 *bad;
	uint32 len;

	dp_exact_sum_init(&sum, NULL);
	dp_exact_sum_init(&other, NULL);
	dp_exact_sum_init(&read, NULL);
	for (int i = 0; i < n; i++)
	{
		int64 m = (int64) draw() >> (11 + below(52));
		int up = below(50);
		DpValue v = { room, 8, DP_TYPE_DOUBLE };
		DpValue gone = random_value(true);

		/* what comes and goes leaves nothing */
		(void) dp_exact_sum_add_value(&sum, &gone, 1);
		dp_put_double(room, ldexp((double) m, up - e));
		(void) dp_exact_sum_add_value(below(2) ? &sum : &other, &v, 1);
		(void) dp_exact_sum_add_value(&other, &gone, -1);
		total += (__int128) m << up;
		doubles++;
	}
	dp_exact_sum_add(&sum, &other);
	if (sum.n != doubles || sum.ndouble != doubles || sum.ndecimals != 0 || sum.high != 0 ||
		sum.low != 0)
		fail("a sum counts what went");
	if (doubles > 0)
	{
		dp_exact_sum_total(&sum, &result, room);
		if (dp_get_double(result.data) != reference_double(total, e))
			fail("a sum is wrong");
	}

	initStringInfo(&packed);
	initStringInfo(&again);
	dp_exact_sum_pack(&packed, &sum, true, true);
	p.next = (uint8 *) packed.data;
	p.end = p.next + packed.len;
	dp_exact_sum_unpack(&read, &p);
	if (p.next != p.end)
		fail("a packed sum is longer than what is read");
	dp_exact_sum_pack(&again, &read, true, true);
	if (again.len != packed.len || memcmp(again.data, packed.data, packed.len) != 0)
		fail("a packed sum does not come back");

	len = packed.len;
	bad = damage((uint8 *) packed.data, &len);
	if (FUZZ_TRY() == 0)
	{
		p.next = bad;
		p.end = bad + len;
		dp_exact_sum_unpack(&read, &p);
		if (read.ndecimal == 0)
			dp_exact_sum_total(&read, &result, room);
	}
	else
		expect_corrupted();
	free(bad);
	counts.sums++;
}

/* ---------------------------------------------------------------- groups */

static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

/* Accumulators of random slots, a field each. */
static DpAccumulators *
random_accumulators(void)
{
	bool known;
	DpAccumulators *acc = palloc0(sizeof(DpAccumulators));
	int n = 1 + below(6);

	acc->nfields = acc->nslots = n;
	acc->fields = palloc0(sizeof(DpField) * n);
	acc->slots = palloc0(sizeof(DpSlot) * n);
	acc->state = "_computed";
	acc->statelen = strlen(acc->state);
	acc->name = "x";
	acc->namelen = 1;
	acc->fingerprint = (uint32) draw();
	for (int i = 0; i < n; i++)
	{
		DpSlot *slot = &acc->slots[i];

		acc->fields[i].name = names[i];
		acc->fields[i].namelen = 1;
		(void) dp_names_add(&acc->names, names[i], 1, &known);
		acc->fields[i].slot = i;
		slot->kind = (DpSlotKind) below(5);
		slot->visible = i;
		slot->n = 1;
		slot->order = below(2) - 1;
		switch (slot->kind)
		{
			case DP_SLOT_ROWS:
				acc->fields[i].show = DP_SHOW_ROWS;
				break;
			case DP_SLOT_SUM:
				acc->fields[i].show = below(2) ? DP_SHOW_TOTAL : DP_SHOW_AVERAGE;
				slot->count = acc->fields[i].show == DP_SHOW_AVERAGE;
				if (slot->count)
					slot->visible = -1;
				break;
			case DP_SLOT_DEVIATION:
				acc->fields[i].show = DP_SHOW_DEVIATION_POP;
				break;
			case DP_SLOT_MEDIAN:
				acc->fields[i].show = DP_SHOW_MEDIAN;
				break;
			case DP_SLOT_LIST:
				acc->fields[i].show = below(2)   ? DP_SHOW_FIRST
									  : below(2) ? DP_SHOW_LIST
												 : DP_SHOW_LIST_REVERSED;
				if (acc->fields[i].show != DP_SHOW_FIRST)
					slot->n = 1 + below(6);
				slot->by_value = below(2);
				slot->distinct = slot->by_value && acc->fields[i].show == DP_SHOW_LIST && below(2);
				slot->skip_null = slot->by_value && !slot->distinct;
				slot->descending = below(2);
				break;
			case DP_SLOT_SERIES: /* not in a state */
				break;
		}
		/* as the compiler sets them */
		slot->cap = slot->n + 8;
		slot->offset = acc->states_size;
		acc->states_size += MAXALIGN(sizeof(DpSlotState));
	}
	return acc;
}

/* Takes random rows into slots. */
static void
fill(DpAccumulation *g, DpSlotState *slots, int rows, bool only_in)
{
	for (int i = 0; i < g->acc->nslots; i++)
	{
		const DpSlot *slot = &g->acc->slots[i];
		DpSlotState *s = dp_state_of(g->acc, slots, i);

		for (int k = 0; k < rows; k++)
		{
			int sign = only_in || below(3) ? 1 : -1;
			DpValue v = random_value(slot->kind != DP_SLOT_LIST);
			char key[8];
			double d = (double) (int64) draw();
			DpNumbers *numbers = sign > 0 ? &s->median.in : &s->median.out;

			switch (slot->kind)
			{
				case DP_SLOT_ROWS:
					s->n += sign;
					break;
				case DP_SLOT_SUM:
					/* decimals are shown by the server */
					if (v.type != DP_TYPE_DECIMAL128)
						(void) dp_exact_sum_add_value(&s->sum, &v, sign);
					break;
				case DP_SLOT_DEVIATION:
					s->n += sign;
					dp_big_add_double(&s->deviation.total, d, sign);
					dp_big_add_double_square(&s->deviation.squares, d, sign);
					break;
				case DP_SLOT_MEDIAN:
					if (numbers->n == numbers->room)
					{
						numbers->room = numbers->room * 2 + 4;
						numbers->d = numbers->d
										 ? repalloc_huge(numbers->d, numbers->room * sizeof(double))
										 : palloc(numbers->room * sizeof(double));
					}
					numbers->d[numbers->n++] = d;
					break;
				case DP_SLOT_LIST:
				{
					DpCandidate c = { .key = "", .count = 1 };

					if (slot->skip_null && v.type == DP_TYPE_NULL)
						break;
					if (!slot->by_value)
					{
						dp_put_int64((uint8 *) key, (int64) draw());
						c.key = key;
						c.keylen = sizeof(key);
						c.prefix = slot->order < 0 ? sizeof(key) : below(9);
					}
					c.value = v;
					dp_list_add(g, slot, sign > 0 ? &s->in : &s->out, &c, slot->cap);
					break;
				}
				case DP_SLOT_SERIES:
					break;
			}
		}
	}
}

/* A packed group comes back, a damaged one is refused or read. */
static void
try_group(DpAccumulators *acc)
{
	DpAccumulation *g = dp_accumulation_make(acc);
	DpAccumulation *read = dp_accumulation_make(acc);
	StringInfoData packed;
	StringInfoData again;
	uint8 *bad;
	uint32 len;

	fill(g, g->delta, below(40), false);
	initStringInfo(&packed);
	initStringInfo(&again);
	dp_accumulation_pack(&packed, g);
	dp_accumulation_unpack(read, (uint8 *) packed.data, packed.len);
	dp_accumulation_pack(&again, read);
	if (again.len != packed.len || memcmp(again.data, packed.data, packed.len) != 0)
		fail("a packed group does not come back");
	dp_accumulation_add(read, g);

	len = packed.len;
	bad = damage((uint8 *) packed.data, &len);
	dp_accumulation_reset(read);
	if (FUZZ_TRY() == 0)
	{
		dp_accumulation_unpack(read, bad, len);
		(void) dp_accumulation_changes(read);
	}
	else
		expect_corrupted();
	free(bad);
}

/*
 * A target document with the state of a group is loaded as it was, a damaged one is refused or
 * read.
 */
static void
try_state(DpAccumulators *acc)
{
	static uint8 nothing[] = { 5, 0, 0, 0, 0 };
	DpValue empty = { nothing, 5, DP_TYPE_DOCUMENT };
	DpAccumulation *g = dp_accumulation_make(acc);
	DpAccumulation *read = dp_accumulation_make(acc);
	struct varlena *doc;
	struct varlena *again;
	DpValue v;
	uint8 *bad;
	uint32 len;

	/* a group that is whole, taken in as it is */
	if (dp_accumulation_load(g, &empty) != DP_ACCUMULATION_LOST)
		fail("a document without fields was loaded");
	fill(g, g->delta, below(30), true);
	doc = dp_accumulation_write(g, &empty);
	if (doc == NULL)
		fail("fields were not written");
	v = dp_value_of_document(doc);
	if (dp_accumulation_load(read, &v) != DP_ACCUMULATION_WHOLE)
		fail("what was written is not read");
	again = dp_accumulation_write(read, &v);
	if (again != NULL)
		fail("what was read is written differently");

	/* rows go and come on top of it */
	fill(read, read->delta, below(6), false);
	(void) dp_accumulation_load(read, &v);

	len = v.len;
	bad = damage(v.data, &len);
	if (len > 5)
	{
		DpValue damaged = { bad, len, DP_TYPE_DOCUMENT };

		dp_put_int32(bad, len);
		if (FUZZ_TRY() == 0)
			(void) dp_accumulation_load(read, &damaged);
		else
			expect_corrupted();
	}
	free(bad);
	counts.states++;
}

/* ---------------------------------------------------------------- sketches */

/* A sketch comes back and does not depend on the order; a damaged one is refused or read. */
static void
try_sketch(void)
{
	static DpDistinct a;
	static DpDistinct b;
	static DpDistinct c;
	StringInfoData packed;
	StringInfoData again;
	int n = below(900);
	uint64 first = draw();
	uint8 *bad;
	uint32 len;
	bool changed;

	dp_distinct_init(&a);
	dp_distinct_init(&b);
	dp_distinct_init(&c);
	for (int i = 0; i < n; i++)
	{
		dp_distinct_add(&a, (first + i) * UINT64CONST(0x9E3779B97F4A7C15));
		dp_distinct_add(i % 3 ? &b : &c, (first + n - 1 - i) * UINT64CONST(0x9E3779B97F4A7C15));
	}
	dp_distinct_merge(&b, &c);
	initStringInfo(&packed);
	initStringInfo(&again);
	dp_distinct_pack(&packed, &a);
	dp_distinct_pack(&again, &b);
	if (again.len != packed.len || memcmp(again.data, packed.data, packed.len) != 0)
		fail("a sketch depends on the order");
	if (packed.len > DP_DISTINCT_DENSE_SIZE)
		fail("a sketch is too long");
	dp_distinct_unpack(&c, (uint8 *) packed.data, packed.len);
	resetStringInfo(&again);
	dp_distinct_pack(&again, &c);
	if (again.len != packed.len || memcmp(again.data, packed.data, packed.len) != 0)
		fail("a packed sketch does not come back");

	len = packed.len;
	bad = damage((uint8 *) packed.data, &len);
	if (FUZZ_TRY() == 0)
	{
		dp_distinct_unpack(&c, bad, len);
		(void) dp_distinct_count(&c);
		(void) dp_distinct_add_packed(bad, len, draw(), &changed);
	}
	else
		expect_corrupted();
	free(bad);
}

/* ---------------------------------------------------------------- what nothing here calls */

#define NOT_CALLED(type, name, args)                                                               \
	type name args                                                                                 \
	{                                                                                              \
		fail(#name " was called");                                                                 \
	}

NOT_CALLED(bool, dp_expr_eval, (const DpExpr *e, DpExprState *s, DpValue *result))
NOT_CALLED(void, dp_expr_state_init, (DpExprState * s, const DpValue *root))
NOT_CALLED(void, dp_sort_key_append, (StringInfo out, const DpSortSpec *spec, const DpValue *doc))
NOT_CALLED(double, dp_number_to_double, (const DpValue *v))
NOT_CALLED(Datum, numeric_add, (PG_FUNCTION_ARGS))
NOT_CALLED(Datum, numeric_mul, (PG_FUNCTION_ARGS))
NOT_CALLED(Datum, numeric_uminus, (PG_FUNCTION_ARGS))
NOT_CALLED(bool, numeric_is_nan, (Numeric n))
NOT_CALLED(bool, numeric_is_inf, (Numeric n))
NOT_CALLED(char *, numeric_normalize, (Numeric n))
NOT_CALLED(struct varlena *, pg_detoast_datum, (struct varlena * datum))
NOT_CALLED(Datum, DirectFunctionCall2Coll, (PGFunction func, Oid collation, Datum arg1, Datum arg2))

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return palloc(size);
}

int
main(int argc, char **argv)
{
	uint64 n;
	uint64 first = 0;

	if (argc < 3)
	{
		fprintf(stderr, "usage: %s ITERATIONS SEED [FIRST]\n", argv[0]);
		return 2;
	}
	n = strtoull(argv[1], NULL, 10);
	seed = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		first = strtoull(argv[3], NULL, 10);
	for (iteration = first; iteration < first + n; iteration++)
	{
		DpAccumulators *acc;

		state =
			seed * UINT64CONST(0x9E3779B97F4A7C15) + iteration * UINT64CONST(0xD1B54A32D192ED03);
		try_sum();
		acc = random_accumulators();
		try_group(acc);
		try_state(acc);
		try_sketch();
		fuzz_reset_memory();
	}
	printf(
		"accumulators: %llu rounds, seed %llu: %llu sums, %llu states; of %llu damaged ones %llu were refused; no fault\n",
		(unsigned long long) n, (unsigned long long) seed, (unsigned long long) counts.sums,
		(unsigned long long) counts.states, (unsigned long long) counts.damaged,
		(unsigned long long) counts.refused);
	return 0;
}
