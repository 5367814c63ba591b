/*
 * leaderboard.c
 *		Leaderboards: sorted sets of key-value spaces made from a table's documents.
 *
 * A row trigger updates the sorted set in the transaction of each write: the
 * member is the row's key or a field of the document, the score another field.
 * Documents without a numeric score have no entry.  Members are unique, as in an
 * index: a second document with the same member is refused.  The row in keys names
 * the table; commands that write to the set directly are refused.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/number.h"
#include "bson/path.h"
#include "bson/reader.h"
#include "kit/key.h"
#include "kit/depend.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"
#include "patterns/kv/kv.h"

/* Options of a declaration */
typedef struct Leaderboard
{
	text *space;
	text *key;
	DpPath *score;
	DpPath *member; /* NULL: the row's key */
} Leaderboard;

static pg_noinline Leaderboard *leaderboard(DpDecl *decl);
static bool entry_of_tuple(DpDecl *decl, Leaderboard *b, HeapTuple tuple, TupleDesc desc,
						   struct varlena **member, struct varlena **score);
static bool entry_of_document(DpDecl *decl, Leaderboard *b, struct varlena *doc, const DpKey *key,
							  struct varlena **member, struct varlena **score);
static struct varlena *score_of(const DpValue *value);
static void row_changed(DpDecl *decl, Leaderboard *b, TriggerData *trigdata);
static void statement_begins(DpDecl *decl, Leaderboard *b);
static void emptied(DpDecl *decl, Leaderboard *b);
static pg_noinline void made_anew(DpDecl *decl);
static Oid kv_leaderboard_keys(struct varlena *options);
static int64 kv_leaderboard_make(DpDecl *decl);
static void leaderboard_depend(Oid relid);
static void leaderboard_partition(Oid relid, Oid partition, bool attached);
static void leaderboard_schema_renamed(Oid schema);

static const DpOption leaderboard_options[] = {
	{ "space", DP_OPTION_TEXT, DP_REQUIRED },
	{ "key", DP_OPTION_TEXT, DP_REQUIRED },
	{ "score_path", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(Leaderboard, score) },
	{ "member_path", DP_OPTION_PATH, DP_INTO(Leaderboard, member) },
	{ NULL }
};

DP_DEFINE_PATTERN(kv_leaderboard) = { .name = "kv_leaderboard",
									  .whole_table = true,
									  .creator = "kv_leaderboard",
									  .options = leaderboard_options,
									  .depend = leaderboard_depend,
									  .partition = leaderboard_partition,
									  .schema_renamed = leaderboard_schema_renamed };
DP_DEFINE_PATTERN(kv) = { .name = "kv",
						  .creator = "kv_create",
						  .init = dp_kv_init,
						  .options = (const DpOption[]){ { NULL } },
						  .creates_table = true };

/* kv_leaderboard_trigger(): AFTER each row; BEFORE statements that write; AFTER TRUNCATE */
DP_FUNCTION(dp_kv_leaderboard_trigger);
Datum
dp_kv_leaderboard_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "kv_leaderboard",
									DP_AFTER_ROW(DP_WRITE) | DP_BEFORE_STATEMENT(DP_WRITE) |
										DP_AFTER_STATEMENT(DP_TRUNCATE));
	Leaderboard *b;
	MemoryContext context;
	MemoryContext old;
	DpActing saved;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	b = leaderboard(decl);
	if (!OidIsValid(kv_leaderboard_keys(decl->options)))
		ereport(
			ERROR,
			(errcode(ERRCODE_UNDEFINED_SCHEMA),
			 errmsg("the key-value space \"%s\" of leaderboard \"%s\" on table \"%s\" is missing",
					text_to_cstring(b->space), decl->name, dp_relation_name(decl->target)),
			 errhint(
				 "If the table was restored alone, restore the space too, or call pattern_disable() to end the leaderboard.")));
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns leaderboard",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	dp_act_as(decl->owner, &saved);
	PG_TRY();
	{
		if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
			row_changed(decl, b, trigdata);
		else if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
			statement_begins(decl, b);
		else
			emptied(decl, b);
	}
	PG_FINALLY();
	{
		dp_act_end(&saved);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return PointerGetDatum(NULL);
}

