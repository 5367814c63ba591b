/*
 * write.c
 *		Query tables: finding and writing rows and whole partitions.
 *
 * A row is computed from the present row of the source, which the transaction has
 * locked or written, so it may be written repeatedly and concurrently.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "patterns/query_table/query_table.h"

/* Prefix of the names of guards of query tables */
#define GUARD "zz_docpatterns_90_query_table"

/* A partition with a limit */
typedef struct Partition
{
	DpQueryImage *now;  /* the first rows of the source */
	DpQueryImage *then; /* the rows of the table */
	int nnow;
	int nthen;
} Partition;

static bool is_guard(const Trigger *trigger);
static bool source_image(DpQueryTable *q, const Datum *key, bool lock, DpQueryImage *image);
static void
image_of_row(const DpQueryTable *q, HeapTuple tuple, TupleDesc desc, DpQueryImage *image);
static bool is_ours(const DpQueryTable *q, AttrNumber attnum);
static SPIPlanPtr last_plan(DpQueryTable *q);
static int clustering_compare(DpQueryTable *q, const DpQueryImage *a, const DpQueryImage *b);
static void partition_read(DpQueryTable *q, const DpQueryImage *image, int flags,
						   MemoryContext context, Partition *p);
static void
partition_require_seen(DpQueryTable *q, const DpQueryImage *image, MemoryContext context);
static SPIPlanPtr partition_plan(DpQueryTable *q, bool top);
static void column_sql(StringInfo sql, const DpQueryTable *q, const DpQueryColumn *column);
static bool query_find(const DpQueryTable *q, DpWriter *w, const DpQueryImage *image);
static bool query_remove_stale(DpQueryTable *q, DpWriter *w, const DpQueryImage *older);

DpWriter *
dp_query_writer(const DpQueryTable *q)
{
	DpWriter *w = dp_writer_open(q->table, NULL, DP_WRITE_LATEST, q->decl->name);

	dp_writer_skip(w, is_guard);
	return w;
}

/* The table's guard lets everything pass that is written here. */
static bool
is_guard(const Trigger *trigger)
{
	return trigger->tgnargs == 3 && strncmp(trigger->tgname, GUARD, strlen(GUARD)) == 0;
}

/* Returns the row with a primary key if it belongs to the same row of the source. */
static bool
query_find(const DpQueryTable *q, DpWriter *w, const DpQueryImage *image)
{
	Datum key[INDEX_MAX_KEYS];
	int i;

	dp_query_key(q, image, key);
	if (!dp_writer_find(w, q->lookup, key))
		return false;
	for (i = 0; q->is_unique && i < q->nkeys; i++)
	{
		const DpQueryColumn *column = &q->keys[i];
		bool isnull;
		Datum value = slot_getattr(dp_writer_row(w), column->attnum, &isnull);

		if (isnull || DatumGetInt32(FunctionCall2Coll(&unconstify(DpQueryColumn *, column)->cmp,
													  column->collation, value,
													  image->values[column->attnum - 1])) != 0)
			return false;
	}
	return true;
}

bool
dp_query_remove(const DpQueryTable *q, DpWriter *w, const DpQueryImage *image)
{
	while (query_find(q, w, image))
	{
		if (dp_writer_delete(w) == DP_WRITE_DONE)
			return true;
	}
	return false;
}

bool
dp_query_put(const DpQueryTable *q, DpWriter *w, const DpQueryImage *image)
{
	while (query_find(q, w, image))
	{
		TupleTableSlot *row = dp_writer_row(w);
		Datum *values = palloc(sizeof(Datum) * q->natts);
		bool *nulls = palloc(sizeof(bool) * q->natts);
		DpWriteResult result;
		int i;

		/* other columns keep their values */
		slot_getallattrs(row);
		for (i = 0; i < q->natts; i++)
		{
			bool ours = is_ours(q, i + 1);

			values[i] = ours ? image->values[i] : row->tts_values[i];
			nulls[i] = ours ? image->nulls[i] : row->tts_isnull[i];
		}
		result = dp_writer_update_row(w, values, nulls);
		if (result != DP_WRITE_CHANGED)
			return result == DP_WRITE_DONE;
	}
	dp_writer_insert_row(w, image->values, image->nulls);
	return true;
}

