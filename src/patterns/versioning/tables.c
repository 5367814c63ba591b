/*
 * tables.c
 *		All documents of a table or a partition that come or go at once.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"
#include "patterns/versioning/versioning.h"

static bool is_recorded_deleted(DpVersioning *v, const DpKey *key, struct varlena *doc);

/* All documents of a table or a partition go at once. */
void
dp_versioning_truncated(DpVersioning *v, Relation rel)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	TupleTableSlot *row = table_slot_create(rel, NULL);
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "truncated documents", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	dp_versioning_require(v);
	while (table_scan_getnextslot(scan, ForwardScanDirection, row))
	{
		HeapTuple tuple = ExecFetchSlotHeapTuple(row, false, NULL);
		DpKey key;

		CHECK_FOR_INTERRUPTS();
		dp_key_of_tuple(v->decl, tuple, RelationGetDescr(rel), &key);
		dp_versioning_deleted(v, NULL, dp_tuple_document(v->decl, tuple, RelationGetDescr(rel)),
							  &key);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	ExecDropSingleTupleTableSlot(row);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
}

/*
 * Whether a document's deletion was recorded before: by a repair, while its partition was being
 * detached.
 */
static bool
is_recorded_deleted(DpVersioning *v, const DpKey *key, struct varlena *doc)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	int64 number;
	bool result;

	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	result = dp_versioning_number(v, doc, &number) && dp_revisions_last(&store, key, &r) &&
			 r.operation == DP_VERSION_DELETE && r.revision > number;
	dp_revisions_close(&store);
	return result;
}

/* Records attached rows as inserted, detached ones as deleted. */
void
dp_versioning_partition(Oid table, Oid partition, bool attached)
{
	ListCell *lc;

	foreach(lc, dp_decls(table))
	{
		DpDecl *decl = lfirst(lc);
		DpVersioning *v;
		StringInfoData sql;
		Portal portal;
		SPIPlanPtr plan;

		if (strcmp(decl->pattern, "versioning") != 0 || decl->target != table ||
			!dp_decl_maintained(decl))
			continue;
		v = dp_versioning(decl);
		dp_versioning_require(v);
		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT ");
		dp_sql_key_list(&sql, decl);
		appendStringInfo(&sql, ", %s FROM ", quote_identifier(decl->doc_column));
		dp_sql_table(&sql, partition);
		SPI_connect();
		plan = SPI_prepare(sql.data, 0, NULL);
		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		PushActiveSnapshot(GetLatestSnapshot());
		portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
		PopActiveSnapshot();
		for (;;)
		{
			SPITupleTable *rows;

			SPI_cursor_fetch(portal, true, 100);
			rows = SPI_tuptable;
			if (SPI_processed == 0)
				break;
			for (uint64 i = 0; i < rows->numvals; i++)
			{
				DpKey key;
				bool isnull;
				Datum doc;

				CHECK_FOR_INTERRUPTS();
				key.n = decl->nkeys;
				for (int k = 0; k < key.n; k++)
					key.values[k] = SPI_getbinval(rows->vals[i], rows->tupdesc, k + 1, &isnull);
				doc = SPI_getbinval(rows->vals[i], rows->tupdesc, key.n + 1, &isnull);
				if (isnull)
					continue;
				/* frees memory after each row */
				SPI_connect();
				if (attached)
					dp_versioning_adopt(v, &key, (struct varlena *) PG_DETOAST_DATUM_PACKED(doc));
				else if (!is_recorded_deleted(v, &key,
											  (struct varlena *) PG_DETOAST_DATUM_PACKED(doc)))
					dp_versioning_deleted(v, NULL, (struct varlena *) PG_DETOAST_DATUM_PACKED(doc),
										  &key);
				SPI_finish();
			}
			SPI_freetuptable(rows);
		}
		SPI_cursor_close(portal);
		SPI_finish();
	}
}
