/*
 * consistent.c
 *		Query support of the GIN operator class bson_ops: the keys to search, which keys of a
 *		range belong to it, and whether a document with the found keys matches. key.c and
 *		extract.c make the stored keys.
 *
 * The operators and their strategies: doc @@~ filter (1), doc @> doc (2), doc ? path (3), doc ?|
 * paths (4), doc ?& paths (5).  Users do not write @@~: the planner derives it from @@, and keeps
 * @@ as a filter.  So @@~ is answered by the keys alone, while the others are always rechecked.
 */
#include "postgres.h"

#include "access/gin.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "index/query.h"

static DpIndexQuery *query_of_filter(Datum datum, const DpKeyOptions *options);
static DpIndexQuery *query_of_path_array(Datum datum, bool all, const DpKeyOptions *options);

/*
 * GIN's extractQuery.
 */
DP_FUNCTION(dp_bson_gin_extract_query);
Datum
dp_bson_gin_extract_query(PG_FUNCTION_ARGS)
{
	Datum datum = PG_GETARG_DATUM(0);
	int32 *nkeys = (int32 *) PG_GETARG_POINTER(1);
	StrategyNumber strategy = PG_GETARG_UINT16(2);
	bool **partial = (bool **) PG_GETARG_POINTER(3);
	Pointer **extra = (Pointer **) PG_GETARG_POINTER(4);
	int32 *search_mode = (int32 *) PG_GETARG_POINTER(6);
	const DpKeyOptions *options = dp_key_options_of(fcinfo);
	DpIndexQuery *query;
	Datum *keys;

	switch (strategy)
	{
		case DP_STRATEGY_MATCH:
			query = query_of_filter(datum, options);
			break;
		case DP_STRATEGY_CONTAINS:
		{
			DpValue b = dp_value_of_document(PG_DETOAST_DATUM_PACKED(datum));

			query = dp_query_of_contained(&b, options);
			break;
		}
		case DP_STRATEGY_EXISTS:
		{
			text *t = DatumGetTextPP(datum);
			DpPath *path = dp_path_parse(VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));

			query = dp_query_of_paths(&path, 1, true, options);
			break;
		}
		case DP_STRATEGY_EXISTS_ANY:
		case DP_STRATEGY_EXISTS_ALL:
			query = query_of_path_array(datum, strategy == DP_STRATEGY_EXISTS_ALL, options);
			break;
		default:
			elog(ERROR, "unknown strategy number %d", strategy);
	}

	if (query->root->op == DP_QUERY_ALL)
		*search_mode = GIN_SEARCH_MODE_ALL;
	*nkeys = query->nentries;
	keys = palloc(Max(query->nentries, 1) * sizeof(Datum));
	*partial = palloc(Max(query->nentries, 1) * sizeof(bool));
	*extra = (Pointer *) query->entries;
	for (int i = 0; i < query->nentries; i++)
	{
		keys[i] = dp_key_datum(&query->entries[i]->range.low);
		(*partial)[i] = query->entries[i]->is_range;
	}
	PG_RETURN_POINTER(keys);
}

/*
 * The lookup for a filter.  The planner has already chosen, as far as it knew the filter; a comment
 * in the filter says that it chose by statistics.
 */
static DpIndexQuery *
query_of_filter(Datum datum, const DpKeyOptions *options)
{
	DpValue spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(datum));
	DpFilter *filter = dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);

	return dp_query_of_conditions(dp_conditions_of_filter(filter->root, options,
														  dp_filter_is_chosen(filter->root)),
								  options);
}

/* The lookup for paths of which any or all must exist. */
static DpIndexQuery *
query_of_path_array(Datum datum, bool all, const DpKeyOptions *options)
{
	Datum *texts;
	bool *nulls;
	int n;
	int npaths = 0;
	DpPath **paths;

	deconstruct_array(DatumGetArrayTypeP(datum), TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls,
					  &n);
	paths = palloc(Max(n, 1) * sizeof(DpPath *));
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			paths[npaths++] = dp_path_parse(VARDATA_ANY(DatumGetPointer(texts[i])),
											VARSIZE_ANY_EXHDR(DatumGetPointer(texts[i])));
	return dp_query_of_paths(paths, npaths, all, options);
}

/* GIN's comparePartial: whether a key is still in the searched range. */
DP_FUNCTION(dp_bson_gin_compare_partial);
Datum
dp_bson_gin_compare_partial(PG_FUNCTION_ARGS)
{
	bytea *key = PG_GETARG_BYTEA_PP(1);
	const DpQueryEntry *entry = (const DpQueryEntry *) PG_GETARG_POINTER(3);

	PG_RETURN_INT32(dp_key_after((const uint8 *) VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key),
								 &entry->range.end));
}

/*
 * GIN's triConsistent.
 */
DP_FUNCTION(dp_bson_gin_consistent);
Datum
dp_bson_gin_consistent(PG_FUNCTION_ARGS)
{
	GinTernaryValue *check = (GinTernaryValue *) PG_GETARG_POINTER(0);
	StrategyNumber strategy = PG_GETARG_UINT16(1);
	int32 nkeys = PG_GETARG_INT32(3);
	DpQueryEntry **entries = (DpQueryEntry **) PG_GETARG_POINTER(4);
	GinTernaryValue result = GIN_MAYBE;

	if (nkeys > 0)
		result = dp_query_evaluate(entries[0]->query->root, check);
	if (result == GIN_TRUE && strategy != DP_STRATEGY_MATCH)
		result = GIN_MAYBE;
	PG_RETURN_GIN_TERNARY_VALUE(result);
}
