/*
 * calls.c
 *		The functions of the preallocated pattern that users call.
 *
 * preallocated_claim(), _confirm() and _release() process all slots or none.
 * Users need the same privileges as for writing the document: UPDATE on the table,
 * and they see no rows that policies hide.  Writes use the privileges of the
 * table's owner.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/reader.h"
#include "kit/adopt.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/side/moves.h"
#include "kit/sql/run.h"
#include "patterns/preallocated/preallocated.h"

typedef enum Verb
{
	VERB_CLAIM,
	VERB_CONFIRM,
	VERB_RELEASE
} Verb;

/* The request */
typedef struct Request
{
	Verb verb;
	DpPreallocated *p;
	DpKey key;
	int n;
	const char **slots; /* sorted */
	DpValue holder;
	Interval *hold_for; /* NULL: for good */
	bool done;
} Request;

/* For grow_document() */
typedef struct Growth
{
	DpShape *shape;
	int added;
} Growth;

static DpPreallocated *preallocated_argument(FunctionCallInfo fcinfo, int name);
static void request_read(FunctionCallInfo fcinfo, Verb verb, Request *r);
static int compare_slots(const void *a, const void *b);
static bool user_restricted(DpPreallocated *p);
static struct varlena *
row_document(DpPreallocated *p, const DpKey *key, const char *locking, int flags);
static struct varlena *hold_document(DpPreallocated *p, const DpKey *key);
static void see_row(DpPreallocated *p, const DpKey *key);
static struct varlena *see_document(DpPreallocated *p, const DpKey *key);
static TimestampTz hold_end(const Request *r, TimestampTz now);
static DpCell *request_cell(const Request *r, DpCells *cells, int i);
static void free_value(const char *slot) pg_attribute_noreturn();
static Datum request_run(FunctionCallInfo fcinfo, Verb verb);
static bool run_with_claims(Request *r, struct varlena *doc);
static struct varlena *
run_in_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg);
static void not_claimed(DpPreallocated *p) pg_attribute_noreturn();
static DpCells *seen_cells(DpPreallocated *p, const DpKey *key, DpClaim **claims, int *nclaims,
						   struct varlena **doc);
static Datum adjacent(const DpCells *cells, int32 n, bool *isnull);
static struct varlena *
grow_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg);

/*
 * preallocated_claim(rel, key, slots text[], holder, hold_for interval, name) -> bool
 */
DP_ROUTED_FUNCTION(dp_preallocated_claim, DP_ROUTE_KEY, 1)
{
	return request_run(fcinfo, VERB_CLAIM);
}

/*
 * preallocated_confirm(rel, key, slots text[], holder, hold_for interval, name) -> bool
 */
DP_ROUTED_FUNCTION(dp_preallocated_confirm, DP_ROUTE_KEY, 1)
{
	return request_run(fcinfo, VERB_CONFIRM);
}

/*
 * preallocated_release(rel, key, slots text[], holder, name) -> bool
 */
DP_ROUTED_FUNCTION(dp_preallocated_release, DP_ROUTE_KEY, 1)
{
	return request_run(fcinfo, VERB_RELEASE);
}

/* Shared by the three calls. */
static Datum
request_run(FunctionCallInfo fcinfo, Verb verb)
{
	Request r = { 0 };
	DpPreallocated *p;

	request_read(fcinfo, verb, &r);
	p = r.p;
	PreventCommandIfReadOnly(verb == VERB_CLAIM     ? "preallocated_claim()"
							 : verb == VERB_CONFIRM ? "preallocated_confirm()"
													: "preallocated_release()");
	if (!p->in_document)
	{
		SPI_connect();
		r.done = run_with_claims(&r, hold_document(p, &r.key));
		SPI_finish();
	}
	else
	{
		see_row(p, &r.key);
		if (!dp_preallocated_write(p, &r.key, LockTupleNoKeyExclusive, run_in_document, &r))
			dp_row_missing(p->decl, &r.key);
	}
	PG_RETURN_BOOL(r.done);
}

