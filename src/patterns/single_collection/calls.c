/*
 * calls.c
 *		The single collection pattern: functions of its indexes, of users, and of
 *		its verbs.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "bson/build.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/text.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "patterns/single_collection/single_collection.h"

static const char plan_get, plan_get_type;

static void
run_into(SPIPlanPtr plan, const Datum *values, int nvalues, bool keyed, Tuplestorestate *result);

/* The compiled arguments of single_collection_id(), cached while they are constants */
typedef struct IdsCache
{
	DpSingleIds ids;
	MemoryContext context;
	bool is_const;
} IdsCache;

/* Those of single_collection_key() */
typedef struct KeyCache
{
	DpPathCache path;
} KeyCache;

/*
 * single_collection_id(doc, type_field, id_fields) -> bson_value
 *
 * The id of a document: the field that id_fields, a document of paths in
 * Extended JSON, names for its type, or _id if it names none at all.  NULL if it
 * has none.
 */
DP_FUNCTION(dp_single_collection_id);
Datum
dp_single_collection_id(PG_FUNCTION_ARGS)
{
	IdsCache *cache = fcinfo->flinfo->fn_extra;
	struct varlena *doc;
	DpValue id;

	if (cache == NULL)
	{
		cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(IdsCache));
		cache->context =
			AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "docpatterns ids", ALLOCSET_SMALL_SIZES);
		cache->is_const = false;
		fcinfo->flinfo->fn_extra = cache;
	}
	if (!cache->is_const)
	{
		text *type_field = PG_GETARG_TEXT_PP(1);
		text *id_fields = PG_GETARG_TEXT_PP(2);
		char *spelled = text_to_cstring(id_fields);
		MemoryContext old;
		struct varlena *fields;

		MemoryContextReset(cache->context);
		old = MemoryContextSwitchTo(cache->context);
		memset(&cache->ids, 0, sizeof(cache->ids));
		if (VARSIZE_ANY_EXHDR(type_field) > 0)
			cache->ids.type_field =
				dp_path_parse(VARDATA_ANY(type_field), VARSIZE_ANY_EXHDR(type_field));
		fields = dp_text_to_bson(spelled, strlen(spelled), NULL);
		dp_single_ids_parse(&cache->ids, DP_DOC_DATA(fields), DP_DOC_SIZE(fields));
		MemoryContextSwitchTo(old);
		cache->is_const = dp_arg_is_const(fcinfo, 1) && dp_arg_is_const(fcinfo, 2);
	}
	doc = DP_GETARG_VARLENA(0);
	if (!dp_single_id(&cache->ids, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &id))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_value_to_varlena(&id));
}

/*
 * single_collection_key(doc, key_field, separator) -> bson_value: the key of a document with a NUL
 * instead of each separator, so that its descendants are one range of an index; NULL without one
 */
DP_FUNCTION(dp_single_collection_key);
Datum
dp_single_collection_key(PG_FUNCTION_ARGS)
{
	KeyCache *cache = fcinfo->flinfo->fn_extra;
	struct varlena *doc = DP_GETARG_VARLENA(0);
	text *separator = PG_GETARG_TEXT_PP(2);
	DpValue key;
	DpValue identity;

	if (cache == NULL)
		cache = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(KeyCache));
	if (VARSIZE_ANY_EXHDR(separator) == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the separator must not be empty")));
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), dp_path_cached(&cache->path, fcinfo, 1),
					  &key) ||
		!dp_single_key(&key, VARDATA_ANY(separator), VARSIZE_ANY_EXHDR(separator), &identity))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_value_to_varlena(&identity));
}

/*
 * single_collection_get(rel, id, type, name) -> documents
 *
 * Runs what single_collection_query() shows, with the rights of the caller.
 */
