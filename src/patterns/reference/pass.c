/*
 * pass.c
 *		Corrects the rows that refer to sources, in one pass.
 *
 * Rows with an id outside of arrays are found by the btree index on
 * (document -> 'field.id'), in arrays by the GIN index on
 * reference_array_hashes().  They are sorted by their primary keys and written one
 * after the other, each once for all ids of the pass.  Rows are not locked before
 * they are written: after a concurrent write the row is read again.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/text.h"
#include "kit/adopt.h"
#include "kit/note.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "mql/collection_calls.h"
#include "patterns/reference/reference.h"

/* A row that may have to be written */
typedef struct FoundRow
{
	DpRowRef ref;
	uint64 abbreviated; /* of a key that is one bson_value; else 0 */
	DpKey *key;
} FoundRow;

typedef struct Pass
{
	const DpRefPart *parts;
	int nparts;
	DpReference *ref; /* of the first part: all have the same target */
	DpWriter *w;
	MemoryContext rows_context;
	MemoryContext row_context; /* reset after each row */
	FoundRow *rows;
	int64 n;
	int64 cap;
	FmgrInfo cmp[INDEX_MAX_KEYS];
	int16 typlen[INDEX_MAX_KEYS];
	bool typbyval[INDEX_MAX_KEYS];
	bool abbreviates;
	bool retry;     /* a row was not where it was found */
	bool must;      /* the row's references go or get other ids: that is left to none */
	bool names_new; /* the row names a source that is there now and was not */
} Pass;

/* What to do with a row */
typedef enum RowFate
{
	ROW_SAME,
	ROW_AGAIN, /* it has changed: it is found again later */
	ROW_WRITTEN,
	ROW_DELETED
} RowFate;

static Oid writing = InvalidOid; /* the target of the pass that is under way */

static void pass_begin(Pass *p, const DpRefPart *parts, int nparts);
static void pass_end(Pass *p);
static void pass_find(Pass *p);
static void pass_find_arrays(Pass *p, const DpRefPart *part);
static void pass_add(Pass *p);
static int row_compare(const void *a, const void *b, void *arg);
static void pass_row(Pass *p, const FoundRow *row, int64 *written);
static RowFate row_change(Pass *p, struct varlena *doc, struct varlena **changed);
static RowFate
part_change(Pass *p, const DpRefPart *part, struct varlena *doc, struct varlena **changed);
static void row_leave(Pass *p, struct varlena *doc);
static bool
copy_is_held(DpReference *ref, const DpRefSite *site, const DpRefId *id, const DpValue *now);
static bool row_names(const DpRefPart *part, struct varlena *doc);
static bool skip_trigger(const Trigger *trigger);
static void referenced(DpReference *ref, const DpValue *id) pg_attribute_noreturn();

int64
dp_ref_pass(DpReference *ref, DpRefIds *set)
{
	DpRefPart part = { ref, set };

	return dp_ref_pass_parts(&part, 1);
}

bool
dp_ref_pass_writes(Oid target)
{
	return writing == target && dp_marked(target, NULL) == DP_MARK_INTERNAL;
}

void
dp_ref_pass_forget(void)
{
	writing = InvalidOid;
}

int64
dp_ref_pass_parts(const DpRefPart *parts, int nparts)
{
	Pass p;
	Oid outer = writing;
	int64 written = 0;
	int64 i;

	check_stack_depth();
	pass_begin(&p, parts, nparts);
	do
	{
		p.retry = false;
		pass_find(&p);
		for (i = 0; i < p.n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			/* a row may have been found by several ids */
			if (i > 0 && p.rows[i].ref.relid == p.rows[i - 1].ref.relid &&
				ItemPointerEquals(&p.rows[i].ref.tid, &p.rows[i - 1].ref.tid))
				continue;
			/* set for each row: triggers of the one before may have begun passes of their own */
			writing = parts[0].ref->decl->target;
			pass_row(&p, &p.rows[i], &written);
		}
	} while (p.retry);
	writing = outer;
	pass_end(&p);
	return written;
}

/*
 * Whether a row of the target names the id.
 */
