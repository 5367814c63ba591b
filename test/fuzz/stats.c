/*
 * stats.c
 *		Statistics about paths as pg_statistic has them: what was packed comes
 *		back, damaged bytes are refused or read.
 *
 *		stats ITERATIONS SEED [FIRST]
 *
 * Each iteration packs random statistics, whose most common values are those of
 * a random document, and checks that
 *	1. they are read, and packed again give the same bytes;
 *	2. the same bytes with damage, and documents with other values in the same
 *	   fields, are refused or give statistics that can be read from end to end
 *	   and packed again.
 *
 * The sanitizers that it is built with end it at the first fault.
 */
#include "shim.h"

#include "index/stats/stats.h"
#include "bson/validate.h"

#include "documents.h"

#define MAX_BYTES 65536
#define MAX_VALUES 200

static uint64 seed;
static uint64 iteration;
static uint64 damaged;
static uint64 refused;

static void fail(const char *what) pg_attribute_noreturn();

/* Says what went wrong, and ends the program. */
static void
fail(const char *what)
{
	printf("FAILED: %s\nseed %llu, iteration %llu\nlast error: %s (%s)\n", what,
		   (unsigned long long) seed, (unsigned long long) iteration, fuzz_message, fuzz_detail);
	exit(1);
}

/* A share, a number, or nothing. */
static float4
number(void)
{
	return fuzz_below(4) == 0 ? 0 : (float4) fuzz_below(1000000) / (fuzz_below(2) ? 1000000 : 7);
}

static const float4 *
numbers(int n)
{
	float4 *result = palloc(sizeof(float4) * Max(n, 1));

	for (int i = 0; i < n; i++)
		result[i] = number();
	return result;
}

/* The fields of a document that are no containers, which ANALYZE does not keep; they stay in it. */
static const DpValue *
values(int *n)
{
	DpBuilder *b = palloc(sizeof(DpBuilder));
	DpValue *result = palloc(sizeof(DpValue) * MAX_VALUES);
	DpValue doc;
	DpIter iter;

	fuzz_document(b);
	doc = dp_builder_view(b, DP_TYPE_DOCUMENT);
	dp_iter_init_value(&iter, &doc);
	*n = 0;
	while (*n < MAX_VALUES && dp_iter_next_value(&iter, &result[*n]))
		if (!dp_type_is_container(result[*n].type) && result[*n].type != DP_TYPE_CODEWSCOPE)
			(*n)++;
	return result;
}

/* Statistics as ANALYZE might make them. */
static void
some_stats(DpPathStats *s)
{
	memset(s, 0, sizeof(*s));
	s->text = "a.b";
	s->textlen = fuzz_below(4);
	s->reached = number();
	s->direct = number();
	s->scalar = number();
	s->arrays = number();
	s->values = number();
	s->n_distinct = -number();
	s->rest_items = number();
	for (int i = 0; i < DP_STATS_TYPES; i++)
		s->types[i] = number();
	if (s->arrays > 0)
	{
		s->nlengths = fuzz_below(DP_STATS_LENGTHS + 1);
		for (int i = 0; i < s->nlengths; i++)
		{
			s->common_lengths[i] = (int32) fuzz_random();
			s->length_shares[i] = number();
		}
	}
	s->multiple = fuzz_below(2);
	s->mcv = values(&s->nmcv);
	s->mcv_docs = numbers(s->nmcv);
	s->mcv_items = s->multiple ? numbers(s->nmcv) : s->mcv_docs;
	s->ntail = fuzz_below(3) ? 0 : fuzz_below(100);
	if (s->ntail > 0)
	{
		uint32 *tail = palloc(sizeof(uint32) * s->ntail);

		for (int i = 0; i < s->ntail; i++)
			tail[i] = (uint32) fuzz_random();
		s->tail = tail;
		s->tail_docs = numbers(s->ntail);
	}
	s->hist = values(&s->nhist);
}

/* Reads bytes that may be anything; if they are statistics, from end to end. */
static void
try_bytes(const uint8 *from, Size n)
{
	uint8 *bytes = palloc(n);
	DpPathStats s;
	DpFault fault;
	struct varlena *again;

	memcpy(bytes, from, n);
	damaged++;
	if (FUZZ_TRY() != 0)
		fail("reading statistics raises an error");
	if (!dp_stats_unpack(bytes, n, &s))
	{
		refused++;
		return;
	}
	again = dp_stats_pack(&s);
	if (!dp_validate(DP_DOC_DATA(again), DP_DOC_SIZE(again), &fault))
		fail("what was read makes bytes that are no statistics");
}

int
main(int argc, char **argv)
{
	char base;
	uint64 iterations = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000;
	uint64 first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	fuzz_stack_base = &base;
	for (iteration = first; iteration < first + iterations; iteration++)
	{
		static uint8 bytes[MAX_BYTES];
		DpPathStats s;
		DpPathStats read;
		struct varlena *packed;
		struct varlena *again;
		Size n;
		DpValue document;
		DpValue value;
		DpIter iter;
		DpElement e;
		DpBuilder b;
		int nother;
		const DpValue *other;

		fuzz_state = seed * UINT64CONST(0x9E3779B97F4A7C15) + iteration;
		if (FUZZ_TRY() != 0)
			fail("packing raises an error");
		some_stats(&s);
		packed = dp_stats_pack(&s);
		if (!dp_stats_unpack(DP_DOC_DATA(packed), DP_DOC_SIZE(packed), &read))
			fail("packed statistics are refused");
		again = dp_stats_pack(&read);
		if (DP_DOC_SIZE(again) != DP_DOC_SIZE(packed) ||
			memcmp(DP_DOC_DATA(again), DP_DOC_DATA(packed), DP_DOC_SIZE(packed)) != 0)
			fail("packed statistics do not come back");

		n = DP_DOC_SIZE(packed);
		if (n < MAX_BYTES / 2)
		{
			memcpy(bytes, DP_DOC_DATA(packed), n);
			fuzz_damage_bytes(bytes, &n, MAX_BYTES);
			try_bytes(bytes, n);
		}

		/* a valid document, whose fields are not what they should be */
		document = dp_value_of_document(packed);
		other = values(&nother);
		dp_builder_init(&b, 0);
		dp_builder_begin_document(&b);
		dp_iter_init_value(&iter, &document);
		while (dp_iter_next(&iter, &e))
		{
			if (fuzz_below(12) == 0)
				continue;
			value = e.value;
			if (fuzz_below(12) == 0 && nother > 0)
				value = other[fuzz_below(nother)];
			else if (fuzz_below(12) == 0 && value.type == DP_TYPE_BINARY && value.len > 9)
			{
				uint32 len = fuzz_below(value.len - 5);

				dp_builder_append_binary(&b, e.name, e.namelen, 0x80, value.data + 5, len);
				continue;
			}
			dp_builder_append_value(&b, e.name, e.namelen, &value);
			if (fuzz_below(20) == 0)
				dp_builder_append_value(&b, e.name, e.namelen, &e.value);
		}
		dp_builder_end(&b);
		document = dp_builder_view(&b, DP_TYPE_DOCUMENT);
		try_bytes(document.data, document.len);
		fuzz_reset_memory();
	}
	printf(
		"statistics: %llu iterations, seed %llu: of %llu damaged ones %llu were refused; no fault\n",
		(unsigned long long) iterations, (unsigned long long) seed, (unsigned long long) damaged,
		(unsigned long long) refused);
	return 0;
}