/* Removes, adds or changes the entry of a row. */
static void
row_changed(DpDecl *decl, Leaderboard *b, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	bool is_insert = TRIGGER_FIRED_BY_INSERT(trigdata->tg_event);
	bool is_delete = TRIGGER_FIRED_BY_DELETE(trigdata->tg_event);
	HeapTuple after = is_delete ? NULL : is_insert ? trigdata->tg_trigtuple : trigdata->tg_newtuple;
	struct varlena *old_member = NULL;
	struct varlena *old_score = NULL;
	struct varlena *member = NULL;
	struct varlena *score = NULL;
	bool had = !is_insert &&
			   entry_of_tuple(decl, b, trigdata->tg_trigtuple, desc, &old_member, &old_score);
	bool has = after != NULL && entry_of_tuple(decl, b, after, desc, &member, &score);
	bool same;
	DpKvCall call;
	DpValue value;
	struct varlena *result;
	bool changed;

	same = had && has && VARSIZE_ANY(old_member) == VARSIZE_ANY(member) &&
		   memcmp(old_member, member, VARSIZE_ANY(member)) == 0;
	if ((!had && !has) || (same && VARSIZE_ANY(old_score) == VARSIZE_ANY(score) &&
						   memcmp(old_score, score, VARSIZE_ANY(score)) == 0))
		return;

	dp_kv_begin(&call, b->space, b->key, KV_SCORES, ACL_INSERT | ACL_UPDATE | ACL_DELETE);
	call.keeper = decl->target;
	(void) dp_kv_key_write(&call, KV_SCORES, true);
	if (had && !same)
		(void) dp_kv_zset_remove(&call, PointerGetDatum(old_member));
	if (has)
	{
		value = dp_value_of_varlena(score);
		(void) dp_kv_zset_add(&call, member, &value, same ? 0 : KV_ADD_NX, &result, &changed);
		if (!same && !changed)
			ereport(
				ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg(
					 "another document in table \"%s\" has the same member in leaderboard \"%s\"",
					 dp_relation_name(decl->target), text_to_cstring(b->key))));
	}
	dp_kv_end(&call);
}

/* Before the statement, may wait to divide blocks that are far too large. */
static void
statement_begins(DpDecl *decl, Leaderboard *b)
{
	DpKvCall call;

	if (!dp_kv_lock_free())
		return;
	dp_kv_begin(&call, b->space, b->key, KV_SCORES, ACL_INSERT | ACL_UPDATE | ACL_DELETE);
	call.keeper = decl->target;
	dp_kv_count_prepare(&call);
	if (call.wants_exclusive && dp_kv_key_write(&call, KV_SCORES, false))
		dp_kv_count_divide(&call);
	dp_kv_end(&call);
}

/* Rebuilds the set after TRUNCATE of the table or a partition. */
static void
emptied(DpDecl *decl, Leaderboard *b)
{
	(void) kv_leaderboard_make(decl);
}

/*
 * Rebuilds the sorted set from the documents. Returns the number of members. The current user is
 * the owner of the table.
 */
static int64
kv_leaderboard_make(DpDecl *decl)
{
	Leaderboard *b = leaderboard(decl);
	StringInfoData sql;
	DpKvCall call;
	Portal portal;
	int64 n = 0;
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "docpatterns leaderboard",
												  ALLOCSET_DEFAULT_SIZES);

	dp_kv_begin(&call, b->space, b->key, KV_SCORES, ACL_INSERT | ACL_UPDATE | ACL_DELETE);
	call.keeper = decl->target;
	call.wants_exclusive = true;
	(void) dp_kv_key_write(&call, KV_SCORES, true);
	dp_kv_zset_clear(&call);

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s, ", quote_identifier(decl->doc_column));
	dp_sql_key_list(&sql, decl);
	appendStringInfoString(&sql, " FROM ");
	dp_sql_table(&sql, decl->target);
	SPI_connect();
	PushActiveSnapshot(GetLatestSnapshot());
	portal =
		SPI_cursor_open_with_args(NULL, sql.data, 0, NULL, NULL, NULL, true, CURSOR_OPT_NO_SCROLL);
	for (;;)
	{
		uint64 i;

		SPI_cursor_fetch(portal, true, 1000);
		if (SPI_processed == 0)
			break;
		for (i = 0; i < SPI_processed; i++)
		{
			MemoryContext old = MemoryContextSwitchTo(scratch);
			HeapTuple tuple = SPI_tuptable->vals[i];
			TupleDesc desc = SPI_tuptable->tupdesc;
			struct varlena *member;
			struct varlena *score;
			bool isnull;
			Datum doc = SPI_getbinval(tuple, desc, 1, &isnull);
			DpKey key;
			int k;

			key.n = decl->nkeys;
			for (k = 0; k < decl->nkeys; k++)
			{
				bool key_null;

				key.values[k] = SPI_getbinval(tuple, desc, 2 + k, &key_null);
			}
			if (!isnull &&
				entry_of_document(decl, b, PG_DETOAST_DATUM_PACKED(doc), &key, &member, &score))
			{
				Datum values[3];

				values[KV_KEY - 1] = call.key;
				values[KV_SCORES_MEMBER - 1] = PointerGetDatum(member);
				values[KV_SCORES_SCORE - 1] = PointerGetDatum(score);
				dp_kv_insert(&call, KV_SCORES, values, NULL);
				n++;
			}
			MemoryContextSwitchTo(old);
			MemoryContextReset(scratch);
		}
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	PopActiveSnapshot();
	SPI_finish();
	(void) dp_kv_count_rebuild(&call);
	dp_kv_end(&call);
	MemoryContextDelete(scratch);
	return n;
}

