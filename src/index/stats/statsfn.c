/*
 * statsfn.c
 *		bson_stats(): the statistics of documents as rows, for people.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "index/stats/stats.h"

#define STATS_COLUMNS 10

static void check_relation(Relation rel);
static bool may_read(Relation rel, AttrNumber column);
static void put_column(ReturnSetInfo *rsinfo, Relation rel, AttrNumber column);
static void put_path(ReturnSetInfo *rsinfo, Datum column, const DpPathStats *path);

/*
 * bson_stats(rel regclass, column_name name) -> setof record: one row for each
 * path of the column, or of all columns of documents that the user may read.
 * Raises INSUFFICIENT_PRIVILEGE if he may not read the column (any of them), or
 * not all rows; UNDEFINED_TABLE; UNDEFINED_COLUMN; WRONG_OBJECT_TYPE.
 */
DP_FUNCTION(dp_bson_stats);
Datum
dp_bson_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation rel;
	Oid bson = dp_types()->bson;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	rel = try_relation_open(PG_GETARG_OID(0), AccessShareLock);
	if (rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", PG_GETARG_OID(0))));
	check_relation(rel);

	if (!PG_ARGISNULL(1))
	{
		char *name = NameStr(*PG_GETARG_NAME(1));
		AttrNumber column = get_attnum(RelationGetRelid(rel), name);

		if (column <= 0)
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
							errmsg("column \"%s\" of relation \"%s\" does not exist", name,
								   RelationGetRelationName(rel))));
		if (!may_read(rel, column))
			ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
							errmsg("permission denied for column \"%s\" of relation \"%s\"", name,
								   RelationGetRelationName(rel))));
		if (getBaseType(TupleDescAttr(RelationGetDescr(rel), column - 1)->atttypid) != bson)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("column \"%s\" of relation \"%s\" does not contain documents", name,
							RelationGetRelationName(rel)),
					 errdetail("Its type is %s.",
							   format_type_be(TupleDescAttr(RelationGetDescr(rel), column - 1)
												  ->atttypid))));
		put_column(rsinfo, rel, column);
	}
	else
	{
		bool denied = false;
		bool shown = false;

		for (AttrNumber column = 1; column <= RelationGetDescr(rel)->natts; column++)
		{
			Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);

			if (attribute->attisdropped || getBaseType(attribute->atttypid) != bson)
				continue;
			if (!may_read(rel, column))
			{
				denied = true;
				continue;
			}
			put_column(rsinfo, rel, column);
			shown = true;
		}
		if (denied && !shown)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(rel));
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* Checks that a relation can have statistics, and that row-level security permits showing them. */
static void
check_relation(Relation rel)
{
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_MATVIEW:
		case RELKIND_FOREIGN_TABLE:
			break;
		default:
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
							errmsg("\"%s\" is not a table", RelationGetRelationName(rel))));
	}
	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
		ereport(
			ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("statistics of relation \"%s\" cannot be shown", RelationGetRelationName(rel)),
			 errdetail(
				 "They cover all rows, and row-level security hides some from the current user.")));
}

static bool
may_read(Relation rel, AttrNumber column)
{
	return pg_class_aclcheck(RelationGetRelid(rel), GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
		   pg_attribute_aclcheck(RelationGetRelid(rel), column, GetUserId(), ACL_SELECT) ==
			   ACLCHECK_OK;
}

/*
 * The rows of one column.  Statistics with inheritance children or partitions replace those of the
 * table alone.
 */
static void
put_column(ReturnSetInfo *rsinfo, Relation rel, AttrNumber column)
{
	Datum name = NameGetDatum(&TupleDescAttr(RelationGetDescr(rel), column - 1)->attname);
	const DpStats *stats = NULL;

	for (int inherited = 1; inherited >= 0 && stats == NULL; inherited--)
	{
		HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(RelationGetRelid(rel)),
										  Int16GetDatum(column), BoolGetDatum(inherited != 0));

		if (!HeapTupleIsValid(tuple))
			continue;
		stats = dp_stats_of_tuple(tuple);
		ReleaseSysCache(tuple);
	}
	if (stats == NULL)
		return;
	for (int i = 0; i < stats->npaths; i++)
		put_path(rsinfo, name, &stats->paths[i]);
}

/* A float4 as the double that is written the same way. */
static double
plain(float4 f)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", f);
	return strtod(text, NULL);
}

static Datum
values_array(const DpValue *values, int n)
{
	Datum *datums = palloc(n * sizeof(Datum));

	for (int i = 0; i < n; i++)
		datums[i] = PointerGetDatum(dp_value_to_varlena(&values[i]));
	return PointerGetDatum(construct_array(datums, n, dp_types()->bson_value, -1, false,
										   TYPALIGN_INT));
}

static void
put_path(ReturnSetInfo *rsinfo, Datum column, const DpPathStats *path)
{
	Datum values[STATS_COLUMNS];
	bool nulls[STATS_COLUMNS] = { false };
	DpBuilder b;

	values[0] = column;
	values[1] = PointerGetDatum(cstring_to_text_with_len(path->text, path->textlen));
	values[2] = Float4GetDatum(path->reached);
	/* those that have both are counted twice: nearly none */
	values[3] =
		Float4GetDatum(Min(path->types[DP_TYPE_NULL] + path->types[DP_TYPE_UNDEFINED], 1.0f));

	/* types, the most frequent first */
	dp_builder_init(&b, 128);
	dp_builder_begin_document(&b);
	for (uint32 done = 0;;)
	{
		int next = -1;
		const char *name;

		for (int i = 0; i < DP_STATS_TYPES; i++)
			if (path->types[i] > 0 && !(done & (1U << i)) &&
				(next < 0 || path->types[i] > path->types[next]))
				next = i;
		if (next < 0)
			break;
		done |= 1U << next;
		name = dp_type_name(dp_stats_type_of_number(next));
		dp_builder_append_double(&b, name, strlen(name), plain(path->types[next]));
	}
	dp_builder_end(&b);
	values[4] = PointerGetDatum(dp_builder_finish_bson(&b));

	if (path->arrays > 0)
	{
		dp_builder_init(&b, 128);
		dp_builder_begin_document(&b);
		dp_builder_append_int32(&b, "min", 3, (int32) path->lengths[0]);
		dp_builder_append_int32(&b, "median", 6, (int32) path->lengths[DP_STATS_QUANTILES / 2]);
		dp_builder_append_int32(&b, "max", 3, (int32) path->lengths[DP_STATS_QUANTILES - 1]);
		dp_builder_end(&b);
		values[5] = PointerGetDatum(dp_builder_finish_bson(&b));
	}
	else
		nulls[5] = true;

	values[6] = Float4GetDatum(path->n_distinct);
	if (path->n_distinct == 0)
		nulls[6] = true;
	if (path->nmcv > 0)
	{
		Datum *shares = palloc(path->nmcv * sizeof(Datum));

		for (int i = 0; i < path->nmcv; i++)
			shares[i] = Float4GetDatum(path->mcv_docs[i]);
		values[7] = values_array(path->mcv, path->nmcv);
		values[8] =
			PointerGetDatum(construct_array(shares, path->nmcv, FLOAT4OID, 4, true, TYPALIGN_INT));
	}
	else
		nulls[7] = nulls[8] = true;
	if (path->nhist > 0)
		values[9] = values_array(path->hist, path->nhist);
	else
		nulls[9] = true;
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}