/* In the table of claims. */
static bool
run_with_claims(Request *r, struct varlena *doc)
{
	TimestampTz now = GetCurrentTimestamp();
	DpCells *cells = NULL;
	DpValue field;
	const char *why = "";
	bool taken = false;
	int i;

	if (!dp_preallocated_field(r->p, doc, &field, &why))
		dp_preallocated_refuse(r->p, &r->key, "does not have its shape", why);
	for (i = 0; i < r->n; i++)
	{
		/* most documents need not be looked at as a whole */
		DpSlotState state =
			cells == NULL ? dp_shape_slot(r->p->shape, &field, r->slots[i]) : DP_SLOT_OTHERWISE;

		if (state == DP_SLOT_FREE)
		{
			if (dp_value_compare(&r->p->shape->fill, &r->holder) == 0)
				free_value(r->slots[i]);
			continue;
		}
		if (cells == NULL)
			cells = dp_preallocated_cells(r->p, doc, &r->key);
		taken = request_cell(r, cells, i)->taken || taken;
	}
	switch (r->verb)
	{
		case VERB_CLAIM:
			/* in a document that never got the shape */
			if (taken)
				return false;
			return dp_claims_take(r->p, &r->key, r->slots, r->n, &r->holder, hold_end(r, now), now);
		case VERB_CONFIRM:
			return dp_claims_prolong(r->p, &r->key, r->slots, r->n, &r->holder, r->hold_for == NULL,
									 hold_end(r, now));
		case VERB_RELEASE:
			return dp_claims_release(r->p, &r->key, r->slots, r->n, &r->holder);
	}
	return false;
}

/*
 * In the document: a DpPreallocatedChange.  The row is locked.  Cells whose
 * time is over are freed on the way.
 */
static struct varlena *
run_in_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg)
{
	Request *r = arg;
	DpCells *cells = dp_preallocated_cells(p, doc, key);
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz end = hold_end(r, now);
	TimestampTz *until = palloc(sizeof(TimestampTz) * (cells->n + 1));
	struct varlena *result = doc;
	DpValue value;
	DpBuilder b;
	bool holds = false;
	int i;

	r->done = false;
	if (dp_held(p->decl, p->until) && dp_preallocated_until_wrong(p, doc, cells) != NULL)
		dp_held_refuse(p->decl, p->until);
	for (i = 0; i < cells->n; i++)
		until[i] = DT_NOEND;
	if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until, &value))
	{
		for (i = 0; i < cells->n; i++)
		{
			if (cells->cells[i].taken)
				until[i] = dp_preallocated_until(p, doc, cells->cells[i].name);
		}
	}
	for (i = 0; i < r->n; i++)
	{
		DpCell *cell = request_cell(r, cells, i);
		TimestampTz *at = &until[cell - cells->cells];

		if (r->verb == VERB_CLAIM)
		{
			if (cell->taken && *at > now)
				return NULL;
			cell->value = r->holder;
			cell->taken = true;
			*at = end;
			continue;
		}
		if (!cell->taken || dp_value_compare(&cell->value, &r->holder) != 0)
			return NULL;
		if (r->verb == VERB_RELEASE)
		{
			dp_cell_free(p->shape, cells, cell);
			continue;
		}
		if (*at <= now)
			return NULL;
		if (*at != DT_NOEND)
			*at = end;
	}
	r->done = true;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_document(&b);
	for (i = 0; i < cells->n; i++)
	{
		DpCell *cell = &cells->cells[i];

		if (cell->taken && until[i] <= now)
			dp_cell_free(p->shape, cells, cell);
		if (!cell->taken || until[i] == DT_NOEND)
			continue;
		holds = true;
		dp_builder_append_date(&b, cell->name, strlen(cell->name), dp_bucket_ms(until[i]));
	}
	dp_builder_end(&b);
	if (holds)
	{
		value = dp_value_of_varlena(dp_builder_finish_value(&b, DP_TYPE_DOCUMENT));
		result = dp_document_set(DP_DOC_DATA(result), DP_DOC_SIZE(result), p->until, &value);
	}
	else if (dp_path_find(DP_DOC_DATA(result), DP_DOC_SIZE(result), p->until, &value))
		result = dp_document_unset(DP_DOC_DATA(result), DP_DOC_SIZE(result), p->until);
	value = dp_value_of_varlena(dp_cells_value(p->shape, cells));
	return dp_preallocated_put(p, result, &value, dp_cells_free(cells));
}

/*
 * _preallocated_purge_row(rel, name, key record) -> boolean: frees the cells of a document whose
 * holds have expired
 */
