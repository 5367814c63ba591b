/*
 * keyfn.c
 *		Keys of the GIN operator class as SQL functions: those that GIN calls
 *		when it stores documents, and bson_index_keys.
 */
#include "postgres.h"

#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"

#include "bson/text.h"
#include "index/key.h"
#include "index/key_hash.h"

/* The name of a key's base: an entry of a hash table */
typedef struct BaseName
{
	DpKeyBase base;
	char *name;
} BaseName;

static void names_add(HTAB *names, DpKeyBase base, StringInfo name);
static void names_of_fields(HTAB *names, const DpKeyOptions *options, const DpValue *container,
							DpPathState state, StringInfo path);
static void names_note_pair(const DpKeyPair *pair, const DpValue *first, DpKeyBase base, void *arg);
static void pair_to_text(StringInfo out, const DpKeyPair *pair);
static DpKeyBase key_base(const DpIndexKey *key, const DpKeyOptions *options);
static const char *key_class_name(uint8 class);

/*
 * GIN's extractValue: the keys of a document.
 */
DP_FUNCTION(dp_bson_gin_extract_value);
Datum
dp_bson_gin_extract_value(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	int32 *nkeys = (int32 *) PG_GETARG_POINTER(1);
	DpKeyOptions *options = fcinfo->flinfo->fn_extra;

	if (options == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		options = dp_key_options_of(fcinfo);
		MemoryContextSwitchTo(old);
		fcinfo->flinfo->fn_extra = options;
	}
	PG_RETURN_POINTER(dp_key_extract(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), options, nkeys));
}

/* Compares two bytea as they come. */
static pg_noinline int32
compare_bytes(FunctionCallInfo fcinfo)
{
	bytea *a = PG_GETARG_BYTEA_PP(0);
	bytea *b = PG_GETARG_BYTEA_PP(1);
	uint32 alen = VARSIZE_ANY_EXHDR(a);
	uint32 blen = VARSIZE_ANY_EXHDR(b);
	int result = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(alen, blen));

	return result != 0 ? result : (alen > blen) - (alen < blen);
}

/*
 * GIN's compare: the order of keys.  Of bytes that are no keys, too.
 */
DP_FUNCTION(dp_bson_gin_compare);
Datum
dp_bson_gin_compare(PG_FUNCTION_ARGS)
{
	const uint8 *a = (const uint8 *) DatumGetPointer(PG_GETARG_DATUM(0));
	const uint8 *b = (const uint8 *) DatumGetPointer(PG_GETARG_DATUM(1));

	/* keys have short headers, wherever they come from */
	if (likely(VARATT_IS_SHORT(a) && VARATT_IS_SHORT(b)))
	{
		uint32 alen = VARSIZE_SHORT(a) - 1;
		uint32 blen = VARSIZE_SHORT(b) - 1;

		if (likely(alen <= DP_KEY_SIZE && blen <= DP_KEY_SIZE))
			PG_RETURN_INT32(dp_key_order(a + 1, alen, b + 1, blen));
	}
	PG_RETURN_INT32(compare_bytes(fcinfo));
}

/*
 * bson_index_keys(doc bson, paths text, pairs text)
 *		-> setof (path text, class text, value bytea, key bytea)
 *
 * What an index with these options stores for the document, in the order of
 * the index, each key once.
 */
