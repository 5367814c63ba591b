/*
 * merge.c
 *		The aggregates that collect fields into one document:
 *		bson_object_agg() and bson_merge_agg().
 *
 * Of fields with the same name the last value stays, at the place of the
 * first.  The state is a list of fields in order and a hash table from names
 * to them, so that the cost is linear in the bytes that come in.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/build.h"
#include "bson/cast.h"
#include "bson/reader.h"

/* A field in its stored form: type, name, value */
typedef struct Field
{
	uint8 *bytes;
	uint32 len;
	uint32 cap; /* bytes allocated */
} Field;

/* An entry of the hash table */
typedef struct NameSlot
{
	const char *name; /* in the field's bytes, ends with a NUL */
	uint32 hash;
	uint32 field;
	char status;
} NameSlot;

typedef struct MergeState
{
	MemoryContext context;
	Field *fields;
	uint32 nfields;
	uint32 maxfields;
	Size size; /* bytes of the document so far */
	struct names_hash *names;
	DpConverter converter; /* of the values of bson_object_agg */
	DpBuilder scratch;     /* one field of bson_object_agg */
} MergeState;

#define SH_PREFIX names
#define SH_ELEMENT_TYPE NameSlot
#define SH_KEY_TYPE const char *
#define SH_KEY name
#define SH_HASH_KEY(tb, key) hash_bytes((const unsigned char *) (key), strlen(key))
#define SH_EQUAL(tb, a, b) (strcmp(a, b) == 0)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a) ((a)->hash)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static MergeState *merge_state(MemoryContext context);
static void put_field(MergeState *state, const uint8 *bytes, uint32 len);

/*
 * Transition function of bson_object_agg(key text, value anycompatible).  Raises
 * NULL_VALUE_NOT_ALLOWED for a name that is NULL.
 */
DP_FUNCTION(dp_bson_object_agg_transfn);
Datum
dp_bson_object_agg_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	MergeState *state;
	text *name;
	DpBuilder *b;

	if (PG_ARGISNULL(0))
	{
		MemoryContext old;

		state = merge_state(context);
		dp_converter_init(&state->converter, dp_argument_type(fcinfo, 2), context);
		old = MemoryContextSwitchTo(context);
		dp_builder_init(&state->scratch, 0);
		MemoryContextSwitchTo(old);
	}
	else
		state = (MergeState *) PG_GETARG_POINTER(0);

	if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the name of a field cannot be null")));
	name = PG_GETARG_TEXT_PP(1);

	b = &state->scratch;
	dp_builder_reset(b);

	/* the document that will contain it counts as a level */
	dp_builder_begin_document(b);
	dp_converter_append(&state->converter, b, VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name),
						PG_ARGISNULL(2) ? (Datum) 0 : PG_GETARG_DATUM(2), PG_ARGISNULL(2));
	put_field(state, b->buf + b->head + 4, b->len - b->head - 4);
	PG_RETURN_POINTER(state);
}

/*
 * Transition function of bson_merge_agg(bson).  A NULL changes nothing.
 */
DP_FUNCTION(dp_bson_merge_agg_transfn);
Datum
dp_bson_merge_agg_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	MergeState *state = PG_ARGISNULL(0) ? NULL : (MergeState *) PG_GETARG_POINTER(0);
	struct varlena *doc;
	DpIter iter;
	DpElement element;
	const uint8 *start;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
		state = merge_state(context);

	doc = DP_GETARG_VARLENA(1);
	dp_iter_init_varlena(&iter, doc);
	for (start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
		put_field(state, start, iter.next - start);
	PG_RETURN_POINTER(state);
}

/*
 * Final function of both: a document of the fields.  The state is unchanged because a window
 * continues with it.
 */
DP_FUNCTION(dp_bson_merge_agg_finalfn);
Datum
dp_bson_merge_agg_finalfn(PG_FUNCTION_ARGS)
{
	MergeState *state;
	struct varlena *result;
	uint8 *p;

	(void) dp_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (MergeState *) PG_GETARG_POINTER(0);

	result = palloc(VARHDRSZ + state->size);
	SET_VARSIZE(result, VARHDRSZ + state->size);
	p = (uint8 *) VARDATA(result);
	dp_put_int32(p, (int32) state->size);
	p += 4;
	for (uint32 i = 0; i < state->nfields; i++)
	{
		memcpy(p, state->fields[i].bytes, state->fields[i].len);
		p += state->fields[i].len;
	}
	*p = 0;
	PG_RETURN_POINTER(result);
}

/*
 * A new state in the aggregate's memory.
 */
static MergeState *
merge_state(MemoryContext context)
{
	MergeState *state = MemoryContextAllocZero(context, sizeof(MergeState));

	state->context = context;
	state->maxfields = 16;
	state->fields = MemoryContextAlloc(context, sizeof(Field) * state->maxfields);
	state->size = DP_DOCUMENT_MIN_SIZE;
	state->names = names_create(context, state->maxfields, NULL);
	return state;
}

/* Adds a field in its stored form. */
static void
put_field(MergeState *state, const uint8 *bytes, uint32 len)
{
	NameSlot *slot;
	Field *field;
	bool found;

	CHECK_FOR_INTERRUPTS();
	slot = names_insert(state->names, (const char *) bytes + 1, &found);
	if (found)
	{
		field = &state->fields[slot->field];
		state->size -= field->len;
	}
	else
	{
		if (state->nfields == state->maxfields)
		{
			state->maxfields *= 2;
			state->fields = repalloc_huge(state->fields, sizeof(Field) * (Size) state->maxfields);
		}
		slot->field = state->nfields++;
		field = &state->fields[slot->field];
		field->bytes = NULL;
		field->cap = 0;
	}

	if (field->cap < len)
	{
		if (field->bytes)
			pfree(field->bytes);
		field->bytes = MemoryContextAlloc(state->context, len);
		field->cap = len;
		slot->name = (const char *) field->bytes + 1;
	}
	memcpy(field->bytes, bytes, len);
	field->len = len;
	state->size += len;
	dp_check_document_size(state->size);
}
