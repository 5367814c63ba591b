/*
 * sort_key.c
 *		Sort specifications and the sort keys of documents.
 *
 * A key has one part for each field of the specification.  A part is the class of the value
 * (DpClass, one byte) and then, so that no part is a prefix of another:
 *
 *		number			the nearest double, 8 bytes in order-preserving form; then
 *						0x80 if that is the number itself; else 0x40 or 0xC0, as
 *						the number is less or greater, and its decimal digits
 *		string, code	bytes, with 0x00 written 0x00 0xFF; ended by 0x00 0x01
 *		document		for each element its class, its name as a string, its
 *						value; ended by 0x00
 *		array			for each element its class and value; ended by 0x00
 *		binary			length, 4 bytes; subtype; bytes
 *		others			unchanged, numbers with the highest byte first
 *
 * The bytes of a descending part are complemented.  The layout is frozen: expression indexes
 * contain such keys.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bswap.h"

#include "bson/collation.h"
#include "bson/compare.h"
#include "bson/fetch.h"
#include "bson/names.h"
#include "bson/number.h"
#include "bson/path.h"
#include "mql/error.h"
#include "mql/expression_node.h"
#include "mql/sort_key.h"
#include "mql/spec.h"

/* Most fields of a specification, as MongoDB has it */
#define MAX_FIELDS 32

/* The first allocation for a key */
#define SHORT_KEY 64

typedef struct SortField
{
	DpPath *path;
	bool descending;
} SortField;

struct DpSortSpec
{
	int nfields;
	SortField fields[FLEXIBLE_ARRAY_MEMBER];
};

/* Where the search for a field has come to: the value, and the next part of its path. */
typedef struct Position
{
	DpValue value; /* type DP_TYPE_EOD: missing */
	int step;
	bool done;
} Position;

/* The least key that was found */
typedef struct Best
{
	StringInfo out;
	int start; /* where the key begins */
	int len;   /* of the least so far; 0: none */
} Best;

static void append_value(StringInfo out, const DpValue *v);

/* ---------------------------------------------------------------- values as bytes */

/* Appends an integer with the highest byte first. */
static void
append_uint64(StringInfo out, uint64 u)
{
	u = pg_hton64(u);
	appendBinaryStringInfo(out, (const char *) &u, sizeof(u));
}

static void
append_uint32(StringInfo out, uint32 u)
{
	u = pg_hton32(u);
	appendBinaryStringInfo(out, (const char *) &u, sizeof(u));
}

/* Appends a string so that no other begins with it. */
static void
append_string(StringInfo out, const char *s, uint32 len)
{
	const char *end = s + len;

	while (s < end)
	{
		const char *nul = memchr(s, 0, end - s);
		const char *stop = nul ? nul : end;

		appendBinaryStringInfo(out, s, stop - s);
		if (nul == NULL)
			break;
		appendBinaryStringInfo(out, "\0\377", 2);
		s = nul + 1;
	}
	appendBinaryStringInfo(out, "\0\1", 2);
}

