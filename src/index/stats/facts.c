/*
 * facts.c
 *		What a few thousand documents have at each path, for pattern_advise(): presence, types,
 *		lengths of arrays, bytes, and some of the values.
 *
 * The documents are walked as ANALYZE walks them (analyze_walk.c): once to count, and again to
 * collect the items of as many paths at a time as memory allows.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/fetch.h"
#include "index/stats/analyze.h"

#define FACTS_MAX_PATHS 1000
#define FACTS_ITEMS_AT_ONCE 2000000 /* 64 MB */
#define FACTS_ITEMS_OF_PATH 200000
#define FACTS_COMMON 20
#define FACTS_SOME 200
#define FACTS_VALUE_BYTES 256 /* longer values are counted, not shown */

/* Columns of docpatterns.advise_fact, in their order */
typedef enum FactColumn
{
	FACT_PATH,
	FACT_PARENT,
	FACT_NESTED,
	FACT_REACHED,
	FACT_PRESENT,
	FACT_VALUES,
	FACT_TYPE,
	FACT_TYPE_DOCS,
	FACT_TYPES,
	FACT_BYTES,
	FACT_LARGEST,
	FACT_LENGTHS,
	FACT_ITEMS,
	FACT_DIFFERENT,
	FACT_COMMON,
	FACT_COMMON_DOCS,
	FACT_SOME_VALUES,
	FACT_COLUMNS
} FactColumn;

/* A run of equal items: position of the first, and the number of documents. */
typedef struct FactGroup
{
	int64 first;
	int32 documents;
} FactGroup;

static void collect(DpPathTree *tree, const DpSampleDocument *documents, int n, DpPathNode **nodes,
					int from, int upto);
static void put_fact(ReturnSetInfo *rsinfo, const DpPathNode *node);
static void put_values(const DpSamplePath *sample, Datum *values, bool *nulls);

/*
 * _advise_facts(docs bson[]) -> setof docpatterns.advise_fact: a row for each of the paths that
 * most documents have, parents before what is below them at the same frequency.  NULL elements are
 * skipped.  Raises DATA_CORRUPTED.
 */
DP_FUNCTION(dp_advise_facts);
Datum
dp_advise_facts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(0);
	DpPathTree *tree = dp_path_tree_create(FACTS_MAX_PATHS * 4);
	DpSampleDocument *documents;
	DpPathNode **nodes;
	MemoryContext scratch;
	MemoryContext old;
	Datum *datums;
	bool *nulls;
	bool complete;
	int ndatums;
	int npaths;
	int n = 0;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_INT, &datums, &nulls,
					  &ndatums);
	documents = palloc_extended(Max(ndatums, 1) * sizeof(DpSampleDocument), MCXT_ALLOC_HUGE);
	for (int i = 0; i < ndatums && n < SAMPLE_MAX_DOCUMENTS; i++)
	{
		DpValue start;

		if (nulls[i])
			continue;
		dp_fetch_document(datums[i], true, &start, &documents[n].avail);
		documents[n].data = start.data;
		documents[n].size = start.len;
		dp_path_tree_count(tree, &documents[n++]);
		CHECK_FOR_INTERRUPTS();
	}
	npaths = Min(dp_path_tree_nodes(tree, &nodes, &complete), FACTS_MAX_PATHS);

	scratch =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns facts", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(scratch);
	for (int i = 0; i < npaths;)
	{
		int64 room = FACTS_ITEMS_AT_ONCE;
		int upto = i;

		while (upto < npaths)
		{
			int64 wanted = Min(nodes[upto]->items, FACTS_ITEMS_OF_PATH) +
						   Min(nodes[upto]->narrays, FACTS_ITEMS_OF_PATH);

			if (upto > i && wanted > room)
				break;
			room -= wanted;
			upto++;
		}
		collect(tree, documents, n, nodes, i, upto);
		for (; i < upto; i++)
		{
			put_fact(rsinfo, nodes[i]);
			nodes[i]->sample = NULL;
		}
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(old);
	return (Datum) 0;
}

/* Collects the items of some paths, in the current memory context. */
static void
collect(DpPathTree *tree, const DpSampleDocument *documents, int n, DpPathNode **nodes, int from,
		int upto)
{
	for (int i = from; i < upto; i++)
	{
		DpSamplePath *sample = palloc0(sizeof(DpSamplePath));

		sample->room = Min(nodes[i]->items, FACTS_ITEMS_OF_PATH);
		sample->items =
			palloc_extended(Max(sample->room, 1) * sizeof(DpSampleItem), MCXT_ALLOC_HUGE);
		sample->lengths_room = Min(nodes[i]->narrays, FACTS_ITEMS_OF_PATH);
		sample->lengths =
			palloc_extended(Max(sample->lengths_room, 1) * sizeof(int32), MCXT_ALLOC_HUGE);
		nodes[i]->sample = sample;
	}
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		dp_path_tree_collect(tree, &documents[i], i);
	}
}

static int
compare_lengths(const void *a, const void *b)
{
	int32 x = *(const int32 *) a;
	int32 y = *(const int32 *) b;

	return (x > y) - (x < y);
}

/* Text of a path; NULL for that of the document itself. */
static text *
path_text(const DpPathNode *node)
{
	DpPathStats path = { 0 };

	if (node->parent == NULL)
		return NULL;
	dp_path_node_names(node, &path);
	return cstring_to_text_with_len(path.text, path.textlen);
}

