/*
 * approximation.c
 *		Triggers of the approximation pattern, and its options.
 *
 * BEFORE INSERT OR UPDATE, for each row: checks that the field is a number or
 * absent.  With a threshold, an UPDATE that changes the field by less keeps the
 * old bytes, and if nothing else has changed the row is not written.  The trigger
 * fires after users' triggers and after patterns that change documents, so that
 * no later trigger changes the row.
 *
 * With shards, triggers for DELETE, changed keys and TRUNCATE delete or move the
 * shards: exact.c.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/edit.h"
#include "bson/reader.h"
#include "kit/options.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "patterns/approximation/approximation.h"

static void read_threshold(DpApproximation *a, const char *text);
static void bad_option(DpDecl *decl, const char *option) pg_attribute_noreturn();
static HeapTuple approximation_before(DpApproximation *a, TriggerData *trigdata);
static HeapTuple threshold_update(DpApproximation *a, TriggerData *trigdata, struct varlena *before,
								  struct varlena *after, const DpValue *new);
static bool same_row(TriggerData *trigdata, TupleDesc desc, AttrNumber except);
static bool approximation_close(const DpApproximation *a, const DpValue *old, const DpValue *new);

/*
 * approximation_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_approximation_trigger);
Datum
dp_approximation_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "approximation",
									DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
										DP_AFTER_STATEMENT(DP_ANY));
	DpApproximation *a;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	a = dp_approximation(decl);
	if (a->form == DP_APPROXIMATION_SHARDS)
		dp_side_trigger(decl, trigdata);
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(approximation_before(a, trigdata));
	return PointerGetDatum(NULL);
}

/*
 * Returns the options of a declaration, read once. Raises INVALID_PARAMETER_VALUE: a user may
 * create a trigger with any argument.
 */
DpApproximation *
dp_approximation(DpDecl *decl)
{
	DpApproximation *a = decl->state;

	if (likely(a != NULL))
		return a;

	a = MemoryContextAllocZero(decl->context, sizeof(DpApproximation));
	a->decl = decl;
	dp_options_read(decl, a);
	if (a->step > 0)
		a->form = DP_APPROXIMATION_STEP;
	else if (a->shards > 0)
	{
		char *link_id = dp_decl_text(decl, "link_id");

		a->form = DP_APPROXIMATION_SHARDS;
		if (link_id == NULL)
			bad_option(decl, "slots");
		a->side = dp_link_side(link_id, decl->target);
	}
	else if (dp_decl_text(decl, "threshold") != NULL)
	{
		a->form = DP_APPROXIMATION_THRESHOLD;
		read_threshold(a, dp_decl_text(decl, "threshold"));
	}
	else
	{
		DpValue value;
		double error = 0;

		a->form = DP_APPROXIMATION_ERROR;
		if (dp_document_find(DP_DOC_DATA(decl->options), DP_DOC_SIZE(decl->options), "error", 5,
							 &value) &&
			dp_type_is_number(value.type))
			error = dp_amount_double(&value);
		if (!(error > 0 && error <= DP_APPROXIMATION_MAX_ERROR))
			bad_option(decl, "error");
		a->variance = 2 * error * error;
	}
	decl->state = a;
	return a;
}

/* A threshold is a positive number, or a percentage. */
static void
read_threshold(DpApproximation *a, const char *text)
{
	int len = strlen(text);
	uint8 decimal[DP_DECIMAL128_SIZE];
	DpValue value = { decimal, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	MemoryContext old;
	Numeric n;

	a->relative = len > 0 && text[len - 1] == '%';
	if (a->relative)
		len--;
	if (!dp_decimal128_from_text(text, len, decimal))
		bad_option(a->decl, "threshold");
	n = dp_decimal128_to_numeric(decimal);
	if (a->relative)
		n = numeric_mul_opt_error(n, int64_div_fast_to_numeric(1, 2), NULL);
	a->threshold = dp_amount_double(&value) / (a->relative ? 100 : 1);
	if (!(a->threshold > 0 && a->threshold < 1e300))
		bad_option(a->decl, "threshold");
	old = MemoryContextSwitchTo(a->decl->context);
	a->threshold_exact = DatumGetNumeric(datumCopy(NumericGetDatum(n), false, -1));
	MemoryContextSwitchTo(old);
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_option(DpDecl *decl, const char *option)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		 errmsg("option \"%s\" of the approximation pattern \"%s\" on table \"%s\" is not valid",
				option, decl->name, dp_relation_name(decl->target))));
}

/*
 * _approximation_verify(options) -> void: raises INVALID_PARAMETER_VALUE for options that are not
 * valid.
 */
