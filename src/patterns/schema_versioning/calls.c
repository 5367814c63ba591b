/*
 * calls.c
 *		Functions of the schema versioning pattern: upgrade a document when it is
 *		read, compare documents, record the progress of migrations.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/key.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/rows/write.h"
#include "kit/sql/run.h"
#include "patterns/schema_versioning/schema_versioning.h"

static struct varlena *read_document(DpSchemaVersioning *s, const DpKey *key, bool lock);
static bool upgrade_document(DpSchemaVersioning *s, struct varlena **doc);
static bool method_repair_row(DpDecl *decl, const DpKey *key);
static bool same_values(const DpValue *a, const DpValue *b, const DpPath *except, int step);
static Oid runs_owner(void);

/*
 * schema_versioning_read(rel, key, name) -> the document in the current version, which is also
 * stored. With the user's privileges.
 */
DP_ROUTED_FUNCTION(dp_schema_versioning_read, DP_ROUTE_KEY, 1)
{
	MemoryContext caller = CurrentMemoryContext;
	DpSchemaVersioning *s;
	struct varlena *doc;
	DpKey key;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and the key must not be null")));
	s = dp_schema_versioning(dp_decl_find(PG_GETARG_OID(0), DP_SCHEMA_VERSIONING,
										  PG_ARGISNULL(2) ? NULL
														  : text_to_cstring(PG_GETARG_TEXT_PP(2))));
	dp_key_of_argument(s->decl, fcinfo, 1, &key);
	SPI_connect();
	doc = read_document(s, &key, false);
	if (doc != NULL && upgrade_document(s, &doc) && !XactReadOnly && !RecoveryInProgress())
	{
		/* as it is now, locked */
		doc = read_document(s, &key, true);
		if (doc != NULL && upgrade_document(s, &doc))
		{
			Datum values[INDEX_MAX_KEYS + 1];
			SPIPlanPtr plan = dp_row_plan_write(s->decl, &key, doc, 0, values);

			/* a trigger may suppress the write: the result is the upgraded document anyway */
			(void) dp_run(s->decl, plan, values, NULL, 0, 0, SPI_OK_UPDATE);
		}
	}
	if (doc != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(caller);

		doc = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	if (doc == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(doc);
}

/* The document of a key, NULL if there is none. */
static struct varlena *
read_document(DpSchemaVersioning *s, const DpKey *key, bool lock)
{
	struct varlena *doc;

	if (lock)
		(void) dp_row_read(s->decl, key, " FOR NO KEY UPDATE", DP_RUN_LOCK, &doc);
	else
		(void) dp_row_read(s->decl, key, "", 0, &doc);
	return doc;
}

/* Converts the document to the current version; false if it has it. */
static bool
upgrade_document(DpSchemaVersioning *s, struct varlena **doc)
{
	int from =
		dp_versions_find(s->versions, dp_versions_of(s->versions, PointerGetDatum(*doc), NULL));

	if (from < 0)
		dp_versions_unknown(s->versions, PointerGetDatum(*doc),
							psprintf(" in table \"%s\"", dp_relation_name(s->decl->target)));
	if (from == s->at)
		return false;
	*doc = dp_versions_move(s->versions, *doc, from, s->at, false);
	dp_schema_versioning_check(s, *doc, s->at);
	return true;
}

/* For pattern_build(): returns whether a document is older than if it were written now. */
static bool
method_repair_row(DpDecl *decl, const DpKey *key)
{
	DpSchemaVersioning *s = dp_schema_versioning(decl);
	DpWriter *w = dp_writer_open(decl->target, decl->doc_column, DP_WRITE_ORDINARY, NULL);
	DpLookup *lookup = dp_lookup_primary(decl->target, CurrentMemoryContext);
	DpWriteResult result = DP_WRITE_SAME;

	while (dp_writer_find(w, lookup, key->values))
	{
		struct varlena *doc;

		if (dp_writer_lock(w, LockTupleNoKeyExclusive) == DP_LOCK_DELETED)
			continue;
		doc = dp_writer_document(w);
		if (s->upgrade && doc != NULL && upgrade_document(s, &doc))
			result = dp_writer_update(w, doc);
		break;
	}
	dp_writer_close(w);
	return result == DP_WRITE_DONE;
}

static const DpOption options[] = {
	{ "field", DP_OPTION_PATH, DP_REQUIRED | DP_KEPT },
	{ "current", DP_OPTION_INT, DP_REQUIRED | DP_ALTERABLE, DP_INT_FROM(1),
	  DP_INTO(DpSchemaVersioning, current) },
	{ "write", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("accept", "upgrade"),
	  DP_INTO(DpSchemaVersioning, upgrade) },
	{ "type", DP_OPTION_TEXT, DP_ALTERABLE },
	{ "first", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE },
	{ "stem", DP_OPTION_TEXT, DP_REQUIRED },
	{ "steps", DP_OPTION_ANY },
	{ "schemas", DP_OPTION_ANY, DP_ALTERABLE }, /* given as a document of versions */
	{ NULL }
};

DP_DEFINE_PATTERN(schema_versioning) = { .name = DP_SCHEMA_VERSIONING,
										 .options = options,
										 .repair_row = method_repair_row,
										 .view = &dp_schema_versioning_view,
										 .depend = dp_schema_versioning_depend };

/*
 * _schema_versioning_same(a, b, field) -> boolean
 */
DP_FUNCTION(dp_schema_versioning_same);
Datum
dp_schema_versioning_same(PG_FUNCTION_ARGS)
{
	DpValue a = dp_value_of_document(PG_GETARG_VARLENA_PP(0));
	DpValue b = dp_value_of_document(PG_GETARG_VARLENA_PP(1));
	DpPath *field = dp_path_arg(fcinfo, 2);

	PG_RETURN_BOOL(same_values(&a, &b, field, 0));
}

/*
 * Returns whether two values are equal, documents in any order of their members. except is a path
 * to skip, whose first steps lead here; step is -1 if it does not lead here.
 */
static bool
same_values(const DpValue *a, const DpValue *b, const DpPath *except, int step)
{
	DpIter iter;
	DpElement e;
	int n = 0;

	check_stack_depth();
	if (dp_value_identical(a, b))
		return true;
	if (a->type != b->type || !dp_type_is_container(a->type))
		return false;
	if (a->type == DP_TYPE_ARRAY)
	{
		DpIter other;
		DpValue x;
		DpValue y;

		dp_iter_init_value(&iter, a);
		dp_iter_init_value(&other, b);
		for (;;)
		{
			bool more = dp_iter_next_value(&iter, &x);

			if (more != dp_iter_next_value(&other, &y))
				return false;
			if (!more)
				return true;
			if (!same_values(&x, &y, except, -1))
				return false;
		}
	}
	dp_iter_init_value(&iter, a);
	while (dp_iter_next(&iter, &e))
	{
		DpValue other;
		int next = -1;

		if (step >= 0 && e.namelen == except->steps[step].namelen &&
			memcmp(e.name, except->steps[step].name, e.namelen) == 0)
		{
			if (step == except->nsteps - 1)
				continue;
			next = step + 1;
		}
		if (!dp_document_find(b->data, b->len, e.name, e.namelen, &other) ||
			!same_values(&e.value, &other, except, next))
			return false;
		n++;
	}
	/* and the other has no more */
	dp_iter_init_value(&iter, b);
	while (dp_iter_next(&iter, &e))
	{
		if (step < 0 || step != except->nsteps - 1 || e.namelen != except->steps[step].namelen ||
			memcmp(e.name, except->steps[step].name, e.namelen) != 0)
			n--;
	}
	return n == 0;
}

/*
 * _schema_versioning_note(rel, name, target, state, documents, passed_over, part, key, message):
 * records the progress of a migration in a table of the extension, as its owner
 */
DP_FUNCTION(dp_schema_versioning_note);
Datum
dp_schema_versioning_note(PG_FUNCTION_ARGS)
{
	Oid types[9] = { REGCLASSOID, TEXTOID,   INT4OID,    TEXTOID, INT8OID,
					 INT8OID,     FLOAT8OID, InvalidOid, TEXTOID };
	Datum values[9];
	char nulls[10];
	DpActing saved;
	int i;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and the name of the pattern must not be null")));
	dp_require_owner(PG_GETARG_OID(0));
	types[7] = dp_types()->bson_value;
	for (i = 0; i < 9; i++)
	{
		values[i] = PG_ARGISNULL(i) ? (Datum) 0 : PG_GETARG_DATUM(i);
		nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
	}
	nulls[9] = '\0';
	SPI_connect();
	dp_act_as(runs_owner(), &saved);
	PG_TRY();
	{
		if (SPI_execute_with_args(
				"INSERT INTO docpatterns.schema_versioning_runs AS r "
				"(rel, name, target, state, documents, passed_over, part, started, updated, key, message) "
				"VALUES ($1, $2, $3, $4, $5, $6, $7, pg_catalog.now(), pg_catalog.clock_timestamp(), $8, $9) "
				"ON CONFLICT (rel, name) DO UPDATE SET target = EXCLUDED.target, state = EXCLUDED.state, "
				"documents = EXCLUDED.documents, passed_over = EXCLUDED.passed_over, part = EXCLUDED.part, "
				"started = CASE WHEN EXCLUDED.state OPERATOR(pg_catalog.=) 'running' AND EXCLUDED.part OPERATOR(pg_catalog.=) 0 "
				"AND EXCLUDED.documents OPERATOR(pg_catalog.=) 0 THEN EXCLUDED.started ELSE r.started END, "
				"updated = EXCLUDED.updated, key = EXCLUDED.key, message = EXCLUDED.message",
				9, types, values, nulls, false, 0) != SPI_OK_INSERT)
			elog(ERROR, "could not note the progress of a migration");
	}
	PG_FINALLY();
	{
		dp_act_end(&saved);
	}
	PG_END_TRY();
	SPI_finish();
	PG_RETURN_VOID();
}

/* The owner of the table of migrations. */
static Oid
runs_owner(void)
{
	Oid schema = get_namespace_oid("docpatterns", false);
	Oid relid = get_relname_relid("schema_versioning_runs", schema);
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation docpatterns.schema_versioning_runs does not exist")));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}
