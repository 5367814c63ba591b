/*
 * queryfn.c
 *		bson_index_conditions(): what an index can do for each part of a filter.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/tuplestore.h"

#include "bson/catalog.h"
#include "index/query.h"

/* Kinds of lookups */
typedef enum Lookup
{
	LOOKUP_KEY = 1,
	LOOKUP_RANGE = 2,
	LOOKUP_PAIR = 4,
	LOOKUP_PATH = 8 /* all keys of a path, or of some types there */
} Lookup;

static DpKeyOptions *index_options(Oid oid);
static void put_parts(ReturnSetInfo *result, const DpValue *filter, const DpKeyOptions *options);
static void put_part(ReturnSetInfo *result, const DpElement *field, const DpKeyOptions *options);
static int lookups_of(const DpCondition *condition);
static Datum lookups_text(int lookups);

/*
 * bson_index_conditions(index regclass, filter bson) -> setof (condition bson,
 * lookup text, looked_up bson)
 */
DP_FUNCTION(dp_bson_index_conditions);
Datum
dp_bson_index_conditions(PG_FUNCTION_ARGS)
{
	DpKeyOptions *options = index_options(PG_GETARG_OID(0));
	DpValue filter = dp_value_of_document(DP_GETARG_VARLENA(1));

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	/* errors name the place in the whole filter */
	(void) dp_filter_compile(&filter, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
	put_parts((ReturnSetInfo *) fcinfo->resultinfo, &filter, options);
	return (Datum) 0;
}

/*
 * The options of an index (or of a partitioned one), of its first column with the operator class
 * bson_ops.  Raises WRONG_OBJECT_TYPE if there is none, UNDEFINED_TABLE if there is no index.
 */
static DpKeyOptions *
index_options(Oid oid)
{
	Relation index = try_relation_open(oid, AccessShareLock);
	DpKeyOptions *options = NULL;
	Oid bson = dp_types()->bson;

	if (index == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", oid)));
	if ((index->rd_rel->relkind == RELKIND_INDEX ||
		 index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX) &&
		index->rd_rel->relam == GIN_AM_OID)
		for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index) && options == NULL; i++)
			if (index->rd_opcintype[i] == bson &&
				OidIsValid(get_opfamily_member(index->rd_opfamily[i], bson, bson,
											   DP_STRATEGY_MATCH)))
				options = dp_key_options_read(RelationGetIndexAttOptions(index, true)[i]);
	if (options == NULL)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not a GIN index of the operator class bson_ops",
							   RelationGetRelationName(index))));
	relation_close(index, AccessShareLock);
	return options;
}

/*
 * A row for each field of a filter, and for each field of the filters in $and.
 */
static void
put_parts(ReturnSetInfo *result, const DpValue *filter, const DpKeyOptions *options)
{
	DpIter iter;
	DpElement field;

	check_stack_depth();
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &field))
	{
		DpIter inner;
		DpValue part;

		if (strcmp(field.name, "$comment") == 0)
			continue;
		if (strcmp(field.name, "$and") != 0)
		{
			put_part(result, &field, options);
			continue;
		}
		dp_iter_init_value(&inner, &field.value);
		while (dp_iter_next_value(&inner, &part))
			put_parts(result, &part, options);
	}
}

/* The row of one field. */
static void
put_part(ReturnSetInfo *result, const DpElement *field, const DpKeyOptions *options)
{
	Datum values[3];
	bool nulls[3] = { false };
	DpBuilder b;
	DpValue part;
	DpCondition *condition;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, field->name, field->namelen, &field->value);
	dp_builder_end(&b);
	values[0] = PointerGetDatum(dp_builder_finish_bson(&b));

	part = dp_value_of_document((struct varlena *) DatumGetPointer(values[0]));
	condition =
		dp_conditions_of_filter(dp_filter_compile(&part, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE,
												  NULL)
									->root,
								options, false);
	nulls[1] = nulls[2] = condition->op == DP_COND_ALL;
	if (!nulls[1])
	{
		values[1] = lookups_text(lookups_of(condition));
		values[2] = PointerGetDatum(dp_conditions_to_filter(condition, false));
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* The set of lookups that conditions need. */
static int
lookups_of(const DpCondition *condition)
{
	int lookups = 0;

	switch (condition->op)
	{
		case DP_COND_ALL:
		case DP_COND_NONE:
			return 0;
		case DP_COND_EQUAL:
		case DP_COND_EMPTY_ARRAY:
		case DP_COND_MISSING:
			return LOOKUP_KEY;
		case DP_COND_IN:
			return (condition->node->u.in.nvalues > 0 ? LOOKUP_KEY : 0) |
				   (condition->node->u.in.nregexes > 0 ? LOOKUP_RANGE : 0);
		case DP_COND_RANGE:
			return dp_type_is_container(condition->node->value.type) ? LOOKUP_PATH : LOOKUP_RANGE;
		case DP_COND_REGEX:
			return LOOKUP_RANGE;
		case DP_COND_TYPES:
		case DP_COND_EXISTS:
			return LOOKUP_PATH;
		case DP_COND_PAIR:
			return LOOKUP_PAIR;
		default:
			for (int i = 0; i < condition->nchildren; i++)
				lookups |= lookups_of(condition->children[i]);
			return lookups;
	}
}

static Datum
lookups_text(int lookups)
{
	static const char *const names[] = { "key", "range", "pair", "path" };
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < lengthof(names); i++)
		if (lookups & 1 << i)
			appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", names[i]);
	if (text.len == 0)
		appendStringInfoString(&text, "nothing");
	return CStringGetTextDatum(text.data);
}