DP_FUNCTION(dp_preallocated_purge_row);
Datum
dp_preallocated_purge_row(PG_FUNCTION_ARGS)
{
	Request r = { .verb = VERB_CLAIM };

	dp_require_owner(PG_GETARG_OID(0));
	r.p = dp_preallocated(dp_decl_find(PG_GETARG_OID(0), "preallocated",
									   text_to_cstring(PG_GETARG_TEXT_PP(1))));
	dp_key_of_argument(r.p->decl, fcinfo, 2, &r.key);
	PG_RETURN_BOOL(r.p->in_document && dp_preallocated_write(r.p, &r.key, LockTupleNoKeyExclusive,
															 run_in_document, &r));
}

/*
 * preallocated_slots(rel, key, name) -> rows (slot, holder, until)
 */
DP_ROUTED_FUNCTION(dp_preallocated_slots, DP_ROUTE_KEY, 1)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpPreallocated *p = preallocated_argument(fcinfo, 2);
	TimestampTz *until;
	struct varlena *doc;
	DpClaim *claims;
	DpCells *cells;
	DpKey key;
	int n;
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_key_of_argument(p->decl, fcinfo, 1, &key);
	SPI_connect();
	cells = seen_cells(p, &key, &claims, &n, &doc);
	until = palloc(sizeof(TimestampTz) * (cells->n + 1));
	for (i = 0; i < cells->n; i++)
		until[i] = p->in_document && cells->cells[i].taken
					   ? dp_preallocated_until(p, doc, cells->cells[i].name)
					   : DT_NOEND;
	for (i = 0; i < n; i++)
	{
		DpCell *cell = dp_cells_find(cells, claims[i].slot);

		if (cell != NULL)
			until[cell - cells->cells] = claims[i].until;
	}
	for (i = 0; i < cells->n; i++)
	{
		DpCell *cell = &cells->cells[i];
		Datum values[3];
		bool nulls[3];

		values[0] = CStringGetTextDatum(cell->name);
		nulls[0] = false;
		nulls[1] = !cell->taken;
		if (cell->taken)
			values[1] = PointerGetDatum(dp_value_to_varlena(&cell->value));
		nulls[2] = !cell->taken || until[i] == DT_NOEND;
		values[2] = TimestampTzGetDatum(until[i]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * preallocated_find(rel, key, n, name) -> text[]: the first n adjacent free slots in a row, NULL
 * without them
 */
DP_ROUTED_FUNCTION(dp_preallocated_find, DP_ROUTE_KEY, 1)
{
	DpPreallocated *p = preallocated_argument(fcinfo, 3);
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext old;
	struct varlena *doc;
	DpClaim *claims;
	DpCells *cells;
	DpKey key;
	Datum result;
	bool isnull;
	int n;

	if (PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the number of slots must not be null")));
	dp_key_of_argument(p->decl, fcinfo, 1, &key);
	SPI_connect();
	cells = seen_cells(p, &key, &claims, &n, &doc);
	old = MemoryContextSwitchTo(caller);
	result = adjacent(cells, PG_GETARG_INT32(2), &isnull);
	MemoryContextSwitchTo(old);
	SPI_finish();
	if (isnull)
		PG_RETURN_NULL();
	return result;
}

/*
 * preallocated_find(doc, n, field, fill) -> text[]: the same in a document of which only the field
 * is read. An array of arrays is a grid; in a plain array a number other than 0 is a day, and
 * other cells are named by their position.
 */
DP_ROUTED_FUNCTION(dp_preallocated_find_in, DP_ROUTE_KEY, 1)
{
	static const uint8 zero[4] = { 0, 0, 0, 0 };
	struct varlena *doc;
	DpShape shape = { 0 };
	DpCells flat = { 0 };
	DpCells *cells;
	DpValue field = { 0 };
	DpValue element;
	DpIter iter;
	const char *why = "";
	bool isnull;
	Datum result;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	doc = PG_GETARG_VARLENA_PP(0);
	shape.fill.data = zero;
	shape.fill.len = 4;
	shape.fill.type = DP_TYPE_INT32;
	if (!PG_ARGISNULL(3))
		shape.fill = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(3),
														   get_fn_expr_argtype(fcinfo->flinfo, 3)));
	if (!PG_ARGISNULL(2))
	{
		text *name = PG_GETARG_TEXT_PP(2);

		(void) dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
							dp_path_parse(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name)), &field);
	}
	else
	{
		DpElement e;

		/* the first grid, or else the first array */
		dp_iter_init_varlena(&iter, doc);
		while (dp_iter_next(&iter, &e))
		{
			bool grid = e.value.type == DP_TYPE_ARRAY &&
						dp_array_element(e.value.data, e.value.len, 0, &element) &&
						element.type == DP_TYPE_ARRAY;

			if (e.value.type == DP_TYPE_ARRAY && (grid || field.type == DP_TYPE_EOD))
				field = e.value;
			if (grid)
				break;
		}
	}
	if (field.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the document has no array of slots"),
						errhint("Specify it with the argument \"field\".")));

	if (dp_array_element(field.data, field.len, 0, &element) && element.type == DP_TYPE_ARRAY)
	{
		shape.kind = DP_SHAPE_GRID;
		cells = dp_shape_cells(&shape, doc, &field, false, &why);
		if (cells == NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the document has no array of slots"), errdetail("%s", why)));
	}
	else
	{
		int n = dp_array_count(field.data, field.len);
		int i = 0;

		flat.nrows = 1;
		flat.cells = palloc0(sizeof(DpCell) * (n + 1));
		dp_iter_init_value(&iter, &field);
		while (i < n && dp_iter_next_value(&iter, &element))
		{
			DpCell *cell = &flat.cells[i++];
			bool free = dp_value_compare(&element, &shape.fill) == 0;
			bool day = !free && PG_ARGISNULL(3) && element.type == DP_TYPE_INT32;

			pg_ltoa(day ? dp_get_int32(element.data) : i, cell->name);
			cell->taken = !free && !day;
		}
		flat.n = i;
		cells = &flat;
	}
	result = adjacent(cells, PG_GETARG_INT32(1), &isnull);
	if (isnull)
		PG_RETURN_NULL();
	return result;
}

