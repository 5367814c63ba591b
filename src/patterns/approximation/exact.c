/*
 * exact.c
 *		The approximation pattern with shards: exact counters whose writers do not
 *		wait for each other.
 *
 * The total of a document is its field plus its shards.  Creating a shard locks
 * the document's row FOR KEY SHARE, which only blocks deleting it and changing its
 * key.  Both then delete or move the shards, waiting for transactions that are
 * adding to them.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/edit.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "mql/collection_split.h"
#include "patterns/approximation/approximation.h"
#include "patterns/approximation/shards.h"

/* Argument of hold_row() */
typedef struct Held
{
	DpApproximation *a;
	const DpKey *key;
	const DpValue *amount;
	bool restricted;
} Held;

static void hold_row(void *arg);
static bool fold(DpApproximation *a, const DpKey *key, bool wait);
static void fold_context(void *document);
static void *shards_leave(DpDecl *decl, const DpMove *move);
static void shards_arrive(DpDecl *decl, const DpMove *move, void *sum);
static void shards_drop_orphans(DpDecl *decl);
static bool document_value(DpApproximation *a, struct varlena *doc, DpAmount *amount);

static bool method_is_split(DpDecl *decl, struct varlena *stored);
static struct varlena *
method_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest);
static struct varlena *method_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
								   struct varlena *new_whole);
static bool method_repair_row(DpDecl *decl, const DpKey *key);
static List *method_split(DpDecl *decl);

static const DpOption options[] = {
	{ "field", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpApproximation, field),
	  DP_TEXT_INTO(DpApproximation, field_text) },
	{ "step", DP_OPTION_INT, DP_ONE_OF | DP_ALTERABLE, DP_BETWEEN(1, DP_APPROXIMATION_MAX_STEP),
	  DP_INTO(DpApproximation, step) },
	{ "error", DP_OPTION_NUMBER, DP_ONE_OF | DP_ALTERABLE },
	{ "threshold", DP_OPTION_TEXT, DP_ONE_OF | DP_ALTERABLE },
	{ "slots", DP_OPTION_INT, DP_ONE_OF | DP_ALTERABLE, DP_BETWEEN(1, DP_APPROXIMATION_MAX_SHARDS),
	  DP_INTO(DpApproximation, shards) },
	{ NULL }
};

static const DpSideMethods side = { .leave = shards_leave,
									.arrive = shards_arrive,
									.drop_orphans = shards_drop_orphans };

DP_DEFINE_PATTERN(approximation) = { .name = "approximation",
									 .init = dp_approximation_init,
									 .options = options,
									 .keeps_originals = true,
									 .waiting = "link_id",
									 .is_split = method_is_split,
									 .whole = method_whole,
									 .keep = method_keep,
									 .split = method_split,
									 .side = &side,
									 .repair_row = method_repair_row };

/*
 * approximation_sync(rel, name) -> number of documents to which shards were added
 */
DP_ROUTED_FUNCTION(dp_approximation_sync, DP_ROUTE_SUM, 0)
{
	Oid relid;
	DpApproximation *a;
	DpDecl *decl;
	DpActor self;
	SPIPlanPtr plan;
	Portal portal;
	int64 most = PG_NARGS() > 2 ? PG_GETARG_INT32(2) : PG_INT64_MAX;
	int64 done = 0;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	relid = PG_GETARG_OID(0);
	dp_require_owner(relid);
	LockRelationOid(relid, RowExclusiveLock);
	decl = dp_decl_find(relid, "approximation",
						PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1)));
	a = dp_approximation(decl);
	if (a->form != DP_APPROXIMATION_SHARDS)
		PG_RETURN_INT64(0);

	dp_owner_begin(decl->owner, &self);
	SPI_connect();
	plan = dp_statement(decl, "SELECT DISTINCT {side key} FROM {relation} ORDER BY {side key}",
						dp_approximation_shards_table(a));
	portal = SPI_cursor_open(NULL, plan, NULL, NULL, false);
	while (done < most)
	{
		SPITupleTable *keys;
		uint64 i;

		SPI_cursor_fetch(portal, true, Min(most, 1000));
		keys = SPI_tuptable;
		if (SPI_processed == 0)
			break;
		for (i = 0; i < keys->numvals; i++)
		{
			DpKey key;
			int k;

			CHECK_FOR_INTERRUPTS();
			key.n = decl->nkeys;
			for (k = 0; k < key.n; k++)
			{
				bool isnull;

				key.values[k] = SPI_getbinval(keys->vals[i], keys->tupdesc, k + 1, &isnull);
			}
			/* frees memory after each key */
			SPI_connect();
			done += fold(a, &key, false) ? 1 : 0;
			SPI_finish();
		}
		SPI_freetuptable(keys);
	}
	SPI_cursor_close(portal);
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(done);
}

