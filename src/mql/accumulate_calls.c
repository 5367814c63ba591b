/*
 * accumulate_calls.c
 *		Accumulators from SQL: the aggregate bson_accumulate, and documents that
 *		carry the fields of a group.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/collation.h"
#include "bson/state.h"
#include "bson/validate.h"
#include "mql/accumulate.h"
#include "mql/expression.h"
#include "mql/sort_key.h"
#include "mql/spec.h"

/* The field of a document that holds states, and our element of it */
#define STATE_FIELD "_computed"
#define STATE_NAME "fields"

/* How fields are compiled */
typedef enum Kind
{
	KIND_ROWS,   /* of bson_accumulate: the order of rows is a specification */
	KIND_STATE,  /* for documents that carry a state */
	KIND_GROUP,  /* of _accumulate: rows count as they come */
	KIND_WINDOW, /* and leave */
} Kind;

/* Compiled fields, kept as long as a query */
typedef struct Compiled
{
	Kind kind;
	DpAccumulators *acc;
	struct varlena *fields;
	struct varlena *order; /* or, of rows as they come, the collation; NULL: none was given */
	struct Compiled *next;
} Compiled;

/* The state of the aggregate for one group */
typedef struct GroupState
{
	const Compiled *compiled; /* NULL: no row was there */
	DpAccumulation *g;
	StringInfoData key;
} GroupState;

static Datum group_step(PG_FUNCTION_ARGS);
static Datum window_in(PG_FUNCTION_ARGS);
static Datum window_out(PG_FUNCTION_ARGS);
static Datum group_none(PG_FUNCTION_ARGS);
static Datum group_final(PG_FUNCTION_ARGS);

/* ---------------------------------------------------------------- compiling */

/*
 * The compiled fields, kept in fn_extra with all that a query has used: groups
 * point to them.  key: of a group in which an n may be computed, or NULL.  home: of a group, or
 * NULL: where they live if fn_extra is new in each call.
 */
static const Compiled *
compiled_get(FunctionCallInfo fcinfo, struct varlena *fields, struct varlena *order, Kind kind,
			 const DpValue *key, MemoryContext home)
{
	MemoryContext context;
	Compiled **first = (Compiled **) &fcinfo->flinfo->fn_extra;
	Compiled *c;
	MemoryContext old;
	DpAccumulateOptions options = { 0 };
	DpValue spec;
	DpValue order_by;
	uint8 by_id[] = { 14, 0, 0, 0, DP_TYPE_INT32, '_', 'i', 'd', 0, 1, 0, 0, 0, 0 };

	for (c = *first; c != NULL; c = c->next)
	{
		if (c->kind == kind && dp_same_bytes(c->fields, fields) && dp_same_bytes(c->order, order) &&
			!dp_accumulators_vary(c->acc))
			return c;
	}
	/* below the current context until everything succeeded */
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns accumulators",
									DP_SPEC_CONTEXT_SIZES);
	old = MemoryContextSwitchTo(context);
	c = palloc0(sizeof(Compiled));
	c->fields = dp_document_to_varlena(DP_DOC_DATA(fields), DP_DOC_SIZE(fields));
	spec = dp_value_of_document(c->fields);
	order_by.type = DP_TYPE_DOCUMENT;
	order_by.data = by_id;
	order_by.len = sizeof(by_id);
	if (order != NULL)
		c->order = dp_document_to_varlena(DP_DOC_DATA(order), DP_DOC_SIZE(order));
	if (order != NULL && kind < KIND_GROUP)
		order_by = dp_value_of_document(c->order);
	options.order_by = &order_by;
	options.uncapped = kind == KIND_ROWS;
	options.state = kind == KIND_STATE ? STATE_FIELD : NULL;
	options.name = STATE_NAME;
	options.arrival = kind >= KIND_GROUP;
	options.flags = DP_EXPR_LET;
	options.window = kind == KIND_WINDOW;
	options.key = key;
	c->kind = kind;
	c->acc = dp_accumulators_compile(&spec, &options);
	MemoryContextSwitchTo(old);
	if (dp_accumulators_vary(c->acc))
		for (Compiled *other = *first; other != NULL; other = other->next)
			if (other->kind == kind && dp_same_bytes(other->fields, fields) &&
				dp_accumulators_same_n(other->acc, c->acc))
			{
				MemoryContextDelete(context);
				return other;
			}
	if (home == NULL || fcinfo->flinfo->fn_mcxt != CurrentMemoryContext)
		home = fcinfo->flinfo->fn_mcxt;
	MemoryContextSetParent(context, home);
	c->next = *first;
	*first = c;
	return c;
}

