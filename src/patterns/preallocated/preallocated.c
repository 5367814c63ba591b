/*
 * preallocated.c
 *		The preallocated pattern: its options and its triggers.
 *
 * BEFORE INSERT or UPDATE, for each row: a document without slots gets the empty
 * shape on INSERT, the old one on UPDATE.  Given slots must have the shape.  An
 * UPDATE that changes slots is refused: only the pattern's functions take and free
 * them.  If the month of a calendar changes, its days do too, unless one is taken.
 *
 * AFTER INSERT, for each row: taken cells become claims, and the stored cells
 * empty.  Other triggers delete or move the claims with their documents: claims.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "kit/adopt.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/rows/by_statement.h"
#include "kit/side/side.h"
#include "kit/rows/write.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "patterns/preallocated/preallocated.h"

#define PATTERN "preallocated"

/*
 * The declarations that have given a document the empty shape in one command:
 * what an upsert then writes is not meant to free cells.
 */
#define MAX_FILLED 8
static struct
{
	CommandId command;
	SubTransactionId subxact;
	TimestampTz statement;
	int n;
	Oid relids[MAX_FILLED];
	NameData names[MAX_FILLED];
} filled;

static void bad_option(DpDecl *decl, const char *option) pg_attribute_noreturn();
static DpPath *path_beside(const DpPath *path, const char *name, const char *suffix);
static HeapTuple preallocated_before(DpPreallocated *p, TriggerData *trigdata);
static struct varlena *arrange_insert(DpPreallocated *p, struct varlena *doc);
static struct varlena *
arrange_update(DpPreallocated *p, TriggerData *trigdata, struct varlena *old, struct varlena *doc);
static struct varlena *arrange_available(DpPreallocated *p, struct varlena *doc);
static bool available_is_held(DpPreallocated *p, struct varlena *doc);
static struct varlena *month_changed(DpPreallocated *p, TriggerData *trigdata, struct varlena *old,
									 struct varlena *doc, const DpValue *before);
static bool until_old_copy(const DpValue *was, const DpValue *is);
static void verify_until(DpPreallocated *p, struct varlena *doc, DpCells *cells);
static bool filled_now(void);
static void note_filled(DpPreallocated *p);
static bool was_filled(DpPreallocated *p);
static struct varlena *keep_path(struct varlena *doc, struct varlena *from, const DpPath *path);
static void adopt_row(DpPreallocated *p, TriggerData *trigdata);
static struct varlena *
empty_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg);

/*
 * preallocated_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_preallocated_trigger);
Datum
dp_preallocated_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, PATTERN,
									DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
										DP_AFTER_STATEMENT(DP_ANY));
	DpPreallocated *p;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	p = dp_preallocated(decl);
	if (p->link_id != NULL)
		dp_side_trigger(decl, trigdata);
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(preallocated_before(p, trigdata));
	if (p->link_id != NULL && TRIGGER_FIRED_FOR_ROW(trigdata->tg_event) &&
		TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		adopt_row(p, trigdata);
	return PointerGetDatum(NULL);
}

/*
 * Returns the options of a declaration, read once. Raises INVALID_PARAMETER_VALUE: a user may
 * create a trigger with any argument.
 */
DpPreallocated *
dp_preallocated(DpDecl *decl)
{
	DpPreallocated *p = decl->state;
	DpValue shape;
	MemoryContext old;

	if (likely(p != NULL))
		return p;
	old = MemoryContextSwitchTo(decl->context);
	p = palloc0(sizeof(DpPreallocated));
	p->decl = decl;
	dp_options_read(decl, p);
	(void) dp_option_value(decl->options, "shape", DP_TYPE_DOCUMENT, &shape);
	p->shape = dp_shape_read(shape.data, shape.len);
	p->link_id = dp_decl_text(decl, "link_id");
	if ((p->link_id != NULL) != (!p->in_document && p->shape->kind != DP_SHAPE_CLOCK))
		bad_option(decl, "store");
	if (p->available != NULL && p->shape->kind == DP_SHAPE_CLOCK)
		bad_option(decl, "available_field");
	p->accessible = path_beside(p->field, "accessible", "");
	p->until = path_beside(p->field, NULL, "_until");
	MemoryContextSwitchTo(old);
	decl->state = p;
	return p;
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_option(DpDecl *decl, const char *option)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("option \"%s\" of the preallocated pattern \"%s\" on table \"%s\" is not valid",
					option, decl->name, dp_relation_name(decl->target))));
}