static void
put_fact(ReturnSetInfo *rsinfo, const DpPathNode *node)
{
	Datum values[FACT_COLUMNS] = { 0 };
	bool nulls[FACT_COLUMNS] = { false };
	DpSamplePath *sample = node->sample;
	bool nested = node->direct == 0;
	const int32 *types = nested ? node->types : node->direct_types;
	int most = 0;
	text *parent = path_text(node->parent);
	DpBuilder b;

	dp_builder_init(&b, 128);
	dp_builder_begin_document(&b);
	for (int i = 0; i < DP_STATS_TYPES; i++)
	{
		const char *name = dp_type_name(dp_stats_type_of_number(i));

		if (types[i] == 0)
			continue;
		dp_builder_append_int32(&b, name, strlen(name), types[i]);
		/* null says nothing about what a field holds */
		if (i != DP_TYPE_NULL && (types[i] > types[most] || most == DP_TYPE_NULL))
			most = i;
		else if (types[most] == 0)
			most = i;
	}
	dp_builder_end(&b);

	values[FACT_PATH] = PointerGetDatum(path_text(node));
	values[FACT_PARENT] = PointerGetDatum(parent);
	nulls[FACT_PARENT] = parent == NULL;
	values[FACT_NESTED] = BoolGetDatum(nested);
	values[FACT_REACHED] = Int32GetDatum(node->reached);
	values[FACT_PRESENT] = Int32GetDatum(node->direct);
	values[FACT_VALUES] = Int64GetDatum(node->values);
	values[FACT_TYPE] = CStringGetTextDatum(dp_type_name(dp_stats_type_of_number(most)));
	values[FACT_TYPE_DOCS] = Int32GetDatum(types[most]);
	values[FACT_TYPES] = PointerGetDatum(dp_builder_finish_bson(&b));
	values[FACT_BYTES] = Int64GetDatum(node->bytes);
	values[FACT_LARGEST] = Int64GetDatum(node->largest);
	if (sample->nlengths > 0)
	{
		static const int percent[] = { 0, 50, 90, 99, 100 };
		Datum lengths[lengthof(percent)];

		qsort(sample->lengths, sample->nlengths, sizeof(int32), compare_lengths);
		for (int i = 0; i < lengthof(percent); i++)
			lengths[i] = Int32GetDatum(sample->lengths[(sample->nlengths - 1) * percent[i] / 100]);
		values[FACT_LENGTHS] = PointerGetDatum(construct_array(lengths, lengthof(percent), INT4OID,
															   4, true, TYPALIGN_INT));
	}
	else
		nulls[FACT_LENGTHS] = true;
	put_values(sample, values, nulls);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Groups with many documents first, then in their order. */
static int
compare_groups(const void *a, const void *b)
{
	const FactGroup *x = a;
	const FactGroup *y = b;

	if (x->documents != y->documents)
		return x->documents > y->documents ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* An array of the values of groups; NULL elements for those that are too long. */
static Datum
values_of_groups(const DpSamplePath *sample, const FactGroup *groups, int ngroups, int most)
{
	int n = Min(ngroups, most);
	Datum *datums = palloc(Max(n, 1) * sizeof(Datum));
	bool *nulls = palloc(Max(n, 1) * sizeof(bool));
	int dims[1] = { n };
	int lbs[1] = { 1 };

	for (int i = 0; i < n; i++)
	{
		const DpSampleItem *item = &sample->items[groups[(int64) i * ngroups / n].first];
		DpValue value = { item->data, item->len, item->type };

		nulls[i] = item->len > FACTS_VALUE_BYTES;
		datums[i] = nulls[i] ? (Datum) 0 : PointerGetDatum(dp_value_to_varlena(&value));
	}
	if (n == 0)
		return PointerGetDatum(construct_empty_array(dp_types()->bson_value));
	return PointerGetDatum(construct_md_array(datums, nulls, 1, dims, lbs, dp_types()->bson_value,
											  -1, false, TYPALIGN_INT));
}

/* How many items and different ones, the most common, and some from the least to the greatest. */
static void
put_values(const DpSamplePath *sample, Datum *values, bool *nulls)
{
	FactGroup *groups =
		palloc_extended(Max(sample->nitems, 1) * sizeof(FactGroup), MCXT_ALLOC_HUGE);
	Datum counts[FACTS_COMMON];
	int ngroups = 0;
	int ncommon;

	dp_sample_sort(sample);
	for (int64 i = 0; i < sample->nitems; i++)
	{
		const DpSampleItem *item = &sample->items[i];

		if (i == 0 || !dp_sample_same(item - 1, item))
		{
			groups[ngroups].first = i;
			groups[ngroups++].documents = 1;
		}
		else
			groups[ngroups - 1].documents += item->document != (item - 1)->document;
	}
	values[FACT_ITEMS] = Int64GetDatum(sample->nitems);
	values[FACT_DIFFERENT] = Int64GetDatum(ngroups);
	values[FACT_SOME_VALUES] = values_of_groups(sample, groups, ngroups, FACTS_SOME);
	qsort(groups, ngroups, sizeof(FactGroup), compare_groups);
	ncommon = Min(ngroups, FACTS_COMMON);
	values[FACT_COMMON] = values_of_groups(sample, groups, ncommon, ncommon);
	for (int i = 0; i < ncommon; i++)
		counts[i] = Int32GetDatum(groups[i].documents);
	values[FACT_COMMON_DOCS] =
		PointerGetDatum(construct_array(counts, ncommon, INT4OID, 4, true, TYPALIGN_INT));
	pfree(groups);
}
