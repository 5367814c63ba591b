/*
 * query_table_follow.c
 *		Query tables: the statements on a source that they follow.
 *
 * What a statement did is taken in as rows that go, rows that stay where they
 * are with other values, and rows that come.  Those that go or stay are written
 * first, in the order of their places, then those that come: so two rows can
 * exchange values that are unique, and statements that do the same wait for
 * each other instead of deadlocking.  Beyond BATCH bytes a statement is handled
 * piece by piece, the rows that come in a second pass.
 *
 * A statement inside of another one on the same source (a user's trigger) is
 * told first, although its rows may be versions that come after those of the
 * outer one.  Its rows are postponed then, and when the outermost statement has
 * ended all are handled by what the source has now, row by row.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "patterns/change.h"
#include "patterns/derive_run.h"
#include "patterns/query_table.h"
#include "patterns/run.h"
#include "patterns/sqlgen.h"

/* Bytes of rows of one statement that are kept before they are written */
#define BATCH	(16 * 1024 * 1024)

/* Rows of a statement */
typedef struct Rows
{
	int			n;
	int			size;
	QueryImage *images;
} Rows;

/* What is being done to a table */
typedef struct Follow
{
	QueryTable *q;
	DpChanges  *changes;
	DpWriter   *w;
	MemoryContext outer;		/* of the writer */
	MemoryContext context;		/* of rows; current while one is looked at */
	Rows		gone;			/* rows that go */
	Rows		kept;			/* rows that have other values at the same place */
	Rows		come;			/* rows that come */
} Follow;

/* A row of a statement inside of another one */
typedef struct Postponed
{
	QueryTable *q;
	bool		had;			/* it led to: */
	QueryImage	image;
	Datum		key[FLEXIBLE_ARRAY_MEMBER];
} Postponed;

static List *disturbed = NIL;	/* sources with statements inside of statements; in TopTransactionContext */
static List *postponed = NIL;	/* their rows */
static MemoryContext postponed_context = NULL;	/* below TopTransactionContext */

static void table_follow(QueryTable *q, DpChanges *changes, bool disturbed_source);
static bool follow_next(Follow *f, DpChange *change);
static void follow_open(Follow *f);
static void follow_rows(Follow *f);
static void follow_take(Follow *f, const DpChange *change, bool take_come);
static void follow_write(Follow *f);
static void follow_postpone(Follow *f);
static void postponed_settle(Oid source);
static void follow_partitions(Follow *f, bool disturbed_source);
static void image_copy(const QueryTable *q, const QueryImage *from, QueryImage *to);
static void follow_empty(QueryTable *q);
static void rows_add(Rows *rows, const QueryImage *image);
static bool change_images(Follow *f, const DpChange *change, QueryImage *before, bool *has_before,
						  QueryImage *after, bool *has_after);
static bool same_row(QueryTable *q, const DpChange *change, struct varlena *before, struct varlena *after);
static int	partition_compare(const void *a, const void *b, void *arg);
static bool mark_disturbed(Oid source, bool pending);
static void query_xact(XactEvent event, void *arg);

/*
 * query_table_trigger(): the triggers on a source.
 */
DP_FUNCTION(dp_query_table_trigger);
Datum
dp_query_table_trigger(PG_FUNCTION_ARGS)
{
	DpChanges  *changes = dp_changes_of_trigger(fcinfo);

	if (changes != NULL)
		dp_changes_handle(changes);
	return PointerGetDatum(NULL);
}

/* ---------------------------------------------------------------- statements */

/*
 * A statement has changed a source, and all its query tables follow.
 */
void
dp_query_table_changed(DpChanges *changes)
{
	Oid			source = dp_changes_table(changes);
	List	   *tables = NIL;
	bool		pending;
	bool		is_disturbed;
	ListCell   *lc;

	foreach(lc, dp_feeds(source))
	{
		DpFeed	   *feed = lfirst(lc);

		if (feed->is_main && strcmp(feed->decl->pattern, "query_table") == 0 && dp_decl_maintained(feed->decl))
		{
			QueryTable *q = dp_query_table(feed->decl);

			/* it is missing in the midst of a restore only */
			if (OidIsValid(q->table))
				tables = lappend(tables, q);
		}
	}
	if (tables == NIL)
		return;
	pending = dp_changes_pending(source);
	is_disturbed = mark_disturbed(source, pending);
	foreach(lc, tables)
	{
		dp_changes_rewind(changes);
		table_follow(lfirst(lc), changes, is_disturbed);
	}
	list_free(tables);
	if (is_disturbed && !pending && postponed != NIL)
		postponed_settle(source);
}