/*
 * The path of a field in the same document, with another name, or with its own (NULL) and a suffix.
 */
static DpPath *
path_beside(const DpPath *path, const char *name, const char *suffix)
{
	const char **names = palloc(sizeof(char *) * path->nsteps);
	uint32 *lens = palloc(sizeof(uint32) * path->nsteps);
	int i;

	for (i = 0; i < path->nsteps; i++)
	{
		names[i] = path->steps[i].name;
		lens[i] = path->steps[i].namelen;
	}
	i = path->nsteps - 1;
	names[i] = psprintf("%s%s", name != NULL ? name : path->steps[i].name, suffix);
	lens[i] = strlen(names[i]);
	return dp_path_of_names(path->nsteps, names, lens);
}

/*
 * _preallocated_verify(rel, options) -> void: raises INVALID_PARAMETER_VALUE
 * unless the options of a declaration could be read.
 */
DP_FUNCTION(dp_preallocated_verify);
Datum
dp_preallocated_verify(PG_FUNCTION_ARGS)
{
	DpDecl decl = { 0 };

	decl.target = PG_GETARG_OID(0);
	decl.relid = decl.target;
	decl.pattern = pstrdup(PATTERN);
	decl.name = pstrdup("new");
	decl.options = PG_GETARG_VARLENA_PP(1);
	decl.context = CurrentMemoryContext;
	(void) dp_preallocated(&decl);
	PG_RETURN_VOID();
}

/*
 * _preallocated_shape(shape) -> the shape: raises INVALID_PARAMETER_VALUE unless
 * it is one.
 */
DP_FUNCTION(dp_preallocated_shape);
Datum
dp_preallocated_shape(PG_FUNCTION_ARGS)
{
	struct varlena *shape = PG_GETARG_VARLENA_PP(0);

	(void) dp_shape_read(DP_DOC_DATA(shape), DP_DOC_SIZE(shape));
	PG_RETURN_POINTER(shape);
}

/*
 * _preallocated_until_path(options) -> text: path of the expiries in a document
 */
DP_FUNCTION(dp_preallocated_until_path);
Datum
dp_preallocated_until_path(PG_FUNCTION_ARGS)
{
	DpDecl decl = { 0 };
	StringInfoData text;

	decl.pattern = pstrdup(PATTERN);
	decl.name = pstrdup("new");
	decl.options = PG_GETARG_VARLENA_PP(0);
	decl.context = CurrentMemoryContext;
	initStringInfo(&text);
	dp_path_to_text(&text, dp_preallocated(&decl)->until);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(text.data, text.len));
}

bool
dp_preallocated_field(DpPreallocated *p, struct varlena *doc, DpValue *field, const char **why)
{
	struct varlena *empty;

	if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, field))
		return true;
	empty = dp_shape_empty(p->shape, doc, why);
	if (empty == NULL)
		return false;
	*field = dp_value_of_varlena(empty);
	return true;
}

DpCells *
dp_preallocated_cells(DpPreallocated *p, struct varlena *doc, const DpKey *key)
{
	DpValue field;
	DpCells *cells = NULL;
	const char *why = "";

	if (dp_preallocated_field(p, doc, &field, &why))
		cells = dp_shape_cells(p->shape, doc, &field, false, &why);
	if (cells == NULL)
		dp_preallocated_refuse(p, key, "does not have its shape", why);
	return cells;
}

struct varlena *
dp_preallocated_put(DpPreallocated *p, struct varlena *doc, const DpValue *field, int available)
{
	struct varlena *result = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, field);

	if (p->available != NULL && !available_is_held(p, doc))
	{
		uint8 bytes[4];
		DpValue n = { bytes, 4, DP_TYPE_INT32 };

		dp_put_int32(bytes, available);
		result = dp_document_set(DP_DOC_DATA(result), DP_DOC_SIZE(result), p->available, &n);
	}
	return result;
}

