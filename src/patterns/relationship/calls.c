/*
 * calls.c
 *		Functions for the verbs of relationships: correct rows that are older than
 *		the declaration or were written without triggers.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"

#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "patterns/relationship/relationship.h"

static bool relationship_repair_row(DpDecl *decl, const DpKey *key);

static const DpOption options[] = {
	{ "link_id", DP_OPTION_TEXT, DP_REQUIRED, DP_INTO(DpRelationship, link_id) },
	{ "field", DP_OPTION_PATH, DP_REQUIRED | DP_KEPT | DP_GUARDED,
	  DP_INTO(DpRelationship, sides[0].field) },
	{ "other_field", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpRelationship, sides[1].field) },
	{ "missing", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("allow", "error"),
	  DP_INTO(DpRelationship, missing_error) },
	{ "on_delete", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("unset", "restrict"),
	  DP_INTO(DpRelationship, restrict_delete) },
	{ "symmetric", DP_OPTION_BOOL, 0, DP_INTO(DpRelationship, symmetric) },
	{ NULL }
};

DP_DEFINE_PATTERN(relationship) = { .name = "relationship",
									.whole_table = true,
									.options = options,
									.repair_row = relationship_repair_row,
									.process_note = dp_relationship_process_note };

/*
 * _relationship_repair_references(rel, name, side, key, only_missing) -> number of rows written:
 * makes the rows to which a row of that side refers refer to it, or with only_missing removes its
 * references to missing rows; as the owner
 */
DP_ROUTED_FUNCTION(dp_relationship_repair_references, DP_ROUTE_WHOLE, 0)
{
	DpDecl *decl;
	DpRelationship *r;
	int side = PG_GETARG_INT32(2);
	struct varlena *given = DP_GETARG_VARLENA(3);
	bool only_missing = PG_GETARG_BOOL(4);
	DpValue key = dp_value_of_varlena(given);
	struct varlena *doc;
	DpValue array;
	DpValue id;
	DpIter iter;
	DpRelationshipEdge *edges = NULL;
	int n = 0;
	int cap = 0;
	DpActor self;

	dp_require_owner(PG_GETARG_OID(0));
	if (side != 0 && side != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("side must be 0 or 1")));
	LockRelationOid(PG_GETARG_OID(0),
					RowExclusiveLock); /* so that the declaration stays as it is */
	decl = dp_decl_find(PG_GETARG_OID(0), "relationship", text_to_cstring(PG_GETARG_TEXT_PP(1)));
	r = dp_relationship(decl);
	if (!OidIsValid(r->sides[1].relid))
		PG_RETURN_BOOL(false);
	dp_owner_begin(decl->owner, &self);
	SPI_connect();
	doc = dp_relationship_row(r, side, &key);
	if (dp_relationship_array(&r->sides[side], doc, &array))
	{
		dp_iter_init_value(&iter, &array);
		while (dp_iter_next_value(&iter, &id))
		{
			DpRelationshipEdge edge = { side, id, key, DP_EDGE_COMES };

			if (only_missing)
			{
				DpValue missing = id;

				if (dp_relationship_row(r, 1 - side, &missing) != NULL)
					continue;
				edge.side = 1 - side;
				edge.to = key;
				edge.from = id;
				edge.sign = DP_EDGE_GOES;
			}
			dp_relationship_edge(&edges, &n, &cap, &edge);
		}
	}
	if (n > 0)
		dp_relationship_apply(r, edges, n, true);
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_BOOL(n > 0);
}

/* Makes the rows to which a row refers refer to it. Called inside SPI_connect(), as the owner. */
static bool
relationship_repair_row(DpDecl *decl, const DpKey *key)
{
	DpRelationship *r = dp_relationship(decl);
	struct varlena *value = dp_key_to_value(decl, key);
	DpValue from = dp_value_of_varlena(value);
	struct varlena *doc;
	DpValue array;
	DpValue id;
	DpIter iter;
	DpRelationshipEdge *edges = NULL;
	int n = 0;
	int cap = 0;

	if (!OidIsValid(r->sides[1].relid))
		return false;
	doc = dp_relationship_row(r, 0, &from);
	if (!dp_relationship_array(&r->sides[0], doc, &array))
		return false;
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &id))
	{
		DpRelationshipEdge edge = { 0, id, from, DP_EDGE_COMES };

		dp_relationship_edge(&edges, &n, &cap, &edge);
	}
	if (n > 0)
		dp_relationship_apply(r, edges, n, true);
	return n > 0;
}
