/*
 * by_statement.c
 *		Reads and writes the document of one row by a statement.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/rls.h"

#include "kit/rows/by_statement.h"
#include "kit/sql/template.h"

/* Policies on rows are a part of plans: statements that go past them have plans of their own. */
#define OF(flags, template)                                                                        \
	(((flags) &DP_RUN_AS_OWNER) != 0 || InNoForceRLSOperation() ? "{as owner}" template : template)

static bool row_run(DpDecl *decl, const DpKey *key, const char *locking, int flags);

bool
dp_row_again(DpDecl *decl, const DpKey *key, int flags)
{
	CHECK_FOR_INTERRUPTS();
	if (IsolationUsesXactSnapshot() ||
		((flags & DP_RUN_AS_OWNER) == 0 &&
		 check_enable_rls(decl->target, InvalidOid, true) == RLS_ENABLED))
		return false;
	return row_run(decl, key, "", flags & DP_RUN_AS_OWNER);
}

bool
dp_row_lock(DpDecl *decl, const DpKey *key, const char *locking, int flags)
{
	while (!row_run(decl, key, locking, flags))
	{
		if (locking[0] == '\0' || !dp_row_again(decl, key, flags))
			return false;
	}
	return true;
}

static bool
row_run(DpDecl *decl, const DpKey *key, const char *locking, int flags)
{
	SPIPlanPtr plan =
		dp_statement(decl, OF(flags, "SELECT FROM {table} WHERE {key = $key}{sql}"), locking);

	return dp_run(decl, plan, (Datum *) key->values, NULL, flags, 1, SPI_OK_SELECT) > 0;
}

bool
dp_row_read(DpDecl *decl, const DpKey *key, const char *locking, int flags, struct varlena **doc)
{
	SPIPlanPtr plan =
		dp_statement(decl, OF(flags, "SELECT {doc} FROM {table} WHERE {key = $key}{sql}"), locking);
	Datum value;
	bool isnull;

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
dp_row_plan_write(DpDecl *decl, const DpKey *key, struct varlena *doc, int flags, Datum *values)
{
	memcpy(values, key->values, sizeof(Datum) * decl->nkeys);
	values[decl->nkeys] = PointerGetDatum(doc);
	return dp_statement(decl,
						OF(flags, "UPDATE {table} SET {doc} = {$key+1 bson} WHERE {key = $key}"));
}

void
dp_row_write(DpDecl *decl, const DpKey *key, struct varlena *doc)
{
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan = dp_row_plan_write(decl, key, doc, 0, values);

	if (dp_run(decl, plan, values, NULL, 0, 0, SPI_OK_UPDATE) != 1)
		dp_write_refused(decl, decl->target);
}

void
dp_row_missing(DpDecl *decl, const DpKey *key)
{
	ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
					errmsg("table \"%s\" has no document with the key %s",
						   dp_relation_name(decl->target), dp_key_to_text(decl, key))));
}
