/*
 * claims.c
 *		The preallocated pattern: the table of claims.
 *
 * <table>_<name>_claims has a row for each slot that is or was held:
 *
 *	the key's columns, slot text COLLATE "C", holder bson_value, until
 *	timestamptz (NULL: no expiry); PRIMARY KEY (the key's, slot)
 *
 * An expired row counts as missing and is overwritten by the next claim of the
 * slot.  The primary key makes two holders impossible.  Slots are locked in the
 * order of their names.
 *
 * A claim locks the document FOR KEY SHARE, which only blocks deleting it and
 * changing its key.  Both then delete or move the claims.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "bson/compare.h"
#include "kit/rows/table.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/preallocated/preallocated.h"

/* Of one claim */
#define OF_SLOT                                                                                    \
	" FROM {relation} AS c WHERE {side key = $key}"                                                \
	" AND c.slot OPERATOR(pg_catalog.=) {$key+1 text}"

static Oid claims_table(DpPreallocated *p);
static void claims_key(DpPreallocated *p, const DpKey *key, Datum *values);
static void claims_delete(DpPreallocated *p, Datum *values, const char *slot);
static bool snapshot_shows(DpPreallocated *p, const DpKey *key, const char *slot, TimestampTz now);
static void verify_snapshot(DpPreallocated *p, const DpKey *key, const char *slot);
static void changed_since(DpDecl *decl, const char *slot) pg_attribute_noreturn();
static uint64 run_with_snapshot(DpDecl *decl, SPIPlanPtr plan, Datum *values, Snapshot snapshot);
static bool claims_lock(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
						const DpValue *holder, bool expired_too);
static void *claims_leave(DpDecl *decl, const DpMove *move);
static void claims_arrive(DpDecl *decl, const DpMove *move, void *rows);
static void claims_correct(DpDecl *decl, const DpMove *move);
static void claims_drop_orphans(DpDecl *decl);

const DpSideMethods dp_claims_side = { .leave = claims_leave,
									   .arrive = claims_arrive,
									   .correct = claims_correct,
									   .drop_orphans = claims_drop_orphans };

static Oid
claims_table(DpPreallocated *p)
{
	if (!OidIsValid(p->side))
		p->side = dp_side_find(p->decl, p->link_id,
							   "{side key}, slot text; holder bson_value, until timestamptz", NULL);
	return p->side;
}

/* Sets values to the key under which the claims are stored now. */
static void
claims_key(DpPreallocated *p, const DpKey *key, Datum *values)
{
	DpKey stored;

	dp_moves_stored(p->decl, key, &stored);
	memcpy(values, stored.values, sizeof(Datum) * p->decl->nkeys);
}

int
dp_claims_read(DpPreallocated *p, const DpKey *key, bool latest, TimestampTz now, DpClaim **claims)
{
	DpDecl *decl = p->decl;
	SPIPlanPtr plan = dp_statement(
		decl,
		"SELECT c.slot, c.holder, c.until FROM {relation} AS c WHERE {side key = $key}"
		" AND (c.until IS NULL OR c.until OPERATOR(pg_catalog.>) {$key+1 timestamptz})",
		claims_table(p));
	Datum values[INDEX_MAX_KEYS + 1];
	uint64 n;
	uint64 i;

	memcpy(values, key->values, sizeof(Datum) * decl->nkeys);
	values[decl->nkeys] = TimestampTzGetDatum(now);
	n = dp_run(decl, plan, values, NULL, DP_RUN_AS_OWNER | (latest ? 0 : DP_RUN_SNAPSHOT), 0,
			   SPI_OK_SELECT);
	*claims = palloc(sizeof(DpClaim) * (n + 1));
	for (i = 0; i < n; i++)
	{
		bool isnull;
		Datum until;

		(*claims)[i].slot = TextDatumGetCString(dp_result(i, 1, &isnull));
		(*claims)[i].holder =
			dp_value_of_varlena((struct varlena *) DatumGetPointer(dp_result(i, 2, &isnull)));
		until = dp_result(i, 3, &isnull);
		(*claims)[i].until = isnull ? DT_NOEND : DatumGetTimestampTz(until);
	}
	return (int) n;
}