/* The bits of a double, so that they are ordered as numbers are. */
static uint64
ordered_bits(double d)
{
	uint64 bits;

	if (d != d)
		return 0;
	d += 0.0; /* -0.0 becomes 0.0 */
	memcpy(&bits, &d, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64CONST(1) << 63;
}

/* Appends a number. */
static void
append_number(StringInfo out, const DpValue *v)
{
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpNumber number;
	double d = dp_number_approximate(v);
	int side = 0;

	append_uint64(out, ordered_bits(d));

	if (v->type == DP_TYPE_INT64)
		side = dp_int64_compare_double(dp_get_int64(v->data), d);
	else if (v->type == DP_TYPE_DECIMAL128)
	{
		dp_number_from_value(&number, v, buf);
		if (number.kind == DP_NUMBER_INTEGER)
			side = dp_int64_compare_double(number.i, d);
		else if (number.kind == DP_NUMBER_DECIMAL)
			side = number.side;
	}
	appendStringInfoChar(out, side == 0 ? (char) 0x80 : side < 0 ? (char) 0x40 : (char) 0xC0);
	if (side != 0)
	{
		/* the power of ten and the digits, turned round for a negative number */
		DpExact e;
		int from = out->len;
		uint32 point;

		dp_exact_from_value(v, &e, buf);
		point = (uint32) (e.point + 32768);
		appendStringInfoChar(out, (char) (point >> 8));
		appendStringInfoChar(out, (char) point);
		for (int i = 0; i < e.ndigits; i++)
			appendStringInfoChar(out, (char) (e.digits[i] + 1));
		appendStringInfoChar(out, 0);
		if (e.negative)
			for (int i = from; i < out->len; i++)
				out->data[i] = ~out->data[i];
	}
}

/* Appends the elements of a document or an array. */
static void
append_elements(StringInfo out, const DpValue *v, bool names)
{
	DpIter iter;
	DpElement element;

	check_stack_depth();
	dp_iter_init_value(&iter, v);
	while (dp_iter_next(&iter, &element))
	{
		appendStringInfoChar(out, (char) dp_type_class[element.value.type]);
		if (names)
			append_string(out, element.name, element.namelen);
		append_value(out, &element.value);
	}
	appendStringInfoChar(out, 0);
}

/* Appends a value without its class. */
static void
append_value(StringInfo out, const DpValue *v)
{
	switch ((DpClass) dp_type_class[v->type])
	{
		case DP_CLASS_NUMBER:
			append_number(out, v);
			break;
		case DP_CLASS_STRING:
			if (dp_collation != NULL)
			{
				uint32 len;
				char *key = dp_collation_key(DP_STRING_DATA(v), DP_STRING_LEN(v), &len);

				append_string(out, key, len);
				pfree(key);
				break;
			}
			/* FALLTHROUGH */
		case DP_CLASS_CODE:
			append_string(out, DP_STRING_DATA(v), DP_STRING_LEN(v));
			break;
		case DP_CLASS_DOCUMENT:
			append_elements(out, v, true);
			break;
		case DP_CLASS_ARRAY:
			append_elements(out, v, false);
			break;
		case DP_CLASS_BINARY:
			append_uint32(out, v->len - 4);
			appendBinaryStringInfo(out, (const char *) v->data + 4, v->len - 4);
			break;
		case DP_CLASS_DBPOINTER:
			append_uint32(out, v->len);
			appendBinaryStringInfo(out, (const char *) v->data, v->len);
			break;
		case DP_CLASS_OBJECTID:
		case DP_CLASS_REGEX:
			appendBinaryStringInfo(out, (const char *) v->data, v->len);
			break;
		case DP_CLASS_BOOL:
			appendStringInfoChar(out, v->data[0] != 0);
			break;
		case DP_CLASS_DATE:
			append_uint64(out, (uint64) dp_get_int64(v->data) ^ (UINT64CONST(1) << 63));
			break;
		case DP_CLASS_TIMESTAMP:
			append_uint64(out, (uint64) dp_get_int64(v->data));
			break;
		case DP_CLASS_CODEWSCOPE:
		{
			const uint8 *end = v->data + v->len;
			DpValue code = { v->data + 4, 0, DP_TYPE_STRING };
			DpValue scope = { NULL, 0, DP_TYPE_DOCUMENT };

			code.len = dp_value_size(DP_TYPE_STRING, code.data, end);
			scope.data = code.data + code.len;
			scope.len = dp_value_size(DP_TYPE_DOCUMENT, scope.data, end);
			append_value(out, &code);
			append_value(out, &scope);
			break;
		}
		case DP_CLASS_MINKEY:
		case DP_CLASS_UNDEFINED:
		case DP_CLASS_NULL:
		case DP_CLASS_MAXKEY:
			break;
		case DP_CLASS_INVALID:
			dp_corrupted("a field has a type that does not exist");
	}
}

void
dp_sort_key_append_value(StringInfo out, const DpValue *v, bool descending)
{
	int from = out->len;

	/* nearly all numbers: the steps below, at once */
	if (v->type == DP_TYPE_INT32 || v->type == DP_TYPE_DOUBLE)
	{
		uint64 bits = ordered_bits(dp_number_approximate(v));
		uint8 part[10] = { DP_CLASS_NUMBER, [9] = 0x80 };

		bits = pg_hton64(bits);
		memcpy(part + 1, &bits, sizeof(bits));
		if (descending)
			for (int i = 0; i < 10; i++)
				part[i] = ~part[i];
		appendBinaryStringInfo(out, (const char *) part, sizeof(part));
		return;
	}
	appendStringInfoChar(out, (char) dp_type_class[v->type]);
	append_value(out, v);
	if (descending)
		for (int i = from; i < out->len; i++)
			out->data[i] = ~out->data[i];
}

/* ---------------------------------------------------------------- specifications */

/* Raises the error of an invalid specification. */
static void
spec_error(const char *name, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid sort specification"),
			 name ? errdetail("Field \"%.200s\": %s.", name, what) : errdetail("%s.", what)));
}

