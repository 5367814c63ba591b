/*
 * fuzz.c
 *		Throws damaged documents and texts at everything that reads what comes
 *		from outside, and checks what must be true of the answers.
 *
 *		fuzz ITERATIONS SEED
 *
 * Each iteration makes a random document and a text and checks that
 *	1. the document is valid, and its bytes survive each form of text;
 *	2. the damaged document is read by the validation (through bson_recv) and,
 *	   whatever that says, by the printer and by what makes index keys, without
 *	   a fault;
 *	3. validation says what the reference says (reference.c), and does not accept
 *	   what libbson refuses;
 *	4. what validation accepts survives each form of text byte for byte;
 *	5. the damaged text is refused with an SQLSTATE of a user's error, or gives
 *	   a valid document that survives, too.
 *	6. each field of a valid document is found by its name in either way, one that
 *	   is not there is not; and the first bytes alone say nothing else;
 *	7. a number is read as strtod() and strtoll() of the C library read it.
 *
 * The sanitizers that it is built with end it at the first fault. Exit status 0:
 * all was as it should be. With one argument more, iterations begin there, so
 * that one can be looked at alone: fuzz 1 SEED ITERATION.
 */
#include "shim.h"

#include <bson/bson.h>

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

#include "bson/compare.h"
#include "bson/path.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "bson/validate.h"

#include "documents.h"
#include "keys.h"
#include "reference.h"

#define MAX_BYTES 65536

extern Datum dp_bson_recv(PG_FUNCTION_ARGS);
extern Datum dp_bson_value_recv(PG_FUNCTION_ARGS);

static uint64 seed;
static uint64 iteration;

static struct
{
	uint64 valid;
	uint64 valid_damaged;
	uint64 printed_damaged;
	uint64 texts_accepted;
	uint64 values;
	uint64 stricter;
} counts;

/* Differences from libbson, by reason */
typedef struct Reason
{
	char what[200];
	uint64 count;
} Reason;

static Reason reasons[32];

static void fail(const char *what, const uint8 *bytes, Size n) pg_attribute_noreturn();

/*
 * Says what went wrong and with which bytes, and ends the program.
 */
static void
fail(const char *what, const uint8 *bytes, Size n)
{
	printf("FAILED: %s\nseed %llu, iteration %llu\nlast error: %s (%s)\n", what,
		   (unsigned long long) seed, (unsigned long long) iteration, fuzz_message, fuzz_detail);
	for (Size i = 0; i < n && i < 2000; i++)
		printf("%02x", bytes[i]);
	printf("\n%.*s\n", (int) Min(n, 2000), (const char *) bytes);
	exit(1);
}

/* Counts a difference from libbson under its reason. */
static void
count_reason(const char *what)
{
	for (int i = 0; i < lengthof(reasons); i++)
	{
		if (reasons[i].count == 0)
			strcpy(reasons[i].what, what);
		if (strcmp(reasons[i].what, what) == 0)
		{
			reasons[i].count++;
			return;
		}
	}
}

/*
 * Whether an error is one that a user's input may give.
 */
static bool
is_input_error(void)
{
	return fuzz_sqlstate == ERRCODE_INVALID_TEXT_REPRESENTATION ||
		   fuzz_sqlstate == ERRCODE_INVALID_BINARY_REPRESENTATION ||
		   fuzz_sqlstate == ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE ||
		   fuzz_sqlstate == ERRCODE_PROGRAM_LIMIT_EXCEEDED;
}

/*
 * The text of a valid value must be UTF-8 and give the same bytes again.
 */
static void
check_survival(const DpValue *v, bool as_document)
{
	static const struct
	{
		DpTextForm form;
		int indent;
		const char *what;
	} forms[] = { { DP_TEXT_RELAXED, -1, "a value does not survive the relaxed form" },
				  { DP_TEXT_CANONICAL, -1, "a value does not survive the canonical form" },
				  { DP_TEXT_SHELL, -1, "a value does not survive the form of the shell" },
				  { DP_TEXT_RELAXED, 0, "a value does not survive bson_pretty" } };

	for (int i = 0; i < lengthof(forms); i++)
	{
		StringInfoData out;
		struct varlena *again = NULL;
		DpValue w;

		initStringInfo(&out);
		if (FUZZ_TRY() != 0)
			fail(forms[i].what, v->data, v->len);
		dp_value_to_text(&out, v, forms[i].form, forms[i].indent);
		if (strlen(out.data) != out.len ||
			pg_encoding_verifymbstr(PG_UTF8, out.data, out.len) != out.len)
			fail("the text is not valid UTF-8", (uint8 *) out.data, out.len);
		if (as_document)
		{
			again = dp_text_to_bson(out.data, out.len, NULL);
			w = dp_value_of_document(again);
		}
		else
		{
			again = dp_text_to_value(out.data, out.len, NULL);
			w = dp_value_of_varlena(again);
		}
		/* the canonical form has one NaN */
		if (!dp_value_identical(v, &w) &&
			!(forms[i].form == DP_TEXT_CANONICAL && v->type == w.type && v->len == w.len &&
			  dp_value_compare(v, &w) == 0))
			fail(forms[i].what, v->data, v->len);
	}
}