void
dp_preallocated_refuse(DpPreallocated *p, const DpKey *key, const char *what, const char *detail)
{
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					key != NULL ? errmsg("field \"%s\" of document %s in table \"%s\" %s",
										 p->field_text, dp_key_to_text(p->decl, key),
										 dp_relation_name(p->decl->target), what)
								: errmsg("field \"%s\" of a document in table \"%s\" %s",
										 p->field_text, dp_relation_name(p->decl->target), what),
					errdetail("%s", detail)));
}

TimestampTz
dp_preallocated_until(DpPreallocated *p, struct varlena *doc, const char *slot)
{
	DpValue until;
	DpValue value;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until, &until) ||
		until.type != DP_TYPE_DOCUMENT ||
		!dp_document_find(until.data, until.len, slot, strlen(slot), &value) ||
		value.type != DP_TYPE_DATE)
		return DT_NOEND;
	return (dp_get_int64(value.data) - DP_EPOCH_SHIFT_MS) * 1000;
}

/*
 * _preallocated_expiry(until bson_value) -> timestamptz: the earliest date in the field that says
 * until when slots are held; NULL for none
 */
DP_FUNCTION(dp_preallocated_expiry);
Datum
dp_preallocated_expiry(PG_FUNCTION_ARGS)
{
	DpValue until = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));
	DpIter iter;
	DpElement element;
	int64 earliest = PG_INT64_MAX;

	if (until.type != DP_TYPE_DOCUMENT)
		PG_RETURN_NULL();
	dp_iter_init_value(&iter, &until);
	while (dp_iter_next(&iter, &element))
		if (element.value.type == DP_TYPE_DATE)
			earliest = Min(earliest, dp_get_int64(element.value.data));
	if (earliest == PG_INT64_MAX)
		PG_RETURN_NULL();
	if (earliest >= END_TIMESTAMP / 1000 + DP_EPOCH_SHIFT_MS)
		PG_RETURN_TIMESTAMPTZ(DT_NOEND);
	if (earliest < MIN_TIMESTAMP / 1000 + DP_EPOCH_SHIFT_MS)
		PG_RETURN_TIMESTAMPTZ(DT_NOBEGIN);
	PG_RETURN_TIMESTAMPTZ((earliest - DP_EPOCH_SHIFT_MS) * 1000);
}

int
dp_preallocated_expire(DpPreallocated *p, struct varlena *doc, DpCells *cells, TimestampTz now)
{
	DpValue until;
	DpIter iter;
	DpElement element;
	int n = 0;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until, &until) ||
		until.type != DP_TYPE_DOCUMENT)
		return 0;
	dp_iter_init_value(&iter, &until);
	while (dp_iter_next(&iter, &element))
	{
		DpCell *cell = dp_cells_find(cells, element.name);

		if (cell == NULL || !cell->taken || dp_preallocated_until(p, doc, cell->name) > now)
			continue;
		dp_cell_free(p->shape, cells, cell);
		n++;
	}
	return n;
}

/* ---------------------------------------------------------------- triggers */

/*
 * BEFORE INSERT OR UPDATE of a row.
 */
static HeapTuple
preallocated_before(DpPreallocated *p, TriggerData *trigdata)
{
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *doc;
	struct varlena *old = NULL;
	struct varlena *result;

	if (is_update)
	{
		if (dp_trigger_same_document(trigdata, p->decl))
			return tuple;
		old = dp_tuple_document(p->decl, trigdata->tg_trigtuple, desc);
	}
	doc = dp_tuple_document(p->decl, tuple, desc);
	if (dp_marked(p->decl->target, p->decl->name) == DP_MARK_INTERNAL)
	{
		struct varlena *wanted = dp_marked_document(p->decl->target, p->decl->name);
		DpValue a;
		DpValue b;

		/* users' triggers must not change slots either */
		if (wanted != NULL &&
			(doc == NULL || (dp_path_find(DP_DOC_DATA(wanted), DP_DOC_SIZE(wanted), p->field, &a) &&
							 (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &b) ||
							  !dp_value_identical(&a, &b)))))
			dp_preallocated_refuse(
				p, NULL, "cannot be changed by a trigger",
				"Slots are taken and freed by preallocated_claim() and preallocated_release().");
		return tuple;
	}
	if (doc == NULL)
	{
		DpCells *cells;
		DpValue field;
		const char *why;

		/* with its document a row would lose its slots */
		if (old != NULL && p->shape->kind != DP_SHAPE_CLOCK &&
			dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), p->field, &field) &&
			(p->link_id != NULL ||
			 (cells = dp_shape_cells(p->shape, old, &field, false, &why)) == NULL ||
			 dp_cells_free(cells) < cells->n))
			dp_preallocated_refuse(p, NULL, "cannot be removed", "The document would be null.");
		return tuple;
	}
	result = old == NULL ? arrange_insert(p, doc) : arrange_update(p, trigdata, old, doc);
	if (old != NULL && available_is_held(p, old))
		result = keep_path(result, old, p->available);
	return result == doc ? tuple : dp_tuple_with_document(p->decl, tuple, desc, result);
}