bool
dp_ref_named(DpReference *ref, const DpValue *id)
{
	DpRefIds *set = dp_ref_ids_make();
	DpRefPart part = { ref, set };
	Pass p;
	bool named = false;
	int64 i;

	dp_ref_ids_add(set, id);
	pass_begin(&p, &part, 1);
	pass_find(&p);
	for (i = 0; i < p.n && !named; i++)
	{
		if (dp_writer_fetch(p.w, &p.rows[i].ref))
		{
			struct varlena *doc = dp_writer_document(p.w);

			named = doc != NULL && row_names(&part, doc);
		}
	}
	pass_end(&p);
	dp_ref_ids_free(set);
	return named;
}

/*
 * The source was truncated, or a partition of it: apply the delete rule to all
 * ids that it does not have any more.
 */
void
dp_ref_truncated(DpReference *ref)
{
	DpRefIds *all = dp_ref_ids_make();
	DpRefIds *removed = dp_ref_ids_make();
	SPIPlanPtr plan = dp_statement(ref->decl, "SELECT {doc} FROM {table} WHERE {doc} IS NOT NULL");
	Portal portal;
	DpActor self;
	int i;

	dp_owner_begin(ref->decl->owner, &self);
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
	for (;;)
	{
		uint64 row;

		CHECK_FOR_INTERRUPTS();
		SPI_cursor_fetch(portal, true, 100);
		if (SPI_processed == 0)
			break;
		for (row = 0; row < SPI_processed; row++)
		{
			bool isnull;
			struct varlena *doc = (struct varlena *) DatumGetPointer(dp_result(row, 1, &isnull));
			DpRefSites sites;

			dp_ref_sites(ref->field, ref->id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
			for (i = 0; i < sites.n; i++)
				dp_ref_ids_add(all, &sites.v[i].id);
		}
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	PopActiveSnapshot();
	dp_owner_end(&self);

	for (i = 0; i < all->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (dp_ref_read(ref, &all->ids[i]->id, DP_REF_READ) == NULL)
			dp_ref_ids_add(removed, &all->ids[i]->id)->removed = true;
	}
	dp_ref_ids_free(all);
	if (removed->n > 0)
		dp_ref_pass(ref, removed);
	dp_ref_ids_free(removed);
}

/* Open the target. */
static void
pass_begin(Pass *p, const DpRefPart *parts, int nparts)
{
	DpReference *ref = parts[0].ref;
	int i;

	memset(p, 0, sizeof(*p));
	p->parts = parts;
	p->nparts = nparts;
	p->ref = ref;
	p->rows_context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns referring rows",
											ALLOCSET_DEFAULT_SIZES);
	p->row_context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns referring row",
										   ALLOCSET_DEFAULT_SIZES);
	for (i = 0; i < ref->decl->nkeys; i++)
	{
		TypeCacheEntry *type = lookup_type_cache(ref->decl->keys[i].type, TYPECACHE_CMP_PROC_FINFO);

		fmgr_info_copy(&p->cmp[i], &type->cmp_proc_finfo, CurrentMemoryContext);
		p->typlen[i] = type->typlen;
		p->typbyval[i] = type->typbyval;
	}
	p->abbreviates = ref->decl->nkeys == 1 && ref->decl->keys[0].type == dp_types()->bson_value;
	for (i = 0; i < nparts; i++)
	{
		DpReference *part = parts[i].ref;
		char *path;

		if (part->by_id != NULL)
			continue;
		/* as it is written in the index */
		path = psprintf("%s.%s", dp_decl_text(part->decl, "field"),
						dp_decl_text(part->decl, "id_field"));
		part->by_id =
			dp_lookup_path(part->decl->target, part->decl->doc_column, path, part->decl->context);
		pfree(path);
	}
	p->w = dp_writer_open(ref->decl->target, ref->decl->doc_column, 0, ref->decl->name);
	dp_writer_skip(p->w, skip_trigger);
	dp_writer_refresh(p->w);
}

/* Closes it, firing pending triggers. */
static void
pass_end(Pass *p)
{
	dp_writer_close(p->w);
	MemoryContextDelete(p->row_context);
	MemoryContextDelete(p->rows_context);
}

