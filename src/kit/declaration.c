/*
 * declaration.c
 *		Declarations of patterns, read from the triggers that carry them.
 *
 * They are cached per backend and relation until the relation changes (creating, renaming or
 * dropping a trigger sends an invalidation for its table).  An outdated declaration is freed when
 * the transaction ends, because callers may still be using it.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/limits.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "kit/anchor.h"
#include "kit/declaration.h"
#include "kit/link.h"
#include "kit/registry.h"
#include "kit/note.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/statement.h"

typedef struct RelationDecls
{
	Oid relid;  /* hash key */
	Oid target; /* the table on which a partition's were declared, or InvalidOid */
	bool valid;
	bool other_owner; /* a table of another owner would be the other one of a link ID */
	MemoryContext context;
	List *decls;
	List *others; /* OIDs of tables on which decls depend; in context */
} RelationDecls;

/* The fn_extra of a trigger function */
typedef struct TriggerCache
{
	uint64 generation;
	DpDecl *decl;
} TriggerCache;

static HTAB *relations = NULL;
static uint64 generation = 1; /* changes with every invalidation */

static struct varlena *parse_options(const char *declared);
static void cache_init(void);
static void relation_invalidated(Datum arg, Oid relid);
static List *relation_read(Relation rel);
static void relation_watch(Oid relid);
static DpDecl *decl_make(Relation rel, const Trigger *trigger, const DpPattern *pattern);
static void decl_read_key(DpDecl *decl, Relation rel);
static void decl_read_doc_column(DpDecl *decl, Relation rel);
static bool decl_option(DpDecl *decl, const char *option, DpValue *value);
static char *decl_hint(Oid relid);
static Oid declared_on(Oid relid, bool isclone);

/*
 * How often declarations are read again that change meanwhile; then they are used, and read again
 * at the next call
 */
#define READ_TRIES 5

bool dp_maintain = true;

void
dp_declaration_init(void)
{
	DefineCustomBoolVariable(
		"docpatterns.maintain", "Keeps patterns true on every write.",
		"Off is for restoring split data; only owners of the table and superusers are heard.",
		&dp_maintain, true, PGC_USERSET, 0, NULL, NULL, NULL);
}

/*
 * Returns an empty list if there are none.  Raises UNDEFINED_TABLE if the relation does not exist,
 * and errors of invalid declarations.
 */
List *
dp_decls(Oid relid)
{
	RelationDecls *entry;
	bool found;
	Relation rel;
	MemoryContext context;
	MemoryContext old;
	List *decls;
	uint64 before;
	int tries;
	ListCell *lc;

	cache_init();
	entry = hash_search(relations, &relid, HASH_FIND, NULL);
	if (entry != NULL && entry->valid)
		return entry->decls;

	/* changes during reading are noticed, too: then it is repeated */
	relation_watch(relid);
	for (tries = 1;; tries++)
	{
		before = generation;
		context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns declarations",
										ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(context);
		rel = try_table_open(relid, AccessShareLock);
		if (rel == NULL)
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
							errmsg("relation with OID %u does not exist", relid)));
		decls = relation_read(rel);
		table_close(rel, NoLock);
		MemoryContextSwitchTo(old);
		if (generation == before || tries == READ_TRIES)
			break;
		MemoryContextDelete(context);
	}

	entry = hash_search(relations, &relid, HASH_ENTER, &found);
	if (found && entry->context != NULL)
		dp_bury(entry->context);
	MemoryContextSetParent(context, CacheMemoryContext);
	entry->context = context;
	entry->decls = decls;
	entry->others = NIL;
	entry->target = InvalidOid;
	entry->valid = generation == before;
	if (!found)
		entry->other_owner = false;

	/* names of columns come from other tables, too */
	foreach(lc, decls)
	{
		ListCell *other;

		foreach(other, ((DpDecl *) lfirst(lc))->others)
			dp_decl_depends(lfirst(lc), lfirst_oid(other));
	}

	/* a partition's declarations contain the owner of another table, so register for its changes */
	if (decls != NIL && ((DpDecl *) linitial(decls))->target != relid)
	{
		entry->target = ((DpDecl *) linitial(decls))->target;
		relation_watch(entry->target);
	}
	return decls;
}

/* Registers for invalidations of the relation. */
static void
relation_watch(Oid relid)
{
	bool found;
	RelationDecls *entry = hash_search(relations, &relid, HASH_ENTER, &found);

	if (!found)
	{
		entry->target = InvalidOid;
		entry->valid = false;
		entry->other_owner = false;
		entry->context = NULL;
		entry->decls = NIL;
		entry->others = NIL;
	}
}