/* A new document: given its slots, or found to have them. */
static struct varlena *
arrange_insert(DpPreallocated *p, struct varlena *doc)
{
	const char *why = "";
	DpValue field;
	DpValue value;

	if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &field))
	{
		DpCells *cells = dp_shape_cells(p->shape, doc, &field, true, &why);

		if (cells == NULL)
		{
			/* counters that an upsert begins with */
			struct varlena *complete = dp_shape_complete(p->shape, &field);

			if (complete != NULL)
			{
				field = dp_value_of_varlena(complete);
				cells = dp_shape_cells(p->shape, doc, &field, true, &why);
			}
			if (cells == NULL)
				dp_preallocated_refuse(p, NULL, "does not have its shape", why);
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &field);
		}
		verify_until(p, doc, cells);
		return arrange_available(p, doc);
	}
	if (!dp_preallocated_field(p, doc, &field, &why))
		dp_preallocated_refuse(p, NULL, "cannot be created", why);
	doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &field);
	if (p->shape->accessible.type != DP_TYPE_EOD &&
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->accessible, &value))
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->accessible,
							  &p->shape->accessible);
	verify_until(p, doc, NULL);
	note_filled(p);
	return arrange_available(p, doc);
}

/* A document that is written over an old one: the slots stay as they were. */
static struct varlena *
arrange_update(DpPreallocated *p, TriggerData *trigdata, struct varlena *old, struct varlena *doc)
{
	const char *why = "";
	DpValue before;
	DpValue after;
	bool has = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &after);
	DpCells *cells;

	/* a row that is older than the declaration and was never arranged */
	if (!dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), p->field, &before) ||
		(has && !dp_value_identical(&before, &after) &&
		 dp_shape_cells(p->shape, old, &before, false, &why) == NULL))
		return arrange_insert(p, doc);

	if (dp_shape_moved(p->shape, old, doc))
		doc = month_changed(p, trigdata, old, doc, &before);
	else if (!has)
	{
		DpValue value;

		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &before);
		if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->accessible, &value))
			doc = keep_path(doc, old, p->accessible);
	}
	else if (!dp_value_identical(&before, &after))
	{
		cells = dp_shape_cells(p->shape, doc, &after, true, &why);
		if (p->shape->kind == DP_SHAPE_CLOCK)
		{
			if (cells == NULL)
				dp_preallocated_refuse(p, NULL, "does not have its shape", why);
		}
		else if (dp_value_compare(&before, &after) == 0 ||
				 (cells != NULL && ((dp_cells_free(cells) == cells->n && was_filled(p)) ||
									dp_preallocated_old_copy(p, old, doc))))
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &before);
		else
			dp_preallocated_refuse(
				p, NULL, "cannot be changed by a statement",
				"Slots are taken and freed by preallocated_claim() and preallocated_release(), and added by preallocated_extend().");
	}
	if (p->in_document && p->shape->kind != DP_SHAPE_CLOCK)
	{
		DpValue is;
		DpValue was;
		bool had = dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), p->until, &was);

		if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until, &is))
		{
			if (had && until_old_copy(&was, &is))
				doc = keep_path(doc, old, p->until);
			else if (!had || dp_value_compare(&was, &is) != 0)
				dp_preallocated_refuse(
					p, NULL, "cannot be changed by a statement",
					"Expiries are set by preallocated_claim() and preallocated_confirm().");
		}
		else if (had)
			doc = keep_path(doc, old, p->until);
	}
	return arrange_available(p, doc);
}