/*
 * Returns whether a trigger need not fire if only copies change: our own, and that of collections,
 * whose key stays.
 */
static bool
skip_trigger(const Trigger *trigger)
{
	return dp_is_internal(trigger->tgfoid, "reference_trigger") ||
		   dp_collection_is_trigger(trigger);
}

/* The rows that name an id of the sets, in the order of their keys. */
static void
pass_find(Pass *p)
{
	int i;
	int j;

	if (p->n > 0)
	{
		MemoryContextReset(p->rows_context);
		dp_writer_refresh(p->w);
	}
	p->rows = NULL;
	p->n = p->cap = 0;
	for (i = 0; i < p->nparts; i++)
	{
		const DpRefPart *part = &p->parts[i];

		for (j = 0; j < part->set->n; j++)
		{
			Datum id = PointerGetDatum(dp_value_to_varlena(&part->set->ids[j]->id));
			bool found;

			CHECK_FOR_INTERRUPTS();
			for (found = dp_writer_find(p->w, part->ref->by_id, &id); found;
				 found = dp_writer_next(p->w))
				pass_add(p);
			pfree(DatumGetPointer(id));
		}
		pass_find_arrays(p, part);
	}
	if (p->n > 1)
		qsort_arg(p->rows, p->n, sizeof(FoundRow), row_compare, p);
}

/* As it is written in the index */
#define HASHES                                                                                     \
	"docpatterns.reference_array_hashes({doc}, {text field}::pg_catalog.text,"                     \
	" {text id_field}::pg_catalog.text)"

/* Add the rows that name an id inside of arrays. */
static void
pass_find_arrays(Pass *p, const DpRefPart *part)
{
	DpDecl *decl = part->ref->decl;
	DpRefIds *set = part->set;
	SPIPlanPtr plan =
		dp_statement(decl, "SELECT tableoid, ctid FROM {table} WHERE " HASHES
						   " OPERATOR(pg_catalog.&&) {$1 int8[]} AND " HASHES " IS NOT NULL");
	Datum *hashes;
	Datum array;
	uint64 rows;
	uint64 row;
	int i;

	hashes = palloc(sizeof(Datum) * Max(set->n, 1));
	for (i = 0; i < set->n; i++)
		hashes[i] = Int64GetDatum((int64) set->ids[i]->hash);
	array = PointerGetDatum(construct_array(hashes, set->n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
											TYPALIGN_DOUBLE));
	rows = dp_run(decl, plan, &array, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
	for (row = 0; row < rows; row++)
	{
		DpRowRef ref = { 0 };
		bool isnull;

		ref.relid = DatumGetObjectId(dp_result(row, 1, &isnull));
		ref.tid = *(ItemPointer) DatumGetPointer(dp_result(row, 2, &isnull));
		CHECK_FOR_INTERRUPTS();
		if (dp_writer_fetch(p->w, &ref))
			pass_add(p);
		else
			p->retry = true;
	}
	SPI_freetuptable(SPI_tuptable);
}

/* Remember the current row. */
static void
pass_add(Pass *p)
{
	MemoryContext old = MemoryContextSwitchTo(p->rows_context);
	FoundRow *row;
	DpKey key;
	int i;

	if (p->n == p->cap)
	{
		p->cap = p->cap == 0 ? 64 : p->cap * 2;
		p->rows = p->rows == NULL ? palloc(sizeof(FoundRow) * p->cap)
								  : repalloc_huge(p->rows, sizeof(FoundRow) * p->cap);
	}
	row = &p->rows[p->n++];
	dp_writer_ref(p->w, &row->ref);
	dp_writer_key(p->w, &key);
	row->key = palloc(offsetof(DpKey, values) + sizeof(Datum) * key.n);
	row->key->n = key.n;
	for (i = 0; i < key.n; i++)
		row->key->values[i] = datumCopy(key.values[i], p->typbyval[i], p->typlen[i]);
	row->abbreviated = 0;
	if (p->abbreviates)
	{
		DpValue value = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(row->key->values[0]));

		row->abbreviated = dp_value_abbreviate(&value);
	}
	MemoryContextSwitchTo(old);
}

