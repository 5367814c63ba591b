/*
 * calls.c
 *		The functions of the extended reference pattern: for indexes, conditions of
 *		triggers and checks, and for correcting older rows.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "bson/access.h"
#include "bson/compare.h"
#include "bson/names.h"
#include "kit/derive/queue.h"
#include "kit/locks.h"
#include "kit/note.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "patterns/reference/reference.h"

/* Two paths that are arguments, kept in fn_extra */
typedef struct FieldCache
{
	DpPathCache field;
	DpPathCache id_field;
} FieldCache;

static void field_arguments(FunctionCallInfo fcinfo, DpPath **field, DpPath **id_field);
static void refresh_lock(const DpRefPart *parts, int nparts);
static bool reference_repair_row(DpDecl *decl, const DpKey *key);
static void reference_process_note(DpDecl *decl, const DpValue *id);
static bool repair_copies(DpReference *ref, DpWriter *w, DpRefIds *set, bool *incomplete);

static const DpOption options[] = {
	{ "field", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpReference, field) },
	{ "link_id", DP_OPTION_TEXT, DP_REQUIRED, DP_INTO(DpReference, link_id) },
	{ "id_field", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpReference, id_field) },
	{ "live", DP_OPTION_PATHS, DP_REQUIRED | DP_ALTERABLE },
	{ "frozen", DP_OPTION_PATHS, DP_REQUIRED | DP_ALTERABLE },
	{ "on_delete", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE,
	  DP_WORDS("restrict", "cascade", "unset", "keep"), DP_INTO(DpReference, on_delete) },
	{ "missing", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("allow", "error"),
	  DP_INTO(DpReference, missing_error) },
	{ "refresh", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("immediate", "deferred"),
	  DP_INTO(DpReference, deferred) },
	{ "max_staleness", DP_OPTION_INTERVAL, DP_ALTERABLE },
	{ NULL }
};

static const DpDeriveHooks hooks = { .before = dp_ref_before_derived,
									 .after = dp_ref_after_derived,
									 .referenced_rows = dp_ref_referenced_rows,
									 .lock = dp_ref_lock_referenced };

DP_DEFINE_PATTERN(reference) = {
	.name = "reference",
	.waiting = "second_link_id",
	.adopt_hint =
		"Write what shall stay into the source, or leave the field out of the option live.",
	.options = options,
	.repair_row = reference_repair_row,
	.process_note = reference_process_note,
	.hooks = &hooks
};

/*
 * reference_array_hashes(doc, field, id_field) -> bigint[]: hashes of the ids of a document whose
 * path contains an array, else NULL
 */
DP_FUNCTION(dp_reference_array_hashes);
Datum
dp_reference_array_hashes(PG_FUNCTION_ARGS)
{
	DpPath *field;
	DpPath *id_field;
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	DpRefSites sites;
	Datum *hashes;
	int i;

	field_arguments(fcinfo, &field, &id_field);
	dp_ref_sites(field, id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
	if (!sites.met_array)
		PG_RETURN_NULL();
	hashes = palloc(sizeof(Datum) * Max(sites.n, 1));
	for (i = 0; i < sites.n; i++)
		hashes[i] = Int64GetDatum((int64) dp_value_hash(&sites.v[i].id, 0));
	PG_RETURN_ARRAYTYPE_P(construct_array(hashes, sites.n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
										  TYPALIGN_DOUBLE));
}

/* The arguments 1 and 2 as paths. */
static void
field_arguments(FunctionCallInfo fcinfo, DpPath **field, DpPath **id_field)
{
	FieldCache *cache = fcinfo->flinfo->fn_extra;

	if (cache == NULL)
	{
		cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FieldCache));
		fcinfo->flinfo->fn_extra = cache;
	}
	*field = dp_path_cached(&cache->field, fcinfo, 1);
	*id_field = dp_path_cached(&cache->id_field, fcinfo, 2);
	if ((*field)->nsteps < 1 || (*id_field)->nsteps != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("field must be a path and id_field a name")));
}

/*
 * reference_differs(a, b, paths) -> bool: whether one of the fields is not the
 * same in two documents, to the byte.
 */