void
dp_decl_depends(DpDecl *decl, Oid relid)
{
	RelationDecls *entry = hash_search(relations, &decl->relid, HASH_FIND, NULL);
	MemoryContext old;

	/* an outdated one is reloaded anyway */
	if (!OidIsValid(relid) || relid == decl->relid || entry == NULL ||
		entry->context != decl->context)
		return;
	relation_watch(relid);
	entry = hash_search(relations, &decl->relid, HASH_FIND, NULL);
	old = MemoryContextSwitchTo(entry->context);
	entry->others = list_append_unique_oid(entry->others, relid);
	MemoryContextSwitchTo(old);
	/* which other shards a shard belongs to is a matter of their tables */
	dp_decl_depends(decl, dp_shard_table(relid));
}

DpDecl *
dp_decl_find(Oid relid, const char *pattern, const char *name)
{
	DpDecl *found = NULL;
	ListCell *lc;

	foreach(lc, dp_decls(relid))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, pattern) != 0)
			continue;
		if (name != NULL && strcmp(decl->name, name) != 0)
			continue;
		if (found != NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("table \"%s\" has more than one %s pattern",
								   dp_relation_name(relid), pattern),
							errhint("Specify the argument \"name\".")));
		found = decl;
	}
	if (found == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						name == NULL ? errmsg("table \"%s\" has no %s pattern",
											  dp_relation_name(relid), pattern)
									 : errmsg("table \"%s\" has no %s pattern \"%s\"",
											  dp_relation_name(relid), pattern, name),
						errhint("%s", decl_hint(relid))));
	return found;
}

/* _pattern_hint(rel) -> text: the hint of an error for a pattern that the table does not have */
DP_FUNCTION(dp_pattern_hint);
Datum
dp_pattern_hint(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(decl_hint(PG_GETARG_OID(0))));
}

/* Names the patterns that a table has. */
static char *
decl_hint(Oid relid)
{
	StringInfoData hint;
	ListCell *lc;

	if (dp_decls(relid) == NIL)
		return "pattern_list() shows the patterns of all tables.";
	initStringInfo(&hint);
	foreach(lc, dp_decls(relid))
	{
		DpDecl *decl = lfirst(lc);

		appendStringInfo(&hint, "%s\"%s\" (%s)", hint.len == 0 ? "It has " : ", ", decl->name,
						 decl->pattern);
	}
	appendStringInfoChar(&hint, '.');
	return hint.data;
}

DpDecl *
dp_decl_of_trigger(FunctionCallInfo fcinfo, const char *pattern)
{
	TriggerCache *cache = fcinfo->flinfo->fn_extra;
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	const char *argument;
	bool is_main;
	ListCell *lc;

	dp_note_watch(RelationGetRelid(trigdata->tg_relation));
	if (likely(cache != NULL && cache->generation == generation))
		return cache->decl;

	is_main = trigdata->tg_trigger->tgnargs == 1;
	argument = trigdata->tg_trigger->tgargs[is_main ? 0 : 1];
	foreach(lc, dp_decls(RelationGetRelid(trigdata->tg_relation)))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, pattern) == 0 &&
			strcmp(is_main ? decl->declared : decl->name, argument) == 0)
		{
			if (cache == NULL)
			{
				cache = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(TriggerCache));
				fcinfo->flinfo->fn_extra = cache;
			}
			cache->generation = generation;
			cache->decl = decl;
			return decl;
		}
	}
	return NULL;
}

TriggerDesc *
dp_triggers(Relation rel)
{
	TriggerDesc *triggers = CopyTriggerDesc(rel->trigdesc);

	return triggers != NULL ? triggers : palloc0(sizeof(TriggerDesc));
}

bool
dp_partition_restoring(Relation rel)
{
	if (!rel->rd_rel->relispartition)
		return false;
	list_free(RelationGetIndexList(rel));
	return !OidIsValid(rel->rd_pkindex);
}

Oid
dp_link_main(const char *link_id, Oid relid)
{
	/* used by every statement that writes to a side table */
	static char last_link_id[64];
	static Oid last_relid;
	static Oid last_found;
	static uint64 last_generation = 0;
	uint64 now;

	cache_init();
	now = generation;
	if (last_generation == generation && last_relid == relid && strcmp(last_link_id, link_id) == 0)
		return last_found;
	last_generation = 0;
	last_found = dp_link_find(link_id, true, relid);
	if (OidIsValid(last_found) && strlen(link_id) < sizeof(last_link_id))
	{
		(void) dp_decls(last_found); /* registers for changes of the table */
		strcpy(last_link_id, link_id);
		last_relid = relid;
		last_generation = now;
	}
	return last_found;
}