/* The order in which rows are written. */
static int
row_compare(const void *a, const void *b, void *arg)
{
	Pass *p = arg;
	const FoundRow *left = a;
	const FoundRow *right = b;
	int i;

	if (left->abbreviated != right->abbreviated)
		return left->abbreviated < right->abbreviated ? -1 : 1;
	for (i = 0; i < left->key->n; i++)
	{
		int cmp = DatumGetInt32(FunctionCall2Coll(&p->cmp[i], p->ref->decl->keys[i].collation,
												  left->key->values[i], right->key->values[i]));

		if (cmp != 0)
			return cmp;
	}
	return 0;
}

/* Corrects one row. */
static void
pass_row(Pass *p, const FoundRow *row, int64 *written)
{
	bool there = dp_writer_fetch(p->w, &row->ref);
	DpLookup *primary = NULL;

	for (;;)
	{
		MemoryContext old;
		struct varlena *doc;
		struct varlena *changed;
		DpWriteResult result = DP_WRITE_SAME;

		if (!there)
		{
			/* it has another version, or key, or is deleted */
			if (primary == NULL)
				primary = dp_lookup_primary(p->ref->decl->target, p->rows_context);
			dp_writer_refresh(p->w);
			there = dp_writer_find(p->w, primary, row->key->values);
			if (!there)
			{
				p->retry = true;
				return;
			}
		}
		old = MemoryContextSwitchTo(p->row_context);
		doc = dp_writer_document(p->w);
		p->names_new = false;
		p->must = false;
		dp_writer_leave(p->w, true);
		switch (doc == NULL ? ROW_SAME : row_change(p, doc, &changed))
		{
			case ROW_SAME:
				/*
				 * the concurrent writer of the row may have seen no source, and write another copy
				 */
				if (p->names_new)
				{
					DpLockResult locked = dp_writer_lock(p->w, LockTupleShare);

					if (locked != DP_LOCK_OK)
						result = locked == DP_LOCK_DEADLOCK ? DP_WRITE_DEADLOCK : DP_WRITE_CHANGED;
				}
				break;
			case ROW_AGAIN:
				break;
			case ROW_WRITTEN:
				dp_writer_leave(p->w, !p->must);
				result = dp_writer_update(p->w, changed);
				break;
			case ROW_DELETED:
				dp_writer_leave(p->w, false);
				result = dp_writer_delete(p->w);
				break;
		}
		if (result == DP_WRITE_DEADLOCK)
			row_leave(p, dp_writer_document(p->w));
		MemoryContextSwitchTo(old);
		MemoryContextReset(p->row_context);
		if (result == DP_WRITE_DONE)
			(*written)++;
		if (result != DP_WRITE_CHANGED)
			return;
		there = false;
	}
}

/*
 * The row is left to the transaction that holds it, with notes for each source that it names.  A
 * later version may name it in other declarations, too, without a lock (reference.c).
 */