/*
 * Returns whether a document may be an old copy, read before cells were taken: differing cells are
 * free, and so is its count. Freeing a cell of the present document would not change the count.
 */
bool
dp_preallocated_old_copy(DpPreallocated *p, struct varlena *old, struct varlena *doc)
{
	const char *why;
	DpValue was;
	DpValue is;
	DpValue available;
	DpCells *before;
	DpCells *after;
	int i;

	if (p->shape->kind == DP_SHAPE_CLOCK || p->available == NULL ||
		dp_shape_moved(p->shape, old, doc) ||
		!dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), p->field, &was) ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &is) ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->available, &available) ||
		available.type != DP_TYPE_INT32)
		return false;
	before = dp_shape_cells(p->shape, old, &was, true, &why);
	after = dp_shape_cells(p->shape, doc, &is, true, &why);
	if (before == NULL || after == NULL || before->n != after->n ||
		dp_get_int32(available.data) != dp_cells_free(after))
		return false;
	for (i = 0; i < after->n; i++)
	{
		if (strcmp(before->cells[i].name, after->cells[i].name) != 0 ||
			(after->cells[i].taken &&
			 !(before->cells[i].taken &&
			   dp_value_compare(&before->cells[i].value, &after->cells[i].value) == 0)))
			return false;
	}
	return true;
}

/* Returns whether the expiries of a document may be an old copy. */
static bool
until_old_copy(const DpValue *was, const DpValue *is)
{
	DpIter iter;
	DpElement slot;
	DpValue value;

	if (was->type != DP_TYPE_DOCUMENT || is->type != DP_TYPE_DOCUMENT)
		return false;
	dp_iter_init_value(&iter, is);
	while (dp_iter_next(&iter, &slot))
	{
		if (!dp_field_find(was->data, was->len, slot.name, slot.namelen, &value) ||
			dp_value_compare(&slot.value, &value) != 0)
			return false;
	}
	return true;
}

/*
 * Changes the month of a calendar: its days become those of the new month. Refuses to lose taken
 * days. Waits for concurrent claims.
 */
static struct varlena *
month_changed(DpPreallocated *p, TriggerData *trigdata, struct varlena *old, struct varlena *doc,
			  const DpValue *before)
{
	const char *why = "";
	struct varlena *empty = dp_shape_empty(p->shape, doc, &why);
	DpValue value;
	DpValue field;
	DpCells *cells = dp_shape_cells(p->shape, old, before, false, &why);
	bool taken;
	DpKey key;

	dp_key_of_tuple(p->decl, trigdata->tg_trigtuple, RelationGetDescr(trigdata->tg_relation), &key);
	if (empty == NULL)
		dp_preallocated_refuse(p, &key, "cannot be created", why);
	if (p->in_document && cells != NULL)
		(void) dp_preallocated_expire(p, old, cells, GetCurrentTimestamp());
	taken = cells != NULL && dp_cells_free(cells) < cells->n;
	if (p->link_id != NULL)
	{
		DpClaim *claims;
		MemoryContext context = CurrentMemoryContext;

		SPI_connect();
		(void) dp_row_lock(p->decl, &key, " FOR UPDATE", DP_RUN_AS_OWNER);
		taken = taken || dp_claims_read(p, &key, true, GetCurrentTimestamp(), &claims) > 0;
		SPI_finish();
		MemoryContextSwitchTo(context);
	}
	if (taken)
		dp_preallocated_refuse(p, &key, "cannot be changed to another month",
							   "Days of the present month are taken.");
	value = dp_value_of_varlena(empty);
	if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &field) &&
		!dp_value_identical(&field, before) && dp_value_compare(&field, &value) != 0)
		dp_preallocated_refuse(p, &key, "cannot be changed by a statement",
							   "The days are derived from the month and the year.");
	doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &value);
	if (p->in_document && dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until, &field))
		doc = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until);
	return doc;
}

/* Whether a document has another number of free cells than the pattern has given it. */
static bool
available_is_held(DpPreallocated *p, struct varlena *doc)
{
	DpValue value;
	DpValue n;
	const char *why;

	if (!dp_held(p->decl, p->available) ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->available, &value) ||
		!dp_value_lost(&value, NULL, NIL))
		return false;
	/* one without slots has none of the pattern's */
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &n) ||
		dp_shape_cells(p->shape, doc, &n, false, &why) == NULL)
		return true;
	doc = arrange_available(p, doc);
	return !dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->available, &n) ||
		   dp_value_compare(&value, &n) != 0;
}

