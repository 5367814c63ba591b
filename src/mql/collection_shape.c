/*
 * collection_shape.c
 *		Keeps what calls for collections make of their arguments, by shape: programs make the
 *		same calls again and again with other values.
 *
 * In the shape of a call, a place stands for each value that a field of the filter, or one of its
 * simple operators, compares with; everything else is there byte for byte.  So results that were
 * computed, and arguments that were checked, are right for all calls of the shape.  Only the
 * operands are taken from the filter.  Results also depend on catalogs: any change of a relation,
 * function, type or schema clears them all.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "mql/collection_shape.h"
#include "mql/filter_compile.h"

#define SHAPES 64
#define LONGEST_KEY 1024

/* The result of a shape */
typedef struct KeptShape
{
	MemoryContext context; /* of everything; NULL: free */
	uint64 used;           /* when: the one that was not used for longest is replaced */
	uint32 hash;
	int keylen;
	char *key;
	DpCall call;     /* its results; operands that do not come from values */
	int16 *operands; /* which value each is; -1: none */
} KeptShape;

static KeptShape shapes[SHAPES];
static uint64 uses = 0;
static bool stale = false;

static void append_argument(StringInfo key, struct varlena *argument);
static void append_filter(DpShape *shape, const DpValue *filter);
static void append_compared(DpShape *shape, const DpValue *value);
static void append_literal(StringInfo key, const DpValue *value);
static void relation_changed(Datum arg, Oid relid);
static void catalog_changed(Datum arg, int cacheid, uint32 hashvalue);

bool
dp_shape_find(DpShape *shape, DpCall *call)
{
	DpValue filter = dp_value_of_document(call->filter);
	KeptShape *found = NULL;
	static bool registered = false;

	if (!registered)
	{
		dp_on_relation_change(relation_changed);
		CacheRegisterSyscacheCallback(PROCOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(TYPEOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, catalog_changed, (Datum) 0);
		registered = true;
	}
	shape->nvalues = 0;
	initStringInfo(&shape->key);
	appendBinaryStringInfo(&shape->key, (char *) &call->relid, sizeof(Oid));
	append_argument(&shape->key, call->sort);
	append_argument(&shape->key, call->projection);
	append_argument(&shape->key, (struct varlena *) call->field);
	appendStringInfoChar(&shape->key, call->update != NULL);
	append_filter(shape, &filter);
	if (shape->key.len > LONGEST_KEY)
		return false;

	if (stale)
		for (int i = 0; i < SHAPES; i++)
			if (shapes[i].context != NULL)
			{
				MemoryContextDelete(shapes[i].context);
				shapes[i].context = NULL;
			}
	stale = false;
	shape->hash = hash_bytes((unsigned char *) shape->key.data, shape->key.len);
	for (int i = 0; i < SHAPES && found == NULL; i++)
		if (shapes[i].context != NULL && shapes[i].hash == shape->hash &&
			shapes[i].keylen == shape->key.len &&
			memcmp(shapes[i].key, shape->key.data, shape->key.len) == 0)
			found = &shapes[i];
	if (found == NULL)
		return false;

	found->used = ++uses;
	/* copies: triggers can make other calls, which replace the shape */
	for (int i = 0; i < DP_CALL_PARTS; i++)
		if (found->call.sql[i] != NULL)
			call->sql[i] = pstrdup(found->call.sql[i]);
	call->is_table = found->call.is_table;
	call->is_remote = found->call.is_remote;
	call->is_single = found->call.is_single;
	call->base = found->call.base;
	call->hiding = found->call.hiding;
	call->noperands = found->call.noperands;
	call->operands = palloc(call->noperands * sizeof(Datum));
	for (int i = 0; i < call->noperands; i++)
		call->operands[i] =
			found->operands[i] < 0
				? PointerGetDatum(PG_DETOAST_DATUM_COPY(found->call.operands[i]))
				: PointerGetDatum(dp_value_to_varlena(&shape->values[found->operands[i]]));
	return true;
}

void
dp_shape_keep(const DpShape *shape, const DpCall *call)
{
	KeptShape *room = &shapes[0];
	MemoryContext context;
	MemoryContext old;

	if (shape->key.len > LONGEST_KEY || call->once)
		return;
	for (int i = 0; i < SHAPES && room->context != NULL; i++)
		if (shapes[i].context == NULL || shapes[i].used < room->used)
			room = &shapes[i];
	if (room->context != NULL)
		MemoryContextDelete(room->context);
	room->context = NULL;
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns call", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	room->used = ++uses;
	room->hash = shape->hash;
	room->keylen = shape->key.len;
	room->key = memcpy(palloc(shape->key.len), shape->key.data, shape->key.len);
	room->call = *call;
	for (int i = 0; i < DP_CALL_PARTS; i++)
		if (call->sql[i] != NULL)
			room->call.sql[i] = pstrdup(call->sql[i]);
	room->call.operands = palloc(call->noperands * sizeof(Datum));
	room->operands = palloc(call->noperands * sizeof(int16));
	for (int i = 0; i < call->noperands; i++)
	{
		room->operands[i] = -1;
		for (int j = 0; j < shape->nvalues; j++)
			if (shape->values[j].data == call->origins[i])
				room->operands[i] = j;
		if (room->operands[i] < 0)
			room->call.operands[i] = PointerGetDatum(PG_DETOAST_DATUM_COPY(call->operands[i]));
	}
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, TopMemoryContext);
	room->context = context;
}