/* One table follows. */
static void
table_follow(QueryTable *q, DpChanges *changes, bool disturbed_source)
{
	Follow		f = {0};
	MemoryContext old;

	if (dp_changes_wholly(changes))
	{
		if (dp_changes_emptied(changes))
			follow_empty(q);
		else
			(void) dp_query_sweep(q);
		return;
	}
	f.q = q;
	f.changes = changes;
	f.outer = CurrentMemoryContext;
	f.context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns query table", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(f.context);
	if (q->limit > 0)
		follow_partitions(&f, disturbed_source);
	else if (disturbed_source)
		follow_postpone(&f);
	else
		follow_rows(&f);
	MemoryContextSwitchTo(old);
	if (f.w != NULL)
		(void) dp_writer_close(f.w);
	MemoryContextDelete(f.context);
}

/* The next change; what reads it outlives the rows. */
static bool
follow_next(Follow *f, DpChange *change)
{
	MemoryContext old = MemoryContextSwitchTo(f->outer);
	bool		result = dp_changes_next(f->changes, change);

	MemoryContextSwitchTo(old);
	return result;
}

/* Opens the table; so does the writer. */
static void
follow_open(Follow *f)
{
	MemoryContext old = MemoryContextSwitchTo(f->outer);

	f->w = dp_query_writer(f->q);
	MemoryContextSwitchTo(old);
}

/* Rows as the statement tells them. */
static void
follow_rows(Follow *f)
{
	DpChange	change;
	bool		all = true;

	while (follow_next(f, &change))
	{
		follow_take(f, &change, all);
		if (MemoryContextMemAllocated(f->context, true) > BATCH)
		{
			/* what comes waits for all that goes */
			all = false;
			f->come.n = f->come.size = 0;
			follow_write(f);
		}
	}
	follow_write(f);
	if (all)
		return;
	dp_changes_rewind(f->changes);
	while (follow_next(f, &change))
	{
		follow_take(f, &change, true);
		f->gone.n = f->kept.n = 0;
		if (MemoryContextMemAllocated(f->context, true) > BATCH)
			follow_write(f);
	}
	follow_write(f);
}

/* Takes one change in; take_come: also a row that comes. */
static void
follow_take(Follow *f, const DpChange *change, bool take_come)
{
	QueryTable *q = f->q;
	QueryImage	before;
	QueryImage	after;
	bool		had;
	bool		has;

	if (change->before == NULL && !take_come)
		return;
	if (!change_images(f, change, &before, &had, &after, &has))
		return;
	if (had && has && dp_query_compare(&before, &after, q) == 0)
	{
		int			i;

		for (i = 0; i < q->ncolumns + q->nkeys; i++)
		{
			const QueryColumn *column = i < q->ncolumns ? &q->columns[i] : &q->keys[i - q->ncolumns];
			int			a = column->attnum - 1;

			if (before.nulls[a] != after.nulls[a] ||
				(!before.nulls[a] && !datum_image_eq(before.values[a], after.values[a], column->byval, column->len)))
				break;
		}
		if (i < q->ncolumns + q->nkeys)
			rows_add(&f->kept, &after);
		return;
	}
	if (had)
		rows_add(&f->gone, &before);
	if (has && take_come)
		rows_add(&f->come, &after);
}