DP_FUNCTION(dp_bson_index_keys);
Datum
dp_bson_index_keys(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	struct varlena *doc;
	DpValue document;
	DpKeyOptions *options;
	HASHCTL control = { .keysize = sizeof(DpKeyBase), .entrysize = sizeof(BaseName) };
	HTAB *names;
	StringInfoData path;
	Datum *keys;
	int32 nkeys;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	doc = DP_GETARG_VARLENA(0);
	document = dp_value_of_document(doc);
	options = dp_key_options_parse(PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1)),
								   PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2)));

	control.hcxt = CurrentMemoryContext;
	names = hash_create("names of keys", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	initStringInfo(&path);
	for (int i = 0; i < options->npaths; i++)
	{
		resetStringInfo(&path);
		dp_path_to_text(&path, options->paths[i].path);
		names_add(names, dp_key_base(options, options->paths[i].state), &path);
	}
	for (int i = 0; i < options->npairs; i++)
	{
		resetStringInfo(&path);
		pair_to_text(&path, &options->pairs[i]);
		names_add(names, dp_key_base(options, options->pairs[i].state), &path);
	}
	resetStringInfo(&path);
	names_of_fields(names, options, &document, DP_KEY_ROOT, &path);
	keys =
		dp_key_extract_noted(document.data, document.len, options, &nkeys, names_note_pair, names);

	for (int32 i = 0; i < nkeys; i++)
	{
		const DpIndexKey *key = (const DpIndexKey *) DatumGetPointer(keys[i]);
		DpKeyBase base = key_base(key, options);
		uint32 head = dp_key_head_size(base);
		const BaseName *name = hash_search(names, &base, HASH_FIND, NULL);
		Datum values[4];
		bool nulls[4] = { false };

		CHECK_FOR_INTERRUPTS();
		if (name == NULL)
			elog(ERROR, "a key belongs to no path");
		values[0] = CStringGetTextDatum(name->name);
		values[1] = CStringGetTextDatum(key_class_name(DP_KEY_DATA(key)[head - 1] & 15));
		values[2] = PointerGetDatum(cstring_to_text_with_len((const char *) DP_KEY_DATA(key) + head,
															 DP_KEY_LEN(key) - head));
		values[3] = dp_key_datum(key);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* Notes a name, unless the base has one. */
static void
names_add(HTAB *names, DpKeyBase base, StringInfo name)
{
	bool found;
	BaseName *entry = hash_search(names, &base, HASH_ENTER, &found);

	if (!found)
		entry->name = pnstrdup(name->data, name->len);
}

/*
 * Notes the names of all fields in a document or an array, whose own name is
 * path; it is the same at the end.
 */
static void
names_of_fields(HTAB *names, const DpKeyOptions *options, const DpValue *container,
				DpPathState state, StringInfo path)
{
	DpIter iter;
	DpElement field;

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	names_add(names, dp_key_base(options, state), path);
	dp_iter_init_value(&iter, container);
	while (dp_iter_next(&iter, &field))
	{
		DpPathState below = state;
		int len = path->len;

		if (container->type == DP_TYPE_DOCUMENT && !dp_key_is_position(field.name, field.namelen))
		{
			DpPath *name = dp_path_of_name(field.name, field.namelen);

			if (len > 0)
				appendStringInfoChar(path, '.');
			dp_path_to_text(path, name);
			pfree(name);
			below = dp_key_step(state, field.name, field.namelen);
		}
		if (dp_type_is_container(field.value.type))
			names_of_fields(names, options, &field.value, below, path);
		else
			names_add(names, dp_key_base(options, below), path);
		path->len = len;
		path->data[len] = '\0';
	}
}

/* Notes the name of a pair with a value of its first part. */
static void
names_note_pair(const DpKeyPair *pair, const DpValue *first, DpKeyBase base, void *arg)
{
	StringInfoData name;

	initStringInfo(&name);
	pair_to_text(&name, pair);
	appendStringInfoString(&name, " = ");
	dp_value_to_text(&name, first, DP_TEXT_RELAXED, -1);
	names_add((HTAB *) arg, base, &name);
	pfree(name.data);
}

/* Appends a pair in the syntax of the option. */
static void
pair_to_text(StringInfo out, const DpKeyPair *pair)
{
	dp_path_to_text(out, pair->path);
	appendStringInfoChar(out, '(');
	dp_path_to_text(out, pair->first);
	appendStringInfoChar(out, ',');
	dp_path_to_text(out, pair->second);
	appendStringInfoChar(out, ')');
}

/* Restores the base of a key from its head. */
static DpKeyBase
key_base(const DpIndexKey *key, const DpKeyOptions *options)
{
	uint8 first = DP_KEY_DATA(key)[0] >> 4;

	if (options->npaths > 0 && first < DP_KEY_SHORT_PATHS)
		return (DpKeyBase) first << 28 | 1;
	return dp_key_load32(DP_KEY_DATA(key)) & ~(DpKeyBase) 15;
}

static const char *
key_class_name(uint8 class)
{
	static const char *const names[] = { "missing",  "minKey",    "null",       "number",
										 "string",   "object",    "array",      "binData",
										 "objectId", "bool",      "date",       "timestamp",
										 "regex",    "dbPointer", "javascript", "maxKey" };

	return names[class];
}
