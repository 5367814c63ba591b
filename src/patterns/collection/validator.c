/*
 * validator.c
 *		The trigger of collection_validator(), where a CHECK would not do: documents that are split,
 *		the level moderate and the action warn.
 *
 * It tests the whole document after the triggers that complete it and before those that split it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/text.h"
#include "kit/key.h"
#include "kit/registry.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "kit/view.h"
#include "mql/filter.h"
#include "mql/spec.h"

static DpFilter *validator(FunctionCallInfo fcinfo, const char *spec);
static bool is_valid(DpFilter *filter, struct varlena *doc);
static DpDecl *split_decl(Oid relid, AttrNumber doc);
static struct varlena *whole(DpDecl *decl, HeapTuple tuple, TupleDesc desc, struct varlena *doc);

/*
 * collection_validator_trigger('filter', 'strict' | 'moderate', 'error' | 'warn') -> trigger,
 * BEFORE INSERT OR UPDATE OF document FOR EACH ROW
 */
DP_FUNCTION(dp_collection_validator_trigger);
Datum
dp_collection_validator_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigger =
		dp_trigger_require(fcinfo, "collection_validator", DP_BEFORE_ROW(DP_INSERT | DP_UPDATE), 3);
	TupleDesc desc = RelationGetDescr(trigger->tg_relation);
	AttrNumber column = trigger->tg_trigger->tgnattr == 1 ? trigger->tg_trigger->tgattr[0] : 0;
	char **args = trigger->tg_trigger->tgargs;
	HeapTuple tuple = dp_trigger_row(trigger);
	DpFilter *filter = validator(fcinfo, args[0]);
	DpDecl *decl = split_decl(RelationGetRelid(trigger->tg_relation), column);
	struct varlena *old = NULL;
	struct varlena *doc;

	if (column == 0)
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("trigger function \"%s\" must be created by %s()",
							   "collection_validator_trigger", "collection_validator")));
	doc = dp_tuple_bson(tuple, desc, column);
	if (doc == NULL)
		return PointerGetDatum(tuple);
	if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
	{
		DpMarkKind mark = decl == NULL ? DP_MARK_NONE : dp_marked(decl->target, NULL);

		old = dp_tuple_bson(trigger->tg_trigtuple, desc, column);
		/* the pattern that splits it moves validated parts */
		if ((old != NULL && dp_same_bytes(old, doc)) || mark == DP_MARK_INTERNAL)
			return PointerGetDatum(tuple);
		if (mark == DP_MARK_NONE)
			doc = whole(decl, tuple, desc, doc);
	}
	if (is_valid(filter, doc) || (old != NULL && strcmp(args[1], "moderate") == 0 &&
								  !is_valid(filter, whole(decl, trigger->tg_trigtuple, desc, old))))
		return PointerGetDatum(tuple);
	ereport(strcmp(args[2], "warn") == 0 ? WARNING : ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("document does not match the validator of table \"%s\"",
					RelationGetRelationName(trigger->tg_relation)),
			 errtable(trigger->tg_relation)));
	return PointerGetDatum(tuple);
}

/* The filter, compiled once for a statement. */
static DpFilter *
validator(FunctionCallInfo fcinfo, const char *spec)
{
	if (fcinfo->flinfo->fn_extra == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		DpValue value = dp_value_of_document(dp_text_to_bson(spec, strlen(spec), NULL));

		fcinfo->flinfo->fn_extra =
			dp_filter_compile(&value, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
		MemoryContextSwitchTo(old);
	}
	return fcinfo->flinfo->fn_extra;
}

static bool
is_valid(DpFilter *filter, struct varlena *doc)
{
	DpValue value = dp_value_of_document(doc);

	return dp_filter_match(filter, &value);
}

/* A declaration on the column if a pattern has split its documents, or NULL. */
static DpDecl *
split_decl(Oid relid, AttrNumber doc)
{
	ListCell *lc;

	foreach(lc, dp_decls(relid))
	{
		DpDecl *decl = lfirst(lc);

		if (decl->methods->split != NULL && decl->doc_attnum == doc)
			return decl;
	}
	return NULL;
}

/* The whole document of a row. */
static struct varlena *
whole(DpDecl *decl, HeapTuple tuple, TupleDesc desc, struct varlena *doc)
{
	DpKey key;

	if (decl == NULL)
		return doc;
	dp_key_of_tuple(decl, tuple, desc, &key);
	return dp_whole_document(dp_decls(decl->relid), doc, &key, true);
}