DP_FUNCTION(dp_reference_differs);
Datum
dp_reference_differs(PG_FUNCTION_ARGS)
{
	const DpPathSet *set;
	DpValue docs[2];
	DpFinder finders[2];

	if (PG_ARGISNULL(2))
		PG_RETURN_BOOL(false);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_BOOL(PG_ARGISNULL(0) != PG_ARGISNULL(1));
	set = dp_path_set(fcinfo, 2);
	for (int i = 0; i < 2; i++)
	{
		docs[i] = dp_value_of_document(PG_GETARG_VARLENA_PP(i));
		dp_finder_init(&finders[i], &docs[i]);
	}
	for (int i = 0; i < set->n; i++)
	{
		DpValue left;
		DpValue right;
		bool in_a = dp_finder_path(&finders[0], set->paths[i], &left);
		bool in_b = dp_finder_path(&finders[1], set->paths[i], &right);

		if (in_a != in_b || (in_a && !dp_value_identical(&left, &right)))
			PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(false);
}

/*
 * _reference_sites(doc, field, id_field) -> (id, copy, bare)
 */
DP_FUNCTION(dp_reference_sites);
Datum
dp_reference_sites(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	DpPath *field;
	DpPath *id_field;
	DpRefSites sites;
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	field_arguments(fcinfo, &field, &id_field);
	dp_ref_sites(field, id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
	for (i = 0; i < sites.n; i++)
	{
		Datum values[3];
		bool nulls[3] = { false };

		values[0] = PointerGetDatum(dp_value_to_varlena(&sites.v[i].id));
		values[1] = PointerGetDatum(dp_value_to_varlena(&sites.v[i].value));
		values[2] = BoolGetDatum(sites.v[i].bare);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * _reference_wrong(copy, source, live) -> text: the first of the live fields
 * that is not in the copy as it is in the source, or NULL.
 */
DP_FUNCTION(dp_reference_wrong);
Datum
dp_reference_wrong(PG_FUNCTION_ARGS)
{
	DpValue copy = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));
	struct varlena *source = PG_GETARG_VARLENA_PP(1);
	const DpPathSet *set = dp_path_set(fcinfo, 2);
	DpReference ref = { 0 };
	DpRefSite site = { 0 };
	struct varlena *extract;
	DpValue value;
	const DpPath *wrong;
	StringInfoData path;

	ref.live = set->paths;
	ref.nlive = set->n;
	site.value = copy;
	site.bare = copy.type != DP_TYPE_DOCUMENT;
	extract = dp_ref_extract(&ref, DP_DOC_DATA(source), DP_DOC_SIZE(source));
	value = dp_value_of_document(extract);
	wrong = dp_ref_wrong(&ref, &site, &value);
	if (wrong == NULL)
		PG_RETURN_NULL();
	initStringInfo(&path);
	dp_path_to_text(&path, wrong);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(path.data, path.len));
}

/*
 * _reference_maintain(rel, name, most) -> rows: processes up to batch entries of the queue, of one
 * deferred declaration or, with name NULL, of all; as the table's owner, in one pass
 */
DP_ROUTED_FUNCTION(dp_reference_maintain, DP_ROUTE_SUM, 0)
{
	Oid rel;
	char *name;
	int64 batch;
	DpRefPart *parts;
	int nparts = 0;
	int64 rows = 0;
	DpActor self;
	ListCell *lc;
	int i;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	rel = PG_GETARG_OID(0);
	name = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));
	batch = PG_ARGISNULL(2) ? PG_INT32_MAX : PG_GETARG_INT32(2);
	dp_require_owner(rel);
	LockRelationOid(rel, RowExclusiveLock); /* so that the declarations stay as they are */
	if (name != NULL)
		(void) dp_decl_find(rel, "reference", name);

	if (dp_decls(rel) == NIL)
		PG_RETURN_INT64(0);
	dp_owner_begin(((DpDecl *) linitial(dp_decls(rel)))->owner, &self);
	SPI_connect();
	parts = palloc(sizeof(DpRefPart) * (list_length(dp_decls(rel)) + 1));
	foreach(lc, dp_decls(rel))
	{
		DpDecl *decl = lfirst(lc);
		DpReference *ref;
		DpQueue *queue;
		List *taken;
		ListCell *lc2;

		if (strcmp(decl->pattern, "reference") != 0 ||
			(name != NULL && strcmp(decl->name, name) != 0))
			continue;
		ref = dp_reference(decl);
		if (!ref->deferred || !dp_ref_source(ref))
			continue;
		queue = dp_queue_open(decl, "second_link_id");
		taken = dp_queue_take(queue, NULL, batch);
		dp_queue_close(queue);
		if (taken == NIL)
			continue;
		parts[nparts].ref = ref;
		parts[nparts].set = dp_ref_ids_make();
		foreach(lc2, taken)
		{
			DpValue id = dp_value_of_varlena(((DpQueued *) lfirst(lc2))->key);

			(void) dp_ref_ids_add(parts[nparts].set, &id);
		}
		dp_ref_ids_sort(parts[nparts++].set);
	}
	refresh_lock(parts, nparts);
	for (i = 0; i < nparts; i++)
	{
		DpRefIds *set = parts[i].set;
		MemoryContext old = MemoryContextSwitchTo(set->context);
		int k;

		for (k = 0; k < set->n; k++)
		{
			CHECK_FOR_INTERRUPTS();
			set->ids[k]->extract = dp_ref_read(parts[i].ref, &set->ids[k]->id, DP_REF_READ);
		}
		MemoryContextSwitchTo(old);
	}
	if (nparts > 0)
		rows = dp_ref_pass_parts(parts, nparts);
	while (nparts > 0)
		dp_ref_ids_free(parts[--nparts].set);
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(rows);
}

