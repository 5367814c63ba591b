/*
 * later.c
 *		Revisions that a statement adds, written together (kit/rows/later.h).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "patterns/versioning/versioning.h"

static void write_alone(DpVersioning *v, HeapTuple row, TupleDesc desc);
static int compare_added(const void *a, const void *b);
static bool is_first(DpVersioning *v, HeapTuple row, TupleDesc desc);
static DpKey key_of_revision(DpVersioning *v, HeapTuple row, TupleDesc desc);

/*
 * The first revision of a document is right unless its key had revisions before.  Most often no key
 * in the range of those added has any.
 */
void
dp_versioning_write(void *arg, HeapTuple *rows, int n)
{
	DpVersioning *v = arg;
	HeapTuple *alone = palloc(sizeof(HeapTuple) * n);
	int nalone = 0;
	int nmany = 0;
	int first = n;
	int last = -1;
	bool known = false;
	bool distinct = true;
	DpTable t;
	DpRevisionStore store;
	DpRevision r;
	SnapshotData latest;
	TupleDesc desc;
	HeapTuple *sorted = palloc(sizeof(HeapTuple) * n);

	InitDirtySnapshot(latest);
	dp_table_open(&t, v->revisions, RowExclusiveLock);
	desc = RelationGetDescr(t.rel);
	memcpy(sorted, rows, sizeof(HeapTuple) * n);
	for (int i = 1; i < n && distinct; i++)
		distinct = dp_table_compare(&t, sorted[i - 1], sorted[i], v->decl->nkeys) < 0;
	if (!distinct)
		dp_table_sort(&t, sorted, n);
	for (int i = 0; i < n; i++)
	{
		if (is_first(v, sorted[i], desc))
		{
			first = Min(first, i);
			last = i;
		}
	}
	if (last >= 0)
	{
		DpKey low = key_of_revision(v, sorted[first], desc);
		DpKey high = key_of_revision(v, sorted[last], desc);

		known = dp_table_any(&t, &latest, low.values[0], high.values[0]);
		dp_revisions_open(&store, v, &latest);
	}
	for (int i = 0; i < n; i++)
	{
		bool is_alone = false;

		/* several rows of a key are written in their order */
		if (last >= 0 && !distinct)
			is_alone =
				(i > 0 && dp_table_compare(&t, sorted[i - 1], sorted[i], v->decl->nkeys) == 0) ||
				(i < n - 1 && dp_table_compare(&t, sorted[i], sorted[i + 1], v->decl->nkeys) == 0);
		if (known && !is_alone && is_first(v, sorted[i], desc))
		{
			DpKey key = key_of_revision(v, sorted[i], desc);

			is_alone = dp_revisions_last(&store, &key, &r);
		}
		if (is_alone)
			alone[nalone++] = sorted[i];
		else
			sorted[nmany++] = sorted[i];
	}
	if (last >= 0)
		dp_revisions_close(&store);
	dp_table_insert_many(&t, sorted, nmany);
	if (nalone > 0)
	{
		desc = CreateTupleDescCopy(desc);
		qsort(alone, nalone, sizeof(HeapTuple), compare_added);
	}
	dp_table_close(&t);
	for (int i = 0; i < nalone; i++)
		write_alone(v, alone[i], desc);
	pfree(alone);
	pfree(sorted);
}

/* Orders rows as they were added. */
static int
compare_added(const void *a, const void *b)
{
	return ItemPointerCompare(&(*(HeapTuple *) a)->t_self, &(*(HeapTuple *) b)->t_self);
}

/* Writes a row of a key that has others. */
static void
write_alone(DpVersioning *v, HeapTuple row, TupleDesc desc)
{
	DpKey key = key_of_revision(v, row, desc);
	bool exists = false;
	int64 number = 0;
	DpTable t;

	CHECK_FOR_INTERRUPTS();
	if (is_first(v, row, desc))
		number = dp_versioning_next(v, &key, &exists);
	if (!exists)
	{
		dp_table_open(&t, v->revisions, RowExclusiveLock);
		dp_table_insert_many(&t, &row, 1);
		dp_table_close(&t);
	}
	else if (dp_versioning_current(v, &key) != NULL)
		dp_versioning_correct(v, &key, number, DP_VERSION_INSERT, NULL);
}

static bool
is_first(DpVersioning *v, HeapTuple row, TupleDesc desc)
{
	bool isnull;

	return DatumGetChar(heap_getattr(row, v->columns[DP_VERSION_OPERATION], desc, &isnull)) ==
			   DP_VERSION_INSERT &&
		   DatumGetInt64(heap_getattr(row, v->columns[DP_VERSION_REVISION], desc, &isnull)) == 1;
}

/* The key of a row of the table of revisions. */
static DpKey
key_of_revision(DpVersioning *v, HeapTuple row, TupleDesc desc)
{
	DpKey key = { .n = v->decl->nkeys };
	bool isnull;

	for (int i = 0; i < key.n; i++)
		key.values[i] = heap_getattr(row, v->key_columns[i], desc, &isnull);
	return key;
}