void
dp_claims_show(DpCells *cells, const DpClaim *claims, int n)
{
	int i;

	for (i = 0; i < n; i++)
	{
		DpCell *cell = dp_cells_find(cells, claims[i].slot);

		if (cell == NULL)
			continue;
		cell->value = claims[i].holder;
		cell->taken = true;
	}
}

/*
 * Searches first: if a slot is certainly taken, this costs no transaction ID and no lock. Then
 * inserts the rows, or overwrites expired ones; a concurrent claim of the slot waits and finds it
 * taken. Each slot is a statement of its own, so that it is always found by the whole primary key.
 */
bool
dp_claims_take(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
			   const DpValue *holder, TimestampTz until, TimestampTz now)
{
	DpDecl *decl = p->decl;
	int nkeys = decl->nkeys;
	Oid table = claims_table(p);
	Datum values[INDEX_MAX_KEYS + 4];
	char nulls[INDEX_MAX_KEYS + 5];
	SPIPlanPtr plan;
	int i;
	int made;

	memset(nulls, ' ', sizeof(nulls));
	claims_key(p, key, values);
	values[nkeys + 1] = TimestampTzGetDatum(now);
	values[nkeys + 2] = TimestampTzGetDatum(until);
	if (TIMESTAMP_IS_NOEND(until))
		nulls[nkeys + 2] = 'n';
	values[nkeys + 3] = PointerGetDatum(dp_value_to_varlena(holder));

	if (IsolationUsesXactSnapshot())
	{
		CommandCounterIncrement();
		for (i = 0; i < n; i++)
		{
			if (!snapshot_shows(p, key, slots[i], now))
				continue;
			verify_snapshot(p, key, slots[i]);
			return false;
		}
	}
	else
	{
		plan = dp_statement(
			decl,
			"SELECT 1" OF_SLOT
			" AND (c.until IS NULL OR c.until OPERATOR(pg_catalog.>) {$key+2 timestamptz})",
			table);
		for (i = 0; i < n; i++)
		{
			values[nkeys] = CStringGetTextDatum(slots[i]);
			if (dp_run(decl, plan, values, nulls, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) > 0)
				return false;
		}
	}

	plan = dp_statement(decl,
						"INSERT INTO {relation} AS c ({side key}, slot, holder, until)"
						" VALUES ({$key}, {$key+1 text}, {$key+4 bson_value}, {$key+3 timestamptz})"
						" ON CONFLICT ({side key}, slot)"
						" DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until"
						" WHERE c.until OPERATOR(pg_catalog.<=) {$key+2 timestamptz}",
						table);
	for (made = 0; made < n; made++)
	{
		values[nkeys] = CStringGetTextDatum(slots[made]);
		if (dp_run_marked(decl, plan, values, nulls, DP_RUN_AS_OWNER, SPI_OK_INSERT, table, NULL,
						  DP_MARK_INTERNAL) == 0)
			break;
	}
	if (made == n)
		return true;
	if (IsolationUsesXactSnapshot())
		changed_since(decl, slots[made]);

	/* an expired slot was free */
	for (i = 0; i < made; i++)
		claims_delete(p, values, slots[i]);
	return false;
}

/* Removes the claim of a slot; values begins with the key. */
static void
claims_delete(DpPreallocated *p, Datum *values, const char *slot)
{
	Oid table = claims_table(p);

	values[p->decl->nkeys] = CStringGetTextDatum(slot);
	dp_run_marked(p->decl, dp_statement(p->decl, "DELETE" OF_SLOT, table), values, NULL,
				  DP_RUN_AS_OWNER, SPI_OK_DELETE, table, NULL, DP_MARK_INTERNAL);
}

