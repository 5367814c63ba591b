/*
 * indexes.c
 *		Indexes of collections: the key document of an index in the catalog.
 *
 * The calls are in sql/collection_index.sql.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "nodes/primnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/path.h"
#include "mql/collection_calls.h"

static bool key_of_columns(DpBuilder *b, Relation index, Relation rel);
static bool key_of_document(DpBuilder *b, Relation index);
static bool key_of_paths(DpBuilder *b, const char *list);
static bool key_of_pairs(DpBuilder *b, const char *list);
static char *dotted(const DpPath *path, const char *end);
static void append_direction(DpBuilder *b, const char *field, bool descending);

/*
 * _collection_index_key(index oid) -> (key bson, partial_filter bson): the key document of an
 * index, such as {"a": 1, "b.c": -1}, {"a": "hashed"} or {"$**": 1}, NULL if the index has other
 * columns; and the filter of its documents, NULL without one or for another condition
 */
DP_FUNCTION(dp_collection_index_key);
Datum
dp_collection_index_key(PG_FUNCTION_ARGS)
{
	Oid oid = PG_GETARG_OID(0);
	char relkind = get_rel_relkind(oid);
	Relation index;
	Relation rel;
	List *predicate;
	TupleDesc desc;
	DpBuilder b;
	Datum values[2] = { 0 };
	bool nulls[2] = { true, true };
	Const *filter;

	if (relkind != RELKIND_INDEX && relkind != RELKIND_PARTITIONED_INDEX)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("index with OID %u does not exist", oid)));
	index = index_open(oid, AccessShareLock);
	rel = table_open(index->rd_index->indrelid, AccessShareLock);
	predicate = RelationGetIndexPredicate(index);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	switch (index->rd_rel->relam)
	{
		case BTREE_AM_OID:
		case HASH_AM_OID:
			nulls[0] = !key_of_columns(&b, index, rel);
			break;
		case GIN_AM_OID:
			nulls[0] = !key_of_document(&b, index);
			break;
	}
	dp_builder_end(&b);
	if (!nulls[0])
		values[0] = PointerGetDatum(dp_builder_finish_bson(&b));
	if (list_length(predicate) == 1 &&
		dp_doc_is_call(linitial(predicate), "bson_match", dp_types()->bson, &filter))
	{
		values[1] = datumCopy(filter->constvalue, false, -1);
		nulls[1] = false;
	}
	desc = BlessTupleDesc(desc);
	values[0] = HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
	table_close(rel, AccessShareLock);
	index_close(index, AccessShareLock);
	PG_RETURN_DATUM(values[0]);
}

/*
 * Reads the fields of a btree or hash index: expressions (doc -> 'path'), and the column _id of a
 * collection. Returns false for other columns.
 */
static bool
key_of_columns(DpBuilder *b, Relation index, Relation rel)
{
	List *expressions = RelationGetIndexExpressions(index);
	ListCell *expression = list_head(expressions);

	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		AttrNumber attnum = index->rd_index->indkey.values[i];
		const char *field;

		if (attnum != 0)
		{
			/* only the key column of a collection is a field */
			if (attnum != dp_collection_key(rel))
				return false;
			field = "_id";
		}
		else
		{
			Const *path;
			char *spelled;

			if (!dp_doc_is_call(lfirst(expression), "bson_get", TEXTOID, &path))
				return false;
			expression = lnext(expressions, expression);
			spelled = TextDatumGetCString(path->constvalue);
			field = dotted(dp_path_parse(spelled, strlen(spelled)), "");
			if (field == NULL)
				return false;
		}
		if (index->rd_rel->relam == HASH_AM_OID)
			dp_builder_append_string(b, field, strlen(field), "hashed", 6);
		else
			append_direction(b, field, (index->rd_indoption[i] & INDOPTION_DESC) != 0);
	}
	return true;
}