/*
 * Sets the number of free cells if slots are in the document; otherwise it is counted when it is
 * read.
 */
static struct varlena *
arrange_available(DpPreallocated *p, struct varlena *doc)
{
	DpValue value;
	DpCells *cells;
	const char *why;
	uint8 bytes[4];
	DpValue n = { bytes, 4, DP_TYPE_INT32 };
	bool has;

	if (p->available == NULL)
		return doc;
	has = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->available, &value);
	if (!p->in_document)
		return has ? dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->available) : doc;
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &n) ||
		(cells = dp_shape_cells(p->shape, doc, &n, false, &why)) == NULL)
		return doc;
	dp_put_int32(bytes, dp_cells_free(cells));
	n.data = bytes;
	n.len = 4;
	n.type = DP_TYPE_INT32;
	if (has && dp_value_identical(&value, &n))
		return doc;
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->available, &n);
}

/*
 * Checks that given expiries belong to taken cells, or are from before the declaration. cells:
 * NULL if there are none yet.
 */
static void
verify_until(DpPreallocated *p, struct varlena *doc, DpCells *cells)
{
	const char *why = dp_preallocated_until_wrong(p, doc, cells);

	if (why != NULL && !dp_held(p->decl, p->until))
		dp_preallocated_refuse(p, NULL, "does not have its shape", why);
}

const char *
dp_preallocated_until_wrong(DpPreallocated *p, struct varlena *doc, DpCells *cells)
{
	DpValue until;
	DpIter iter;
	DpElement element;

	if (!p->in_document || p->shape->kind == DP_SHAPE_CLOCK ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until, &until))
		return NULL;
	if (until.type != DP_TYPE_DOCUMENT)
		return "The times until which slots are held must be a document.";
	dp_iter_init_value(&iter, &until);
	while (dp_iter_next(&iter, &element))
	{
		DpCell *cell = cells != NULL ? dp_cells_find(cells, element.name) : NULL;

		if (element.value.type != DP_TYPE_DATE || cell == NULL || !cell->taken)
			return psprintf("Slot \"%.20s\" has an expiry but is not taken.", element.name);
	}
	return NULL;
}

/* Returns whether the remembered documents with the empty shape are of this command. */
static bool
filled_now(void)
{
	return filled.command == GetCurrentCommandId(false) &&
		   filled.subxact == GetCurrentSubTransactionId() &&
		   filled.statement == GetCurrentStatementStartTimestamp();
}

/* Remember that this command has given a document the empty shape. */
static void
note_filled(DpPreallocated *p)
{
	if (was_filled(p))
		return;
	if (!filled_now() || filled.n == MAX_FILLED)
		filled.n = 0;
	filled.command = GetCurrentCommandId(false);
	filled.subxact = GetCurrentSubTransactionId();
	filled.statement = GetCurrentStatementStartTimestamp();
	filled.relids[filled.n] = p->decl->target;
	namestrcpy(&filled.names[filled.n], p->decl->name);
	filled.n++;
}

/* Returns whether it got the empty shape: then ON CONFLICT DO UPDATE writes EXCLUDED. */
static bool
was_filled(DpPreallocated *p)
{
	int i;

	for (i = 0; i < filled.n && filled_now(); i++)
	{
		if (filled.relids[i] == p->decl->target &&
			strncmp(NameStr(filled.names[i]), p->decl->name, NAMEDATALEN - 1) == 0)
			return true;
	}
	return false;
}

/* The document with what another one has at a path, if that has it. */
static struct varlena *
keep_path(struct varlena *doc, struct varlena *from, const DpPath *path)
{
	DpValue value;

	if (!dp_path_find(DP_DOC_DATA(from), DP_DOC_SIZE(from), path, &value))
		return doc;
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value);
}