/* The path of a field, split at its dots. */
static DpPath *
spec_path(const DpElement *element)
{
	const char *names[200];
	uint32 lens[200];
	int n = 0;
	const char *s = element->name;

	for (;;)
	{
		size_t len = strcspn(s, ".");

		if (len == 0)
			spec_error(element->name, "a part of the path is empty");
		if (s[0] == '$')
			spec_error(element->name, "a part of the path begins with a dollar");
		if (n == (int) lengthof(names))
			spec_error(element->name, "the path has more than 200 parts");
		names[n] = s;
		lens[n++] = len;
		if (s[len] == '\0')
			break;
		s += len + 1;
	}
	return dp_path_of_names(n, names, lens);
}

DpSortSpec *
dp_sort_spec_compile(const DpValue *value)
{
	DpSortSpec *spec;
	DpNames names = { 0 };
	DpIter iter;
	DpElement element;
	uint32 n;

	if (value->type != DP_TYPE_DOCUMENT)
		spec_error(NULL, "It must be a document");
	n = dp_array_count(value->data, value->len);
	if (n == 0)
		spec_error(NULL, "It has no fields");
	if (n > MAX_FIELDS)
		spec_error(NULL, "It has more than 32 fields");
	spec = palloc(offsetof(DpSortSpec, fields) + sizeof(SortField) * n);
	spec->nfields = 0;
	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &element))
	{
		SortField *field = &spec->fields[spec->nfields++];
		double direction = 0;
		bool twice;

		if (element.value.type == DP_TYPE_DOCUMENT)
		{
			DpValue meta;

			if (dp_document_find(element.value.data, element.value.len, "$meta", 5, &meta))
				ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
								errmsg("sorting by $meta is not supported"),
								errhint("%s", dp_elsewhere_hint("$meta"))));
		}
		/* a fraction is cut off, that of a decimal rounded */
		if (dp_type_is_number(element.value.type))
			direction = dp_number_to_double(&element.value);
		direction = element.value.type == DP_TYPE_DECIMAL128 ? rint(direction) : trunc(direction);
		if (direction != 1 && direction != -1)
			spec_error(element.name, "the direction must be 1 or -1");
		(void) dp_names_add(&names, element.name, element.namelen, &twice);
		if (twice)
			spec_error(element.name, "the field is there twice");
		field->path = spec_path(&element);
		field->descending = direction < 0;
	}
	return spec;
}

/* ---------------------------------------------------------------- keys */

/*
 * Follows the path from a position on up to its end, to a missing value, or to an array with
 * elements to visit.  Returns true in the last case.
 */