static void
row_leave(Pass *p, struct varlena *doc)
{
	int i;
	int j;
	int k;

	for (i = 0; i < p->nparts; i++)
	{
		const DpReference *ref = p->parts[i].ref;
		DpRefSites sites;

		dp_ref_sites(ref->field, ref->id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
		for (j = 0; j < sites.n; j++)
		{
			for (k = 0; k < p->nparts; k++)
			{
				DpRefId *id = dp_ref_ids_find(p->parts[k].set, &sites.v[j].id);

				if (id == NULL || id->left)
					continue;
				dp_note(p->parts[k].ref->decl, &id->id, ref->decl->target);
				id->left = true;
			}
		}
	}
}

/* Determines from the sets what to do with a document. */
static RowFate
row_change(Pass *p, struct varlena *doc, struct varlena **changed)
{
	RowFate result = ROW_SAME;
	int i;

	for (i = 0; i < p->nparts; i++)
	{
		RowFate fate = part_change(p, &p->parts[i], doc, changed);

		if (fate == ROW_AGAIN || fate == ROW_DELETED)
			return fate;
		if (fate == ROW_WRITTEN)
		{
			doc = *changed;
			result = ROW_WRITTEN;
		}
	}
	return result;
}

/*
 * Does so for one set. Raises FOREIGN_KEY_VIOLATION if the document refers to an id that may not
 * be deleted.
 */
static RowFate
part_change(Pass *p, const DpRefPart *part, struct varlena *doc, struct varlena **changed)
{
	DpReference *ref = part->ref;
	DpRefSites sites;
	bool differs = false;
	int i;

	dp_ref_sites(ref->field, ref->id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
	for (i = 0; i < sites.n; i++)
	{
		DpRefSite *site = &sites.v[i];
		DpRefId *id = dp_ref_ids_find(part->set, &site->id);
		DpRefFill fill = { NULL, NULL, NULL, NULL, false };
		DpValue extract;

		if (id == NULL)
			continue;
		if (id->extract != NULL)
		{
			extract = dp_value_of_document(id->extract);
			fill.extract = &extract;
			fill.id = id->becomes;
			p->must |= id->becomes != NULL;
			fill.freeze = id->appeared;
			p->names_new |= id->appeared;
			if (dp_ref_fill(ref, site, &fill))
			{
				if (copy_is_held(ref, site, id, &site->replacement))
					site->action = DP_REF_LEAVE;
				else
					differs = true;
			}
		}
		else if (id->removed)
		{
			p->must = true;
			dp_writer_leave(p->w, false);
			switch (ref->on_delete)
			{
				case DP_REF_KEEP:
					continue;
				case DP_REF_RESTRICT:
					/*
					 * a concurrent writer may remove the reference; a locked row is read again, so
					 * no site is left
					 */
					switch (dp_writer_lock(p->w, LockTupleKeyShare))
					{
						case DP_LOCK_OK:
							referenced(ref, &id->id);
							break;
						case DP_LOCK_CHANGED:
							doc = dp_writer_document(p->w);
							if (doc != NULL && row_names(part, doc))
								referenced(ref, &id->id);
							break;
						default:
							break;
					}
					p->retry = true;
					return ROW_AGAIN;
				case DP_REF_CASCADE:
					if (site->element == NULL)
						return ROW_DELETED;
					site->element_goes = true;
					break;
				case DP_REF_UNSET:
					(void) copy_is_held(ref, site, id, NULL);
					break;
			}
			site->action = DP_REF_REMOVE;
			differs = true;
		}
	}
	if (!differs)
		return ROW_SAME;
	*changed = dp_ref_rebuild(ref, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
	return ROW_WRITTEN;
}

/*
 * Returns whether a copy is from before the declaration: it differs from the source before its
 * change, and is not preserved by its replacement (NULL: none). If it must be written
 * nevertheless, raises OBJECT_NOT_IN_PREREQUISITE_STATE.
 */
static bool
copy_is_held(DpReference *ref, const DpRefSite *site, const DpRefId *id, const DpValue *now)
{
	struct varlena *source = id->before != NULL ? id->before : id->extract;
	DpValue before;

	if (likely(!dp_holding(ref->decl)) || site->bare || !dp_value_lost(&site->value, now, NIL))
		return false;
	if (source != NULL)
		before = dp_value_of_document(source);
	if (source != NULL && dp_ref_wrong(ref, site, &before) == NULL)
		return false;
	if (now == NULL || id->becomes != NULL)
		dp_held_refuse(ref->decl, ref->field);
	return true;
}

/* Whether a document names an id of the part. */
static bool
row_names(const DpRefPart *part, struct varlena *doc)
{
	DpRefSites sites;
	int i;

	dp_ref_sites(part->ref->field, part->ref->id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
	for (i = 0; i < sites.n; i++)
	{
		if (dp_ref_ids_find(part->set, &sites.v[i].id) != NULL)
			return true;
	}
	return false;
}

/* Raises FOREIGN_KEY_VIOLATION. */
static void
referenced(DpReference *ref, const DpValue *id)
{
	StringInfoData field;

	initStringInfo(&field);
	dp_path_to_text(&field, ref->field);
	ereport(
		ERROR,
		(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
		 errmsg("cannot delete a document in table \"%s\": documents in table \"%s\" refer to it",
				dp_relation_name(ref->source->relid), dp_relation_name(ref->decl->target)),
		 errdetail("Its key %s is named by their field \"%s\".", dp_value_to_message(id),
				   field.data)));
}