List *
dp_link_mains(const char *link_id, Oid relid)
{
	List *mains = NIL;

	if (dp_shard_is_copy(relid))
	{
		(void) dp_link_scan(link_id, true, relid, false, &mains);
		/* locks are taken in one order */
		list_sort(mains, list_oid_cmp);
	}
	else if (OidIsValid(dp_link_main(link_id, relid)))
		mains = list_make1_oid(dp_link_main(link_id, relid));
	return mains;
}

Oid
dp_link_side(const char *link_id, Oid relid)
{
	Oid side = dp_link_find(link_id, false, relid);
	Oid other_owner =
		OidIsValid(side) ? InvalidOid : dp_link_scan(link_id, false, relid, true, NULL);

	/* the declaration must be reloaded when the table gets the same owner */
	if (OidIsValid(other_owner))
	{
		cache_init();
		relation_watch(other_owner);
		((RelationDecls *) hash_search(relations, &other_owner, HASH_FIND, NULL))->other_owner =
			true;
	}
	return side;
}

/*
 * The text of a declaration as a document of any length: the session's size limit is for its own
 * documents, and must not hide declarations.
 */
static struct varlena *
parse_options(const char *declared)
{
	int limit = dp_max_document_size;
	struct varlena *volatile options = NULL;

	dp_max_document_size = MaxAllocSize - VARHDRSZ;
	PG_TRY();
	{
		options = dp_text_to_bson(declared, strlen(declared), NULL);
	}
	PG_FINALLY();
	{
		dp_max_document_size = limit;
	}
	PG_END_TRY();
	return options;
}

/*
 * Returns NULL if the argument is not a document: users can create triggers with any argument,
 * which must not affect others.
 */
struct varlena *
dp_declared_options(const char *declared)
{
	MemoryContext context = CurrentMemoryContext;
	struct varlena *volatile options = NULL;

	if (declared[0] != '{')
		return NULL;
	PG_TRY();
	{
		/* the parser holds no resources but memory, so its error can be dropped */
		options = parse_options(declared);
	}
	PG_CATCH();
	{
		int category = ERRCODE_TO_CATEGORY(geterrcode());

		if (category != ERRCODE_DATA_EXCEPTION && category != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		options = NULL;
	}
	PG_END_TRY();
	return options;
}

bool
dp_option_value(struct varlena *options, const char *option, uint8 type, DpValue *value)
{
	return dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), option, strlen(option),
							value) &&
		   value->type == type;
}

char *
dp_decl_text(DpDecl *decl, const char *option)
{
	DpValue value;

	if (!decl_option(decl, option, &value))
		return NULL;
	if (value.type != DP_TYPE_STRING)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" of the %s pattern must be a text", option, decl->pattern)));
	return MemoryContextStrdup(decl->context, DP_STRING_DATA(&value));
}

/*
 * The setting counts for the table's owner and superusers only, and only for the acting user, not
 * the owner to which the extension may have switched.  Writes of a subscription's worker were
 * processed by the publisher, so it is false there even if our triggers are enabled.
 */
bool
dp_decl_maintained(DpDecl *decl)
{
	return (likely(dp_maintain) || !has_privs_of_role(dp_acting_user(), decl->owner)) &&
		   !IsLogicalWorker();
}

void
dp_require_owner(Oid relid)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	if (!has_privs_of_role(GetUserId(), owner))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("must be owner of table \"%s\"", dp_relation_name(relid))));
}

char *
dp_relation_name(Oid relid)
{
	Oid table = dp_shard_table(relid);
	char *name = get_rel_name(OidIsValid(table) ? table : relid);

	return name != NULL ? name : psprintf("%u", relid);
}

/* _relname(regclass) -> text */
DP_FUNCTION(dp_relname);
Datum
dp_relname(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(dp_relation_name(PG_GETARG_OID(0))));
}

/*
 * _pattern_declarations(regclass) -> (rel, pattern, name, options, trigger oid)
 *
 * One row for each main trigger, of one table or, with NULL, of all tables.
 */