static bool
position_advance(Position *p, const DpPath *path)
{
	const uint8 *at;

	while (!p->done)
	{
		const DpPathStep *step = &path->steps[p->step];

		if (p->value.type == DP_TYPE_ARRAY)
		{
			/* a whole number is a position */
			if (p->step == path->nsteps || !step->is_index || step->index < 0)
				return true;
		}
		else if (p->step == path->nsteps)
		{
			p->done = true;
			break;
		}
		else if (p->value.type != DP_TYPE_DOCUMENT)
		{
			p->value.type = DP_TYPE_EOD;
			p->done = true;
			break;
		}
		if (dp_step_find(&p->value, step, &at, &p->value))
			p->step++;
		else
		{
			p->value.type = DP_TYPE_EOD;
			p->done = true;
		}
	}
	return false;
}

/*
 * Writes the key of fields that are all found, and keeps it if it is the least.
 */
static void
best_offer(Best *best, const DpSortSpec *spec, const Position *positions)
{
	static const DpValue null = { (const uint8 *) "", 0, DP_TYPE_NULL };
	StringInfo out = best->out;
	int from = best->start + best->len;
	int len;

	out->len = from;
	for (int i = 0; i < spec->nfields; i++)
		dp_sort_key_append_value(out,
								 positions[i].value.type == DP_TYPE_EOD ? &null
																		: &positions[i].value,
								 spec->fields[i].descending);
	len = out->len - from;
	if (best->len > 0)
	{
		int order = memcmp(out->data + from, out->data + best->start, Min(len, best->len));

		if (order > 0 || (order == 0 && len >= best->len))
		{
			out->len = from;
			return;
		}
		memmove(out->data + best->start, out->data + from, len);
	}
	best->len = len;
	out->len = best->start + len;
}

/*
 * Offers all keys of a document.  Where fields lead into an array there is one
 * key for each of its elements, which all these fields take together.
 */
static void
keys_collect(Best *best, const DpSortSpec *spec, const Position *given)
{
	Position positions[MAX_FIELDS];
	bool in_array[MAX_FIELDS];
	DpValue array = { NULL, 0, DP_TYPE_EOD };
	DpIter iter;
	DpValue element;
	bool empty = true;

	check_stack_depth();
	memcpy(positions, given, sizeof(Position) * spec->nfields);
	for (int i = 0; i < spec->nfields; i++)
	{
		in_array[i] = position_advance(&positions[i], spec->fields[i].path);
		if (!in_array[i])
			continue;
		if (array.type == DP_TYPE_ARRAY && array.data != positions[i].value.data)
			ereport(
				ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot sort by fields of different arrays"),
				 errdetail(
					 "Two fields of the sort specification have values in different arrays of the document.")));
		array = positions[i].value;
	}
	if (array.type == DP_TYPE_EOD)
	{
		best_offer(best, spec, positions);
		return;
	}

	dp_iter_init_value(&iter, &array);
	for (;;)
	{
		Position inside[MAX_FIELDS];
		bool more = dp_iter_next_value(&iter, &element);

		if (!more && !empty)
			break;
		CHECK_FOR_INTERRUPTS();
		memcpy(inside, positions, sizeof(Position) * spec->nfields);
		for (int i = 0; i < spec->nfields; i++)
		{
			if (!in_array[i])
				continue;
			if (positions[i].step == spec->fields[i].path->nsteps)
			{
				/* an array that is an element is one value; an empty array comes before null */
				inside[i].done = true;
				inside[i].value = element;
				if (!more)
				{
					inside[i].value.type = DP_TYPE_UNDEFINED;
					inside[i].value.len = 0;
				}
			}
			else if (more && element.type == DP_TYPE_DOCUMENT)
				inside[i].value = element;
			else
			{
				inside[i].value.type = DP_TYPE_EOD;
				inside[i].done = true;
			}
		}
		keys_collect(best, spec, inside);
		empty = false;
		if (!more)
			break;
	}
}