/* Rebuilds the table's leaderboards after a partition was attached or detached. */
static void
leaderboard_partition(Oid relid, Oid partition, bool attached)
{
	ListCell *lc;

	foreach(lc, dp_decls(relid))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, "kv_leaderboard") == 0 && decl->target == relid &&
			dp_decl_maintained(decl) && OidIsValid(kv_leaderboard_keys(decl->options)))
			made_anew(decl);
	}
}

static pg_noinline void
made_anew(DpDecl *decl)
{
	DpActing saved;

	dp_act_as(decl->owner, &saved);
	PG_TRY();
	{
		(void) kv_leaderboard_make(decl);
	}
	PG_FINALLY();
	{
		dp_act_end(&saved);
	}
	PG_END_TRY();
}

/* Returns the table keys of the declaration's space; InvalidOid if missing. */
static Oid
kv_leaderboard_keys(struct varlena *options)
{
	DpValue space;
	Oid schema = InvalidOid;

	if (dp_option_value(options, "space", DP_TYPE_STRING, &space))
		schema = get_namespace_oid(DP_STRING_DATA(&space), true);
	return OidIsValid(schema) ? get_relname_relid("keys", schema) : InvalidOid;
}

/*
 * _kv_leaderboard_make(rel, name) -> bigint
 */
DP_ROUTED_FUNCTION(dp_kv_leaderboard_remake, DP_ROUTE_WHOLE, 0)
{
	Oid rel = PG_GETARG_OID(0);

	dp_require_owner(rel);
	PG_RETURN_INT64(kv_leaderboard_make(dp_decl_find(rel, "kv_leaderboard",
													 text_to_cstring(PG_GETARG_TEXT_PP(1)))));
}

/*
 * _kv_leaderboard_release(rel, name, keep boolean) -> bigint: makes the sorted set an ordinary
 * one, or removes it
 */