/* Returns the first n adjacent free cells in a row, as a text[]. */
static Datum
adjacent(const DpCells *cells, int32 n, bool *isnull)
{
	int run = 0;
	int i;

	if (n < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the number of slots must be positive")));
	*isnull = true;
	for (i = 0; i < cells->n; i++)
	{
		if (i > 0 && cells->cells[i].row != cells->cells[i - 1].row)
			run = 0;
		run = cells->cells[i].taken ? 0 : run + 1;
		if (run == n)
		{
			Datum *names = palloc(sizeof(Datum) * n);
			int j;

			for (j = 0; j < n; j++)
				names[j] = CStringGetTextDatum(cells->cells[i - n + 1 + j].name);
			*isnull = false;
			return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
		}
	}
	return (Datum) 0;
}

/*
 * preallocated_extend(rel, key, shape, name) -> int: gives a document the slots
 * of a larger shape, and returns how many are new
 */
DP_ROUTED_FUNCTION(dp_preallocated_extend, DP_ROUTE_KEY, 1)
{
	DpPreallocated *p = preallocated_argument(fcinfo, 3);
	struct varlena *shape;
	Growth g = { 0 };
	DpKey key;

	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the shape must not be null")));
	shape = PG_GETARG_VARLENA_PP(2);
	g.shape = dp_shape_read(DP_DOC_DATA(shape), DP_DOC_SIZE(shape));
	if (g.shape->kind == DP_SHAPE_CALENDAR && p->shape->kind == DP_SHAPE_CALENDAR)
	{
		/* the declaration has the fields of the month */
		g.shape->month = p->shape->month;
		g.shape->year = p->shape->year;
	}
	if (g.shape->kind != p->shape->kind || p->shape->kind == DP_SHAPE_CLOCK)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot change the slots of preallocated pattern \"%s\" to this shape",
						p->decl->name),
				 errdetail("A grid, a calendar or a pool can only become larger.")));
	dp_key_of_argument(p->decl, fcinfo, 1, &key);
	PreventCommandIfReadOnly("preallocated_extend()");
	see_row(p, &key);
	if (!dp_preallocated_write(p, &key, LockTupleNoKeyExclusive, grow_document, &g))
		dp_row_missing(p->decl, &key);
	PG_RETURN_INT32(g.added);
}

