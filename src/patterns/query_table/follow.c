/*
 * follow.c
 *		Query tables: processing statements on a source.
 *
 * The changes of a statement are collected as rows to delete, rows to update in
 * place, and rows to insert.  Deletions and updates are written first, in the
 * order of their keys in the table, then insertions: so two rows can exchange
 * unique values, and statements that do the same wait for each other instead of
 * deadlocking.  Beyond BATCH bytes a statement is processed in pieces, the
 * insertions in a second pass; if foreign keys may write to the source it is
 * postponed instead, completely in memory.
 *
 * A nested statement on the same source (of a user's trigger, or of a pattern that
 * updates copies) is processed first, although its rows may be later versions than
 * those of the outer one.  If a table distinguishes them, both are postponed, and
 * finally all rows are processed in their present state.  So are rows that one
 * statement wrote repeatedly, as foreign key actions may.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "kit/derive/change.h"
#include "kit/derive/batch.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/statement.h"
#include "patterns/query_table/query_table.h"

/* Bytes of rows of one statement that are kept before they are written */
#define BATCH (16 * 1024 * 1024)

/* Rows of a statement */
typedef struct Rows
{
	int n;
	int size;
	DpQueryImage *images;
} Rows;

/* Changes to one query table */
typedef struct Follow
{
	DpQueryTable *q;
	DpChanges *changes;
	bool inside; /* the statement is inside of another one on the source */
	DpWriter *w;
	MemoryContext outer;   /* of the writer */
	MemoryContext context; /* of rows; current while one is looked at */
	Rows removed;          /* rows to delete */
	Rows kept;             /* rows to update */
	Rows added;            /* rows to insert */
} Follow;

/* A row of a statement inside of another one, or around it */
typedef struct Postponed
{
	DpState state;
	DpQueryTable *q;
	bool had; /* it led to: */
	DpQueryImage image;
	Datum key[FLEXIBLE_ARRAY_MEMBER];
} Postponed;

static List *disturbed =
	NIL; /* tables that statements inside of others concern; in TopTransactionContext */
static MemoryContext postponed_context = NULL; /* below TopTransactionContext */

static void table_follow(DpQueryTable *q, DpChanges *changes, bool inside);
static bool follow_next(Follow *f, DpChange *change);
static void follow_open(Follow *f);
static void follow_rows(Follow *f);
static void follow_take(Follow *f, const DpChange *change, bool take_come);
static void follow_write(Follow *f);
static void follow_postpone(Follow *f);
static void postpone(DpQueryTable *q, const DpQueryImage *image, const Datum *key);
static bool postponed_process(Oid source);
static void postponed_write(DpQueryTable *q, List *rows);
static void follow_now(Follow *f);
static void
rows_process(DpQueryTable *q, DpWriter *w, Rows *then, const Datum *const *keys, int nkeys);
static int rows_sort(DpQueryTable *q, Rows *rows);
static bool rows_repeat(DpQueryTable *q, const Rows *rows);
static bool rows_meet(DpQueryTable *q, const Rows *a, const Rows *b);
static bool has_foreign_keys(DpQueryTable *q);
static void follow_partitions(Follow *f);
static void image_copy(const DpQueryTable *q, const DpQueryImage *from, DpQueryImage *to);
static void follow_empty(DpQueryTable *q);
static void rows_add(Rows *rows, const DpQueryImage *image);
static bool change_images(Follow *f, const DpChange *change, DpQueryImage *before, bool *has_before,
						  DpQueryImage *after, bool *has_after);
static bool
same_row(DpQueryTable *q, const DpChange *change, struct varlena *before, struct varlena *after);
static int partition_compare(const void *a, const void *b, void *arg);
static void mark_disturbed(DpQueryTable *q);
static void postponed_ended(void);

/*
 * Of Postponed.  Rows that a subtransaction has written are not ours any more when it is rolled
 * back, and nothing is known of them.
 */
static DpStates postponed = { .outlives = true, .ended = postponed_ended };

/*
 * query_table_trigger(): the triggers on a source.
 */
