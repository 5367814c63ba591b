/*
 * by_statement.c
 *		Reads and writes the document of one row by a statement.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rls.h"

#include "bson/catalog.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/text.h"

static const char plan_there;

bool
dp_row_again(DpDecl *decl, const DpKey *key, int flags)
{
	SPIPlanPtr plan;

	CHECK_FOR_INTERRUPTS();
	if (IsolationUsesXactSnapshot() ||
		((flags & DP_RUN_AS_OWNER) == 0 &&
		 check_enable_rls(decl->target, InvalidOid, true) == RLS_ENABLED))
		return false;
	plan = dp_plan(decl, &plan_there);
	if (plan == NULL)
	{
		StringInfoData sql;
		Oid types[INDEX_MAX_KEYS];

		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT FROM ");
		dp_sql_table(&sql, decl->target);
		appendStringInfoString(&sql, " WHERE ");
		dp_sql_key_match(&sql, decl, 1);
		dp_sql_key_types(decl, types);
		plan = dp_plan_make(decl, &plan_there, sql.data, decl->nkeys, types);
	}
	return dp_run(decl, plan, (Datum *) key->values, NULL, flags & DP_RUN_AS_OWNER, 1,
				  SPI_OK_SELECT) > 0;
}

bool
dp_row_read(DpDecl *decl, const void *id, const DpKey *key, const char *locking, int flags,
			struct varlena **doc)
{
	SPIPlanPtr plan = dp_plan(decl, id);
	Datum value;
	bool isnull;

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid types[INDEX_MAX_KEYS];

		initStringInfo(&sql);
		appendStringInfo(&sql, "SELECT %s FROM ", quote_identifier(decl->doc_column));
		dp_sql_table(&sql, decl->target);
		appendStringInfoString(&sql, " WHERE ");
		dp_sql_key_match(&sql, decl, 1);
		appendStringInfoString(&sql, locking);
		dp_sql_key_types(decl, types);
		plan = dp_plan_make(decl, id, sql.data, decl->nkeys, types);
	}
	*doc = NULL;
	while (dp_run(decl, plan, (Datum *) key->values, NULL, flags, 1, SPI_OK_SELECT) == 0)
	{
		if (locking[0] == '\0' || !dp_row_again(decl, key, flags))
			return false;
	}
	value = dp_result(0, 1, &isnull);
	if (!isnull)
		*doc = (struct varlena *) DatumGetPointer(value);
	return true;
}

SPIPlanPtr
dp_row_plan_write(DpDecl *decl, const void *id, const DpKey *key, struct varlena *doc,
				  Datum *values)
{
	SPIPlanPtr plan = dp_plan(decl, id);

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid types[INDEX_MAX_KEYS + 1];

		initStringInfo(&sql);
		appendStringInfoString(&sql, "UPDATE ");
		dp_sql_table(&sql, decl->target);
		appendStringInfo(&sql, " SET %s = $%d WHERE ", quote_identifier(decl->doc_column),
						 decl->nkeys + 1);
		dp_sql_key_match(&sql, decl, 1);
		dp_sql_key_types(decl, types);
		types[decl->nkeys] = dp_types()->bson;
		plan = dp_plan_make(decl, id, sql.data, decl->nkeys + 1, types);
	}
	memcpy(values, key->values, sizeof(Datum) * decl->nkeys);
	values[decl->nkeys] = PointerGetDatum(doc);
	return plan;
}

void
dp_row_write(DpDecl *decl, const void *id, const DpKey *key, struct varlena *doc)
{
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan = dp_row_plan_write(decl, id, key, doc, values);

	if (dp_run(decl, plan, values, NULL, 0, 0, SPI_OK_UPDATE) != 1)
		dp_write_refused(decl, decl->target);
}

void
dp_row_missing(DpDecl *decl, const DpKey *key)
{
	ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
					errmsg("table %s has no document with the key %s",
						   dp_relation_name(decl->target), dp_key_to_text(decl, key))));
}