/* The document with more slots: a DpPreallocatedChange. */
static struct varlena *
grow_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg)
{
	Growth *g = arg;
	const char *why = "";
	struct varlena *grown;
	DpValue field;
	DpValue value;
	DpCells *cells;

	if (!dp_preallocated_field(p, doc, &field, &why))
		dp_preallocated_refuse(p, key, "cannot be created", why);
	grown = dp_shape_grow(g->shape, p->shape, doc, &field, &g->added, &why);
	if (grown == NULL)
		dp_preallocated_refuse(p, key, "cannot be extended", why);
	value = dp_value_of_varlena(grown);
	cells = dp_shape_cells(p->shape, doc, &value, false, &why);
	if (cells == NULL)
		dp_preallocated_refuse(p, key, "cannot be extended", why);
	if (p->in_document)
		doc = dp_preallocated_put(p, doc, &value, dp_cells_free(cells));
	else
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &value);
	if (g->shape->accessible.type == DP_TYPE_ARRAY)
	{
		DpIter iter;
		DpValue name;

		dp_iter_init_value(&iter, &g->shape->accessible);
		while (dp_iter_next_value(&iter, &name))
		{
			DpValue has;
			DpIter inner;
			DpValue other;
			bool known = false;

			if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->accessible, &has) &&
				has.type == DP_TYPE_ARRAY)
			{
				dp_iter_init_value(&inner, &has);
				while (dp_iter_next_value(&inner, &other))
					known = known || dp_value_compare(&name, &other) == 0;
			}
			if (!known)
				doc =
					dp_document_append(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->accessible, &name, 1);
		}
	}
	return doc;
}

/* ---------------------------------------------------------------- arguments */

/* Returns the declaration. The lock keeps it until the transaction ends. */
static DpPreallocated *
preallocated_argument(FunctionCallInfo fcinfo, int name)
{
	Oid relid;
	char *declared = NULL;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	relid = PG_GETARG_OID(0);
	if (!PG_ARGISNULL(name))
		declared = text_to_cstring(PG_GETARG_TEXT_PP(name));
	LockRelationOid(relid, RecoveryInProgress() ? AccessShareLock : RowExclusiveLock);
	return dp_preallocated(dp_decl_find(relid, "preallocated", declared));
}

/* The arguments of a claim, a confirmation or a release. */
static void
request_read(FunctionCallInfo fcinfo, Verb verb, Request *r)
{
	Datum *slots;
	bool *nulls;
	int i;

	r->verb = verb;
	r->p = preallocated_argument(fcinfo, verb == VERB_RELEASE ? 4 : 5);
	if (r->p->shape->kind == DP_SHAPE_CLOCK)
		not_claimed(r->p);
	dp_key_of_argument(r->p->decl, fcinfo, 1, &r->key);
	if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the slots and their holder must not be null")));
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), TEXTOID, -1, false, TYPALIGN_INT, &slots, &nulls,
					  &r->n);
	if (r->n == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("at least one slot must be specified")));
	r->slots = palloc(sizeof(char *) * r->n);
	for (i = 0; i < r->n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("a slot must not be null")));
		r->slots[i] = TextDatumGetCString(slots[i]);
	}
	qsort(r->slots, r->n, sizeof(char *), compare_slots);
	for (i = 1; i < r->n; i++)
	{
		if (strcmp(r->slots[i - 1], r->slots[i]) == 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("slot \"%.20s\" is specified twice", r->slots[i])));
	}

	r->holder = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(3),
													  get_fn_expr_argtype(fcinfo->flinfo, 3)));
	if (dp_type_is_container(r->holder.type) || r->holder.type == DP_TYPE_NULL ||
		r->holder.type == DP_TYPE_UNDEFINED)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the holder of a slot cannot be a value of type %s",
							   dp_type_name(r->holder.type))));
	if (r->holder.len > DP_HOLDER_MAX_SIZE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the holder of a slot is too long"),
						errdetail("It has %u bytes; at most %d are allowed.", r->holder.len,
								  DP_HOLDER_MAX_SIZE)));

	if (verb != VERB_RELEASE && !PG_ARGISNULL(4))
	{
		r->hold_for = PG_GETARG_INTERVAL_P(4);
		(void) hold_end(r, GetCurrentTimestamp());
	}
}

/* Names in the order in which their claims are locked. */
static int
compare_slots(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/*
 * Returns the expiry of new claims. Raises INVALID_PARAMETER_VALUE for an interval that is not
 * positive.
 */
static TimestampTz
hold_end(const Request *r, TimestampTz now)
{
	TimestampTz end;

	if (r->hold_for == NULL)
		return DT_NOEND;
	end = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(now),
												  IntervalPGetDatum(r->hold_for)));
	if (end <= now || TIMESTAMP_NOT_FINITE(end))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("hold_for must be positive"),
				 errhint("Without hold_for, claims do not expire.")));
	return end;
}