/* Whether a column of the table is one that was declared. */
static bool
is_ours(const DpQueryTable *q, AttrNumber attnum)
{
	int i;

	for (i = 0; i < q->ncolumns + q->nkeys; i++)
	{
		if ((i < q->ncolumns ? q->columns[i].attnum : q->keys[i - q->ncolumns].attnum) == attnum)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- single rows */

bool
dp_query_source_image(DpQueryTable *q, const Datum *key, DpQueryImage *image)
{
	return source_image(q, key, false, image);
}

bool
dp_query_repair_row(DpQueryTable *q, DpWriter *w, const Datum *key)
{
	DpQueryImage image;

	/* concurrent builds share row locks and insert the same row */
	dp_derive_lock_group(q->group, 0, ExclusiveLock);
	return source_image(q, key, true, &image) && !dp_query_expired(q, &image) &&
		   dp_query_put(q, w, &image);
}

/*
 * Deletes the row of an older image unless it still belongs there. Locks the row of the source
 * first (FOR SHARE). Returns whether anything was written.
 */
static bool
query_remove_stale(DpQueryTable *q, DpWriter *w, const DpQueryImage *older)
{
	Datum key[INDEX_MAX_KEYS];
	DpQueryImage image;
	int i;

	for (i = 0; i < q->nkeys; i++)
		key[i] = older->values[q->keys[i].attnum - 1];
	if (source_image(q, key, true, &image) && dp_query_compare(&image, older, q) == 0)
		return false;
	return dp_query_remove(q, w, older);
}

/* The image of the row of the source with that key, as it is now; false if there is none. */
static bool
source_image(DpQueryTable *q, const Datum *key, bool lock, DpQueryImage *image)
{
	DpWriter *source =
		dp_writer_open(q->source, q->decl->doc_column, DP_WRITE_LATEST, q->decl->name);
	bool result = false;

	while (dp_writer_find(source, q->source_lookup, key))
	{
		struct varlena *doc;
		DpKey copies;
		int i;

		if (lock && dp_writer_lock(source, LockTupleShare) != DP_LOCK_OK)
		{
			dp_writer_refresh(source);
			continue;
		}
		doc = dp_writer_document(source);
		dp_writer_key(source, &copies);
		for (i = 0; i < q->nkeys; i++)
		{
			if (q->keys[i].len == -1)
				copies.values[i] = PointerGetDatum(PG_DETOAST_DATUM_COPY(copies.values[i]));
			else
				copies.values[i] = datumCopy(copies.values[i], q->keys[i].byval, q->keys[i].len);
		}
		result = doc != NULL && dp_query_image(q, doc, copies.values, image);
		break;
	}
	(void) dp_writer_close(source);
	return result;
}

int64
dp_query_sweep(DpQueryTable *q)
{
	StringInfoData sql;
	Portal volatile portal = NULL;
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext row = AllocSetContextCreate(outer, "docpatterns row", ALLOCSET_DEFAULT_SIZES);
	DpActing saved;
	DpWriter *w;
	int64 written = 0;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT q.* FROM ");
	dp_sql_table(&sql, q->table);
	appendStringInfoString(&sql, " AS q");
	CommandCounterIncrement();
	w = dp_query_writer(q);
	SPI_connect();
	dp_act_as(q->decl->owner, &saved);
	PG_TRY();
	{
		portal = SPI_cursor_open_with_args(NULL, sql.data, 0, NULL, NULL, NULL, false,
										   CURSOR_OPT_NO_SCROLL);
	}
	PG_FINALLY();
	{
		dp_act_end(&saved);
	}
	PG_END_TRY();
	for (;;)
	{
		uint64 i;

		SPI_cursor_fetch(portal, true, 1000);
		if (SPI_processed == 0)
			break;
		for (i = 0; i < SPI_processed; i++)
		{
			MemoryContext old = MemoryContextSwitchTo(row);
			DpQueryImage image;

			CHECK_FOR_INTERRUPTS();
			image_of_row(q, SPI_tuptable->vals[i], SPI_tuptable->tupdesc, &image);
			if (q->limit > 0)
				written += dp_query_partition(q, w, &image);
			else if (query_remove_stale(q, w, &image))
				written++;
			MemoryContextSwitchTo(old);
			MemoryContextReset(row);
		}
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	SPI_finish();
	(void) dp_writer_close(w);
	MemoryContextDelete(row);
	return written;
}

/* A row of the table as an image; points into the tuple. */
static void
image_of_row(const DpQueryTable *q, HeapTuple tuple, TupleDesc desc, DpQueryImage *image)
{
	int column = 0;
	int i;

	/* SELECT * returns no dropped columns */
	image->values = palloc0(sizeof(Datum) * q->natts);
	image->nulls = palloc(sizeof(bool) * q->natts);
	memset(image->nulls, true, sizeof(bool) * q->natts);
	for (i = 0; i < q->natts && column < desc->natts; i++)
	{
		if (get_attname(q->table, i + 1, true) == NULL)
			continue;
		image->values[i] = SPI_getbinval(tuple, desc, ++column, &image->nulls[i]);
	}
	dp_query_abbreviate(q, image);
}

/* ---------------------------------------------------------------- partitions */

/* Inserts a row if it comes before the last one, which is then deleted, or if there is room. */
int64
dp_query_partition_add(DpQueryTable *q, DpWriter *w, const DpQueryImage *image)
{
	Datum values[INDEX_MAX_KEYS];
	DpQueryImage last;
	SPIPlanPtr plan;
	int64 written = 0;
	bool full;
	int i;

	dp_derive_lock_group(q->group, dp_query_partition_hash(q, image), ExclusiveLock);
	dp_writer_refresh(w);
	for (i = 0; i < q->npartition; i++)
		values[i] = image->values[q->columns[i].attnum - 1];
	SPI_connect();
	plan = dp_plan(q->decl, &q->plan_last);
	if (plan == NULL)
		plan = last_plan(q);
	full = dp_run(q->decl, plan, values, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) > 0;
	if (full)
		image_of_row(q, SPI_tuptable->vals[0], SPI_tuptable->tupdesc, &last);
	if (!full || clustering_compare(q, image, &last) < 0)
	{
		if (full)
			written += dp_query_remove(q, w, &last) ? 1 : 0;
		written += dp_query_put(q, w, image) ? 1 : 0;
	}
	SPI_finish();
	return written;
}

/* The last row that a full partition shows. */
static SPIPlanPtr
last_plan(DpQueryTable *q)
{
	StringInfoData sql;
	Oid types[INDEX_MAX_KEYS];
	bool descending = false;
	int i;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT s.* FROM ");
	dp_sql_table(&sql, q->table);
	appendStringInfoString(&sql, " AS s WHERE true");
	for (i = 0; i < q->npartition; i++)
	{
		types[i] = q->columns[i].type;
		appendStringInfo(&sql, " AND s.%s",
						 quote_identifier(get_attname(q->table, q->columns[i].attnum, false)));
		dp_sql_operator(&sql, lookup_type_cache(q->columns[i].type, TYPECACHE_EQ_OPR)->eq_opr);
		appendStringInfo(&sql, "$%d", i + 1);
	}
	appendStringInfoString(&sql, " ORDER BY ");
	for (i = q->npartition; i < q->nprimary; i++)
	{
		descending = q->columns[i].descending;
		appendStringInfo(&sql, "s.%s%s, ",
						 quote_identifier(get_attname(q->table, q->columns[i].attnum, false)),
						 descending ? " DESC" : "");
	}
	for (i = 0; i < q->nkeys; i++)
		appendStringInfo(&sql, "%ss.%s%s", i > 0 ? ", " : "",
						 quote_identifier(get_attname(q->table, q->keys[i].attnum, false)),
						 descending ? " DESC" : "");
	appendStringInfo(&sql, " OFFSET %d LIMIT 1", q->limit - 1);
	return dp_plan_make(q->decl, &q->plan_last, sql.data, q->npartition, types, 0);
}

/* Compares two rows of a partition in its order. */
static int
clustering_compare(DpQueryTable *q, const DpQueryImage *a, const DpQueryImage *b)
{
	bool descending = false;
	int i;

	for (i = q->npartition; i < q->nprimary + q->nkeys; i++)
	{
		DpQueryColumn *column = i < q->nprimary ? &q->columns[i] : &q->keys[i - q->nprimary];
		int cmp = DatumGetInt32(FunctionCall2Coll(&column->cmp, column->collation,
												  a->values[column->attnum - 1],
												  b->values[column->attnum - 1]));

		if (i < q->nprimary)
			descending = column->descending;
		if (cmp != 0)
			return descending ? -cmp : cmp;
	}
	return 0;
}

/*
 * The partition of a row of the source, as it is now.
 */
int64
dp_query_repair_partition(DpQueryTable *q, DpWriter *w, const Datum *key)
{
	DpQueryImage image;

	return source_image(q, key, false, &image) ? dp_query_partition(q, w, &image) : 0;
}

/*
 * A partition with a limit shows the first rows that the source has of it.
 */
int64
dp_query_partition(DpQueryTable *q, DpWriter *w, const DpQueryImage *image)
{
	MemoryContext context;
	MemoryContext old;
	Partition p;
	int64 written = 0;
	int i;
	int j;

	dp_derive_lock_group(q->group, dp_query_partition_hash(q, image), ExclusiveLock);
	dp_writer_refresh(w);
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns partition",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	SPI_connect();
	partition_read(q, image, 0, context, &p);

	/* delete first, then insert or update */
	for (i = j = 0; j < p.nthen; j++)
	{
		while (i < p.nnow && dp_query_compare(&p.now[i], &p.then[j], q) < 0)
			i++;
		if (i == p.nnow || dp_query_compare(&p.now[i], &p.then[j], q) != 0)
			written += dp_query_remove(q, w, &p.then[j]) ? 1 : 0;
	}
	for (i = 0; i < p.nnow; i++)
		written += dp_query_put(q, w, &p.now[i]) ? 1 : 0;
	if (IsolationUsesXactSnapshot())
		partition_require_seen(q, image, context);
	SPI_finish();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return written;
}

/*
 * Reads a partition, inside SPI_connect(): the first rows of the source, and
 * the rows of the table, both in the same order.
 */
static void
partition_read(DpQueryTable *q, const DpQueryImage *image, int flags, MemoryContext context,
			   Partition *p)
{
	Datum values[INDEX_MAX_KEYS];
	int i;
	int j;

	for (i = 0; i < q->npartition; i++)
		values[i] = image->values[q->columns[i].attnum - 1];
	(void) dp_run(q->decl, partition_plan(q, true), values, NULL, DP_RUN_AS_OWNER | flags, 0,
				  SPI_OK_SELECT);
	MemoryContextSwitchTo(context);
	p->now = palloc(sizeof(DpQueryImage) * (SPI_processed + 1));
	p->nnow = 0;
	for (i = 0; i < (int) SPI_processed; i++)
	{
		bool isnull;
		struct varlena *doc = (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull));
		Datum key[INDEX_MAX_KEYS];

		for (j = 0; j < q->nkeys; j++)
		{
			key[j] = dp_result(i, 2 + j, &isnull);
			key[j] = datumCopy(key[j], q->keys[j].byval, q->keys[j].len);
		}
		if (dp_query_image(q, doc, key, &p->now[p->nnow]))
			p->nnow++;
	}
	SPI_freetuptable(SPI_tuptable);
	(void) dp_run(q->decl, partition_plan(q, false), values, NULL, DP_RUN_AS_OWNER | flags, 0,
				  SPI_OK_SELECT);
	MemoryContextSwitchTo(context);
	p->then = palloc(sizeof(DpQueryImage) * (SPI_processed + 1));
	p->nthen = SPI_processed;
	for (i = 0; i < p->nthen; i++)
		image_of_row(q, SPI_tuptable->vals[i], SPI_tuptable->tupdesc, &p->then[i]);
	qsort_arg(p->now, p->nnow, sizeof(DpQueryImage), dp_query_compare, q);
	qsort_arg(p->then, p->nthen, sizeof(DpQueryImage), dp_query_compare, q);
}

/*
 * At REPEATABLE READ and above: raises T_R_SERIALIZATION_FAILURE if the transaction would see
 * other rows in the partition than the source rows that it sees require. Committed data are right
 * in any case; but rows that others inserted or deleted since the snapshot count for the limit and
 * are not visible.
 */
static void
partition_require_seen(DpQueryTable *q, const DpQueryImage *image, MemoryContext context)
{
	Partition p;
	bool same;
	int i;

	partition_read(q, image, DP_RUN_TRANSACTION, context, &p);
	same = p.nnow == p.nthen;
	for (i = 0; same && i < p.nnow; i++)
		same = dp_query_compare(&p.now[i], &p.then[i], q) == 0;
	if (!same)
		ereport(
			ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update"),
			 errdetail(
				 "A partition of query table \"%s\" has changed since the transaction took its snapshot.",
				 dp_relation_name(q->table)),
			 errhint("Retry the transaction.")));
}

/* The statements that read a partition: of the source its first rows, of the table all. */
static SPIPlanPtr
partition_plan(DpQueryTable *q, bool top)
{
	const void *id = top ? &q->plan_top : &q->plan_partition;
	SPIPlanPtr plan = dp_plan(q->decl, id);
	StringInfoData sql;
	Oid types[INDEX_MAX_KEYS];
	bool descending = false;
	int i;

	if (plan != NULL)
		return plan;
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	if (top)
	{
		appendStringInfo(&sql, "s.%s", quote_identifier(q->decl->doc_column));
		for (i = 0; i < q->nkeys; i++)
			appendStringInfo(&sql, ", s.%s", quote_identifier(q->decl->keys[i].name));
	}
	else
		appendStringInfoString(&sql, "s.*");
	appendStringInfoString(&sql, " FROM ");
	dp_sql_table(&sql, top ? q->source : q->table);
	appendStringInfoString(&sql, " AS s WHERE true");
	for (i = 0; i < (top ? q->nprimary : q->npartition); i++)
	{
		const DpQueryColumn *column = &q->columns[i];

		appendStringInfoString(&sql, " AND ");
		if (top)
			column_sql(&sql, q, column);
		else
			appendStringInfo(&sql, "s.%s",
							 quote_identifier(get_attname(q->table, column->attnum, false)));
		if (i < q->npartition)
		{
			types[i] = column->type;
			dp_sql_operator(&sql, lookup_type_cache(column->type, TYPECACHE_EQ_OPR)->eq_opr);
			appendStringInfo(&sql, "$%d", i + 1);
		}
		else
		{
			appendStringInfoString(&sql, " IS NOT NULL");
			if (column->type == dp_types()->bson_value)
			{
				appendStringInfoString(&sql, " AND ");
				dp_sql_own_schema(&sql);
				appendStringInfoString(&sql, "bson_typeof(");
				column_sql(&sql, q, column);
				appendStringInfoString(
					&sql,
					") OPERATOR(pg_catalog.<>) ALL ('{\"null\",undefined}'::pg_catalog.text[])");
			}
		}
	}
	if (top)
	{
		appendStringInfoString(&sql, " ORDER BY ");
		for (i = q->npartition; i < q->nprimary; i++)
		{
			column_sql(&sql, q, &q->columns[i]);
			descending = q->columns[i].descending;
			appendStringInfo(&sql, "%s, ", descending ? " DESC" : "");
		}
		for (i = 0; i < q->nkeys; i++)
			appendStringInfo(&sql, "%ss.%s%s", i > 0 ? ", " : "",
							 quote_identifier(q->decl->keys[i].name), descending ? " DESC" : "");
		appendStringInfo(&sql, " LIMIT %d", q->limit);
	}
	return dp_plan_make(q->decl, id, sql.data, q->npartition, types, 0);
}

/* The value of a column in a row s of the source, as the index on the source has it. */
static void
column_sql(StringInfo sql, const DpQueryTable *q, const DpQueryColumn *column)
{
	StringInfoData path;

	initStringInfo(&path);
	dp_path_to_text(&path, column->path);
	appendStringInfo(sql, "(s.%s", quote_identifier(q->decl->doc_column));
	dp_sql_own_operator(sql, "->");
	appendStringInfo(sql, "%s::pg_catalog.text)", quote_literal_cstr(path.data));
	if (column->type == UUIDOID)
		appendStringInfoString(sql, "::pg_catalog.text::pg_catalog.uuid");
	else if (column->type != dp_types()->bson_value)
		appendStringInfo(sql, "::%s",
						 format_type_extended(column->type, column->typmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN |
												  FORMAT_TYPE_FORCE_QUALIFY));
}