/*
 * Checks the bytes of a document that may be anything.
 */
static void
check_bytes(const uint8 *bytes, Size n)
{
	/* exactly as long as it says, so that the sanitizer sees the end */
	uint8 *copy = palloc(n);
	DpFault fault = { NULL, 0 };
	bool valid;
	bool theirs;
	bson_t b;
	bson_error_t error = { 0 };
	volatile bool received = false;
	StringInfoData message;
	DpValue v;
	const char *wrong;

	memcpy(copy, bytes, n);
	valid = dp_validate(copy, n, &fault);
	if (!valid && (fault.what == NULL || fault.offset > n))
		fail("validation gives no fault or one beyond the end", copy, n);

	/* the input function must say the same */
	message.data = (char *) copy;
	message.len = n;
	message.maxlen = n;
	message.cursor = 0;
	if (FUZZ_TRY() == 0)
	{
		LOCAL_FCINFO(fcinfo, 1);
		struct varlena *result;

		fcinfo->args[0].value = PointerGetDatum(&message);
		fcinfo->args[0].isnull = false;
		result = (struct varlena *) DatumGetPointer(dp_bson_recv(fcinfo));
		if (DP_DOC_SIZE(result) != n || memcmp(DP_DOC_DATA(result), copy, n) != 0)
			fail("bson_recv changes a document", copy, n);
		received = true;
	}
	else if (!is_input_error())
		fail("bson_recv raises a wrong error", copy, n);
	if (received != valid)
		fail("bson_recv and validation differ", copy, n);

	theirs =
		bson_init_static(&b, copy, n) &&
		bson_validate_with_error(&b, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, &error);
	if (theirs != valid)
	{
		char what[200];

		snprintf(what, sizeof(what), "%s: %s", valid ? "libbson refuses" : "libbson accepts",
				 valid ? error.message : fault.what);
		if (valid)
			fail(what, copy, n);
		count_reason(what);
		counts.stricter++;
	}
	if (valid != reference_valid(copy, n))
		fail("validation and the reference differ", copy, n);

	/* as if it stood in a table with an index */
	wrong = fuzz_keys(copy, n, valid);
	if (wrong != NULL)
		fail(wrong, copy, n);

	v.type = DP_TYPE_DOCUMENT;
	v.data = copy;
	v.len = n;
	if (valid)
	{
		counts.valid_damaged++;
		check_survival(&v, true);
	}
	else
	{
		/* as if it stood in a table: an error or a text, but no fault */
		static const DpTextForm forms[] = { DP_TEXT_RELAXED, DP_TEXT_CANONICAL, DP_TEXT_SHELL };
		StringInfoData out;

		initStringInfo(&out);
		if (FUZZ_TRY() == 0)
		{
			dp_value_to_text(&out, &v, forms[fuzz_below(3)], fuzz_below(2) ? 0 : -1);
			counts.printed_damaged++;
		}
		else if (fuzz_sqlstate != ERRCODE_DATA_CORRUPTED)
			fail("the printer raises a wrong error", copy, n);
	}
}

/*
 * Looks for the fields of a valid document, and in what it begins with.
 */
static void
check_find(const DpValue *doc)
{
	uint8 *part;
	uint32 n = fuzz_below(doc->len);
	uint32 position = 0;
	DpValue start;
	DpValue found;
	DpValue first;
	DpIter iter;
	DpElement e;
	DpPath *path;

	if (FUZZ_TRY() != 0)
		fail("looking into a valid document raises an error", doc->data, doc->len);
	if (dp_document_find(doc->data, doc->len, "not there", strlen("not there"), &found) ||
		dp_field_find(doc->data, doc->len, "not there", strlen("not there"), &found))
		fail("a field is found that is not there", doc->data, doc->len);
	part = palloc(n);
	memcpy(part, doc->data, n);
	start.type = DP_TYPE_DOCUMENT;
	start.data = part;
	start.len = doc->len;
	path = dp_path_of_name("not there", strlen("not there"));
	if (dp_path_find_partial(&start, n, path, false, &found) == DP_FIND_FOUND)
		fail("a field is found in a part where it is not", doc->data, doc->len);
	dp_iter_init_value(&iter, doc);
	while (dp_iter_next(&iter, &e))
	{
		if (position < 20 || fuzz_below(20) == 0)
		{
			DpFind result;

			if (!dp_document_find(doc->data, doc->len, e.name, e.namelen, &first) ||
				first.data > e.value.data)
				fail("a field is not found by its name", doc->data, doc->len);
			if (!dp_field_find(doc->data, doc->len, e.name, e.namelen, &found) ||
				found.data != first.data || found.len != first.len)
				fail("two ways to find a field differ", doc->data, doc->len);
			path = dp_path_of_name(e.name, e.namelen);
			result = dp_path_find_partial(&start, n, path, false, &found);
			if (result == DP_FIND_ABSENT ||
				(result == DP_FIND_FOUND && found.data - part != first.data - doc->data))
				fail("a field is not found in a part", doc->data, doc->len);
		}
		position++;
	}
}