/*
 * At REPEATABLE READ and above, a slot that the snapshot shows as taken is taken, and one that it
 * shows as free must be claimed, or the transaction fails. Returns whether the snapshot shows a
 * holder. SERIALIZABLE would record reads by index pages, to which claims of other slots write,
 * and fail without need. So this reads all versions without recording: claims and later changes of
 * a slot both write its row, and conflict there.
 */
static bool
snapshot_shows(DpPreallocated *p, const DpKey *key, const char *slot, TimestampTz now)
{
	int nkeys = p->decl->nkeys;
	Snapshot snapshot = RegisterSnapshot(GetTransactionSnapshot());
	Datum values[INDEX_MAX_KEYS];
	DpTable t;
	AttrNumber until;
	bool taken = false;

	dp_table_open(&t, claims_table(p), AccessShareLock);
	until = get_attnum(RelationGetRelid(t.rel), "until");
	claims_key(p, key, values);
	values[nkeys] = CStringGetTextDatum(slot);
	dp_table_seek(&t, SnapshotAny, values, nkeys + 1);
	while (!taken && dp_table_next(&t, ForwardScanDirection))
	{
		bool isnull;
		Datum end;

		if (!table_tuple_satisfies_snapshot(t.rel, t.row, snapshot))
			continue;
		end = slot_getattr(t.row, until, &isnull);
		taken = isnull || DatumGetTimestampTz(end) > now;
	}
	dp_table_close(&t);
	UnregisterSnapshot(snapshot);
	return taken;
}

/*
 * Raises T_R_SERIALIZATION_FAILURE if the slot has another holder than in the snapshot. Reading
 * with the snapshot records the read for SERIALIZABLE.
 */
static void
verify_snapshot(DpPreallocated *p, const DpKey *key, const char *slot)
{
	DpDecl *decl = p->decl;
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan = dp_statement(decl, "SELECT c.ctid" OF_SLOT, claims_table(p));
	ItemPointerData tids[2];
	uint64 found[2];
	int pass;

	claims_key(p, key, values);
	values[decl->nkeys] = CStringGetTextDatum(slot);
	for (pass = 0; pass < 2; pass++)
	{
		bool isnull;

		found[pass] = run_with_snapshot(decl, plan, values,
										pass == 0 ? GetTransactionSnapshot() : GetLatestSnapshot());
		if (found[pass] > 0)
			tids[pass] = *(ItemPointer) DatumGetPointer(dp_result(0, 1, &isnull));
	}
	if (found[0] != found[1] || (found[0] > 0 && !ItemPointerEquals(&tids[0], &tids[1])))
		changed_since(decl, slot);
}

/* Raises T_R_SERIALIZATION_FAILURE. */
static void
changed_since(DpDecl *decl, const char *slot)
{
	ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					errmsg("could not serialize access due to concurrent claims"),
					errdetail("The claims are on slot %s of a document in table \"%s\".", slot,
							  dp_relation_name(decl->target)),
					errhint("The transaction might succeed if retried.")));
}

/* Runs a SELECT as the owner with just this snapshot.  Returns the number of rows. */
static uint64
run_with_snapshot(DpDecl *decl, SPIPlanPtr plan, Datum *values, Snapshot snapshot)
{
	DpActing acting;
	volatile int rc = 0;

	dp_act_as(decl->owner, &acting);
	PG_TRY();
	{
		rc = SPI_execute_snapshot(plan, values, NULL, snapshot, InvalidSnapshot, true, false, 0);
	}
	PG_FINALLY();
	{
		dp_act_end(&acting);
	}
	PG_END_TRY();
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_snapshot returned %s", SPI_result_code_string(rc));
	return SPI_processed;
}

/*
 * Locks the claims of these slots and returns whether the holder has all of them; expired_too:
 * also expired ones that have no other holder.
 */