void
dp_approximation_shards_add(DpApproximation *a, const DpKey *key, const DpValue *amount,
							bool restricted)
{
	Held held = { a, key, amount, restricted };
	DpKey stored;
	Oid table = dp_approximation_shards_table(a);

	/* a user who may not see all rows must be able to see this row */
	if (restricted)
		hold_row(&held);
	dp_moves_stored(a->decl, key, &stored);
	dp_shards_add(table, stored.values, amount, a->shards, restricted ? NULL : hold_row, &held);
}

/*
 * Locks the row of a key against deletion, as the owner, and first as the user if the user may not
 * see all rows. Raises NO_DATA_FOUND, and what adding to the document raises.
 */
static void
hold_row(void *arg)
{
	Held *held = arg;
	struct varlena *doc;

	SPI_connect();
	if ((held->restricted && !dp_row_lock(held->a->decl, held->key, " FOR KEY SHARE", 0)) ||
		!dp_row_read(held->a->decl, held->key, " FOR KEY SHARE", DP_RUN_AS_OWNER, &doc))
		dp_row_missing(held->a->decl, held->key);
	if (doc != NULL)
		(void) dp_approximation_plus_document(doc, held->a->field, held->amount);
	SPI_finish();
}

Oid
dp_approximation_shards_table(DpApproximation *a)
{
	if (!a->verified)
		a->side = dp_side_find(a->decl, dp_decl_text(a->decl, "link_id"),
							   "{side key}, shard int8; amount bson_value", NULL);
	a->verified = true;
	return a->side;
}

/* Shards arrive as one. */
static void *
shards_leave(DpDecl *decl, const DpMove *move)
{
	DpAmount *sum = palloc(sizeof(DpAmount));

	dp_amount_set_int(sum, 0, false);
	return dp_shards_take(dp_approximation_shards_table(dp_approximation(decl)), move->from.values,
						  true, sum) > 0
			   ? sum
			   : NULL;
}

static void
shards_arrive(DpDecl *decl, const DpMove *move, void *sum)
{
	dp_shards_put(dp_approximation_shards_table(dp_approximation(decl)), move->to.values,
				  &((DpAmount *) sum)->value);
}

static void
shards_drop_orphans(DpDecl *decl)
{
	DpApproximation *a = dp_approximation(decl);

	if (a->shards > 0)
		dp_side_drop_orphans(decl, dp_approximation_shards_table(a), "");
}

/*
 * Sets the count in the document itself, 0 without the field. Returns false if it is not a number.
 */
static bool
document_value(DpApproximation *a, struct varlena *doc, DpAmount *amount)
{
	DpValue value;

	dp_amount_set_int(amount, 0, false);
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), a->field, &value) ||
		value.type == DP_TYPE_NULL)
		return true;
	if (!dp_type_is_number(value.type))
		return false;
	dp_amount_set(amount, &value);
	return true;
}

/* Any document may have shards. */
static bool
method_is_split(DpDecl *decl, struct varlena *stored)
{
	DpApproximation *a = dp_approximation(decl);

	return a->form == DP_APPROXIMATION_SHARDS && OidIsValid(a->side);
}

/* An $inc of the stored number is an $inc of the total. */
static List *
method_split(DpDecl *decl)
{
	DpApproximation *a = dp_approximation(decl);

	return a->form == DP_APPROXIMATION_SHARDS && OidIsValid(a->side)
			   ? list_make1(dp_split_field(a->field, "$inc"))
			   : NIL;
}