/* Writes what has been taken in, and forgets it. */
static void
follow_write(Follow *f)
{
	QueryTable *q = f->q;
	int			i;

	if (f->gone.n + f->kept.n + f->come.n > 0 && f->w == NULL)
		follow_open(f);
	if (f->gone.n > 1)
		qsort_arg(f->gone.images, f->gone.n, sizeof(QueryImage), dp_query_compare, q);
	if (f->kept.n > 1)
		qsort_arg(f->kept.images, f->kept.n, sizeof(QueryImage), dp_query_compare, q);
	if (f->come.n > 1)
		qsort_arg(f->come.images, f->come.n, sizeof(QueryImage), dp_query_compare, q);
	for (i = 0; i < f->gone.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) dp_query_remove(q, f->w, &f->gone.images[i]);
	}
	for (i = 0; i < f->kept.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) dp_query_put(q, f->w, &f->kept.images[i]);
	}
	CHECK_FOR_INTERRUPTS();
	if (f->come.n == 1)
		dp_writer_insert_row(f->w, f->come.images[0].values, f->come.images[0].nulls);
	else if (f->come.n > 1)
	{
		Datum	  **values = palloc(sizeof(Datum *) * f->come.n);
		bool	  **nulls = palloc(sizeof(bool *) * f->come.n);

		for (i = 0; i < f->come.n; i++)
		{
			values[i] = f->come.images[i].values;
			nulls[i] = f->come.images[i].nulls;
		}
		dp_writer_insert_rows(f->w, values, nulls, f->come.n);
	}
	memset(&f->gone, 0, sizeof(Rows));
	memset(&f->kept, 0, sizeof(Rows));
	memset(&f->come, 0, sizeof(Rows));
	MemoryContextReset(f->context);
}

/* The rows of a statement are to be looked at when the outermost one has ended. */
static void
follow_postpone(Follow *f)
{
	QueryTable *q = f->q;
	DpChange	change;

	if (postponed_context == NULL)
		postponed_context = AllocSetContextCreate(TopTransactionContext, "docpatterns postponed", ALLOCSET_DEFAULT_SIZES);
	while (follow_next(f, &change))
	{
		TupleTableSlot *slots[2] = {change.before, change.after};
		MemoryContext old = MemoryContextSwitchTo(postponed_context);
		int			i;

		for (i = 0; i < 2; i++)
		{
			Postponed  *p;
			int			j;

			if (slots[i] == NULL)
				continue;
			p = palloc0(sizeof(Postponed) + sizeof(Datum) * q->nkeys);
			p->q = q;
			dp_query_source_key(q, slots[i], p->key);
			for (j = 0; j < q->nkeys; j++)
				p->key[j] = datumCopy(p->key[j], q->keys[j].byval, q->keys[j].len);
			p->had = dp_query_image(q, dp_source_document(slots[i], q->decl->doc_column), p->key, &p->image);
			postponed = lappend(postponed, p);
		}
		MemoryContextSwitchTo(old);
	}
}

/* Rows by what the source has now: of each table first all go that are no longer, then all come. */
static void
postponed_settle(Oid source)
{
	List	   *list = NIL;
	List	   *others = NIL;
	MemoryContext context = postponed_context;
	MemoryContext row = AllocSetContextCreate(CurrentMemoryContext, "docpatterns row", ALLOCSET_DEFAULT_SIZES);
	ListCell   *lc;

	/* those of other sources stay, however this ends; what is postponed meanwhile has a context of its own if none do */
	foreach(lc, postponed)
	{
		Postponed  *p = lfirst(lc);

		if (p->q->source == source)
			list = lappend(list, p);
		else
		{
			MemoryContext old = MemoryContextSwitchTo(context);

			others = lappend(others, p);
			MemoryContextSwitchTo(old);
		}
	}
	postponed = others;
	if (others == NIL)
		postponed_context = NULL;
	while (list != NIL)
	{
		QueryTable *q = ((Postponed *) linitial(list))->q;
		DpWriter   *w = dp_query_writer(q);
		List	   *rest = NIL;
		int			pass;

		for (pass = 0; pass < 2; pass++)
		{
			foreach(lc, list)
			{
				Postponed  *p = lfirst(lc);
				MemoryContext old;

				CHECK_FOR_INTERRUPTS();
				if (p->q != q)
				{
					if (pass == 0)
						rest = lappend(rest, p);
					continue;
				}
				old = MemoryContextSwitchTo(row);
				dp_writer_refresh(w);
				if (pass == 1)
					(void) dp_query_settle(q, w, p->key, false);
				else if (p->had)
					(void) dp_query_settle_gone(q, w, &p->image, false);
				MemoryContextSwitchTo(old);
				MemoryContextReset(row);
			}
		}
		(void) dp_writer_close(w);
		list = rest;
	}
	MemoryContextDelete(row);
	if (others == NIL)
		MemoryContextDelete(context);
}