static void
append_argument(StringInfo key, struct varlena *argument)
{
	int32 len = argument == NULL ? -1 : (int32) VARSIZE_ANY_EXHDR(argument);

	appendBinaryStringInfo(key, (char *) &len, sizeof(int32));
	if (len > 0)
		appendBinaryStringInfo(key, VARDATA_ANY(argument), Min(len, LONGEST_KEY + 1));
}

/* Each field begins with 'n' for a name, and each value with another letter. */
static void
append_filter(DpShape *shape, const DpValue *filter)
{
	DpIter iter;
	DpElement field;

	dp_iter_init_value(&iter, filter);
	while (shape->key.len <= LONGEST_KEY && dp_iter_next(&iter, &field))
	{
		appendStringInfoChar(&shape->key, 'n');
		appendBinaryStringInfo(&shape->key, field.name, field.namelen + 1);
		if (field.name[0] == '$')
			append_literal(&shape->key, &field.value);
		else if (dp_filter_is_operators(&field.value))
		{
			DpIter operators;
			DpElement op;

			appendStringInfoChar(&shape->key, 'o');
			dp_iter_init_value(&operators, &field.value);
			while (shape->key.len <= LONGEST_KEY && dp_iter_next(&operators, &op))
			{
				appendStringInfoChar(&shape->key, 'n');
				appendBinaryStringInfo(&shape->key, op.name, op.namelen + 1);
				if (strcmp(op.name, "$eq") == 0 || strcmp(op.name, "$gt") == 0 ||
					strcmp(op.name, "$gte") == 0 || strcmp(op.name, "$lt") == 0 ||
					strcmp(op.name, "$lte") == 0)
					append_compared(shape, &op.value);
				else
					append_literal(&shape->key, &op.value);
			}
			appendStringInfoChar(&shape->key, 'e');
		}
		else
			append_compared(shape, &field.value);
	}
}

/* A place for a value, if conditions are the same for all values of its kind. */
static void
append_compared(DpShape *shape, const DpValue *value)
{
	if (shape->nvalues < DP_SHAPE_VALUES &&
		(dp_type_is_number(value->type) || value->type == DP_TYPE_STRING ||
		 value->type == DP_TYPE_OBJECTID || value->type == DP_TYPE_DATE ||
		 value->type == DP_TYPE_BOOL || value->type == DP_TYPE_BINARY))
	{
		appendStringInfoChar(&shape->key, 'v');
		shape->values[shape->nvalues++] = *value;
	}
	else
		append_literal(&shape->key, value);
}

static void
append_literal(StringInfo key, const DpValue *value)
{
	appendStringInfoChar(key, 'l');
	appendStringInfoChar(key, value->type);
	appendBinaryStringInfo(key, (char *) &value->len, sizeof(value->len));
	if (value->len > 0)
		appendBinaryStringInfo(key, (const char *) value->data, Min(value->len, LONGEST_KEY + 1));
}

static void
relation_changed(Datum arg, Oid relid)
{
	stale = true;
}

static void
catalog_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	stale = true;
}