/* ---------------------------------------------------------------- the aggregate */

static void
group_init(void *state, MemoryContext context)
{
}

/*
 * Packs the kind, the lengths of the fields and the order (plus one, 0: none), their bytes, the
 * group.
 */
static void
group_pack(StringInfo out, void *state)
{
	GroupState *group = state;
	const Compiled *c = group->compiled;

	dp_pack_varint(out, c->kind);
	dp_pack_varint(out, DP_DOC_SIZE(c->fields));
	appendBinaryStringInfo(out, (const char *) DP_DOC_DATA(c->fields), DP_DOC_SIZE(c->fields));
	dp_pack_varint(out, c->order == NULL ? 0 : DP_DOC_SIZE(c->order) + 1);
	if (c->order != NULL)
		appendBinaryStringInfo(out, (const char *) DP_DOC_DATA(c->order), DP_DOC_SIZE(c->order));
	dp_accumulation_pack(out, group->g);
}

static const DpStateKind group_kind = { sizeof(GroupState), group_init, group_pack };

/* Makes a group without rows of a new state. */
static void
group_start(FunctionCallInfo fcinfo, GroupState *group, struct varlena *fields,
			struct varlena *order, Kind kind, const DpValue *key)
{
	MemoryContext context = dp_state_context(group);
	const Compiled *compiled = compiled_get(fcinfo, fields, order, kind, key, context);
	MemoryContext old = MemoryContextSwitchTo(context);

	group->g = dp_accumulation_make(compiled->acc);
	group->compiled = compiled;
	MemoryContextSwitchTo(old);
}

/* Raises INVALID_PARAMETER_VALUE if a group has other fields. */
static void
group_check(const GroupState *group, struct varlena *fields, struct varlena *order, Kind kind)
{
	if (group->compiled->kind != kind || !dp_same_bytes(group->compiled->fields, fields) ||
		!dp_same_bytes(group->compiled->order, order))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("fields and order must be the same for all rows of a group")));
}

/*
 * bson_accumulate_step(bytea, doc bson, fields bson [, order_by bson [, key
 * bson_value]]) -> bytea: takes a document in; one that is NULL does not
 * count.
 */
DP_FUNCTION(dp_bson_accumulate_step);
Datum
dp_bson_accumulate_step(PG_FUNCTION_ARGS)
{
	GroupState *group = dp_state_get(fcinfo, &group_kind);
	struct varlena *fields;
	struct varlena *order = NULL;
	const char *key = NULL;
	uint32 keylen = 0;
	DpValue doc;

	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("fields must not be null")));
	fields = DP_GETARG_VARLENA(2);
	if (PG_NARGS() > 3 && !PG_ARGISNULL(3))
		order = DP_GETARG_VARLENA(3);
	if (group->compiled == NULL)
		group_start(fcinfo, group, fields, order, KIND_ROWS, NULL);
	else
		group_check(group, fields, order, KIND_ROWS);
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(dp_state_datum(group));
	if (PG_NARGS() > 4 && !PG_ARGISNULL(4))
	{
		DpValue k = dp_value_of_varlena(DP_GETARG_VARLENA(4));

		if (group->key.data == NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(dp_state_context(group));

			initStringInfo(&group->key);
			MemoryContextSwitchTo(old);
		}
		resetStringInfo(&group->key);
		dp_sort_key_append_value(&group->key, &k, false);
		key = group->key.data;
		keylen = group->key.len;
	}
	doc = dp_value_of_document(DP_GETARG_VARLENA(1));
	dp_accumulation_row(group->g, &doc, key, keylen, 1);
	PG_RETURN_DATUM(dp_state_datum(group));
}

/* The collation among variables, which may be NULL; NULL if there is none. */
static struct varlena *
collation_of(struct varlena *let)
{
	DpValue collation;

	if (let == NULL || !dp_let_collation(let, &collation))
		return NULL;
	return dp_document_to_varlena(collation.data, collation.len);
}

/*
 * A row that comes to a group or leaves it, with the arguments state, doc bson, fields bson, let
 * bson [, key bson_value].
 */