/*
 * Locks all ids of the sets, in one order, until the transaction ends. A concurrent refresh of an
 * id that was changed again waits here, and reads and writes afterwards.
 */
static void
refresh_lock(const DpRefPart *parts, int nparts)
{
	uint64 *hashes;
	int all = 0;
	int n = 0;
	int i;
	int k;

	for (i = 0; i < nparts; i++)
		all += parts[i].set->n;
	hashes = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * Max(all, 1));
	for (i = 0; i < nparts; i++)
	{
		for (k = 0; k < parts[i].set->n; k++)
			hashes[n++] = dp_ref_absent_hash(parts[i].ref, &parts[i].set->ids[k]->id);
	}
	dp_lock_absent(hashes, n, ShareUpdateExclusiveLock);
	pfree(hashes);
}

/*
 * _reference_forget_missing(rel, name): applies the delete rule to references to missing
 * documents, as the table's owner
 */
DP_ROUTED_FUNCTION(dp_reference_forget_missing, DP_ROUTE_SUM, 0)
{
	Oid rel = PG_GETARG_OID(0);
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	DpReference *ref;
	DpActor self;

	dp_require_owner(rel);
	LockRelationOid(rel, RowExclusiveLock); /* so that the declaration stays as it is */
	ref = dp_reference(dp_decl_find(rel, "reference", name));
	dp_owner_begin(ref->decl->owner, &self);
	SPI_connect();
	if (dp_ref_source(ref))
		dp_ref_truncated(ref);
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_VOID();
}

/*
 * Methods: nothing is split off.
 */
/*
 * Fills the copies of one row from any state. Locks the sources before it writes the row, so that
 * no transaction waits for the row while it waits for its source.
 */
