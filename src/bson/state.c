/*
 * state.c
 *		States of aggregates: see state.h.
 */
#include "postgres.h"

#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "bson/build.h"
#include "bson/state.h"

/* In front of each state */
typedef struct State
{
	ExpandedObjectHeader header;
	const DpStateKind *kind;
	/* between the two calls for a flat datum: */
	MemoryContext packing;
	char *packed;
} State;

static const char memory_name[] = "docpatterns aggregate states";

static Size packed_size(ExpandedObjectHeader *header);
static void packed_write(ExpandedObjectHeader *header, void *result, Size size);

static const ExpandedObjectMethods methods = { packed_size, packed_write };

#define STATE_DATA(s) ((void *) ((char *) (s) + MAXALIGN(sizeof(State))))
#define STATE_OF(data) ((State *) ((char *) (data) -MAXALIGN(sizeof(State))))

/*
 * The memory of all states of a node of a plan.  It lies below the aggregate's, as the executor
 * expects of expanded objects, but they share it: with a context each, a hash table of many groups
 * would spend its time on measuring them.  The executor deletes none alone, because the functions
 * return the state that they got.
 */
static MemoryContext
memory_get(MemoryContext aggregate)
{
	for (MemoryContext c = aggregate->firstchild; c != NULL; c = c->nextchild)
		if (c->name == memory_name)
			return c;
	return AllocSetContextCreateInternal(aggregate, memory_name, ALLOCSET_DEFAULT_SIZES);
}

/* The state of a datum, of which nothing is known. */
static State *
state_of_datum(Datum d, const DpStateKind *kind)
{
	if (VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(d)))
	{
		State *s = (State *) DatumGetEOHP(d);

		if (s->header.eoh_methods == &methods && s->kind == kind)
			return s;
	}
	ereport(ERROR,
			(errcode(ERRCODE_GROUPING_ERROR),
			 errmsg("an aggregate's function was called with a state of another aggregate")));
}

void *
dp_state_get(FunctionCallInfo fcinfo, const DpStateKind *kind)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	State *s;

	if (!PG_ARGISNULL(0))
		return STATE_DATA(state_of_datum(PG_GETARG_DATUM(0), kind));
	context = memory_get(context);
	s = MemoryContextAllocZero(context, MAXALIGN(sizeof(State)) + kind->size);
	EOH_init_header(&s->header, &methods, context);
	s->kind = kind;
	kind->init(STATE_DATA(s), context);
	return STATE_DATA(s);
}

void *
dp_state_final(FunctionCallInfo fcinfo, const DpStateKind *kind)
{
	(void) dp_aggregate_context(fcinfo);
	return PG_ARGISNULL(0) ? NULL : STATE_DATA(state_of_datum(PG_GETARG_DATUM(0), kind));
}

Datum
dp_state_datum(void *state)
{
	return EOHPGetRWDatum(&STATE_OF(state)->header);
}

MemoryContext
dp_state_context(void *state)
{
	return STATE_OF(state)->header.eoh_context;
}

bool
dp_state_packed(FunctionCallInfo fcinfo, DpPacked *p)
{
	bytea *bytes;

	if (PG_ARGISNULL(1))
		return false;
	bytes = PG_GETARG_BYTEA_PP(1);
	p->next = (const uint8 *) VARDATA_ANY(bytes);
	p->end = p->next + VARSIZE_ANY_EXHDR(bytes);
	return true;
}

/*
 * For PostgreSQL, which makes a flat datum: its size, which tuples ask for twice.  The current
 * context may be the one for the tuples of a sort, which cannot free (since PostgreSQL 17).
 */
static Size
packed_size(ExpandedObjectHeader *header)
{
	State *s = (State *) header;
	StringInfoData out;
	MemoryContext old;

	if (s->packing != NULL)
		MemoryContextDelete(s->packing);
	s->packing = AllocSetContextCreate(header->eoh_context, "docpatterns packed state",
									   ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(s->packing);
	initStringInfo(&out);
	appendStringInfoSpaces(&out, VARHDRSZ);
	s->kind->pack(&out, STATE_DATA(s));
	MemoryContextSwitchTo(old);
	s->packed = out.data;
	return out.len;
}

/* Then the datum itself. */
static void
packed_write(ExpandedObjectHeader *header, void *result, Size size)
{
	State *s = (State *) header;

	memcpy(result, s->packed, size);
	SET_VARSIZE(result, size);
	MemoryContextDelete(s->packing);
	s->packing = NULL;
}

/* state_serialize(internal) -> bytea: any state, packed. */
DP_FUNCTION(dp_state_serialize);
Datum
dp_state_serialize(PG_FUNCTION_ARGS)
{
	(void) dp_aggregate_context(fcinfo);
	PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P(0));
}

/* state_deserialize(bytea, internal) -> internal: combine functions take packed states. */
DP_FUNCTION(dp_state_deserialize);
Datum
dp_state_deserialize(PG_FUNCTION_ARGS)
{
	(void) dp_aggregate_context(fcinfo);
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}