DP_ROUTED_FUNCTION(dp_single_collection_get, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpSingle *s;
	DpDecl *decl;
	SPIPlanPtr plan;
	Datum values[3];
	DpValue id;
	DpValue type;
	bool with_type = !PG_ARGISNULL(2);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	if (PG_ARGISNULL(1))
		return (Datum) 0;
	s = dp_single(dp_decl_find(PG_GETARG_OID(0), "single_collection",
							   PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3))));
	decl = s->decl;
	id = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(1), dp_argument_type(fcinfo, 1)));
	if (with_type)
	{
		if (s->ids.type_field == NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("documents of single collection \"%s\" have no type",
								   dp_relation_name(decl->target))));
		type = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(2), TEXTOID));
	}

	SPI_connect();
	plan = dp_plan(decl, with_type ? &plan_get_type : &plan_get);
	if (plan == NULL)
	{
		Oid related[1] = { dp_types()->bson };
		Oid keyed[3] = { dp_types()->bson_value, dp_types()->bson_value, dp_types()->bson };

		plan =
			dp_plan_make(decl, with_type ? &plan_get_type : &plan_get, dp_single_sql(s, with_type),
						 s->key_field == NULL ? 1
						 : with_type          ? 3
											  : 2,
						 s->key_field == NULL ? related : keyed, CURSOR_OPT_GENERIC_PLAN);
	}
	if (s->key_field == NULL)
		values[0] = PointerGetDatum(dp_single_filter(s, &id, 1, with_type ? &type : NULL));
	else
	{
		DpValue identity;

		if (id.type != DP_TYPE_STRING)
			ereport(
				ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg(
					 "a key of single collection \"%s\" must be a string, not a value of type %s",
					 dp_relation_name(decl->target), dp_type_name(id.type))));
		if (!dp_single_key(&id, s->separator, s->separatorlen, &identity))
		{
			SPI_finish();
			return (Datum) 0;
		}
		values[0] = PointerGetDatum(dp_value_to_varlena(&identity));
		values[1] = PointerGetDatum(dp_single_bound(&identity, 1));
		if (with_type)
			values[2] = PointerGetDatum(dp_single_filter(s, NULL, 0, &type));
	}
	run_into(plan, values,
			 s->key_field == NULL ? 1
			 : with_type          ? 3
								  : 2,
			 s->key_field != NULL, rsinfo->setResult);
	SPI_finish();
	return (Datum) 0;
}

/*
 * Run a statement with the caller's snapshot and rights, its rows going where
 * the function returns them from: without a copy of each in between.
 */
static void
run_into(SPIPlanPtr plan, const Datum *values, int nvalues, bool keyed, Tuplestorestate *result)
{
	SPIExecuteOptions options;
	int nestlevel;
	int i;

	memset(&options, 0, sizeof(options));
	options.params = makeParamList(nvalues);
	for (i = 0; i < nvalues; i++)
	{
		options.params->params[i].value = values[i];
		options.params->params[i].isnull = false;
		options.params->params[i].pflags = PARAM_FLAG_CONST;
		options.params->params[i].ptype =
			keyed && i < 2 ? dp_types()->bson_value : dp_types()->bson;
	}
	options.read_only = true;
	options.dest = CreateTuplestoreDestReceiver();
	SetTuplestoreDestReceiverParams(options.dest, result, CurrentMemoryContext, false, NULL, NULL);

	/*
	 * the index gives keys in their order; the planner thinks that a bitmap and a sort cost less,
	 * because it thinks of disks that seek
	 */
	nestlevel = NewGUCNestLevel();
	if (keyed)
		(void) set_config_option("enable_bitmapscan", "off", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	if (SPI_execute_plan_extended(plan, &options) != SPI_OK_SELECT)
		elog(ERROR, "a single collection could not be read: %s",
			 SPI_result_code_string(SPI_result));
	AtEOXact_GUC(false, nestlevel);
}

/*
 * single_collection_query(rel, with_type, name) -> text
 */
DP_FUNCTION(dp_single_collection_query);
Datum
dp_single_collection_query(PG_FUNCTION_ARGS)
{
	DpSingle *s;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and with_type must not be null")));
	s = dp_single(dp_decl_find(PG_GETARG_OID(0), "single_collection",
							   PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2))));
	PG_RETURN_TEXT_P(cstring_to_text(dp_single_sql(s, PG_GETARG_BOOL(1))));
}

/*
 * _single_collection_read(doc, rel, name) -> identity, parents, problem, lacks_self
 */
