/*
 * side.c
 *		Side tables: their rows follow the rows of the user's table.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "kit/link.h"
#include "kit/registry.h"
#include "kit/rows/by_statement.h"
#include "kit/shard.h"
#include "kit/side/side.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"

static AttrNumber side_column(DpDecl *decl, Oid side, const char *column);
static AttrNumber
require_column(DpDecl *decl, Oid side, const char *name, Oid type, bool is_identity);
static void require_primary_key(DpDecl *decl, Oid side, const AttrNumber *numbers, int n);
static bool inserted_again(DpDecl *decl, const DpKey *key, HeapTuple deleted);

Oid
dp_side_find(DpDecl *decl, const char *link_id, const char *columns, AttrNumber *numbers)
{
	Oid side = link_id != NULL ? dp_link_side(link_id, decl->target) : InvalidOid;
	AttrNumber found[2 * INDEX_MAX_KEYS];
	int n = 0;

	if (!OidIsValid(side))
	{
		dp_require_own_sides(decl);
		dp_side_is_missing(decl);
	}
	dp_decl_depends(decl, side);
	while (*columns != '\0')
	{
		int len = strcspn(columns, ",;");
		char *column = pnstrdup(columns, len);

		if (strcmp(column, "{side key}") == 0)
		{
			for (int i = 0; i < decl->nkeys; i++)
			{
				StringInfoData name;

				initStringInfo(&name);
				dp_sql_side_key_name(&name, decl, i);
				found[n++] = require_column(decl, side, name.data, decl->keys[i].type, false);
			}
		}
		else
			found[n++] = side_column(decl, side, column);
		columns += len;
		if (*columns == ';')
			require_primary_key(decl, side, found, n);
		columns += strspn(columns, ",; ");
	}
	if (numbers != NULL)
		memcpy(numbers, found, sizeof(AttrNumber) * n);
	return side;
}

/* Returns the number of a column "name type" or "name type identity". */
static AttrNumber
side_column(DpDecl *decl, Oid side, const char *column)
{
	int len = strcspn(column, " ");
	const char *type = column + len + 1;
	int typelen = strcspn(type, " ");

	return require_column(decl, side, pnstrdup(column, len), dp_sql_type(pnstrdup(type, typelen)),
						  type[typelen] != '\0');
}

static AttrNumber
require_column(DpDecl *decl, Oid side, const char *name, Oid type, bool is_identity)
{
	HeapTuple tuple = SearchSysCacheAttName(side, name);
	Form_pg_attribute att = HeapTupleIsValid(tuple) ? (Form_pg_attribute) GETSTRUCT(tuple) : NULL;
	AttrNumber number;

	if (att == NULL || att->atttypid != type || (is_identity && att->attidentity == '\0'))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("side table \"%s\" of pattern \"%s\" must have %s \"%s\" of type %s",
							   dp_relation_name(side), decl->name,
							   is_identity ? "an identity column" : "a column", name,
							   format_type_be(type)),
						errhint("Restore the column with ALTER TABLE.")));
	number = att->attnum;
	ReleaseSysCache(tuple);
	return number;
}

/* Patterns find rows by it; a restore creates it late. */
static void
require_primary_key(DpDecl *decl, Oid side, const AttrNumber *numbers, int n)
{
	Relation rel = table_open(side, AccessShareLock);

	list_free(RelationGetIndexList(rel));
	if (OidIsValid(rel->rd_pkindex))
	{
		Relation index = index_open(rel->rd_pkindex, AccessShareLock);
		StringInfoData names;

		initStringInfo(&names);
		for (int i = 0; i < n; i++)
			appendStringInfo(&names, "%s%s", i > 0 ? ", " : "",
							 get_attname(side, numbers[i], false));
		/* on Citus it ends with the column by which rows are distributed */
		if (IndexRelationGetNumberOfKeyAttributes(index) < n ||
			(IndexRelationGetNumberOfKeyAttributes(index) > n && dp_shard_id(side) == 0 &&
			 !dp_is_distributed(side)) ||
			memcmp(index->rd_index->indkey.values, numbers, sizeof(AttrNumber) * n) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("side table \"%s\" of pattern \"%s\" must have the primary key (%s)",
							dp_relation_name(side), decl->name, names.data),
					 errhint("Restore the primary key with ALTER TABLE.")));
		index_close(index, AccessShareLock);
	}
	table_close(rel, AccessShareLock);
}