static bool
claims_lock(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
			const DpValue *holder, bool expired_too)
{
	DpDecl *decl = p->decl;
	Datum values[INDEX_MAX_KEYS + 1];
	TimestampTz *until = palloc(sizeof(TimestampTz) * n);
	SPIPlanPtr plan =
		dp_statement(decl, "SELECT c.holder, c.until" OF_SLOT " FOR UPDATE", claims_table(p));
	TimestampTz now;
	int i;

	claims_key(p, key, values);
	for (i = 0; i < n; i++)
	{
		bool isnull;
		DpValue has;
		Datum end;

		values[decl->nkeys] = CStringGetTextDatum(slots[i]);
		if (dp_run(decl, plan, values, NULL, DP_RUN_AS_OWNER | DP_RUN_LOCK, 0, SPI_OK_SELECT) == 0)
			return false;
		has = dp_value_of_varlena((struct varlena *) DatumGetPointer(dp_result(0, 1, &isnull)));
		if (dp_value_compare(&has, holder) != 0)
			return false;
		end = dp_result(0, 2, &isnull);
		until[i] = isnull ? DT_NOEND : DatumGetTimestampTz(end);
	}

	/* use the time after waiting */
	now = GetCurrentTimestamp();
	for (i = 0; i < n && !expired_too; i++)
	{
		if (until[i] <= now)
			return false;
	}
	return true;
}

bool
dp_claims_prolong(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
				  const DpValue *holder, bool for_good, TimestampTz until)
{
	DpDecl *decl = p->decl;
	Oid table = claims_table(p);
	Datum values[INDEX_MAX_KEYS + 2];
	char nulls[INDEX_MAX_KEYS + 3];
	SPIPlanPtr plan;
	int i;

	if (!claims_lock(p, key, slots, n, holder, false))
		return false;
	plan = dp_statement(decl,
						/* a claim without expiry keeps none */
						"UPDATE {relation} AS c SET until = {$key+2 timestamptz}"
						" WHERE {side key = $key} AND c.slot OPERATOR(pg_catalog.=) {$key+1 text}"
						" AND c.until IS NOT NULL",
						table);
	memset(nulls, ' ', sizeof(nulls));
	claims_key(p, key, values);
	values[decl->nkeys + 1] = TimestampTzGetDatum(until);
	if (for_good)
		nulls[decl->nkeys + 1] = 'n';
	for (i = 0; i < n; i++)
	{
		values[decl->nkeys] = CStringGetTextDatum(slots[i]);
		dp_run_marked(decl, plan, values, nulls, DP_RUN_AS_OWNER, SPI_OK_UPDATE, table, NULL,
					  DP_MARK_INTERNAL);
	}
	return true;
}

bool
dp_claims_release(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
				  const DpValue *holder)
{
	Datum values[INDEX_MAX_KEYS + 1];
	int i;

	if (!claims_lock(p, key, slots, n, holder, true))
		return false;
	claims_key(p, key, values);
	for (i = 0; i < n; i++)
		claims_delete(p, values, slots[i]);
	return true;
}

void
dp_claims_adopt(DpPreallocated *p, const DpKey *key, const DpCells *cells)
{
	DpDecl *decl = p->decl;
	Oid table = claims_table(p);
	SPIPlanPtr plan = dp_statement(
		decl,
		"INSERT INTO {relation} AS c ({side key}, slot, holder)"
		" VALUES ({$key}, {$key+1 text}, {$key+2 bson_value}) ON CONFLICT ({side key}, slot)"
		" DO UPDATE SET holder = EXCLUDED.holder, until = NULL"
		" WHERE c.until OPERATOR(pg_catalog.<=) {$key+3 timestamptz}",
		table);
	int i;

	for (i = 0; i < cells->n; i++)
	{
		const DpCell *cell = &cells->cells[i];
		Datum values[INDEX_MAX_KEYS + 3];

		if (!cell->taken)
			continue;
		claims_key(p, key, values);
		values[decl->nkeys] = CStringGetTextDatum(cell->name);
		values[decl->nkeys + 1] = PointerGetDatum(dp_value_to_varlena(&cell->value));
		values[decl->nkeys + 2] = TimestampTzGetDatum(GetCurrentTimestamp());
		if (dp_run_marked(decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_INSERT, table, NULL,
						  DP_MARK_INTERNAL) == 0)
			dp_preallocated_refuse(
				p, key, "has a slot that is taken twice",
				psprintf("Slot %s is taken in the document and claimed by another holder.",
						 cell->name));
	}
}