/* With a limit: all partitions that rows went from or came to, in the order of their locks. */
static void
follow_partitions(Follow *f, bool disturbed_source)
{
	QueryTable *q = f->q;
	DpChange	change;
	MemoryContext row = AllocSetContextCreate(f->context, "docpatterns row", ALLOCSET_DEFAULT_SIZES);
	Rows	   *partitions = &f->come;
	QueryImage	only;			/* the row that came, if one came and nothing else happened */
	bool		one = false;
	int			n = 0;
	int			i;

	while (follow_next(f, &change))
	{
		QueryImage	images[2];
		bool		has[2];
		MemoryContext old = MemoryContextSwitchTo(row);
		bool		differ = change_images(f, &change, &images[0], &has[0], &images[1], &has[1]);

		MemoryContextSwitchTo(old);
		for (i = 0; i < 2 && differ; i++)
		{
			QueryImage	copy;
			int			j;

			if (!has[i])
				continue;
			copy.values = palloc0(sizeof(Datum) * q->natts);
			copy.nulls = NULL;
			for (j = 0; j < q->npartition; j++)
				copy.values[q->columns[j].attnum - 1] =
					datumCopy(images[i].values[q->columns[j].attnum - 1], q->columns[j].byval, q->columns[j].len);
			rows_add(partitions, &copy);
			one = partitions->n == 1 && i == 1;
			if (one)
				image_copy(q, &images[i], &only);
		}
		MemoryContextReset(row);

		/* a long statement may touch few partitions again and again */
		if (partitions->n >= 1024 && partitions->n >= 2 * n)
		{
			int			m = 1;

			qsort_arg(partitions->images, partitions->n, sizeof(QueryImage), partition_compare, q);
			for (i = 1; i < partitions->n; i++)
			{
				if (partition_compare(&partitions->images[m - 1], &partitions->images[i], q) != 0)
					partitions->images[m++] = partitions->images[i];
			}
			partitions->n = n = m;
		}
	}
	if (partitions->n == 0)
		return;
	qsort_arg(partitions->images, partitions->n, sizeof(QueryImage), partition_compare, q);
	follow_open(f);
	/* one that sees less than there is has to look at all of it */
	if (one && partitions->n == 1 && !disturbed_source && !IsolationUsesXactSnapshot())
	{
		(void) dp_query_partition_add(q, f->w, &only);
		return;
	}
	dp_derive_lock_many(partitions->n);
	for (i = 0; i < partitions->n; i++)
	{
		if (i == 0 || partition_compare(&partitions->images[i - 1], &partitions->images[i], q) != 0)
			(void) dp_query_partition(q, f->w, &partitions->images[i]);
	}
}

/* A copy in the current context. */
static void
image_copy(const QueryTable *q, const QueryImage *from, QueryImage *to)
{
	int			i;

	to->values = palloc0(sizeof(Datum) * q->natts);
	to->nulls = palloc(sizeof(bool) * q->natts);
	memcpy(to->nulls, from->nulls, sizeof(bool) * q->natts);
	to->abbreviated = from->abbreviated;
	for (i = 0; i < q->ncolumns + q->nkeys; i++)
	{
		const QueryColumn *column = i < q->ncolumns ? &q->columns[i] : &q->keys[i - q->ncolumns];
		int			a = column->attnum - 1;

		if (!from->nulls[a])
			to->values[a] = datumCopy(from->values[a], column->byval, column->len);
	}
}

/* Nothing is left in the source. */
static void
follow_empty(QueryTable *q)
{
	static const char plan_empty;
	SPIPlanPtr	plan;

	SPI_connect();
	plan = dp_plan(q->decl, &plan_empty);
	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "DELETE FROM ONLY ");
		dp_sql_table(&sql, q->table);
		plan = dp_plan_make(q->decl, &plan_empty, sql.data, 0, NULL);
	}
	(void) dp_run_marked(q->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, q->table, NULL, DP_MARK_INTERNAL);
	SPI_finish();
}