/*
 * The least or the greatest element, of one field that leads to an array: the elements are compared
 * without making their keys.
 */
static void
single_append(StringInfo out, const SortField *field, const DpValue *array)
{
	DpIter iter;
	DpValue v;
	DpValue best;

	dp_iter_init_value(&iter, array);
	if (!dp_iter_next_value(&iter, &best))
	{
		best.type = DP_TYPE_UNDEFINED;
		best.len = 0;
	}
	else
		while (dp_iter_next_value(&iter, &v))
		{
			int order = dp_value_compare(&v, &best);

			if (field->descending ? order > 0 : order < 0)
				best = v;
		}
	dp_sort_key_append_value(out, &best, field->descending);
}

void
dp_sort_key_append(StringInfo out, const DpSortSpec *spec, const DpValue *doc)
{
	Best best = { out, out->len, 0 };
	Position positions[MAX_FIELDS];

	for (int i = 0; i < spec->nfields; i++)
	{
		positions[i].value = *doc;
		positions[i].step = 0;
		positions[i].done = doc->type != DP_TYPE_DOCUMENT;
		if (positions[i].done)
			positions[i].value.type = DP_TYPE_EOD;
	}
	if (spec->nfields == 1 && position_advance(&positions[0], spec->fields[0].path) &&
		positions[0].step == spec->fields[0].path->nsteps)
	{
		single_append(out, &spec->fields[0], &positions[0].value);
		return;
	}
	keys_collect(&best, spec, positions);
}

void
dp_sort_key_append_whole(StringInfo out, const DpSortSpec *spec, const DpValue *doc)
{
	for (int i = 0; i < spec->nfields; i++)
	{
		const DpPath *path = spec->fields[i].path;
		Position p = { *doc, 0, false };
		DpValue null = { (const uint8 *) "", 0, DP_TYPE_NULL };

		if (p.value.type != DP_TYPE_DOCUMENT ||
			(position_advance(&p, path) && p.step < path->nsteps) || p.value.type == DP_TYPE_EOD)
			p.value = null;
		dp_sort_key_append_value(out, &p.value, spec->fields[i].descending);
	}
}

/* ---------------------------------------------------------------- SQL */

/* Compiles for dp_spec_arg(). */
static void *
sort_key_compile(const DpValue *spec, void *arg)
{
	return dp_sort_spec_compile(spec);
}

/*
 * The value of the only field of a specification, read from as little of the document as possible.
 * Returns false if arrays may concern it.
 */
static bool
find_scalar(Datum doc, const DpSortSpec *spec, DpValue *value)
{
	DpPath *path = spec->fields[0].path;

	if (spec->nfields > 1)
		return false;
	for (int i = 0; i < path->nsteps; i++)
		if (path->steps[i].is_index)
			return false;
	if (dp_fetch_path(doc, path, true, value))
		return value->type != DP_TYPE_ARRAY;
	value->type = DP_TYPE_NULL;
	value->len = 0;
	return path->nsteps == 1;
}

/*
 * bson_sort_key(doc bson, spec bson) -> bytea: what to ORDER BY.
 */
DP_FUNCTION(dp_bson_sort_key);
Datum
dp_bson_sort_key(PG_FUNCTION_ARGS)
{
	const DpSortSpec *spec = dp_spec_arg(fcinfo, 1, sort_key_compile, NULL);
	StringInfoData key = { palloc(SHORT_KEY), VARHDRSZ, SHORT_KEY };
	DpValue value;

	if (find_scalar(PG_GETARG_DATUM(0), spec, &value))
		dp_sort_key_append_value(&key, &value, spec->fields[0].descending);
	else
	{
		value = dp_value_of_document(DP_GETARG_VARLENA(0));
		dp_sort_key_append(&key, spec, &value);
	}
	SET_VARSIZE(key.data, key.len);
	PG_RETURN_POINTER(key.data);
}