static Datum
group_row(FunctionCallInfo fcinfo, Kind kind, int sign)
{
	GroupState *group = dp_state_get(fcinfo, &group_kind);
	struct varlena *let = PG_ARGISNULL(3) ? NULL : DP_GETARG_VARLENA(3);
	DpValue doc;
	DpValue variables;
	DpValue key;

	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("fields must not be null")));
	if (let != NULL)
		variables = dp_value_of_document(let);
	dp_expr_set_let(let == NULL ? NULL : &variables);
	if (group->compiled == NULL)
	{
		bool has_key = PG_NARGS() > 4 && !PG_ARGISNULL(4);

		if (has_key)
			key = dp_value_of_varlena(DP_GETARG_VARLENA(4));
		group_start(fcinfo, group, DP_GETARG_VARLENA(2), collation_of(let), kind,
					has_key ? &key : NULL);
	}
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(dp_state_datum(group));
	doc = dp_value_of_document(DP_GETARG_VARLENA(1));
	if (!dp_accumulation_row(group->g, &doc, NULL, 0, sign))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(dp_state_datum(group));
}

static Datum
group_step(PG_FUNCTION_ARGS)
{
	return group_row(fcinfo, KIND_GROUP, 1);
}

static Datum
window_in(PG_FUNCTION_ARGS)
{
	return group_row(fcinfo, KIND_WINDOW, 1);
}

static Datum
window_out(PG_FUNCTION_ARGS)
{
	return group_row(fcinfo, KIND_WINDOW, -1);
}

/*
 * _accumulate_step(state, doc bson, fields bson, let bson [, key bson_value]) -> state: takes a
 * document in, in the order in which documents come.
 */
DP_FUNCTION(dp_accumulate_step);
Datum
dp_accumulate_step(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 3, group_step);
}

/*
 * The same of a window that moves: _accumulate_in and _accumulate_out, which returns NULL if the
 * window has to be computed again.
 */
DP_FUNCTION(dp_accumulate_in);
Datum
dp_accumulate_in(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 3, window_in);
}

DP_FUNCTION(dp_accumulate_out);
Datum
dp_accumulate_out(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 3, window_out);
}

/*
 * _accumulate_none(fields bson, let bson) -> bson: the fields of no rows.
 */
DP_FUNCTION(dp_accumulate_none);
Datum
dp_accumulate_none(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 1, group_none);
}

static Datum
group_none(PG_FUNCTION_ARGS)
{
	DpValue let;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (!PG_ARGISNULL(1))
		let = dp_value_of_document(DP_GETARG_VARLENA(1));
	dp_expr_set_let(PG_ARGISNULL(1) ? NULL : &let);
	PG_RETURN_POINTER(dp_accumulation_fields(dp_accumulation_make(compiled_get(fcinfo,
																			   DP_GETARG_VARLENA(0),
																			   NULL, KIND_GROUP,
																			   NULL, NULL)
																	  ->acc)));
}

/* A packed group, and the one that it is added to */
typedef struct Packed
{
	DpAccumulation *g;
	DpPacked bytes;
} Packed;

static void
unpack(void *arg)
{
	Packed *p = arg;

	dp_accumulation_unpack(p->g, p->bytes.next, p->bytes.end - p->bytes.next);
}

/* The document of so many bytes that comes next. */
static struct varlena *
unpack_document(DpPacked *p, uint64 len)
{
	const uint8 *bytes = dp_unpack_bytes(p, len);
	DpFault fault;

	if (!dp_validate(bytes, len, &fault))
		dp_corrupted("a packed group has fields that are no document");
	return dp_document_to_varlena(bytes, len);
}

/*
 * bson_accumulate_combine(bytea, bytea) -> bytea: adds the second group to the first.
 */
DP_FUNCTION(dp_bson_accumulate_combine);
Datum
dp_bson_accumulate_combine(PG_FUNCTION_ARGS)
{
	GroupState *group;
	DpPacked p;
	struct varlena *fields;
	struct varlena *order = NULL;
	uint64 kind;
	uint64 len;

	if (!dp_state_packed(fcinfo, &p))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	group = dp_state_get(fcinfo, &group_kind);
	kind = dp_unpack_varint(&p);
	if (kind != KIND_ROWS && kind != KIND_GROUP)
		dp_corrupted("a packed group has an unknown kind");
	fields = unpack_document(&p, dp_unpack_varint(&p));
	len = dp_unpack_varint(&p);
	if (len > 0)
		order = unpack_document(&p, len - 1);
	dp_expr_set_let(NULL);
	if (group->compiled == NULL)
		group_start(fcinfo, group, fields, order, (Kind) kind, NULL);
	else
		group_check(group, fields, order, (Kind) kind);
	if (kind == KIND_GROUP && order != NULL)
	{
		DpValue collation = dp_value_of_document(order);

		dp_collated(&collation, unpack, &(Packed){ group->g, p });
	}
	else
		unpack(&(Packed){ group->g, p });
	PG_RETURN_DATUM(dp_state_datum(group));
}