/* The cell of a slot that was named.  Raises INVALID_PARAMETER_VALUE. */
static DpCell *
request_cell(const Request *r, DpCells *cells, int i)
{
	DpCell *cell = dp_cells_find(cells, r->slots[i]);

	if (cell == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the document %s of table \"%s\" has no slot \"%.20s\"",
							   dp_key_to_text(r->p->decl, &r->key),
							   dp_relation_name(r->p->decl->target), r->slots[i])));
	if (dp_cell_is_free_value(r->p->shape, cells, cell, &r->holder))
		free_value(cell->name);
	return cell;
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
free_value(const char *slot)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the holder of slot \"%s\" must differ from the value of a free slot", slot)));
}

/*
 * Returns whether row-level security applies. Raises INSUFFICIENT_PRIVILEGE unless the user may
 * update the document and read it: the result tells which slots are taken.
 */
static bool
user_restricted(DpPreallocated *p)
{
	Oid relid = p->decl->target;
	Oid user = GetUserId();
	AttrNumber column = get_attnum(relid, p->decl->doc_column);

	if ((pg_class_aclcheck(relid, user, ACL_UPDATE) != ACLCHECK_OK &&
		 pg_attribute_aclcheck(relid, column, user, ACL_UPDATE) != ACLCHECK_OK) ||
		(pg_class_aclcheck(relid, user, ACL_SELECT) != ACLCHECK_OK &&
		 pg_attribute_aclcheck(relid, column, user, ACL_SELECT) != ACLCHECK_OK))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(relid));
	return check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED;
}

/* The document of a row; an empty one stands for null.  Raises NO_DATA_FOUND. */
static struct varlena *
row_document(DpPreallocated *p, const DpKey *key, const char *locking, int flags)
{
	struct varlena *doc;

	if (!dp_row_read(p->decl, key, locking, flags, &doc))
		dp_row_missing(p->decl, key);
	return doc != NULL ? doc : dp_document_to_varlena(dp_empty_document, sizeof(dp_empty_document));
}

/*
 * Returns the document, locked against deletion and changes of its key, but not against writes.
 * Raises NO_DATA_FOUND.
 */
static struct varlena *
hold_document(DpPreallocated *p, const DpKey *key)
{
	return row_document(p, key, " FOR KEY SHARE", user_restricted(p) ? 0 : DP_RUN_AS_OWNER);
}

/*
 * Called before the document itself is written: checks that the user may update and see it. At
 * REPEATABLE READ and above, raises an error if it was written since the snapshot, even if nothing
 * will be written. Raises NO_DATA_FOUND.
 */
static void
see_row(DpPreallocated *p, const DpKey *key)
{
	bool restricted = user_restricted(p);

	if (!restricted && !IsolationUsesXactSnapshot())
		return;
	SPI_connect();
	if (!dp_row_lock(p->decl, key, " FOR NO KEY UPDATE",
					 DP_RUN_LOCK | (restricted ? 0 : DP_RUN_AS_OWNER)))
		dp_row_missing(p->decl, key);
	SPI_finish();
}

/* The document that the user sees.  Raises NO_DATA_FOUND. */
static struct varlena *
see_document(DpPreallocated *p, const DpKey *key)
{
	return row_document(p, key, "", DP_RUN_SNAPSHOT);
}

/* Returns the cells of the document that the user sees, with their present holders. */
static DpCells *
seen_cells(DpPreallocated *p, const DpKey *key, DpClaim **claims, int *nclaims,
		   struct varlena **doc)
{
	TimestampTz now = GetCurrentTimestamp();
	DpCells *cells;
	DpKey stored;

	if (p->shape->kind == DP_SHAPE_CLOCK)
		not_claimed(p);
	*doc = see_document(p, key);
	cells = dp_preallocated_cells(p, *doc, key);
	*nclaims = 0;
	if (p->in_document)
		(void) dp_preallocated_expire(p, *doc, cells, now);
	else
	{
		dp_moves_stored(p->decl, key, &stored);
		*nclaims = dp_claims_read(p, &stored, false, now, claims);
		dp_claims_show(cells, *claims, *nclaims);
	}
	return cells;
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
not_claimed(DpPreallocated *p)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot claim slots of a clock, preallocated pattern \"%s\"", p->decl->name),
			 errdetail("Slots of a clock are counters without holders.")));
}