/* Reads the paths of an index with the operator class bson_ops. Returns false for other indexes. */
static bool
key_of_document(DpBuilder *b, Relation index)
{
	Datum options;
	Datum *words;
	int nwords;
	bool known = true;

	if (index->rd_index->indnatts != 1 || index->rd_opcintype[0] != dp_types()->bson ||
		index->rd_index->indkey.values[0] == 0)
		return false;
	options = get_attoptions(RelationGetRelid(index), 1);
	if (options == (Datum) 0)
	{
		append_direction(b, "$**", false);
		return true;
	}
	deconstruct_array(DatumGetArrayTypeP(options), TEXTOID, -1, false, TYPALIGN_INT, &words, NULL,
					  &nwords);
	for (int i = 0; i < nwords && known; i++)
	{
		char *word = TextDatumGetCString(words[i]);

		if (strncmp(word, "paths=", 6) == 0)
			known = key_of_paths(b, word + 6);
		else if (strncmp(word, "pairs=", 6) == 0)
			known = key_of_pairs(b, word + 6);
		else
			known = false;
	}
	return known;
}

/* {"a.$**": 1, ...} for the paths of a list. */
static bool
key_of_paths(DpBuilder *b, const char *list)
{
	List *paths = dp_path_parse_list(list, strlen(list));
	ListCell *lc;

	foreach(lc, paths)
	{
		char *field = dotted(lfirst(lc), ".$**");

		if (field == NULL)
			return false;
		append_direction(b, field, false);
	}
	return true;
}

/* Returns {"r.a": 1, "r.b": 1} for the pair r(a,b); false if there are several. */
static bool
key_of_pairs(DpBuilder *b, const char *list)
{
	bool quoted = false;
	const char *open = NULL;
	Size len = strlen(list);
	char *parent;
	char *fields;
	List *both;
	char *first;
	char *second;

	for (const char *p = list; *p != '\0'; p++)
	{
		if (*p == '"')
			quoted = !quoted;
		else if (!quoted && *p == '(')
		{
			if (open != NULL)
				return false;
			open = p;
		}
	}
	while (len > 0 && list[len - 1] == ' ')
		len--;
	if (open == NULL || len == 0 || list[len - 1] != ')')
		return false;
	both = dp_path_parse_list(list, open - list);
	if (list_length(both) != 1)
		return false;
	parent = dotted(linitial(both), ".");
	if (parent == NULL)
		return false;
	fields = pnstrdup(open + 1, list + len - 1 - (open + 1));
	both = dp_path_parse_list(fields, strlen(fields));
	if (list_length(both) != 2)
		return false;
	first = dotted(linitial(both), "");
	second = dotted(lsecond(both), "");
	if (first == NULL || second == NULL)
		return false;
	append_direction(b, psprintf("%s%s", parent, first), false);
	append_direction(b, psprintf("%s%s", parent, second), false);
	return true;
}

/* Returns a path as filters write it, followed by end, or NULL if a name contains a dot. */
static char *
dotted(const DpPath *path, const char *end)
{
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < path->nsteps; i++)
	{
		if (memchr(path->steps[i].name, '.', path->steps[i].namelen) != NULL)
			return NULL;
		if (i > 0)
			appendStringInfoChar(&out, '.');
		appendBinaryStringInfo(&out, path->steps[i].name, path->steps[i].namelen);
	}
	appendStringInfoString(&out, end);
	return out.data;
}

/* {field: 1} or {field: -1} */
static void
append_direction(DpBuilder *b, const char *field, bool descending)
{
	dp_builder_append_int32(b, field, strlen(field), descending ? -1 : 1);
}

/*
 * _collection_index_path(field text) -> text: a field as filters write it, as a path, quoted if
 * necessary
 */
DP_FUNCTION(dp_collection_index_path);
Datum
dp_collection_index_path(PG_FUNCTION_ARGS)
{
	StringInfoData out;

	initStringInfo(&out);
	dp_path_to_text(&out, dp_path_of_field(text_to_cstring(PG_GETARG_TEXT_PP(0))));
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}