DP_FUNCTION(dp_query_table_trigger);
Datum
dp_query_table_trigger(PG_FUNCTION_ARGS)
{
	return dp_changes_trigger(fcinfo, "query_table");
}

/* ---------------------------------------------------------------- statements */

/*
 * A statement has changed a source, and all its query tables follow.
 */
void
dp_query_table_changed(DpChanges *changes)
{
	Oid source = dp_changes_table(changes);
	List *tables = NIL;
	bool inside;
	ListCell *lc;

	foreach(lc, dp_source_decls(source))
	{
		DpSourceDecl *used = lfirst(lc);

		if (used->is_main && strcmp(used->decl->pattern, "query_table") == 0 &&
			dp_decl_maintained(used->decl))
		{
			DpQueryTable *q = dp_query_table(used->decl);

			/* it is missing in the midst of a restore only */
			if (OidIsValid(q->table))
				tables = lappend(tables, q);
		}
	}
	if (tables == NIL)
		return;
	inside = dp_changes_inside(changes);
	foreach(lc, tables)
	{
		dp_changes_rewind(changes);
		table_follow(lfirst(lc), changes, inside);
	}

	/* again if triggers on the tables have written to the source */
	while (!inside)
	{
		foreach(lc, tables)
			disturbed = list_delete_oid(disturbed, ((DpQueryTable *) lfirst(lc))->table);
		if (!postponed_process(source))
			break;
	}
	list_free(tables);
}

/* One table follows. */
static void
table_follow(DpQueryTable *q, DpChanges *changes, bool inside)
{
	Follow f = { 0 };
	MemoryContext old;

	if (dp_changes_wholly(changes))
	{
		if (inside)
			mark_disturbed(q);
		if (dp_changes_emptied(changes))
			follow_empty(q);
		else
			(void) dp_query_sweep(q);
		return;
	}
	f.q = q;
	f.changes = changes;
	f.inside = inside;
	f.outer = CurrentMemoryContext;
	f.context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns query table",
									  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(f.context);
	if (q->limit > 0)
		follow_partitions(&f);
	else if (inside || list_member_oid(disturbed, q->table))
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
	bool result = dp_changes_next(f->changes, change);

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

/* Reads the rows of the statement. */
static void
follow_rows(Follow *f)
{
	DpChange change;
	bool all = true;

	while (follow_next(f, &change))
	{
		follow_take(f, &change, all);
		if (MemoryContextMemAllocated(f->context, true) > BATCH)
		{
			if (all && has_foreign_keys(f->q))
			{
				/* a row may be inserted again in another piece */
				MemoryContextReset(f->context);
				dp_changes_rewind(f->changes);
				follow_postpone(f);
				return;
			}
			/* insert after all deletions */
			all = false;
			f->added.n = f->added.size = 0;
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
		f->removed.n = f->kept.n = 0;
		if (MemoryContextMemAllocated(f->context, true) > BATCH)
			follow_write(f);
	}
	follow_write(f);
}

/* Adds one change; take_come: also a row to insert. */
static void
follow_take(Follow *f, const DpChange *change, bool take_come)
{
	DpQueryTable *q = f->q;
	DpQueryImage before;
	DpQueryImage after;
	bool had;
	bool has;

	if (change->before == NULL && !take_come)
		return;
	if (!change_images(f, change, &before, &had, &after, &has))
		return;
	if (had && has && dp_query_compare(&before, &after, q) == 0)
	{
		rows_add(&f->kept, &after);
		return;
	}
	if (had)
		rows_add(&f->removed, &before);
	if (has && take_come)
		rows_add(&f->added, &after);
}

/* Writes the collected changes and forgets them. */
static void
follow_write(Follow *f)
{
	DpQueryTable *q = f->q;
	int i;

	if (f->removed.n + f->kept.n + f->added.n > 0 && f->w == NULL)
		follow_open(f);
	if (f->removed.n > 1)
		qsort_arg(f->removed.images, f->removed.n, sizeof(DpQueryImage), dp_query_compare, q);
	if (f->kept.n > 1)
		qsort_arg(f->kept.images, f->kept.n, sizeof(DpQueryImage), dp_query_compare, q);
	if (f->added.n > 1)
		qsort_arg(f->added.images, f->added.n, sizeof(DpQueryImage), dp_query_compare, q);

	/* primary keys of rows that were written more than once, or that have exchanged their keys */
	if (rows_repeat(q, &f->kept) || rows_meet(q, &f->removed, &f->added) ||
		rows_meet(q, &f->removed, &f->kept) || rows_meet(q, &f->kept, &f->added))
	{
		follow_now(f);
		f->removed.n = f->kept.n = f->added.n = 0;
	}
	for (i = 0; i < f->removed.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) dp_query_remove(q, f->w, &f->removed.images[i]);
	}
	for (i = 0; i < f->kept.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) dp_query_put(q, f->w, &f->kept.images[i]);
	}
	CHECK_FOR_INTERRUPTS();
	if (f->added.n == 1)
		dp_writer_insert_row(f->w, f->added.images[0].values, f->added.images[0].nulls);
	else if (f->added.n > 1)
	{
		Datum **values = palloc(sizeof(Datum *) * f->added.n);
		bool **nulls = palloc(sizeof(bool *) * f->added.n);

		for (i = 0; i < f->added.n; i++)
		{
			values[i] = f->added.images[i].values;
			nulls[i] = f->added.images[i].nulls;
		}
		dp_writer_insert_rows(f->w, values, nulls, f->added.n);
	}
	memset(&f->removed, 0, sizeof(Rows));
	memset(&f->kept, 0, sizeof(Rows));
	memset(&f->added, 0, sizeof(Rows));
	MemoryContextReset(f->context);
}