static void
rows_add(Rows *rows, const QueryImage *image)
{
	if (rows->n == rows->size)
	{
		rows->size = rows->size == 0 ? 16 : rows->size * 2;
		rows->images = rows->images == NULL ? palloc(sizeof(QueryImage) * rows->size) :
			repalloc_huge(rows->images, sizeof(QueryImage) * rows->size);
	}
	rows->images[rows->n++] = *image;
}

/* The images of a change.  Returns false if the row has not changed. */
static bool
change_images(Follow *f, const DpChange *change, QueryImage *before, bool *has_before,
			  QueryImage *after, bool *has_after)
{
	QueryTable *q = f->q;
	struct varlena *old_doc = change->before != NULL ? dp_source_document(change->before, q->decl->doc_column) : NULL;
	struct varlena *new_doc = change->after != NULL ? dp_source_document(change->after, q->decl->doc_column) : NULL;
	Datum		key[INDEX_MAX_KEYS];
	int			i;

	*has_before = *has_after = false;
	if (old_doc != NULL && new_doc != NULL && same_row(q, change, old_doc, new_doc))
		return false;
	for (i = 0; i < 2; i++)
	{
		TupleTableSlot *slot = i == 0 ? change->before : change->after;
		int			j;

		if (slot == NULL)
			continue;
		dp_query_source_key(q, slot, key);
		for (j = 0; j < q->nkeys; j++)
			key[j] = datumCopy(key[j], q->keys[j].byval, q->keys[j].len);	/* slots are used again */
		if (i == 0)
			*has_before = dp_query_image(q, old_doc, key, before);
		else
			*has_after = dp_query_image(q, new_doc, key, after);
	}
	return true;
}

/* Whether two versions of a row lead to the same: document and key are the same to the byte. */
static bool
same_row(QueryTable *q, const DpChange *change, struct varlena *before, struct varlena *after)
{
	Datum		left[INDEX_MAX_KEYS];
	Datum		right[INDEX_MAX_KEYS];
	int			i;

	if (DP_DOC_SIZE(before) != DP_DOC_SIZE(after) ||
		memcmp(DP_DOC_DATA(before), DP_DOC_DATA(after), DP_DOC_SIZE(after)) != 0)
		return false;
	dp_query_source_key(q, change->before, left);
	dp_query_source_key(q, change->after, right);
	for (i = 0; i < q->nkeys; i++)
	{
		if (!datum_image_eq(left[i], right[i], q->keys[i].byval, q->keys[i].len))
			return false;
	}
	return true;
}

/* By the hash of the partition, then by its values. */
static int
partition_compare(const void *a, const void *b, void *arg)
{
	const QueryTable *q = arg;
	const QueryImage *left = a;
	const QueryImage *right = b;
	uint64		left_hash = dp_query_partition_hash(q, left);
	uint64		right_hash = dp_query_partition_hash(q, right);
	int			i;

	if (left_hash != right_hash)
		return left_hash < right_hash ? -1 : 1;
	for (i = 0; i < q->npartition; i++)
	{
		QueryColumn *column = &q->columns[i];
		int			cmp = DatumGetInt32(FunctionCall2Coll(&column->cmp, column->collation,
														  left->values[column->attnum - 1],
														  right->values[column->attnum - 1]));

		if (cmp != 0)
			return cmp;
	}
	return 0;
}

/* Whether statements on the source have been inside of others, until no other is under way. */
static bool
mark_disturbed(Oid source, bool pending)
{
	static bool registered = false;
	bool		was = list_member_oid(disturbed, source);
	MemoryContext old;

	if (!pending && !was)
		return false;
	if (!registered)
	{
		RegisterXactCallback(query_xact, NULL);
		registered = true;
	}
	old = MemoryContextSwitchTo(TopTransactionContext);
	if (pending && !was)
		disturbed = lappend_oid(disturbed, source);
	else if (!pending)
		disturbed = list_delete_oid(disturbed, source);
	MemoryContextSwitchTo(old);
	return true;
}

/* The list does not outlive its transaction. */
static void
query_xact(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		disturbed = postponed = NIL;
		postponed_context = NULL;
	}
}