void
dp_side_is_missing(DpDecl *decl)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg("a side table of pattern \"%s\" of table \"%s\" is missing", decl->name,
				dp_relation_name(decl->target)),
		 errhint(
			 "Restore the table, or create an empty one with pattern_repair(). If data are lost, it needs accept_loss => true.")));
}

void
dp_side_trigger(DpDecl *decl, TriggerData *trigdata)
{
	if (!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		dp_side_statement(decl, trigdata);
	else if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		return;
	else if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		dp_moves_before(decl, trigdata);
	else
		dp_side_after(decl, trigdata);
}

DpMove *
dp_side_after(DpDecl *decl, TriggerData *trigdata)
{
	const DpSideMethods *side = decl->methods->side;
	DpMove deleted = { .deleted = true };
	DpMove *move = dp_moves_after(decl, trigdata, &deleted.from);

	if (move != NULL)
		return move;
	deleted.to = deleted.from;
	SPI_connect();
	if (dp_moves_arriving(decl, &deleted.from) ||
		!inserted_again(decl, &deleted.from, trigdata->tg_trigtuple))
		(void) side->leave(decl, &deleted);
	else if (side->correct != NULL)
		side->correct(decl, &deleted);
	SPI_finish();
	return NULL;
}

/*
 * Whether a statement of a trigger has inserted a row with the key of the deleted one.  If the
 * statement that deleted it inserts one, too, its triggers come later.
 */
static bool
inserted_again(DpDecl *decl, const DpKey *key, HeapTuple deleted)
{
	SPIPlanPtr plan = dp_statement(decl, "{as owner}SELECT FROM {table} WHERE {key = $key}"
										 " AND NOT cmin OPERATOR(pg_catalog.=) {$key+1 cid}");
	Datum values[INDEX_MAX_KEYS + 1];

	memcpy(values, key->values, sizeof(Datum) * decl->nkeys);
	values[decl->nkeys] = CommandIdGetDatum(HeapTupleHeaderGetCmax(deleted->t_data));
	return dp_run(decl, plan, values, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) > 0;
}

void
dp_side_statement(DpDecl *decl, TriggerData *trigdata)
{
	const DpSideMethods *side = decl->methods->side;
	List *moves;
	List *left = NIL;
	ListCell *lc;
	ListCell *lc2;

	if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
	{
		side->drop_orphans(decl);
		return;
	}
	moves = dp_moves_take(decl);
	if (moves == NIL)
		return;
	SPI_connect();
	foreach(lc, moves)
	{
		DpMove *move = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		/* a later statement, or a trigger, may have deleted the row */
		move->deleted = move->deleted || !dp_row_lock(decl, &move->to, "", DP_RUN_AS_OWNER);
		left = lappend(left, side->leave(decl, move));
	}
	forboth(lc, moves, lc2, left)
	{
		DpMove *move = lfirst(lc);

		if (!move->deleted && lfirst(lc2) != NULL)
			side->arrive(decl, move, lfirst(lc2));
	}
	foreach(lc, moves)
	{
		DpMove *move = lfirst(lc);

		if (!move->deleted && side->correct != NULL)
			side->correct(decl, move);
	}
	SPI_finish();
	list_free(moves);
}

void
dp_side_drop_orphans(DpDecl *decl, Oid side, const char *condition)
{
	SPIPlanPtr plan;

	if (dp_moves_pending(decl, NULL))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
						errmsg("cannot delete rows of side table \"%s\" while a statement changes "
							   "keys of table \"%s\"",
							   dp_relation_name(side), dp_relation_name(decl->target))));
	SPI_connect();
	plan = dp_statement(decl,
						"DELETE FROM {relation} AS side WHERE {sql} NOT EXISTS"
						" (SELECT FROM {table} AS base WHERE {base.key = side.key})",
						side, condition);
	dp_run_marked(decl, plan, NULL, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, side, decl->name,
				  DP_MARK_INTERNAL);
	SPI_finish();
}