DP_FUNCTION(dp_pattern_declarations);
Datum
dp_pattern_declarations(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple tuple;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	rel = table_open(TriggerRelationId, AccessShareLock);
	if (PG_ARGISNULL(0))
		scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	else
	{
		ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
					PG_GETARG_DATUM(0));
		scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	}

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		Datum values[5];
		bool nulls[5] = { false };
		Datum args;
		bool isnull;
		const DpPattern *pattern;
		char *declared;
		struct varlena *options;
		DpValue name;

		if (form->tgnargs != 1 || OidIsValid(form->tgparentid))
			continue;
		pattern = dp_pattern_of_function(form->tgfoid);
		if (pattern == NULL)
			continue;
		args = heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(rel), &isnull);
		args =
			PointerGetDatum(DatumGetByteaPP(args)); /* once, because the macro evaluates it twice */
		declared = VARDATA_ANY(DatumGetPointer(args));
		options = dp_declared_options(declared);
		if (options == NULL ||
			!dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), "name", 4, &name) ||
			name.type != DP_TYPE_STRING)
			continue;

		values[0] = ObjectIdGetDatum(form->tgrelid);
		values[1] = CStringGetTextDatum(pattern->name);
		values[2] =
			PointerGetDatum(cstring_to_text_with_len(DP_STRING_DATA(&name), DP_STRING_LEN(&name)));
		values[3] = PointerGetDatum(dp_anchor_options(options, form->tgrelid, NULL));
		values[4] = ObjectIdGetDatum(form->oid);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* Creates the cache and registers for invalidations, once per backend. */
static void
cache_init(void)
{
	HASHCTL ctl;
	HTAB *made;

	if (relations != NULL)
		return;
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(RelationDecls);
	ctl.hcxt = CacheMemoryContext;
	made = hash_create("docpatterns relations", 32, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	relations = made;
	dp_on_relation_change(relation_invalidated);
}

/*
 * A relation has changed, or all have.  A change of a table affects the declarations of its
 * partitions, and a declaration also depends on its side table, so any change makes all
 * declarations be checked again at their next use.
 */
static void
relation_invalidated(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS seq;
	RelationDecls *entry;
	bool all = !OidIsValid(relid);

	if (OidIsValid(relid))
	{
		/* only relations in the cache, or in our plans, matter */
		entry = hash_search(relations, &relid, HASH_FIND, NULL);
		if (entry == NULL)
			return;
		all = entry->other_owner;
		entry->other_owner = false;
	}
	hash_seq_init(&seq, relations);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		if (all || entry->relid == relid || entry->target == relid ||
			list_member_oid(entry->others, relid))
			entry->valid = false;
	}
	generation++;
}

/*
 * The declarations among the triggers of a relation, in the current context.
 */
static List *
relation_read(Relation rel)
{
	TriggerDesc *triggers = dp_triggers(rel);
	List *decls = NIL;
	int i;

	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		const DpPattern *pattern;

		if (trigger->tgnargs != 1 || trigger->tgargs[0][0] != '{')
			continue;
		pattern = dp_pattern_of_function(trigger->tgfoid);
		if (pattern != NULL)
			decls = lappend(decls, decl_make(rel, trigger, pattern));
	}
	/* keeps the context */
	if (triggers->numtriggers > 0)
		FreeTriggerDesc(triggers);
	return decls;
}

/* The declaration of a main trigger. */
static DpDecl *
decl_make(Relation rel, const Trigger *trigger, const DpPattern *pattern)
{
	DpDecl *decl = palloc0(sizeof(DpDecl));
	HeapTuple tuple;
	DpIter iter;
	DpValue held;
	DpValue path;

	decl->context = CurrentMemoryContext;
	decl->relid = RelationGetRelid(rel);
	decl->target = declared_on(decl->relid, trigger->tgisclone);
	decl->methods = pattern;
	decl->pattern = pattern->name;
	decl->declared = pstrdup(trigger->tgargs[0]);
	decl->options = dp_anchor_options(parse_options(decl->declared), decl->target, &decl->others);
	decl->name = dp_decl_text(decl, "name");
	if (decl->name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("trigger \"%s\" declares a pattern without a name", trigger->tgname)));

	decl->trigger = trigger->tgoid;
	if (decl_option(decl, "held", &held) && held.type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, &held);
		while (dp_iter_next_value(&iter, &path))
		{
			if (path.type == DP_TYPE_STRING)
				decl->held =
					lappend(decl->held, dp_path_parse(DP_STRING_DATA(&path), DP_STRING_LEN(&path)));
		}
	}

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(decl->target));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", decl->target);
	decl->owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);

	if (rel->rd_rel->relkind != RELKIND_FOREIGN_TABLE)
	{
		if (!pattern->creates_table)
			decl_read_doc_column(decl, rel);
		decl_read_key(decl, rel);
	}
	return decl;
}