static bool
reference_repair_row(DpDecl *decl, const DpKey *key)
{
	DpReference *ref = dp_reference(decl);
	DpLookup *primary = dp_lookup_primary(decl->target, CurrentMemoryContext);
	DpRefIds *set = dp_ref_ids_make();
	bool written = false;
	bool incomplete = true;

	if (!dp_ref_source(ref))
		return false;
	while (incomplete)
	{
		DpWriter *w;
		int i;

		CHECK_FOR_INTERRUPTS();
		w = dp_writer_open(decl->target, decl->doc_column, 0, decl->name);
		dp_writer_refresh(w);
		incomplete = false;
		if (dp_writer_find(w, primary, key->values) && dp_writer_document(w) != NULL)
			written = repair_copies(ref, w, set, &incomplete);
		dp_writer_close(w);

		/* sources that were not known yet, in the order of their keys */
		dp_ref_ids_sort(set);
		for (i = 0; i < set->n && incomplete; i++)
		{
			DpRefId *id = set->ids[i];
			MemoryContext old = MemoryContextSwitchTo(set->context);

			if (!id->read)
			{
				id->extract =
					dp_ref_read(ref, &id->id, ref->nlive > 0 ? DP_REF_LOCK : DP_REF_LOCK_KEY);
				id->read = true;
			}
			MemoryContextSwitchTo(old);
		}
	}
	dp_ref_ids_free(set);
	return written;
}

/*
 * Corrects the rows that refer to a source, in all declarations: in one of them, the note's
 * transaction may have relied on the reference of another one, without a lock. The note may be of
 * a transaction that did not get the source's lock: while another transaction holds that, the note
 * stays, because its changes are not known.
 */
static void
reference_process_note(DpDecl *decl, const DpValue *id)
{
	DpReference *ref = dp_reference(decl);
	DpRefPart *parts = palloc(sizeof(DpRefPart) * list_length(dp_decls(decl->target)));
	int nparts = 0;
	bool there = false;
	ListCell *lc;

	if (!dp_ref_source(ref))
		return;
	foreach(lc, dp_decls(decl->target))
	{
		DpDecl *beside = lfirst(lc);
		DpReference *other;
		DpRefIds *set;
		DpRefId *entry;
		MemoryContext old;
		bool deadlock = false;

		if (strcmp(beside->pattern, "reference") != 0)
			continue;
		other = dp_reference(beside);
		if (!dp_ref_source(other) || other->source->relid != ref->source->relid)
			continue;
		set = dp_ref_ids_make();
		entry = dp_ref_ids_add(set, id);
		/* a row that is not free leaves this note only, which is about all of them */
		entry->left = strcmp(beside->name, decl->name) != 0;
		old = MemoryContextSwitchTo(set->context);
		entry->extract =
			dp_ref_read_or_leave(other, id, other->nlive > 0 ? DP_REF_LOCK : DP_REF_LOCK_KEY, NULL,
								 &deadlock);
		if (deadlock)
		{
			dp_note(decl, id, ref->source->relid);
			entry->extract = dp_ref_read(other, id, DP_REF_READ);
		}
		MemoryContextSwitchTo(old);
		there |= entry->extract != NULL;
		parts[nparts].ref = other;
		parts[nparts++].set = set;
	}
	if (there)
		dp_ref_pass_parts(parts, nparts);
	else if (ref->missing_error && dp_ref_named(ref, id))
		dp_ref_missing(ref, id); /* its key has been changed while it was referred to */
	while (nparts > 0)
		dp_ref_ids_free(parts[--nparts].set);
}

/*
 * Write the current row, unless a source is not known yet or the row has changed: then *incomplete.
 */
static bool
repair_copies(DpReference *ref, DpWriter *w, DpRefIds *set, bool *incomplete)
{
	struct varlena *doc = dp_writer_document(w);
	DpRefSites sites;
	bool differs = false;
	int i;

	dp_ref_sites(ref->field, ref->id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
	for (i = 0; i < sites.n; i++)
	{
		DpRefSite *site = &sites.v[i];
		DpRefId *id = dp_ref_ids_add(set, &site->id);
		DpRefFill fill = { NULL, NULL, NULL, NULL, true };
		DpValue extract;

		if (!id->read)
			*incomplete = true;
		if (id->extract != NULL)
		{
			extract = dp_value_of_document(id->extract);
			fill.extract = &extract;
		}
		differs |= dp_ref_fill(ref, site, &fill);
	}
	if (*incomplete || !differs)
		return false;
	switch (dp_writer_update(w, dp_ref_rebuild(ref, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites)))
	{
		case DP_WRITE_DONE:
			return true;
		case DP_WRITE_CHANGED:
			*incomplete = true;
			return false;
		default:
			return false;
	}
}