/* Processes the rows of a statement when the outermost one has ended. */
static void
follow_postpone(Follow *f)
{
	DpQueryTable *q = f->q;
	DpChange change;

	while (follow_next(f, &change))
	{
		DpQueryImage before;
		DpQueryImage after;
		bool had;
		bool has;

		if (change_images(f, &change, &before, &had, &after, &has))
		{
			Datum key[INDEX_MAX_KEYS];

			if (f->inside)
				mark_disturbed(q);
			if (change.before != NULL)
			{
				dp_query_source_key(q, change.before, key);
				postpone(q, had ? &before : NULL, key);
			}
			if (change.after != NULL)
			{
				dp_query_source_key(q, change.after, key);
				postpone(q, has ? &after : NULL, key);
			}
		}
		MemoryContextReset(f->context);
	}
}

/* A row of the source, with its old and new image if any. */
static void
postpone(DpQueryTable *q, const DpQueryImage *image, const Datum *key)
{
	MemoryContext old;
	Postponed *p;
	int i;

	p = dp_state_begin(&postponed, offsetof(Postponed, key) + sizeof(Datum) * q->nkeys);
	if (postponed_context == NULL)
		postponed_context = AllocSetContextCreate(TopTransactionContext, "docpatterns postponed",
												  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(postponed_context);
	p->q = q;
	p->had = image != NULL;
	if (p->had)
		image_copy(q, image, &p->image);
	for (i = 0; i < q->nkeys; i++)
		p->key[i] = datumCopy(key[i], q->keys[i].byval, q->keys[i].len);
	MemoryContextSwitchTo(old);
}

/*
 * All rows that have been postponed, by what the source has now.  Returns false if there are none.
 */
static bool
postponed_process(Oid source)
{
	List *list = NIL;
	List *others = NIL;
	MemoryContext context = postponed_context;
	ListCell *lc;

	/*
	 * changes of other sources are kept in any case; changes postponed meanwhile have a context of
	 * their own if there are none
	 */
	foreach(lc, postponed.list)
	{
		Postponed *p = lfirst(lc);

		if (p->q->source == source)
			list = lappend(list, p);
		else
		{
			MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

			others = lappend(others, p);
			MemoryContextSwitchTo(old);
		}
	}
	if (list == NIL)
		return false;
	list_free(postponed.list);
	postponed.list = others;
	if (others == NIL)
		postponed_context = NULL;
	while (list != NIL)
	{
		DpQueryTable *q = ((Postponed *) linitial(list))->q;
		List *rows = NIL;
		List *rest = NIL;

		foreach(lc, list)
		{
			Postponed *p = lfirst(lc);

			if (p->q == q)
				rows = lappend(rows, p);
			else
				rest = lappend(rest, p);
		}
		postponed_write(q, rows);
		list_free_deep(rows);
		list_free(list);
		list = rest;
	}
	if (others == NIL)
		MemoryContextDelete(context);
	return true;
}

/* Those of one table. */
static void
postponed_write(DpQueryTable *q, List *rows)
{
	DpWriter *w = dp_query_writer(q);
	Rows then = { 0 };
	const Datum **keys =
		MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Datum *) * list_length(rows));
	int n = 0;
	ListCell *lc;

	foreach(lc, rows)
	{
		Postponed *p = lfirst(lc);

		if (p->had)
			rows_add(&then, &p->image);
		keys[n++] = p->key;
	}
	rows_process(q, w, &then, keys, n);
	(void) dp_writer_close(w);
	if (then.images != NULL)
		pfree(then.images);
	pfree(keys);
}