/* AFTER INSERT of a row: claims its taken cells. */
static void
adopt_row(DpPreallocated *p, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *doc = dp_tuple_document(p->decl, trigdata->tg_trigtuple, desc);
	DpMove *move;
	bool written;
	DpCells *cells;
	DpKey key;

	if (doc == NULL)
		return;
	dp_key_of_tuple(p->decl, trigdata->tg_trigtuple, desc, &key);
	cells = dp_preallocated_cells(p, doc, &key);
	if (dp_cells_free(cells) == cells->n)
		return;
	move = dp_moves_stay(p->decl, &key);
	if (move != NULL)
	{
		move->flags |= DP_CLAIMS_TAKEN;
		return;
	}
	(void) dp_preallocated_write(p, &key, LockTupleExclusive, empty_document, &written);
}

/*
 * Gives a document the shape: with the table of claims, its taken cells become claims. A
 * DpPreallocatedChange.
 */
static struct varlena *
empty_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg)
{
	bool *written = arg;
	const char *why = "";
	struct varlena *grown;
	struct varlena *result = doc;
	DpValue field;
	DpValue value;
	DpCells *cells;
	bool has = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &field);
	int added;

	if (!has && !dp_preallocated_field(p, doc, &field, &why))
		dp_preallocated_refuse(p, key, "cannot be created", why);
	grown = dp_shape_grow(p->shape, p->shape, doc, &field, &added, &why);
	if (grown == NULL)
		dp_preallocated_refuse(p, key, "does not have its shape", why);
	value = dp_value_of_varlena(grown);
	if (p->link_id != NULL)
	{
		cells = dp_shape_cells(p->shape, doc, &value, false, &why);
		if (cells == NULL)
			dp_preallocated_refuse(p, key, "does not have its shape", why);
		if (dp_cells_free(cells) < cells->n)
		{
			int i;

			SPI_connect();
			dp_claims_adopt(p, key, cells);
			SPI_finish();
			for (i = 0; i < cells->n; i++)
			{
				if (cells->cells[i].taken)
					dp_cell_free(p->shape, cells, &cells->cells[i]);
			}
			value = dp_value_of_varlena(dp_cells_value(p->shape, cells));
		}
	}
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &field) ||
		!dp_value_identical(&field, &value))
		result = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &value);
	if (!has && p->shape->accessible.type != DP_TYPE_EOD &&
		!dp_path_find(DP_DOC_DATA(result), DP_DOC_SIZE(result), p->accessible, &value))
		result = dp_document_set(DP_DOC_DATA(result), DP_DOC_SIZE(result), p->accessible,
								 &p->shape->accessible);
	if (p->in_document && p->decl->held != NIL && dp_had_field(p->decl, p->until) &&
		dp_preallocated_until_wrong(p, result, dp_preallocated_cells(p, result, key)) != NULL)
		result = dp_document_unset(DP_DOC_DATA(result), DP_DOC_SIZE(result), p->until);
	if (p->in_document)
		verify_until(p, result, dp_preallocated_cells(p, result, key));
	result = arrange_available(p, result);
	*written = result != doc;
	return result != doc ? result : NULL;
}

bool
dp_preallocated_write(DpPreallocated *p, const DpKey *key, LockTupleMode mode,
					  DpPreallocatedChange change, void *arg)
{
	DpDecl *decl = p->decl;
	DpWriter *w = dp_writer_open(decl->target, decl->doc_column, 0, decl->name);
	bool done = false;

	if (p->lookup == NULL)
		p->lookup = dp_lookup_primary(decl->target, decl->context);
	dp_writer_refresh(w);
	while (!done && dp_writer_find(w, p->lookup, key->values))
	{
		struct varlena *doc;

		CHECK_FOR_INTERRUPTS();
		if (dp_writer_lock_found(w, mode, LockWaitBlock) == DP_LOCK_DELETED)
			continue;
		doc = dp_writer_document(w);
		if (doc != NULL)
			doc = change(p, dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc)), key, arg);
		done = doc == NULL || dp_writer_update(w, doc) != DP_WRITE_CHANGED;
	}
	dp_writer_close(w);
	return done;
}

bool
dp_preallocated_repair_row(DpPreallocated *p, const DpKey *key)
{
	bool written = false;

	if (dp_decl_maintained(p->decl))
		(void) dp_preallocated_write(p, key, LockTupleExclusive, empty_document, &written);
	return written;
}
