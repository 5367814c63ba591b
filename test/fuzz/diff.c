/*
 * diff.c
 *		Differences of documents: what was packed comes back, damaged bytes are
 *		refused or read.
 *
 *		diff ITERATIONS SEED [FIRST]
 *
 * Each iteration makes two documents, the second often out of the first, and a
 * third, and checks that
 *	1. the difference makes the second of the first, byte for byte, and there is
 *	   one exactly if they differ;
 *	2. paths are listed exactly if they differ;
 *	3. the change carried to a third document gives a valid one, no change gives
 *	   the third, and carried to the first gives one of the second's size;
 *	4. damaged differences, and differences of damaged documents, give something
 *	   or raise an error of corrupt data.
 *
 * The sanitizers that it is built with end it at the first fault.
 */
#include "shim.h"

#include "bson/diff.h"
#include "bson/validate.h"
#include "utils/memutils.h"

#include "documents.h"

#define MAX_BYTES 65536

void *palloc_extended(Size size, int flags);

static uint64 seed;
static uint64 iteration;

static struct
{
	uint64 same;
	uint64 packed;
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

/* After an error: it must be one of corrupt data, or of too much. */
static void
expect_corrupted(void)
{
	if (fuzz_sqlstate != ERRCODE_DATA_CORRUPTED && fuzz_sqlstate != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
		fail("an error that is not of corrupt data");
	counts.refused++;
}

/* The members of a container, some of them left out, changed inside, changed for others, moved. */
static void
edit(DpBuilder *b, const DpValue *container, const DpValue *other)
{
	DpElement late;
	DpElement e;
	DpIter iter;
	DpIter others;
	bool has_late = false;

	dp_iter_init_value(&iter, container);
	dp_iter_init_value(&others, other);
	while (dp_iter_next(&iter, &e))
	{
		switch (fuzz_below(12))
		{
			case 0:
				continue;
			case 1:
				if (!has_late)
				{
					late = e;
					has_late = true;
					continue;
				}
				break;
			case 2:
			{
				DpElement new;

				if (dp_iter_next(&others, &new))
					dp_builder_append_value(b, new.name, new.namelen, &new.value);
				break;
			}
			case 3:
				if (dp_type_is_container(e.value.type))
				{
					if (e.value.type == DP_TYPE_ARRAY)
						dp_builder_begin_array_field(b, e.name, e.namelen);
					else
						dp_builder_begin_document_field(b, e.name, e.namelen);
					edit(b, &e.value, other);
					dp_builder_end(b);
					continue;
				}
				if (e.value.type == DP_TYPE_STRING && e.value.len > 5)
				{
					dp_builder_append_string(b, e.name, e.namelen, (const char *) e.value.data + 4,
											 fuzz_below(e.value.len - 4));
					continue;
				}
				break;
		}
		dp_builder_append_value(b, e.name, e.namelen, &e.value);
	}
	if (has_late)
		dp_builder_append_value(b, late.name, late.namelen, &late.value);
}

static bool
count_path(const DpPath *path, const DpValue *before, const DpValue *after, void *arg)
{
	if (before == NULL && after == NULL)
		fail("a path without values");
	(*(int *) arg)++;
	return true;
}

/* A random document. */
static DpValue
document(void)
{
	DpBuilder *b = palloc(sizeof(DpBuilder));

	fuzz_document(b);
	return dp_builder_view(b, DP_TYPE_DOCUMENT);
}

/* All that may be done with three documents, which need not be valid. */
static void
try_all(const DpValue *a, const DpValue *b, const DpValue *c, bool valid)
{
	struct varlena *diff = dp_diff_make(a->data, a->len, b->data, b->len);
	struct varlena *result;
	int paths = 0;
	DpFault fault;
	bool whole = valid && dp_validate(b->data, b->len, &fault) &&
				 dp_validate(c->data, c->len, &fault); /* a text may have been cut */

	if (valid && (diff == NULL) != dp_value_identical(a, b))
		fail("a difference between the same, or none between others");
	if (diff != NULL)
	{
		counts.packed++;
		result = dp_diff_apply(DP_DOC_DATA(diff), DP_DOC_SIZE(diff), a->data, a->len);
		if (valid &&
			(DP_DOC_SIZE(result) != b->len || memcmp(DP_DOC_DATA(result), b->data, b->len) != 0))
			fail("the difference makes another document");
	}
	else
		counts.same++;
	dp_diff_each(a->data, a->len, b->data, b->len, count_path, &paths);
	if (valid && (paths == 0) != (diff == NULL))
		fail("paths are listed where nothing differs, or none where something does");
	result = dp_diff_carry(a->data, a->len, b->data, b->len, c->data, c->len);
	if (whole && !dp_validate(DP_DOC_DATA(result), DP_DOC_SIZE(result), &fault))
	{
		snprintf(fuzz_message, sizeof(fuzz_message), "%s at %u", fault.what, fault.offset);
		fail("what was carried is not valid");
	}
	result = dp_diff_carry(a->data, a->len, a->data, a->len, c->data, c->len);
	if (valid && (DP_DOC_SIZE(result) != c->len))
		fail("no change is a change");
	if (diff != NULL)
	{
		/* damaged */
		Size n = DP_DOC_SIZE(diff);
		uint8 *bytes;

		if (n > MAX_BYTES / 2)
			return;
		bytes = palloc(MAX_BYTES);
		memcpy(bytes, DP_DOC_DATA(diff), n);
		fuzz_damage_bytes(bytes, &n, MAX_BYTES);
		counts.damaged++;
		(void) dp_diff_apply(bytes, n, a->data, a->len);
	}
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
		fuzz_state = seed * UINT64CONST(0x9E3779B97F4A7C15) + iteration;
		if (FUZZ_TRY() == 0)
		{
			DpValue a = document();
			DpValue b = document();
			DpValue c = document();
			DpBuilder edited[2];

			for (int i = 0; i < 2; i++)
			{
				dp_builder_init(&edited[i], 0);
				dp_builder_begin_document(&edited[i]);
				edit(&edited[i], &a, &b);
				dp_builder_end(&edited[i]);
			}
			if (fuzz_below(4) > 0)
				b = dp_builder_view(&edited[0], DP_TYPE_DOCUMENT);
			if (fuzz_below(4) > 0)
				c = dp_builder_view(&edited[1], DP_TYPE_DOCUMENT);
			if (fuzz_below(3) == 0 && a.len < MAX_BYTES / 2)
			{
				/* a damaged document */
				Size n = a.len;
				uint8 *bytes = palloc(MAX_BYTES);
				DpValue bad;

				memcpy(bytes, a.data, n);
				fuzz_damage_bytes(bytes, &n, MAX_BYTES);
				bad.type = DP_TYPE_DOCUMENT;
				bad.data = bytes;
				bad.len = n;
				counts.damaged++;
				if (fuzz_below(2))
					try_all(&bad, &b, &c, false);
				else
					try_all(&b, &bad, &c, false);
			}
			else
				try_all(&a, &b, &c, true);
		}
		else
			expect_corrupted();
		fuzz_reset_memory();
	}
	printf(
		"diff: %llu iterations, seed %llu: %llu differences, %llu times the same, %llu damaged, %llu refused\n",
		(unsigned long long) iterations, (unsigned long long) seed,
		(unsigned long long) counts.packed, (unsigned long long) counts.same,
		(unsigned long long) counts.damaged, (unsigned long long) counts.refused);
	return 0;
}
