/*
 * difffn.c
 *		Differences from SQL: bson_diff, bson_diff_pack, bson_diff_apply and
 *		bson_diff_carry.
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "bson/diff.h"
#include "bson/validate.h"

static bool
store_difference(const DpPath *path, const DpValue *before, const DpValue *after, void *arg);

/*
 * bson_diff(before bson, after bson) -> setof (path text, old bson_value, new bson_value)
 */
DP_FUNCTION(dp_bson_diff);
Datum
dp_bson_diff(PG_FUNCTION_ARGS)
{
	struct varlena *before = DP_GETARG_VARLENA(0);
	struct varlena *after = DP_GETARG_VARLENA(1);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_diff_each(DP_DOC_DATA(before), DP_DOC_SIZE(before), DP_DOC_DATA(after), DP_DOC_SIZE(after),
				 store_difference, fcinfo->resultinfo);
	return (Datum) 0;
}

/* A row of the result. */
static bool
store_difference(const DpPath *path, const DpValue *before, const DpValue *after, void *arg)
{
	ReturnSetInfo *set = arg;
	StringInfoData text;
	Datum values[3] = { 0 };
	bool nulls[3] = { false, before == NULL, after == NULL };

	initStringInfo(&text);
	dp_path_to_text(&text, path);
	values[0] = PointerGetDatum(cstring_to_text_with_len(text.data, text.len));
	if (before)
		values[1] = PointerGetDatum(dp_value_to_varlena(before));
	if (after)
		values[2] = PointerGetDatum(dp_value_to_varlena(after));
	tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
	pfree(DatumGetPointer(values[0]));
	if (before)
		pfree(DatumGetPointer(values[1]));
	if (after)
		pfree(DatumGetPointer(values[2]));
	pfree(text.data);
	return true;
}

/*
 * bson_diff_pack(before bson, after bson) -> bytea, NULL if they are the same
 */
DP_FUNCTION(dp_bson_diff_pack);
Datum
dp_bson_diff_pack(PG_FUNCTION_ARGS)
{
	struct varlena *before = DP_GETARG_VARLENA(0);
	struct varlena *after = DP_GETARG_VARLENA(1);
	struct varlena *diff;

	diff = dp_diff_make(DP_DOC_DATA(before), DP_DOC_SIZE(before), DP_DOC_DATA(after),
						DP_DOC_SIZE(after));
	if (diff == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(diff);
}

/*
 * bson_diff_apply(diff bytea, doc bson) -> bson.  The bytes may come from
 * anywhere, so the document is validated, and what is wrong is the argument.
 */
DP_FUNCTION(dp_bson_diff_apply);
Datum
dp_bson_diff_apply(PG_FUNCTION_ARGS)
{
	struct varlena *diff = DP_GETARG_VARLENA(0);
	struct varlena *doc = DP_GETARG_VARLENA(1);
	MemoryContext context = CurrentMemoryContext;
	struct varlena *volatile result = NULL;

	PG_TRY();
	{
		DpFault fault;

		result =
			dp_diff_apply(DP_DOC_DATA(diff), DP_DOC_SIZE(diff), DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
		if (!dp_validate(DP_DOC_DATA(result), DP_DOC_SIZE(result), &fault))
			dp_corrupted(fault.what);
	}
	PG_CATCH();
	{
		ErrorData *error;

		if (geterrcode() != ERRCODE_DATA_CORRUPTED)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("invalid difference for the document"),
						error->detail ? errdetail_internal("%s", error->detail) : 0));
	}
	PG_END_TRY();
	PG_RETURN_POINTER(result);
}

/*
 * bson_diff_carry(before bson, after bson, onto bson) -> bson
 */
DP_FUNCTION(dp_bson_diff_carry);
Datum
dp_bson_diff_carry(PG_FUNCTION_ARGS)
{
	struct varlena *before = DP_GETARG_VARLENA(0);
	struct varlena *after = DP_GETARG_VARLENA(1);
	struct varlena *onto = DP_GETARG_VARLENA(2);

	PG_RETURN_POINTER(dp_diff_carry(DP_DOC_DATA(before), DP_DOC_SIZE(before), DP_DOC_DATA(after),
									DP_DOC_SIZE(after), DP_DOC_DATA(onto), DP_DOC_SIZE(onto)));
}