/*
 * bson_accumulate_final(bytea) -> bson: the fields; NULL if there was no row.
 */
DP_FUNCTION(dp_bson_accumulate_final);
Datum
dp_bson_accumulate_final(PG_FUNCTION_ARGS)
{
	GroupState *group = dp_state_final(fcinfo, &group_kind);
	DpValue collation;

	if (group == NULL)
		PG_RETURN_NULL();
	if (group->compiled->kind < KIND_GROUP || group->compiled->order == NULL)
		return group_final(fcinfo);
	collation = dp_value_of_document(group->compiled->order);
	return dp_collated_by(&collation, fcinfo, group_final);
}

static Datum
group_final(PG_FUNCTION_ARGS)
{
	GroupState *group = dp_state_final(fcinfo, &group_kind);

	PG_RETURN_POINTER(dp_accumulation_fields(group->g));
}

/* ---------------------------------------------------------------- documents with fields */

/* Takes the documents of an array in (1) or out (-1). */
static void
take_array(FunctionCallInfo fcinfo, int argno, DpAccumulation *g, int sign)
{
	Datum *docs;
	bool *nulls;
	int n;

	if (PG_ARGISNULL(argno))
		return;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(argno), dp_types()->bson, -1, false, TYPALIGN_INT,
					  &docs, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		DpValue doc;

		if (nulls[i])
			continue;
		doc = dp_value_of_document((struct varlena *) PG_DETOAST_DATUM_PACKED(docs[i]));
		dp_accumulation_row(g, &doc, NULL, 0, sign);
	}
}

/* The document that the SQL function returns: the new one, or the argument. */
static Datum
changed_document(struct varlena *changed, struct varlena *target)
{
	return PointerGetDatum(changed != NULL ? changed : target);
}

/*
 * bson_accumulate_set(target bson, fields bson, rows bson[], order_by bson) ->
 * bson: the document with the fields of these rows.
 */
DP_FUNCTION(dp_bson_accumulate_set);
Datum
dp_bson_accumulate_set(PG_FUNCTION_ARGS)
{
	struct varlena *target;
	struct varlena *order = PG_ARGISNULL(3) ? NULL : DP_GETARG_VARLENA(3);
	DpAccumulation *g;
	DpValue doc;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	target = DP_GETARG_VARLENA(0);
	g = dp_accumulation_make(compiled_get(fcinfo, DP_GETARG_VARLENA(1), order, KIND_STATE, NULL,
										  NULL)
								 ->acc);
	take_array(fcinfo, 2, g, 1);
	doc = dp_value_of_document(target);
	PG_RETURN_DATUM(changed_document(dp_accumulation_write(g, &doc), target));
}

/*
 * bson_accumulate_change(target bson, fields bson, added bson[], removed bson[], order_by bson) ->
 * bson: the updated document, or NULL if its state is not sufficient.
 */
DP_FUNCTION(dp_bson_accumulate_change);
Datum
dp_bson_accumulate_change(PG_FUNCTION_ARGS)
{
	struct varlena *target;
	struct varlena *order = PG_ARGISNULL(4) ? NULL : DP_GETARG_VARLENA(4);
	DpAccumulation *g;
	DpValue doc;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	target = DP_GETARG_VARLENA(0);
	g = dp_accumulation_make(compiled_get(fcinfo, DP_GETARG_VARLENA(1), order, KIND_STATE, NULL,
										  NULL)
								 ->acc);
	take_array(fcinfo, 2, g, 1);
	take_array(fcinfo, 3, g, -1);
	doc = dp_value_of_document(target);
	if (dp_accumulation_load(g, &doc) != DP_ACCUMULATION_WHOLE)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(changed_document(dp_accumulation_write(g, &doc), target));
}
