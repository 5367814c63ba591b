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
 *							ObjectId or UUID
 *
 * On Citus the column has sent the row to its shard, so another _id is an error there, and each
 *copy of a reference table would generate one of its own.
 *
 * The column is a bson_value, or has a SQL type that the _id must then fit.  The trigger names both
 * columns (UPDATE OF), so that they may be renamed.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/objectid.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "kit/key.h"
#include "kit/shard.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"
#include "mql/collection_calls.h"

#define ID_NAME "_id"
#define ID_NAME_LEN 3

static Datum id_to_column(Relation rel, const DpKeyColumn *column, const DpValue *id);
static Datum id_generate(Relation rel, Oid type);
static void check_id(Relation rel, const DpValue *id);
static struct varlena *prepend_id(struct varlena *doc, const DpValue *id);

/*
 * collection_set_id() -> trigger, BEFORE INSERT OR UPDATE OF key, document FOR EACH ROW
 */
DP_FUNCTION(dp_collection_set_id);
Datum
dp_collection_set_id(PG_FUNCTION_ARGS)
{
	TriggerData *trigger =
		dp_trigger_require(fcinfo, "collection_create", DP_BEFORE_ROW(DP_INSERT | DP_UPDATE), 0);
	Relation rel = trigger->tg_relation;
	TupleDesc desc = RelationGetDescr(rel);
	HeapTuple tuple = dp_trigger_row(trigger);
	AttrNumber key, body;
	int cols[2];
	Form_pg_attribute att;
	DpKeyColumn column = { 0 };
	Datum values[2];
	bool nulls[2] = { false, false };
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event);
	bool idnull, docnull, written;
	Datum idcol, doccol, oldid = (Datum) 0;
	struct varlena *doc;
	DpValue id, other;

	if (!dp_collection_columns(trigger->tg_trigger, desc, &key, &body))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("trigger function \"%s\" must be created by %s()",
							   "collection_set_id", "collection_create"),
						errtable(rel)));
	cols[0] = key;
	cols[1] = body;
	att = TupleDescAttr(desc, key - 1);
	column.type = att->atttypid;
	column.typmod = att->atttypmod;

	idcol = heap_getattr(tuple, key, desc, &idnull);
	doccol = heap_getattr(tuple, body, desc, &docnull);
	if (docnull)
		ereport(
			ERROR,
			(errcode(ERRCODE_NOT_NULL_VIOLATION),
			 errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint",
					NameStr(TupleDescAttr(desc, body - 1)->attname), RelationGetRelationName(rel)),
			 idnull || is_update
				 ? 0
				 : errhint("Name the column of documents: INSERT INTO %s (%s) VALUES (...).",
						   quote_identifier(RelationGetRelationName(rel)),
						   quote_identifier(NameStr(TupleDescAttr(desc, body - 1)->attname))),
			 errtablecol(rel, body)));

	/*
	 * Returns whether the statement set the column: an unchanged column has the same address or
	 * the same bytes.
	 */
	written = !idnull;
	if (is_update)
	{
		bool oldnull;
		Datum olddoc;

		oldid = heap_getattr(trigger->tg_trigtuple, key, desc, &oldnull);
		if (oldnull)
			is_update = false;
		else
		{
			written = !idnull && !datumIsEqual(oldid, idcol, att->attbyval, att->attlen);
			olddoc = heap_getattr(trigger->tg_trigtuple, body, desc, &oldnull);

			/* neither column was set */
			if (!oldnull && !idnull && !written && datumIsEqual(olddoc, doccol, false, -1))
				return PointerGetDatum(tuple);
		}
	}

	doc = PG_DETOAST_DATUM_PACKED(doccol);
	if (dp_document_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), ID_NAME, ID_NAME_LEN, &id))
	{
		values[0] = id_to_column(rel, &column, &id);
		if (!idnull)
		{
			if (datum_image_eq(values[0], idcol, att->attbyval, att->attlen))
				return PointerGetDatum(tuple);
			other = dp_value_of_varlena(dp_datum_to_value(idcol, column.type));
			if (written && dp_value_compare(&other, &id) != 0)
				ereport(
					ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg(
						 "column \"%s\" of relation \"%s\" differs from the field \"_id\" of the document",
						 NameStr(att->attname), RelationGetRelationName(rel)),
					 errhint("Write only the document; the column follows it."),
					 errtablecol(rel, key)));
			if (!written && dp_value_compare(&other, &id) != 0 &&
				dp_is_hashed(dp_shard_table(RelationGetRelid(rel))))
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("cannot change the field \"_id\" of a document in table \"%s\"",
								dp_relation_name(dp_shard_table(RelationGetRelid(rel)))),
						 errdetail("The table is distributed, and the document would belong to "
								   "another shard."),
						 errhint("Delete the document, and insert it with the other key.")));
		}
		return PointerGetDatum(heap_modify_tuple_by_cols(tuple, desc, 1, cols, values, nulls));
	}

	values[0] = !idnull ? idcol : is_update ? oldid : id_generate(rel, column.type);
	id = dp_value_of_varlena(dp_datum_to_value(values[0], column.type));
	check_id(rel, &id);
	values[1] = PointerGetDatum(prepend_id(doc, &id));
	return PointerGetDatum(heap_modify_tuple_by_cols(tuple, desc, 2, cols, values, nulls));
}

