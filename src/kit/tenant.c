/*
 * tenant.c
 *		Schemas that Citus distributes: all tables of one are on the same server.
 *
 * Citus distributes a table in such a schema when CREATE TABLE is a statement of its own, not when
 * a function executes it.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "kit/declaration.h"
#include "kit/shard.h"
#include "kit/tenant.h"

/* Shards that Citus makes in the transaction that has this ID */
static List *made = NIL;
static TransactionId made_by = InvalidTransactionId;

void
dp_tenant_trigger_created(Oid relid)
{
	TransactionId xid = GetTopTransactionIdIfAny();
	MemoryContext old;

	if (!dp_maintain || !dp_called_by_citus() || !dp_shard_is_new(relid))
		return;
	if (!TransactionIdEquals(xid, made_by))
		made = NIL; /* freed with its transaction */
	made_by = xid;
	old = MemoryContextSwitchTo(TopTransactionContext);
	made = list_append_unique_oid(made, relid);
	MemoryContextSwitchTo(old);
}

void
dp_tenant_require_made(Oid relid)
{
	if (likely(made == NIL))
		return;
	if (!TransactionIdEquals(made_by, GetTopTransactionIdIfAny()))
		made = NIL;
	else if (list_member_oid(made, relid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot copy rows into shards of a table with patterns"),
				 errdetail("Patterns would change rows that they have changed already."),
				 errhint("Use pattern_distribute_schema() or collection_distribute() instead of "
						 "Citus's functions.")));
}

/*
 * _tenant_join(rel): distributes a table in a distributed schema, as its own statement would.
 * Raises FEATURE_NOT_SUPPORTED inside of another command, such as CREATE TABLE AS.
 */
DP_FUNCTION(dp_tenant_join);
Datum
dp_tenant_join(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	char *schema = get_namespace_name(get_rel_namespace(relid));
	AlterObjectSchemaStmt *stmt = makeNode(AlterObjectSchemaStmt);
	PlannedStmt *planned = makeNode(PlannedStmt);

	dp_require_owner(relid);
	stmt->objectType = OBJECT_TABLE;
	stmt->relation = makeRangeVar(schema, get_rel_name(relid), -1);
	stmt->newschema = schema;
	planned->commandType = CMD_UTILITY;
	planned->utilityStmt = (Node *) stmt;
	planned->stmt_location = -1;
	CommandCounterIncrement();
	ProcessUtility(planned, "ALTER TABLE .. SET SCHEMA ..", false, PROCESS_UTILITY_TOPLEVEL, NULL,
				   NULL, None_Receiver, NULL);
	CommandCounterIncrement();
	if (!dp_is_distributed(relid))
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot create table \"%s\" in a distributed schema inside of another command",
					dp_relation_name(relid)),
			 errhint("Call the function in a SELECT of its own.")));
	PG_RETURN_VOID();
}