/* Returns the document with the shards added to its field. */
static struct varlena *
method_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest)
{
	DpApproximation *a = dp_approximation(decl);
	Snapshot snapshot;
	DpAmount total;
	DpKey stored_key;
	int64 n;

	if (!document_value(a, stored, &total))
		return stored;
	if (latest)
		CommandCounterIncrement();
	snapshot = RegisterSnapshot(latest ? GetLatestSnapshot() : GetActiveSnapshot());
	dp_moves_stored(decl, key, &stored_key);
	n = dp_shards_sum(dp_approximation_shards_table(a), stored_key.values, snapshot, &total);
	UnregisterSnapshot(snapshot);
	if (n == 0)
		return stored;
	return dp_document_set(DP_DOC_DATA(stored), DP_DOC_SIZE(stored), a->field, &total.value);
}

/*
 * Writes a whole document: the stored field changes by as much as the whole one's, and shards
 * stay, so concurrent additions are kept.
 */
static struct varlena *
method_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
			struct varlena *new_whole)
{
	DpApproximation *a = dp_approximation(decl);
	DpAmount base;
	DpAmount was;
	DpAmount is;
	DpValue value;

	if (a->form != DP_APPROXIMATION_SHARDS)
		return new_whole;
	if (!document_value(a, stored, &base) || !document_value(a, old_whole, &was) ||
		!document_value(a, new_whole, &is))
		return new_whole;
	if (dp_value_identical(&was.value, &is.value))
	{
		if (dp_path_find(DP_DOC_DATA(stored), DP_DOC_SIZE(stored), a->field, &value))
			return dp_document_set(DP_DOC_DATA(new_whole), DP_DOC_SIZE(new_whole), a->field,
								   &value);
		if (!dp_path_find(DP_DOC_DATA(new_whole), DP_DOC_SIZE(new_whole), a->field, &value))
			return new_whole;
		return dp_document_unset(DP_DOC_DATA(new_whole), DP_DOC_SIZE(new_whole), a->field);
	}
	dp_amount_subtract(&was, &base.value); /* the sum of the shards */
	dp_amount_subtract(&is, &was.value);
	return dp_document_set(DP_DOC_DATA(new_whole), DP_DOC_SIZE(new_whole), a->field, &is.value);
}

/* Adds a key's unlocked shards to its document. Inside SPI_connect(), as the owner. */
static bool
method_repair_row(DpDecl *decl, const DpKey *key)
{
	DpApproximation *a = dp_approximation(decl);

	return a->form == DP_APPROXIMATION_SHARDS && dp_decl_maintained(decl) && fold(a, key, true);
}

/*
 * Does the same; without wait, skips a document that is locked. Folding many documents locks them
 * in any order, so it must not wait: other transactions may wait for it.
 */
static bool
fold(DpApproximation *a, const DpKey *key, bool wait)
{
	DpDecl *decl = a->decl;
	ErrorContextCallback context;
	DpAmount sum;

	if (wait ? !dp_row_lock(decl, key, " FOR NO KEY UPDATE", DP_RUN_AS_OWNER)
			 : dp_run(decl,
					  dp_statement(decl, "SELECT FROM {table} WHERE {key = $key}"
										 " FOR NO KEY UPDATE SKIP LOCKED"),
					  (Datum *) key->values, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) == 0)
		return false;
	dp_amount_set_int(&sum, 0, false);
	if (dp_shards_take(dp_approximation_shards_table(a), key->values, false, &sum) == 0)
		return false;
	context.callback = fold_context;
	context.arg =
		psprintf("%s of table \"%s\"", dp_key_to_text(decl, key), dp_relation_name(decl->target));
	context.previous = error_context_stack;
	error_context_stack = &context;
	if (!dp_approximation_write(a, key, &sum.value, true))
		dp_write_refused(decl, decl->target);
	error_context_stack = context.previous;
	return true;
}

/* Names the document in errors. */
static void
fold_context(void *document)
{
	errcontext("adding shards to document with key %s", (char *) document);
}