/*
 * _collection_keys(ids bson_value[], key anyelement) -> anyarray: the ids as keys of that type;
 * without those that no document of a collection with such keys can have; NULL for NULL
 */
DP_FUNCTION(dp_collection_keys);
Datum
dp_collection_keys(PG_FUNCTION_ARGS)
{
	DpKeyColumn column = { .type = get_fn_expr_argtype(fcinfo->flinfo, 1), .typmod = -1 };
	ArrayBuildState *keys = initArrayResult(column.type, CurrentMemoryContext, false);
	Datum *ids;
	bool *nulls;
	int n;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), dp_types()->bson_value, -1, false, TYPALIGN_INT,
					  &ids, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		DpValue id;
		Datum key;

		if (nulls[i])
			continue;
		id = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(ids[i]));
		if (dp_key_column_of_value(&column, &id, &key))
			keys = accumArrayResult(keys, key, false, column.type, CurrentMemoryContext);
	}
	PG_RETURN_DATUM(makeArrayResult(keys, CurrentMemoryContext));
}

/* The _id as a value of the column. Refuses those that do not fit it. */
static Datum
id_to_column(Relation rel, const DpKeyColumn *column, const DpValue *id)
{
	StringInfoData text;
	Datum key;

	check_id(rel, id);
	if (dp_key_column_of_value(column, id, &key))
		return key;
	initStringInfo(&text);
	dp_value_to_text(&text, id, DP_TEXT_RELAXED, -1);
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					errmsg("the field \"_id\" of type %s does not fit the key of type %s: %.*s",
						   dp_type_name(id->type), format_type_be(column->type),
						   pg_mbcliplen(text.data, text.len, 100), text.data),
					errtable(rel)));
}

/* A new key, for a document that has none. */
static Datum
id_generate(Relation rel, Oid type)
{
	uint8 fresh[DP_OBJECTID_SIZE];
	DpValue id = { .type = DP_TYPE_OBJECTID, .data = fresh, .len = DP_OBJECTID_SIZE };
	DpKeyColumn column = { .type = type, .typmod = -1 };
	Datum key;

	if (dp_shard_is_copy(RelationGetRelid(rel)))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("the document has no field \"_id\""),
						errdetail("Table \"%s\" has a copy on each server, and each would generate "
								  "another key.",
								  dp_relation_name(dp_shard_table(RelationGetRelid(rel)))),
						errhint("Write the field \"_id\", or the key into its column.")));
	if (type == UUIDOID)
		return OidFunctionCall0(F_GEN_RANDOM_UUID);
	dp_objectid_generate(fresh);
	if (!dp_key_column_of_value(&column, &id, &key))
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION), errmsg("the document has no field \"_id\""),
				 errdetail("Keys of type %s are not generated.", format_type_be(type)),
				 errhint("Write the field \"_id\", or the key into its column."), errtable(rel)));
	return key;
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