DP_FUNCTION(dp_single_collection_read);
Datum
dp_single_collection_read(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	DpSingle *s = dp_single(dp_decl_find(PG_GETARG_OID(1), "single_collection",
										 text_to_cstring(PG_GETARG_TEXT_PP(2))));
	DpSingleDoc read;
	TupleDesc desc;
	Datum values[4];
	bool nulls[4] = { false };
	Datum *parents;
	const char *problem;
	int code;
	int i;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the result is no row");
	dp_single_read(s, doc, &read);
	problem = dp_single_problem(s, doc, &read, &code);
	nulls[0] = !read.has_identity;
	if (read.has_identity)
		values[0] = PointerGetDatum(dp_value_to_varlena(&read.identity));
	parents = palloc(sizeof(Datum) * Max(read.nparents, 1));
	for (i = 0; i < read.nparents; i++)
		parents[i] = PointerGetDatum(dp_value_to_varlena(&read.parents[i]));
	values[1] = PointerGetDatum(construct_array(parents, read.nparents, dp_types()->bson_value, -1,
												false, TYPALIGN_INT));
	nulls[2] = problem == NULL;
	if (problem != NULL)
		values[2] = CStringGetTextDatum(problem);
	values[3] = BoolGetDatum(dp_single_add_self(s, doc, &read, NULL) != NULL);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * _single_collection_show(rel, name, identity) -> text: the identity in messages
 */
DP_FUNCTION(dp_single_collection_show);
Datum
dp_single_collection_show(PG_FUNCTION_ARGS)
{
	DpSingle *s = dp_single(dp_decl_find(PG_GETARG_OID(0), "single_collection",
										 text_to_cstring(PG_GETARG_TEXT_PP(1))));
	DpValue identity = dp_value_of_varlena(DP_GETARG_VARLENA(2));

	if (s->key_field != NULL && identity.type != DP_TYPE_STRING)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("the identity must be a string")));
	PG_RETURN_TEXT_P(cstring_to_text(dp_single_identity_text(s, &identity)));
}

/*
 * _single_collection_forget_missing(rel, name) -> rows that were written
 */
DP_ROUTED_FUNCTION(dp_single_collection_forget_missing, DP_ROUTE_WHOLE, 0)
{
	DpSingle *s;
	DpActor self;
	int64 written;

	dp_require_owner(PG_GETARG_OID(0));
	s = dp_single(dp_decl_find(PG_GETARG_OID(0), "single_collection",
							   text_to_cstring(PG_GETARG_TEXT_PP(1))));
	dp_owner_begin(s->decl->owner, &self);
	SPI_connect();
	written = dp_single_forget_missing(s);
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(written);
}

/* Adds a document to its own relations.  Called inside SPI_connect(), as the owner. */
static bool
single_repair_row(DpDecl *decl, const DpKey *key)
{
	DpSingle *s = dp_single(decl);
	DpWriter *w = dp_writer_open(decl->target, decl->doc_column, 0, NULL);
	DpLookup *primary = dp_lookup_primary(decl->target, CurrentMemoryContext);
	bool written = false;
	bool again = true;

	while (again && dp_writer_find(w, primary, key->values))
	{
		struct varlena *doc;
		DpSingleDoc read;

		again = false;
		if (dp_writer_lock(w, LockTupleNoKeyExclusive) == DP_LOCK_DELETED)
		{
			again = true;
			dp_writer_refresh(w);
			continue;
		}
		doc = dp_writer_document(w);
		if (doc == NULL)
			break;
		dp_single_read(s, doc, &read);
		doc = dp_single_add_self(s, doc, &read, NULL);
		if (doc != NULL)
			written = dp_writer_update(w, doc) == DP_WRITE_DONE;
	}
	dp_writer_close(w);
	return written;
}

static const DpOption options[] = {
	{ "type_field", DP_OPTION_PATH, DP_INTO(DpSingle, ids.type_field) },
	{ "related_field", DP_OPTION_PATH, DP_ONE_OF | DP_KEPT | DP_GUARDED,
	  DP_INTO(DpSingle, related_field) },
	{ "key_field", DP_OPTION_PATH, DP_ONE_OF | DP_KEPT | DP_GUARDED, DP_INTO(DpSingle, key_field) },
	{ "separator", DP_OPTION_TEXT, 0, DP_INT_FROM(1), .with = "key_field", .dflt = "/",
	  DP_INTO(DpSingle, separator) },
	{ "id_fields", DP_OPTION_DOCUMENT },
	{ "self_related", DP_OPTION_TEXTS, DP_ALTERABLE },
	{ "types", DP_OPTION_TEXTS, DP_ALTERABLE },
	{ "is_unique", DP_OPTION_BOOL, DP_REQUIRED },
	{ "missing", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("allow", "error"),
	  DP_INTO(DpSingle, missing_error) },
	{ "on_delete", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE,
	  DP_WORDS("restrict", "cascade", "unset", "keep"), DP_INTO(DpSingle, on_delete) },
	{ "links", DP_OPTION_DOCUMENT }, /* written by single_collection_from() */
	{ NULL }
};

DP_DEFINE_PATTERN(single_collection) = { .name = "single_collection",
										 .whole_table = true,
										 .options = options,
										 .word = dp_single_word,
										 .repair_row = single_repair_row };