DP_ROUTED_FUNCTION(dp_kv_leaderboard_release, DP_ROUTE_WHOLE, 0)
{
	Oid rel = PG_GETARG_OID(0);
	DpDecl *decl;
	Leaderboard *b;
	DpKvCall call;
	int64 n = 0;

	dp_require_owner(rel);
	decl = dp_decl_find(rel, "kv_leaderboard", text_to_cstring(PG_GETARG_TEXT_PP(1)));
	b = leaderboard(decl);
	if (!OidIsValid(kv_leaderboard_keys(decl->options)))
		PG_RETURN_INT64(0); /* dropped with the space */
	dp_kv_begin(&call, b->space, b->key, KV_SCORES, ACL_DELETE);
	call.keeper = decl->target;
	dp_kv_key_take(&call);
	if (dp_kv_key_type(&call, call.snapshot) == KV_SCORES ||
		dp_kv_find(&call, KV_KEYS, (Datum) 0, call.snapshot))
	{
		n = dp_kv_count_all(&call, call.snapshot);
		if (PG_GETARG_BOOL(2) && n > 0)
		{
			if (!dp_kv_find(&call, KV_KEYS, (Datum) 0, call.snapshot) ||
				!dp_kv_update(&call, KV_KEYS, KV_KEYS_KEPT, (Datum) 0, true, true))
				dp_kv_lost();
		}
		else
			dp_kv_key_clear(&call);
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(n);
}

/*
 * Makes the triggers of a table's leaderboards depend on their space: without it they would refuse
 * all writes. Called when a trigger of the extension is created, by kv_leaderboard or a restore.
 * Must not raise.
 */
static void
leaderboard_depend(Oid relid)
{
	Relation rel = table_open(relid, AccessShareLock);
	TriggerDesc *triggers;
	int i;

	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		struct varlena *options;
		Oid keys;
		Oid scores;

		if (trigger->tgnargs != 1 || trigger->tgisclone ||
			strncmp(trigger->tgname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0 ||
			!dp_is_internal(trigger->tgfoid, "kv_leaderboard_trigger"))
			continue;
		options = dp_declared_options(trigger->tgargs[0]);
		keys = options == NULL ? InvalidOid : kv_leaderboard_keys(options);
		if (!OidIsValid(keys))
			continue;
		scores = get_relname_relid("scores", get_rel_namespace(keys));

		/* not on a space of another owner, who could not drop it then */
		if (!OidIsValid(scores) ||
			pg_class_aclcheck(scores, rel->rd_rel->relowner, ACL_INSERT) != ACLCHECK_OK)
			continue;
		dp_depend(TriggerRelationId, trigger->tgoid, RelationRelationId, keys, DEPENDENCY_NORMAL);
	}
	table_close(rel, NoLock);
}

static pg_noinline void
execute_as(Oid owner, const char *query)
{
	DpActing saved;

	dp_act_as(owner, &saved);
	PG_TRY();
	{
		if (SPI_execute(query, false, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not declare a leaderboard again");
	}
	PG_FINALLY();
	{
		dp_act_end(&saved);
	}
	PG_END_TRY();
}

/*
 * Writes the declarations of the leaderboards of a space, which name its schema, again. Acts as the
 * owner of each table, because another role may have renamed the schema.
 */
static void
leaderboard_schema_renamed(Oid schema)
{
	Oid keys = get_relname_relid("keys", schema);
	Oid types[] = { OIDOID };
	Datum values[] = { ObjectIdGetDatum(keys) };
	SPITupleTable *leaderboards;

	if (!OidIsValid(keys))
		return;
	SPI_connect();
	if (SPI_execute_with_args("SELECT b.owner, b.follow FROM docpatterns._kv_leaderboards($1) b", 1,
							  types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not find leaderboards of relation %u", keys);
	leaderboards = SPI_tuptable;
	for (uint64 i = 0; i < leaderboards->numvals; i++)
	{
		bool isnull;
		Datum owner = SPI_getbinval(leaderboards->vals[i], leaderboards->tupdesc, 1, &isnull);

		execute_as(DatumGetObjectId(owner),
				   SPI_getvalue(leaderboards->vals[i], leaderboards->tupdesc, 2));
	}
	SPI_finish();
}

/*
 * _kv_score(value) -> bson_value: the score in a field, NULL if it is not valid
 */
DP_FUNCTION(dp_kv_score_of);
Datum
dp_kv_score_of(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));
	struct varlena *score = score_of(&value);

	if (score == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(score);
}

/*
 * Returns the declaration's paths, compiled once. Raises INVALID_PARAMETER_VALUE: a user may
 * create a trigger with any argument.
 */
static pg_noinline Leaderboard *
leaderboard(DpDecl *decl)
{
	Leaderboard *b = decl->state;
	MemoryContext old;

	if (b != NULL)
		return b;
	old = MemoryContextSwitchTo(decl->context);
	b = palloc0(sizeof(Leaderboard));
	dp_options_read(decl, b);
	b->space = cstring_to_text(dp_decl_text(decl, "space"));
	b->key = cstring_to_text(dp_decl_text(decl, "key"));
	MemoryContextSwitchTo(old);
	decl->state = b;
	return b;
}

/* Returns the entry of a row; false without one. */
static bool
entry_of_tuple(DpDecl *decl, Leaderboard *b, HeapTuple tuple, TupleDesc desc,
			   struct varlena **member, struct varlena **score)
{
	bool isnull;
	Datum doc = heap_getattr(tuple, decl->doc_attnum, desc, &isnull);
	DpKey key;

	if (isnull)
		return false;
	dp_key_of_tuple(decl, tuple, desc, &key);
	return entry_of_document(decl, b, PG_DETOAST_DATUM_PACKED(doc), &key, member, score);
}

static bool
entry_of_document(DpDecl *decl, Leaderboard *b, struct varlena *doc, const DpKey *key,
				  struct varlena **member, struct varlena **score)
{
	DpValue value;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), b->score, &value))
		return false;
	*score = score_of(&value);
	if (*score == NULL)
		return false;
	if (b->member == NULL)
		*member = dp_key_to_value(decl, key);
	else if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), b->member, &value))
		*member = dp_value_to_varlena(&value);
	else
		return false;
	*member = dp_kv_member(PointerGetDatum(*member), dp_types()->bson_value);
	return true;
}

/* Returns a score, or NULL if the value is not a number. */
static struct varlena *
score_of(const DpValue *value)
{
	if (!dp_type_is_number(value->type) ||
		(value->type == DP_TYPE_DOUBLE && isnan(dp_get_double(value->data))))
		return NULL;
	if (value->type == DP_TYPE_DECIMAL128 && isnan(dp_number_approximate(value)))
		return NULL;
	return dp_kv_score(PointerGetDatum(dp_value_to_varlena(value)), dp_types()->bson_value, NULL);
}