DP_FUNCTION(dp_approximation_verify);
Datum
dp_approximation_verify(PG_FUNCTION_ARGS)
{
	DpDecl decl = { 0 };

	decl.target = PG_GETARG_OID(0);
	decl.relid = decl.target;
	decl.pattern = pstrdup("approximation");
	decl.name = pstrdup("new");
	decl.options = PG_GETARG_VARLENA_PP(1);
	decl.context = CurrentMemoryContext;
	if (dp_approximation(&decl)->form != DP_APPROXIMATION_SHARDS &&
		dp_decl_text(&decl, "link_id") != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot change a counter with shards to another form"),
						errhint("Call pattern_disable() and declare the pattern again.")));
	PG_RETURN_VOID();
}

/*
 * BEFORE INSERT OR UPDATE of a row.
 */
static HeapTuple
approximation_before(DpApproximation *a, TriggerData *trigdata)
{
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *after;
	DpValue new;
	bool known;

	if (is_update && dp_trigger_same_document(trigdata, a->decl))
		return tuple;
	after = dp_tuple_document(a->decl, tuple, desc);
	if (after == NULL)
		return tuple;
	known = dp_approximation_field(a, after, &new);
	if (is_update && known && a->form == DP_APPROXIMATION_THRESHOLD &&
		dp_marked(a->decl->target, a->decl->name) != DP_MARK_INTERNAL)
	{
		struct varlena *before = dp_tuple_document(a->decl, trigdata->tg_trigtuple, desc);

		if (before != NULL)
			return threshold_update(a, trigdata, before, after, &new);
	}
	return tuple;
}

/*
 * Compares an UPDATE with the threshold: returns the new row, the new row with the old field, or
 * NULL if the UPDATE then changes nothing.
 */
static HeapTuple
threshold_update(DpApproximation *a, TriggerData *trigdata, struct varlena *before,
				 struct varlena *after, const DpValue *new)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	DpValue old;
	struct varlena *doc;

	if (!dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), a->field, &old) ||
		!dp_type_is_number(old.type) || dp_value_identical(&old, new) ||
		!approximation_close(a, &old, new))
		return trigdata->tg_newtuple;
	doc = dp_document_set(DP_DOC_DATA(after), DP_DOC_SIZE(after), a->field, &old);
	if (dp_same_bytes(doc, before) && same_row(trigdata, desc, a->decl->doc_attnum))
		return NULL;
	return dp_tuple_with_document(a->decl, trigdata->tg_newtuple, desc, doc);
}

/*
 * Compares integers and decimals exactly, and doubles by their fifteen certain digits, so that
 * from 10.1 to 10.2 is 0.1.
 */
static bool
approximation_close(const DpApproximation *a, const DpValue *old, const DpValue *new)
{
	Numeric was;
	Numeric is;
	Numeric moved;
	Numeric limit;

	if (!isfinite(dp_amount_double(old)) || !isfinite(dp_amount_double(new)))
		return false;
	was = dp_amount_numeric(old);
	is = dp_amount_numeric(new);
	moved =
		DatumGetNumeric(DirectFunctionCall1(numeric_abs,
											NumericGetDatum(numeric_sub_opt_error(is, was, NULL))));
	limit = a->threshold_exact;
	if (a->relative)
		limit =
			DatumGetNumeric(DirectFunctionCall1(numeric_abs,
												NumericGetDatum(numeric_mul_opt_error(limit, was,
																					  NULL))));
	return DatumGetBool(DirectFunctionCall2(numeric_lt, NumericGetDatum(moved),
											NumericGetDatum(limit)));
}

bool
dp_approximation_field(const DpApproximation *a, struct varlena *doc, DpValue *value)
{
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), a->field, value) ||
		value->type == DP_TYPE_NULL)
		return false;
	if (!dp_type_is_number(value->type))
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("field \"%s\" in table \"%s\" must be a number, not of type %s",
						a->field_text, dp_relation_name(a->decl->target),
						dp_type_name(value->type)),
				 errdetail("Approximation pattern \"%s\" requires a number, null or no such field.",
						   a->decl->name)));
	return true;
}

/* Returns whether an UPDATE leaves all other columns unchanged. */
static bool
same_row(TriggerData *trigdata, TupleDesc desc, AttrNumber except)
{
	int i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		bool old_null;
		bool new_null;
		Datum old;
		Datum new;

		if (att->attisdropped || i + 1 == except || att->attgenerated)
			continue;
		old = heap_getattr(trigdata->tg_trigtuple, i + 1, desc, &old_null);
		new = heap_getattr(trigdata->tg_newtuple, i + 1, desc, &new_null);
		if (old_null != new_null ||
			(!old_null && !datum_image_eq(old, new, att->attbyval, att->attlen)))
			return false;
	}
	return true;
}
