/*
 * view.c
 *		Writes through the views of a version of a schema.
 *
 * A view shows documents in its version and accepts documents of it.  A stored
 * document of a later version may contain values that the view's version cannot
 * represent.  So both the shown and the written document are converted to the
 * stored document's version, and their difference is applied to that.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/diff.h"
#include "bson/reader.h"
#include "kit/view.h"
#include "kit/trigger.h"
#include "patterns/schema_versioning/schema_versioning.h"

static void insert_prepare(TriggerData *trigdata);
static DpSchemaVersioning *shown_versioning(char **args, List *decls, int *at);
static bool version_is_changed(char **args, List *decls, struct varlena *stored);
static struct varlena *
version_show(char **args, List *decls, struct varlena *stored, const DpKey *key, bool latest);
static struct varlena *
version_store(char **args, List *decls, struct varlena *stored, struct varlena *old_shown,
			  struct varlena *new_shown, DpMark *marks, int *nmarks);
static void version_split(char **args, List *decls, DpSplit *split);
static bool tells_version(const DpSchemaVersioning *s, struct varlena *doc);

DP_FUNCTION(dp_schema_versioning_view_trigger);

const DpViewMethods dp_schema_versioning_view = { .label = "version's",
												  .is_changed = version_is_changed,
												  .show = version_show,
												  .store = version_store,
												  .split = version_split,
												  .trigger = dp_schema_versioning_view_trigger,
												  .nargs = 2 };

/*
 * schema_versioning_view_trigger(name, version): INSTEAD OF INSERT, UPDATE or
 * DELETE on the view of a version, or of the current one.
 */
Datum
dp_schema_versioning_view_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata =
		dp_trigger_require(fcinfo, DP_SCHEMA_VERSIONING, DP_INSTEAD_OF(DP_WRITE), 2);

	if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		insert_prepare(trigdata);
	return dp_view_trigger(fcinfo, &dp_schema_versioning_view);
}

/*
 * A new document that does not say its version has the view's.
 */
static void
insert_prepare(TriggerData *trigdata)
{
	Relation view = trigdata->tg_relation;
	Query *query = view->rd_rel->relkind == RELKIND_VIEW ? get_view_query(view) : NULL;
	ListCell *lc;

	/* other views are refused by writes */
	if (query == NULL || list_length(query->jointree->fromlist) != 1 ||
		!IsA(linitial(query->jointree->fromlist), RangeTblRef))
		return;
	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);
		RangeTblEntry *rte =
			rt_fetch(((RangeTblRef *) linitial(query->jointree->fromlist))->rtindex, query->rtable);
		DpSchemaVersioning *s;
		struct varlena *doc;
		int at;

		if (tle->resjunk || IsA(tle->expr, Var) ||
			exprType((Node *) tle->expr) != dp_types()->bson || rte->rtekind != RTE_RELATION)
			continue;
		doc = dp_tuple_bson(trigdata->tg_trigtuple, RelationGetDescr(view), tle->resno);
		if (doc == NULL)
			return;
		s = shown_versioning(trigdata->tg_trigger->tgargs, dp_decls(rte->relid), &at);
		if (!tells_version(s, doc))
			trigdata->tg_trigtuple =
				dp_tuple_with_bson(trigdata->tg_trigtuple, RelationGetDescr(view), tle->resno,
								   dp_versions_mark(s->versions, doc, at));
		return;
	}
}

/*
 * The declaration that the arguments of the view's trigger name, and the position of its version.
 */
static DpSchemaVersioning *
shown_versioning(char **args, List *decls, int *at)
{
	bool is_current = strcmp(args[1], "current") == 0;
	int32 version = is_current ? 0 : (int32) strtol(args[1], NULL, 10);
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, DP_SCHEMA_VERSIONING) == 0 && strcmp(decl->name, args[0]) == 0)
		{
			DpSchemaVersioning *s = dp_schema_versioning(decl);

			*at = is_current ? s->at : dp_versions_find(s->versions, version);
			if (*at >= 0)
				return s;
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the view's table has no version %d of a schema \"%s\"", version, args[0])));
}