/* The columns of the primary key.  Raises an error if it was dropped after the declaration. */
static void
decl_read_key(DpDecl *decl, Relation rel)
{
	Relation index;
	int i;

	if (decl->target == decl->relid)
		dp_anchor_require_key(rel);
	else
	{
		Relation target = table_open(decl->target, AccessShareLock);

		dp_anchor_require_key(target);
		table_close(target, NoLock);
	}

	/*
	 * last, because catalog access may process an invalidation after which REINDEX CONCURRENTLY has
	 * replaced the index
	 */
	list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("table \"%s\" has no primary key", dp_relation_name(decl->relid)),
						errdetail("The %s pattern \"%s\" finds rows by primary key.", decl->pattern,
								  decl->name)));
	index = RelationIdGetRelation(rel->rd_pkindex);
	decl->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	decl->keys = palloc0(sizeof(DpKeyColumn) * decl->nkeys);
	for (i = 0; i < decl->nkeys; i++)
	{
		DpKeyColumn *key = &decl->keys[i];
		Form_pg_attribute att;

		key->attnum = index->rd_index->indkey.values[i];
		att = TupleDescAttr(RelationGetDescr(rel), key->attnum - 1);
		key->name = pstrdup(NameStr(att->attname));
		key->type = att->atttypid;
		key->typmod = att->atttypmod;
		key->collation = att->attcollation;
		key->eqop = get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
										index->rd_opcintype[i], BTEqualStrategyNumber);
	}
	RelationClose(index);
}

/* The document column: the named one, or the only one of type bson. */
static void
decl_read_doc_column(DpDecl *decl, Relation rel)
{
	char *wanted = dp_decl_text(decl, "doc_column");
	Oid bson = dp_types()->bson;
	Form_pg_attribute found = NULL;
	int n = 0;
	int i;

	for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (att->attisdropped || att->atttypid != bson)
			continue;
		found = att;
		n++;
		if (wanted != NULL && strcmp(NameStr(att->attname), wanted) == 0)
		{
			n = 1;
			break;
		}
	}
	if (n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" has no column of type bson", dp_relation_name(decl->relid))));

	/* without an anchor, a renamed column must be the only one */
	if (n > 1)
		ereport(
			ERROR,
			(errcode(ERRCODE_AMBIGUOUS_COLUMN),
			 wanted == NULL
				 ? errmsg("table \"%s\" has more than one column of type bson",
						  dp_relation_name(decl->relid))
				 : errmsg("table \"%s\" has no column \"%s\" and more than one other of type bson",
						  dp_relation_name(decl->relid), wanted)));
	decl->doc_column = pstrdup(NameStr(found->attname));
	decl->doc_attnum = found->attnum;
}

DpDecl *
dp_decl_of_table(Oid relid, const char *pattern, const char *name, const char *doc_column,
				 MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	Relation rel = table_open(relid, AccessShareLock);
	DpDecl *decl = palloc0(sizeof(DpDecl));
	DpBuilder b;

	decl->context = context;
	decl->relid = relid;
	decl->target = relid;
	decl->owner = rel->rd_rel->relowner;
	decl->declared = "";
	if (pattern == NULL)
	{
		decl_read_key(decl, rel);
		table_close(rel, NoLock);
		MemoryContextSwitchTo(old);
		return decl;
	}
	decl->methods = dp_pattern_find(pattern);
	decl->pattern = decl->methods->name;
	decl->name = pstrdup(name);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (doc_column != NULL)
		dp_builder_append_string(&b, "doc_column", strlen("doc_column"), doc_column,
								 strlen(doc_column));
	dp_builder_end(&b);
	decl->options = dp_builder_finish_bson(&b);
	decl_read_doc_column(decl, rel);
	decl_read_key(decl, rel);
	table_close(rel, NoLock);
	MemoryContextSwitchTo(old);
	return decl;
}

/* The option's value; false if it is absent or null. */
static bool
decl_option(DpDecl *decl, const char *option, DpValue *value)
{
	return dp_document_find(DP_DOC_DATA(decl->options), DP_DOC_SIZE(decl->options), option,
							strlen(option), value) &&
		   value->type != DP_TYPE_NULL;
}

/* The table of a declaration: the topmost one from which a trigger was cloned. */
static Oid
declared_on(Oid relid, bool isclone)
{
	while (isclone)
	{
		Oid parent = get_partition_parent(relid, true);
		Relation rel = table_open(parent, AccessShareLock);
		int i;

		isclone = false;
		for (i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		{
			const Trigger *trigger = &rel->trigdesc->triggers[i];

			if (trigger->tgisclone && trigger->tgnargs == 1 && trigger->tgargs[0][0] == '{')
				isclone = true;
		}
		table_close(rel, NoLock);
		relid = parent;
	}
	return relid;
}

Oid
dp_relation_owner(Oid relid, bool missing_ok)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	else if (!missing_ok)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	return owner;
}
