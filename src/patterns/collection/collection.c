/*
 * collection.c
 *		The trigger of tables that collection_create() creates.
 *
 * The column _id, the primary key, follows the document's _id:
 *
 *	document with _id		the column is set to it; writing another value to
 *							the column is an error
 *	document without _id	the column's value is added as first field: the
 *							written one, on UPDATE the old one, else a new
 *							ObjectId
 *
 * The columns are found by their types (the first bson_value and the first bson),
 * so that they may be renamed.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/objectid.h"
#include "bson/reader.h"
#include "kit/trigger.h"

#define ID_NAME "_id"
#define ID_NAME_LEN 3

static void find_columns(Relation rel, int *id, int *doc);
static void check_id(Relation rel, const DpValue *id);
static struct varlena *prepend_id(struct varlena *doc, const DpValue *id);

/*
 * collection_set_id() -> trigger, BEFORE INSERT OR UPDATE FOR EACH ROW
 */
DP_FUNCTION(dp_collection_set_id);
Datum
dp_collection_set_id(PG_FUNCTION_ARGS)
{
	TriggerData *trigger =
		dp_trigger_require(fcinfo, "collection_create", DP_BEFORE_ROW(DP_INSERT | DP_UPDATE), 0);
	TupleDesc desc;
	HeapTuple tuple;
	bool is_update;
	int cols[2];
	Datum values[2];
	bool nulls[2] = { false, false };
	bool idnull, docnull, written;
	Datum idcol, doccol, oldid = (Datum) 0;
	struct varlena *doc;
	DpValue id, column;
	uint8 fresh[DP_OBJECTID_SIZE];

	is_update = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event);
	tuple = dp_trigger_row(trigger);
	desc = RelationGetDescr(trigger->tg_relation);
	find_columns(trigger->tg_relation, &cols[0], &cols[1]);

	idcol = heap_getattr(tuple, cols[0], desc, &idnull);
	doccol = heap_getattr(tuple, cols[1], desc, &docnull);
	if (docnull)
		ereport(
			ERROR,
			(errcode(ERRCODE_NOT_NULL_VIOLATION),
			 errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint",
					NameStr(TupleDescAttr(desc, cols[1] - 1)->attname),
					RelationGetRelationName(trigger->tg_relation)),
			 errtablecol(trigger->tg_relation, cols[1])));

	/*
	 * Returns whether the statement set the column: an unchanged column has the same address or
	 * the same bytes.
	 */
	written = !idnull;
	if (is_update)
	{
		bool oldnull;
		Datum olddoc;

		oldid = heap_getattr(trigger->tg_trigtuple, cols[0], desc, &oldnull);
		if (oldnull)
			is_update = false;
		else
		{
			written = !idnull && !datumIsEqual(oldid, idcol, false, -1);
			olddoc = heap_getattr(trigger->tg_trigtuple, cols[1], desc, &oldnull);

			/* neither column was set */
			if (!oldnull && !idnull && !written && datumIsEqual(olddoc, doccol, false, -1))
				return PointerGetDatum(tuple);
		}
	}

	doc = PG_DETOAST_DATUM_PACKED(doccol);
	if (dp_document_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), ID_NAME, ID_NAME_LEN, &id))
	{
		check_id(trigger->tg_relation, &id);
		if (!idnull)
		{
			column = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(idcol));
			if (dp_value_identical(&column, &id))
				return PointerGetDatum(tuple);
			if (written && dp_value_compare(&column, &id) != 0)
				ereport(
					ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg(
						 "column \"%s\" of relation \"%s\" differs from the field \"_id\" of the document",
						 NameStr(TupleDescAttr(desc, cols[0] - 1)->attname),
						 RelationGetRelationName(trigger->tg_relation)),
					 errhint("Write only the document; the column follows it."),
					 errtablecol(trigger->tg_relation, cols[0])));
		}
		return PointerGetDatum(dp_tuple_with_bson(tuple, desc, cols[0], dp_value_to_varlena(&id)));
	}

	if (!idnull)
		id = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(idcol));
	else if (is_update)
		id = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(oldid));
	else
	{
		dp_objectid_generate(fresh);
		id.type = DP_TYPE_OBJECTID;
		id.data = fresh;
		id.len = DP_OBJECTID_SIZE;
	}
	check_id(trigger->tg_relation, &id);
	values[0] = PointerGetDatum(dp_value_to_varlena(&id));
	values[1] = PointerGetDatum(prepend_id(doc, &id));
	tuple = heap_modify_tuple_by_cols(tuple, desc, 2, cols, values, nulls);
	return PointerGetDatum(tuple);
}

/*
 * Returns the numbers of the key column and the document column. Raises DATATYPE_MISMATCH without
 * them.
 */
static void
find_columns(Relation rel, int *id, int *doc)
{
	TupleDesc desc = RelationGetDescr(rel);
	const DpTypes *types = dp_types();

	*id = *doc = 0;
	for (int i = 0; i < desc->natts && (*id == 0 || *doc == 0); i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (*id == 0 && att->atttypid == types->bson_value)
			*id = i + 1;
		else if (*doc == 0 && att->atttypid == types->bson)
			*doc = i + 1;
	}
	if (*id == 0 || *doc == 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("relation \"%s\" is not a collection", RelationGetRelationName(rel)),
			 errdetail("A collection has a column of type bson_value and a column of type bson."),
			 errtable(rel)));
}

/* Refuses values that MongoDB does not accept as _id. */
static void
check_id(Relation rel, const DpValue *id)
{
	if (id->type == DP_TYPE_ARRAY || id->type == DP_TYPE_REGEX || id->type == DP_TYPE_UNDEFINED)
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("the field \"_id\" cannot be of BSON type \"%s\"", dp_type_name(id->type)),
				 errtable(rel)));
}

/* Returns the document with the field _id as first field. */
static struct varlena *
prepend_id(struct varlena *doc, const DpValue *id)
{
	DpBuilder b;
	DpIter iter;

	dp_iter_init_varlena(&iter, doc);
	dp_builder_init(&b, DP_DOC_SIZE(doc) + 1 + ID_NAME_LEN + 1 + id->len);
	dp_builder_begin_document(&b);
	dp_builder_append_nested(&b, ID_NAME, ID_NAME_LEN, id);
	dp_builder_append_elements(&b, iter.next, iter.end - iter.next);
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}