/* Whether the stored document is of another version. */
static bool
version_is_changed(char **args, List *decls, struct varlena *stored)
{
	int at;
	DpSchemaVersioning *s = shown_versioning(args, decls, &at);

	return dp_versions_of(s->versions, PointerGetDatum(stored), NULL) != s->versions->versions[at];
}

/* Returns the document as the view shows it. */
static struct varlena *
version_show(char **args, List *decls, struct varlena *stored, const DpKey *key, bool latest)
{
	int at;
	DpSchemaVersioning *s = shown_versioning(args, decls, &at);
	int from =
		dp_versions_find(s->versions, dp_versions_of(s->versions, PointerGetDatum(stored), NULL));

	if (from < 0)
		dp_versions_unknown(s->versions, PointerGetDatum(stored), "");
	return dp_versions_move(s->versions, stored, from, at, false);
}

/*
 * Returns the document to store. A document with another version than the view's is stored in
 * that.
 */
static struct varlena *
version_store(char **args, List *decls, struct varlena *stored, struct varlena *old_shown,
			  struct varlena *new_shown, DpMark *marks, int *nmarks)
{
	int at;
	DpSchemaVersioning *s = shown_versioning(args, decls, &at);
	struct varlena *before;
	struct varlena *after;
	int from;

	if (new_shown == NULL)
		return NULL;
	if (stored != NULL && old_shown != NULL && dp_same_bytes(old_shown, new_shown))
		return stored;
	if (tells_version(s, new_shown))
	{
		if (dp_versions_of(s->versions, PointerGetDatum(new_shown), NULL) !=
			s->versions->versions[at])
			return new_shown;
	}
	else
		new_shown = dp_versions_mark(s->versions, new_shown, at);
	if (stored == NULL || old_shown == NULL)
		return new_shown;
	from =
		dp_versions_find(s->versions, dp_versions_of(s->versions, PointerGetDatum(stored), NULL));
	if (from <= at)
		return new_shown;
	before = dp_versions_move(s->versions, old_shown, at, from, false);
	after = dp_versions_move(s->versions, new_shown, at, from, false);
	return dp_diff_carry(DP_DOC_DATA(before), DP_DOC_SIZE(before), DP_DOC_DATA(after),
						 DP_DOC_SIZE(after), DP_DOC_DATA(stored), DP_DOC_SIZE(stored));
}

/*
 * A step may make anything of a field that it touches, and a function of every
 * one: then the calls for collections have to look at all that is shown.
 */
static void
version_split(char **args, List *decls, DpSplit *split)
{
	int at;
	DpSchemaVersioning *s = shown_versioning(args, decls, &at);
	DpValue options = dp_value_of_document(s->decl->options);
	DpValue steps;
	DpIter iter;
	DpValue step;

	if (!dp_document_find(options.data, options.len, "steps", 5, &steps))
		return;
	dp_iter_init_value(&iter, &steps);
	while (dp_iter_next_value(&iter, &step))
	{
		DpIter parts;
		DpElement part;

		dp_iter_init_value(&parts, &step);
		while (dp_iter_next(&parts, &part))
			if (strstr(part.name, "_function") != NULL ||
				(strstr(part.name, "_update") != NULL && dp_split_update(split, &part.value)))
			{
				split->fields = list_make1(dp_split_field(dp_path_of_names(0, NULL, NULL), NULL));
				return;
			}
	}
}

/* Whether the document has the field with its version. */
static bool
tells_version(const DpSchemaVersioning *s, struct varlena *doc)
{
	DpValue value;

	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->versions->field, &value) &&
		   value.type != DP_TYPE_NULL && value.type != DP_TYPE_UNDEFINED;
}
