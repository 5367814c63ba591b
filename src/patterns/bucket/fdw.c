/*
 * fdw.c
 *		The foreign data wrapper of relations of measurements, and C functions of
 *		bucket_create().
 *
 * The wrapper has no options: those of a foreign table are in its declaration.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_foreign_table.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "foreign/fdwapi.h"
#include "funcapi.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "patterns/bucket/scan.h"

static CreateStmt *parse_columns(const char *text);
static void column_put(Tuplestorestate *store, TupleDesc desc, ColumnDef *column);
static char *collation_name(Oid collation);

/*
 * bucket_handler() -> fdw_handler
 */
DP_FUNCTION(dp_bucket_handler);
Datum
dp_bucket_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	dp_bucket_scan_routine(routine);
	dp_bucket_modify_routine(routine);
	PG_RETURN_POINTER(routine);
}

/*
 * bucket_validator(options text[], catalog oid)
 *
 * Raises FDW_INVALID_OPTION_NAME for any option.
 */
DP_FUNCTION(dp_bucket_validator);
Datum
dp_bucket_validator(PG_FUNCTION_ARGS)
{
	List *options = untransformRelOptions(PG_GETARG_DATUM(0));

	if (options != NIL)
		ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
						errmsg("relations of buckets do not have an option \"%s\"",
							   ((DefElem *) linitial(options))->defname),
						errhint("Pass options to bucket_create().")));
	PG_RETURN_VOID();
}

/*
 * bucket_trigger(): carries the declaration and does nothing.
 */
DP_FUNCTION(dp_bucket_trigger);
Datum
dp_bucket_trigger(PG_FUNCTION_ARGS)
{
	(void) dp_trigger_require(fcinfo, "bucket", DP_BEFORE_STATEMENT(DP_UPDATE), 1);
	return PointerGetDatum(NULL);
}

/*
 * _bucket_columns(text) -> (name, type, not_null): column definitions as in CREATE TABLE, read by
 * PostgreSQL's grammar. Raises SYNTAX_ERROR for other text, and FEATURE_NOT_SUPPORTED for
 * constraints other than NOT NULL.
 */
DP_FUNCTION(dp_bucket_columns);
Datum
dp_bucket_columns(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CreateStmt *stmt;
	ListCell *lc;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	stmt = parse_columns(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	foreach(lc, stmt->tableElts)
	{
		if (!IsA(lfirst(lc), ColumnDef))
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("columns of buckets can only have NOT NULL constraints")));
		column_put(rsinfo->setResult, rsinfo->setDesc, lfirst(lc));
	}
	return (Datum) 0;
}

/*
 * _bucket_alter(rel, command): runs an ALTER of a bucket relation that is refused to users. The
 * current user must own the relation.
 */
DP_FUNCTION(dp_bucket_alter);
Datum
dp_bucket_alter(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	char *command = text_to_cstring(PG_GETARG_TEXT_PP(1));
	DpMark mark;
	volatile int rc = 0;

	dp_require_owner(relid);
	SPI_connect();
	dp_mark_push(&mark, relid, NULL, DP_MARK_INTERNAL);
	PG_TRY();
	{
		rc = SPI_execute(command, false, 0);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
	}
	PG_END_TRY();
	if (rc < 0)
		elog(ERROR, "SPI_execute returned %s", SPI_result_code_string(rc));
	SPI_finish();
	PG_RETURN_VOID();
}

/* Parses column definitions and nothing else. */
static CreateStmt *
parse_columns(const char *text)
{
	List *statements = raw_parser(psprintf("CREATE TABLE x (%s\n)", text), RAW_PARSE_DEFAULT);
	CreateStmt *stmt = NULL;

	if (list_length(statements) == 1)
		stmt = (CreateStmt *) linitial_node(RawStmt, statements)->stmt;
	if (stmt == NULL || !IsA(stmt, CreateStmt) || stmt->inhRelations != NIL ||
		stmt->partspec != NULL || stmt->options != NIL || stmt->tablespacename != NULL ||
		stmt->accessMethod != NULL || stmt->tableElts == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR), errmsg("columns must be a list of names and types"),
				 errhint("For example: 'sensor_id int, ts timestamptz, temperature float8'.")));
	return stmt;
}

/* One column as a row. */
static void
column_put(Tuplestorestate *store, TupleDesc desc, ColumnDef *column)
{
	Datum values[3];
	bool nulls[3] = { false };
	Oid type;
	int32 typmod;
	char *name;
	bool not_null = column->is_not_null;
	ListCell *lc;

	if (column->typeName == NULL || column->raw_default != NULL || column->generated ||
		column->identity)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("column \"%s\" has more than a name and a type", column->colname),
						errhint("Set defaults with ALTER FOREIGN TABLE.")));
	foreach(lc, column->constraints)
	{
		Constraint *constraint = lfirst_node(Constraint, lc);

		if (constraint->contype == CONSTR_NOTNULL)
			not_null = true;
		else if (constraint->contype != CONSTR_NULL)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("column \"%s\" must not have a constraint or a default",
								   column->colname),
							errdetail("Columns of buckets can only have NOT NULL constraints."),
							errhint("Set defaults with ALTER FOREIGN TABLE.")));
	}

	typenameTypeIdAndMod(NULL, column->typeName, &type, &typmod);
	name =
		format_type_extended(type, typmod, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
	if (column->collClause != NULL)
	{
		Oid collation = get_collation_oid(column->collClause->collname, false);

		if (!OidIsValid(get_typcollation(type)))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("collations are not supported by type %s", format_type_be(type))));
		name = psprintf("%s COLLATE %s", name, collation_name(collation));
	}
	values[0] = CStringGetTextDatum(column->colname);
	values[1] = CStringGetTextDatum(name);
	values[2] = BoolGetDatum(not_null);
	tuplestore_putvalues(store, desc, values, nulls);
}

/* The qualified, quoted name of a collation. */
static char *
collation_name(Oid collation)
{
	HeapTuple tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	char *result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tuple);
	result = quote_qualified_identifier(get_namespace_name(form->collnamespace),
										NameStr(form->collname));
	ReleaseSysCache(tuple);
	return result;
}