/*
 * Checks the bytes of a bson_value that may be anything.
 */
static void
check_value_bytes(const uint8 *bytes, Size n)
{
	uint8 *copy = palloc(n);
	StringInfoData message;

	memcpy(copy, bytes, n);
	message.data = (char *) copy;
	message.len = n;
	message.maxlen = n;
	message.cursor = 0;
	if (FUZZ_TRY() == 0)
	{
		LOCAL_FCINFO(fcinfo, 1);
		DpValue v;

		fcinfo->args[0].value = PointerGetDatum(&message);
		fcinfo->args[0].isnull = false;
		v = dp_value_of_varlena((struct varlena *) DatumGetPointer(dp_bson_value_recv(fcinfo)));
		check_survival(&v, false);
		counts.values++;
	}
	else if (!is_input_error())
		fail("bson_value_recv raises a wrong error", copy, n);
}

/*
 * Checks a text that may be anything.
 */
static void
check_text(const char *text, Size n)
{
	char *copy = palloc(n + 1);
	bool utf8;

	memcpy(copy, text, n);
	copy[n] = '\0';
	utf8 = pg_encoding_verifymbstr(PG_UTF8, copy, n) == n;
	if (FUZZ_TRY() == 0)
	{
		struct varlena *result = dp_cstring_to_bson(copy, n, NULL);
		DpValue v;
		DpFault fault;

		/* the server refuses other texts before they come here */
		if (!utf8)
			return;
		counts.texts_accepted++;
		v = dp_value_of_document(result);
		if (!dp_validate(v.data, v.len, &fault))
		{
			snprintf(fuzz_detail, sizeof(fuzz_detail), "at offset %u, %s", fault.offset,
					 fault.what);
			fail("the parser makes an invalid document", (uint8 *) copy, n);
		}
		check_survival(&v, true);
	}
	else if (!is_input_error())
		fail("the parser raises a wrong error", (uint8 *) copy, n);
}

/*
 * Checks a random number against the C library: an integer that fits is one,
 * everything else is the nearest double.
 */
static void
check_number(void)
{
	char text[100];
	char *s = text;
	uint32 whole = fuzz_below(22);
	uint32 fraction = fuzz_below(2) ? 0 : 1 + fuzz_below(25);
	uint32 zeros = fuzz_below(3) ? 0 : fuzz_below(25);
	bool integer = false;

	if (fuzz_below(4) == 0)
		*s++ = '-';
	if (whole == 0)
		*s++ = '0';
	for (uint32 i = 0; i < whole; i++)
		*s++ = (i == 0 ? '1' : '0') + fuzz_below(i == 0 ? 9 : 10);
	if (fraction > 0)
	{
		*s++ = '.';
		for (uint32 i = 0; i < fraction; i++)
			*s++ = '0' + (fuzz_below(8) ? fuzz_below(10) : 0);
		for (uint32 i = 0; i < zeros; i++)
			*s++ = '0';
	}
	else
		integer = true;
	*s = '\0';
	if (fuzz_below(4) == 0)
	{
		integer = false;
		s += sprintf(s, "e%d",
					 (int) fuzz_below(fuzz_below(4) ? 50 : 330) * (fuzz_below(2) ? 1 : -1));
	}

	if (FUZZ_TRY() != 0)
	{
		double d = strtod(text, NULL);

		/* too large or too small */
		if (fuzz_sqlstate != ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE || (d != 0 && d - d == 0))
			fail("a number is refused", (uint8 *) text, strlen(text));
	}
	else
	{
		DpValue v = dp_value_of_varlena(dp_text_to_value(text, strlen(text), NULL));

		errno = 0;
		if (integer && (strtoll(text, NULL, 10), errno == 0) && strcmp(text, "-0") != 0)
		{
			long long i = strtoll(text, NULL, 10);

			if (v.type != (i == (int32) i ? DP_TYPE_INT32 : DP_TYPE_INT64) ||
				(v.type == DP_TYPE_INT32 ? dp_get_int32(v.data) : dp_get_int64(v.data)) != i)
				fail("an integer is read as another", (uint8 *) text, strlen(text));
		}
		else
		{
			double expected = strtod(text, NULL);
			double found = v.type == DP_TYPE_DOUBLE ? dp_get_double(v.data) : 0;

			if (v.type != DP_TYPE_DOUBLE || memcmp(&expected, &found, sizeof(found)) != 0)
				fail("a number is read as another", (uint8 *) text, strlen(text));
		}
	}
}