/* Processes collected rows in the present state of the source. */
static void
follow_now(Follow *f)
{
	const Rows *rows[3] = { &f->removed, &f->kept, &f->added };
	const Datum **keys =
		MemoryContextAllocHuge(CurrentMemoryContext,
							   sizeof(Datum *) * (f->removed.n + f->kept.n + f->added.n));
	int n = 0;
	int i;
	int j;
	int k;

	for (i = 0; i < 3; i++)
	{
		for (j = 0; j < rows[i]->n; j++)
		{
			Datum *key = palloc(sizeof(Datum) * f->q->nkeys);

			for (k = 0; k < f->q->nkeys; k++)
				key[k] = rows[i]->images[j].values[f->q->keys[k].attnum - 1];
			keys[n++] = key;
		}
	}
	rows_process(f->q, f->w, &f->removed, keys, n);
}

/*
 * Processes rows of the source with these keys, which this transaction has written, in their
 * present state. then: rows that may have to be deleted. First deletes, then updates and inserts
 * in the order of keys.
 */
static void
rows_process(DpQueryTable *q, DpWriter *w, Rows *then, const Datum *const *keys, int nkeys)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns rows", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Rows now = { 0 };
	int i;
	int j;

	dp_writer_refresh(w);
	for (i = 0; i < nkeys; i++)
	{
		DpQueryImage image;

		CHECK_FOR_INTERRUPTS();
		if (dp_query_source_image(q, keys[i], &image))
			rows_add(&now, &image);
	}
	then->n = rows_sort(q, then);
	now.n = rows_sort(q, &now);
	for (i = j = 0; j < then->n; j++)
	{
		CHECK_FOR_INTERRUPTS();
		while (i < now.n && dp_query_compare(&now.images[i], &then->images[j], q) < 0)
			i++;
		if (i == now.n || dp_query_compare(&now.images[i], &then->images[j], q) != 0)
			(void) dp_query_remove(q, w, &then->images[j]);
	}
	for (i = 0; i < now.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) dp_query_put(q, w, &now.images[i]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* Puts rows in the order of their primary keys, each once.  Returns how many there are. */
static int
rows_sort(DpQueryTable *q, Rows *rows)
{
	int n = 0;
	int i;

	if (rows->n < 2)
		return rows->n;
	qsort_arg(rows->images, rows->n, sizeof(DpQueryImage), dp_query_compare, q);
	for (i = 1; i < rows->n; i++)
	{
		if (dp_query_compare(&rows->images[n], &rows->images[i], q) != 0)
			rows->images[++n] = rows->images[i];
	}
	return n + 1;
}

/* Returns whether sorted rows contain a duplicate key. */
static bool
rows_repeat(DpQueryTable *q, const Rows *rows)
{
	int i;

	for (i = 1; i < rows->n; i++)
	{
		if (dp_query_compare(&rows->images[i - 1], &rows->images[i], q) == 0)
			return true;
	}
	return false;
}

/* Returns whether two lists of sorted rows share a key. */
static bool
rows_meet(DpQueryTable *q, const Rows *a, const Rows *b)
{
	int i = 0;
	int j = 0;

	while (i < a->n && j < b->n)
	{
		int cmp = dp_query_compare(&a->images[i], &b->images[j], q);

		if (cmp == 0)
			return true;
		if (cmp < 0)
			i++;
		else
			j++;
	}
	return false;
}

/* Whether actions of foreign keys may write to the source. */
static bool
has_foreign_keys(DpQueryTable *q)
{
	Relation rel = table_open(q->source, AccessShareLock);
	bool result = RelationGetFKeyList(rel) != NIL;

	table_close(rel, AccessShareLock);
	return result;
}

/*
 * With a limit: adds all partitions from which rows were deleted or into which they were inserted,
 * in the order of their locks.
 */
static void
follow_partitions(Follow *f)
{
	DpQueryTable *q = f->q;
	DpChange change;
	MemoryContext row =
		AllocSetContextCreate(f->context, "docpatterns row", ALLOCSET_DEFAULT_SIZES);
	Rows *partitions = &f->added;
	DpQueryImage only; /* the inserted row if nothing else happened */
	bool one = false;
	int n = 0;
	int i;

	while (follow_next(f, &change))
	{
		DpQueryImage images[2];
		bool has[2];
		MemoryContext old = MemoryContextSwitchTo(row);
		bool differ = change_images(f, &change, &images[0], &has[0], &images[1], &has[1]);

		MemoryContextSwitchTo(old);
		for (i = 0; i < 2 && differ; i++)
		{
			DpQueryImage copy;
			int j;

			if (!has[i])
				continue;
			copy.values = palloc0(sizeof(Datum) * q->natts);
			copy.nulls = NULL;
			for (j = 0; j < q->npartition; j++)
				copy.values[q->columns[j].attnum - 1] =
					datumCopy(images[i].values[q->columns[j].attnum - 1], q->columns[j].byval,
							  q->columns[j].len);
			rows_add(partitions, &copy);
			one = partitions->n == 1 && i == 1;
			if (one)
				image_copy(q, &images[i], &only);
		}
		MemoryContextReset(row);

		/* a long statement may touch few partitions again and again */
		if (partitions->n >= 1024 && partitions->n >= 2 * n)
		{
			int m = 1;

			qsort_arg(partitions->images, partitions->n, sizeof(DpQueryImage), partition_compare,
					  q);
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
	if (f->inside)
		mark_disturbed(q);
	qsort_arg(partitions->images, partitions->n, sizeof(DpQueryImage), partition_compare, q);
	follow_open(f);
	/* an update that may not see all changes must process the whole table */
	if (one && partitions->n == 1 && !list_member_oid(disturbed, q->table) &&
		!IsolationUsesXactSnapshot())
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
image_copy(const DpQueryTable *q, const DpQueryImage *from, DpQueryImage *to)
{
	int i;

	to->values = palloc0(sizeof(Datum) * q->natts);
	to->nulls = palloc(sizeof(bool) * q->natts);
	memcpy(to->nulls, from->nulls, sizeof(bool) * q->natts);
	to->abbreviated = from->abbreviated;
	for (i = 0; i < q->ncolumns + q->nkeys; i++)
	{
		const DpQueryColumn *column = i < q->ncolumns ? &q->columns[i] : &q->keys[i - q->ncolumns];
		int a = column->attnum - 1;

		if (!from->nulls[a])
			to->values[a] = datumCopy(from->values[a], column->byval, column->len);
	}
}

/* Nothing is left in the source. */
static void
follow_empty(DpQueryTable *q)
{
	SPIPlanPtr plan;

	SPI_connect();
	plan = dp_statement(q->decl, "DELETE FROM ONLY {relation}", q->table);
	(void) dp_run_marked(q->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, q->table, NULL,
						 DP_MARK_INTERNAL);
	SPI_finish();
}

static void
rows_add(Rows *rows, const DpQueryImage *image)
{
	if (rows->n == rows->size)
	{
		rows->size = rows->size == 0 ? 16 : rows->size * 2;
		rows->images = rows->images == NULL
						   ? palloc(sizeof(DpQueryImage) * rows->size)
						   : repalloc_huge(rows->images, sizeof(DpQueryImage) * rows->size);
	}
	rows->images[rows->n++] = *image;
}

/* The images of a change.  Returns false if the table does not show it. */
static bool
change_images(Follow *f, const DpChange *change, DpQueryImage *before, bool *has_before,
			  DpQueryImage *after, bool *has_after)
{
	DpQueryTable *q = f->q;
	struct varlena *old_doc =
		change->before != NULL ? dp_source_document(change->before, q->decl->doc_column) : NULL;
	struct varlena *new_doc =
		change->after != NULL ? dp_source_document(change->after, q->decl->doc_column) : NULL;
	Datum key[INDEX_MAX_KEYS];
	int i;

	*has_before = *has_after = false;
	if (old_doc != NULL && new_doc != NULL && same_row(q, change, old_doc, new_doc))
		return false;
	for (i = 0; i < 2; i++)
	{
		TupleTableSlot *slot = i == 0 ? change->before : change->after;
		int j;

		if (slot == NULL)
			continue;
		dp_query_source_key(q, slot, key);
		for (j = 0; j < q->nkeys; j++)
			key[j] = datumCopy(key[j], q->keys[j].byval, q->keys[j].len); /* slots are used again */
		if (i == 0)
			*has_before = dp_query_image(q, old_doc, key, before);
		else
			*has_after = dp_query_image(q, new_doc, key, after);
	}
	if (!*has_before || !*has_after)
		return *has_before || *has_after;
	if (dp_query_compare(before, after, q) != 0)
		return true;
	for (i = 0; i < q->ncolumns + q->nkeys; i++)
	{
		const DpQueryColumn *column = i < q->ncolumns ? &q->columns[i] : &q->keys[i - q->ncolumns];
		int a = column->attnum - 1;

		if (before->nulls[a] != after->nulls[a] ||
			(!before->nulls[a] &&
			 !datum_image_eq(before->values[a], after->values[a], column->byval, column->len)))
			return true;
	}
	return false;
}

/* Whether two versions of a row lead to the same: document and key are the same to the byte. */
static bool
same_row(DpQueryTable *q, const DpChange *change, struct varlena *before, struct varlena *after)
{
	Datum left[INDEX_MAX_KEYS];
	Datum right[INDEX_MAX_KEYS];
	int i;

	if (!dp_same_bytes(before, after))
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
	const DpQueryTable *q = arg;
	const DpQueryImage *left = a;
	const DpQueryImage *right = b;
	uint64 left_hash = dp_query_partition_hash(q, left);
	uint64 right_hash = dp_query_partition_hash(q, right);
	int i;

	if (left_hash != right_hash)
		return left_hash < right_hash ? -1 : 1;
	for (i = 0; i < q->npartition; i++)
	{
		DpQueryColumn *column = &q->columns[i];
		int cmp = DatumGetInt32(FunctionCall2Coll(&column->cmp, column->collation,
												  left->values[column->attnum - 1],
												  right->values[column->attnum - 1]));

		if (cmp != 0)
			return cmp;
	}
	return 0;
}

/* A nested statement changes the table's rows before outer statements are processed. */
static void
mark_disturbed(DpQueryTable *q)
{
	MemoryContext old;

	if (list_member_oid(disturbed, q->table))
		return;
	dp_states_hear(&postponed);
	old = MemoryContextSwitchTo(TopTransactionContext);
	disturbed = lappend_oid(disturbed, q->table);
	MemoryContextSwitchTo(old);
}

/* The others do not outlive their transaction either. */
static void
postponed_ended(void)
{
	disturbed = NIL;
	postponed_context = NULL;
}