/* ---------------------------------------------------------------- triggers */

static void *
claims_leave(DpDecl *decl, const DpMove *move)
{
	Oid table = claims_table(dp_preallocated(decl));
	SPIPlanPtr plan = dp_statement(decl,
								   "DELETE FROM {relation} AS c WHERE {side key = $key}"
								   " RETURNING c.slot, c.holder, c.until",
								   table);

	return dp_run_marked(decl, plan, (Datum *) move->from.values, NULL, DP_RUN_AS_OWNER,
						 SPI_OK_DELETE_RETURNING, table, NULL, DP_MARK_INTERNAL) > 0
			   ? SPI_tuptable
			   : NULL;
}

static void
claims_arrive(DpDecl *decl, const DpMove *move, void *rows)
{
	SPITupleTable *left = rows;
	Oid table = claims_table(dp_preallocated(decl));
	SPIPlanPtr plan =
		dp_statement(decl,
					 "INSERT INTO {relation} ({side key}, slot, holder, until) VALUES"
					 " ({$key}, {$key+1 text}, {$key+2 bson_value}, {$key+3 timestamptz})",
					 table);
	Datum values[INDEX_MAX_KEYS + 3];
	char nulls[INDEX_MAX_KEYS + 4];

	memcpy(values, move->to.values, sizeof(Datum) * decl->nkeys);
	for (uint64 i = 0; i < left->numvals; i++)
	{
		memset(nulls, ' ', sizeof(nulls));
		for (int k = 0; k < 3; k++)
		{
			bool isnull;

			values[decl->nkeys + k] = SPI_getbinval(left->vals[i], left->tupdesc, k + 1, &isnull);
			if (isnull)
				nulls[decl->nkeys + k] = 'n';
		}
		dp_run_marked(decl, plan, values, nulls, DP_RUN_AS_OWNER, SPI_OK_INSERT, table, NULL,
					  DP_MARK_INTERNAL);
	}
}

static void
claims_correct(DpDecl *decl, const DpMove *move)
{
	if (move->flags & DP_CLAIMS_TAKEN)
		(void) dp_preallocated_repair_row(dp_preallocated(decl), &move->to);
}

/* Deletes expired claims, too. */
static void
claims_drop_orphans(DpDecl *decl)
{
	DpPreallocated *p = dp_preallocated(decl);

	if (p->link_id != NULL)
		dp_side_drop_orphans(decl, claims_table(p),
							 "side.until OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp() OR");
}

/*
 * _preallocated_purge_claims(rel, name, most int) -> bigint: deletes expired claims that no
 * transaction has locked
 */
DP_FUNCTION(dp_preallocated_purge_claims);
Datum
dp_preallocated_purge_claims(PG_FUNCTION_ARGS)
{
	DpDecl *decl;
	Oid table;
	Datum most = PG_GETARG_DATUM(2);
	uint64 done;

	dp_require_owner(PG_GETARG_OID(0));
	decl = dp_decl_find(PG_GETARG_OID(0), "preallocated", text_to_cstring(PG_GETARG_TEXT_PP(1)));
	table = claims_table(dp_preallocated(decl));
	SPI_connect();
	done =
		dp_run_marked(decl,
					  dp_statement(decl,
								   "DELETE FROM {relation} WHERE ctid OPERATOR(pg_catalog.=) ANY"
								   " (ARRAY(SELECT ctid FROM {relation} WHERE until"
								   " OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()"
								   " ORDER BY until LIMIT {$1 int4} FOR UPDATE SKIP LOCKED))",
								   table, table),
					  &most, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, table, NULL, DP_MARK_INTERNAL);
	SPI_finish();
	PG_RETURN_INT64((int64) done);
}