/*
 * See above.
 */
int
main(int argc, char **argv)
{
	static uint8 bytes[MAX_BYTES];
	uint64 iterations;
	uint64 first;
	char base;

	fuzz_stack_base = &base;
	if (argc < 3)
	{
		fprintf(stderr, "usage: fuzz ITERATIONS SEED [FIRST]\n");
		return 2;
	}
	iterations = strtoull(argv[1], NULL, 10);
	seed = strtoull(argv[2], NULL, 10);
	first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	if (getenv("FUZZ_TEXTS") != NULL)
		fuzz_read_texts(getenv("FUZZ_TEXTS"));
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%llu iterations, seed %llu\n", (unsigned long long) iterations,
		   (unsigned long long) seed);

	for (iteration = first; iteration < first + iterations; iteration++)
	{
		DpBuilder b;
		DpValue v;
		Size n;
		DpFault fault;

		fuzz_state = seed * UINT64CONST(1000003) + iteration;
		if (FUZZ_TRY() != 0)
			fail("making a document raises an error", NULL, 0);
		fuzz_document(&b);
		v = dp_builder_view(&b, DP_TYPE_DOCUMENT);
		if (!dp_validate(v.data, v.len, &fault))
		{
			snprintf(fuzz_detail, sizeof(fuzz_detail), "at offset %u, %s", fault.offset,
					 fault.what);
			fail("a document that is valid is refused", v.data, v.len);
		}
		counts.valid++;
		check_survival(&v, true);
		check_find(&v);

		if (v.len < MAX_BYTES / 2)
		{
			memcpy(bytes, v.data, v.len);
			n = v.len;
			fuzz_damage_bytes(bytes, &n, MAX_BYTES);
			check_bytes(bytes, n);

			/* a part of it as a value, of its type or another */
			if (v.len > 8)
			{
				Size at = 4 + fuzz_below(v.len - 4);

				n = 1 + fuzz_below(40);
				n = Min(n, v.len - at);
				memcpy(bytes, v.data + at, n);
				if (fuzz_below(2))
				{
					bytes[0] = DP_TYPE_DOCUMENT + fuzz_below(2);
					memcpy(bytes + 1, v.data, v.len);
					n = v.len + 1;
				}
				else if (fuzz_below(2))
					bytes[0] = (uint8) fuzz_below(20);
				check_value_bytes(bytes, n);
			}
		}

		if (fuzz_below(2))
		{
			const char *text = fuzz_text();

			n = strlen(text);
			memcpy(bytes, text, n);
		}
		else
		{
			StringInfoData out;

			initStringInfo(&out);
			if (FUZZ_TRY() != 0)
				fail("printing a valid document raises an error", v.data, v.len);
			dp_value_to_text(&out, &v, (DpTextForm) fuzz_below(3), -1);
			n = Min(out.len, MAX_BYTES / 2);
			memcpy(bytes, out.data, n);
		}
		fuzz_damage_text((char *) bytes, &n, MAX_BYTES);
		check_text((char *) bytes, n);
		check_number();
		fuzz_reset_memory();
	}

	printf("%llu documents were valid and survived four forms of text\n",
		   (unsigned long long) counts.valid);
	printf(
		"%llu damaged documents: %llu still valid and survived, %llu printed all the same, the others refused\n",
		(unsigned long long) iterations, (unsigned long long) counts.valid_damaged,
		(unsigned long long) counts.printed_damaged);
	printf("%llu values were valid and survived\n", (unsigned long long) counts.values);
	printf("%llu damaged texts: %llu were accepted, valid and survived\n",
		   (unsigned long long) iterations, (unsigned long long) counts.texts_accepted);
	printf("%llu numbers were read as the C library reads them\n", (unsigned long long) iterations);
	printf(
		"libbson accepts %llu damaged documents that are refused here and by the reference, because:\n",
		(unsigned long long) counts.stricter);
	for (int i = 0; i < lengthof(reasons) && reasons[i].count > 0; i++)
		printf("  %10llu  %s\n", (unsigned long long) reasons[i].count, reasons[i].what);
	printf("no fault in %llu iterations, seed %llu\n", (unsigned long long) iterations,
		   (unsigned long long) seed);
	return 0;
}
