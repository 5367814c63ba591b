/*
 * source.c
 *		Reading source rows to recompute a group.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "kit/derive/source.h"
#include "kit/sql/text.h"
#include "mql/pipeline/row.h"
#include "mql/sort_key.h"

/* Receives the rows of a statement. */
typedef struct SourceReceiver
{
	DestReceiver pub;
	DpSource *source;
	bool with_key;
	int64 rows;
	MemoryContext row; /* for one row */
	DpSourceVisit visit;
	void *arg;
} SourceReceiver;

static void key_append(StringInfo key, Datum value, bool isnull, Oid type);
static bool receive_row(TupleTableSlot *slot, DestReceiver *self);
static void receive_startup(DestReceiver *self, int operation, TupleDesc desc);
static void receive_nothing(DestReceiver *self);

DpSource *
dp_source_open(Oid relid, const char *doc_column)
{
	DpSource *source = palloc0(sizeof(DpSource));
	Relation rel = table_open(relid, AccessShareLock);
	TupleDesc desc = RelationGetDescr(rel);
	Oid bson = dp_types()->bson;
	int i;

	source->relid = relid;
	source->is_foreign = rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE;
	source->key = makeStringInfo();
	for (i = 0; i < desc->natts && (!source->is_foreign || dp_has_documents(relid)); i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && att->atttypid == bson &&
			(source->doc_column == NULL ||
			 (doc_column != NULL && strcmp(NameStr(att->attname), doc_column) == 0)))
			source->doc_column = pstrdup(NameStr(att->attname));
	}

	list_free(RelationGetIndexList(rel)); /* needed to find the primary key */
	if (OidIsValid(rel->rd_pkindex))
	{
		Relation index = index_open(rel->rd_pkindex, AccessShareLock);

		source->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
		source->keys = palloc(sizeof(char *) * source->nkeys);
		source->key_types = palloc(sizeof(Oid) * source->nkeys);
		for (i = 0; i < source->nkeys; i++)
		{
			Form_pg_attribute att = TupleDescAttr(desc, index->rd_index->indkey.values[i] - 1);

			source->keys[i] = pstrdup(NameStr(att->attname));
			source->key_types[i] = att->atttypid;
		}
		index_close(index, AccessShareLock);
	}
	table_close(rel, AccessShareLock);
	return source;
}

void
dp_source_require_key(const DpSource *source)
{
	if (source->nkeys == 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("table \"%s\" has no primary key", dp_relation_name(source->relid)),
						errdetail("Accumulators that depend on the order of rows need it.")));
}

/* ---------------------------------------------------------------- keys of rows */

/* Appends a column of a key. */
static void
key_append(StringInfo key, Datum value, bool isnull, Oid type)
{
	DpValue v = { NULL, 0, DP_TYPE_NULL };

	if (!isnull)
		v = dp_value_of_varlena(dp_datum_to_value(value, type));
	dp_sort_key_append_value(key, &v, false);
}

const char *
dp_source_row_key(DpSource *source, TupleTableSlot *slot, uint32 *len)
{
	TupleDesc desc = slot->tts_tupleDescriptor;
	int i;

	if (source->seen_type != desc->tdtypeid || source->seen_type == RECORDOID)
	{
		for (i = 0; i < source->nkeys; i++)
		{
			int j;

			source->seen[i] = InvalidAttrNumber;
			for (j = 0; j < desc->natts; j++)
			{
				if (!TupleDescAttr(desc, j)->attisdropped &&
					strcmp(NameStr(TupleDescAttr(desc, j)->attname), source->keys[i]) == 0)
					source->seen[i] = j + 1;
			}
			if (source->seen[i] == InvalidAttrNumber)
				elog(ERROR, "a row has no column \"%s\"", source->keys[i]);
		}
		source->seen_type = desc->tdtypeid;
	}
	resetStringInfo(source->key);
	for (i = 0; i < source->nkeys; i++)
	{
		bool isnull;
		Datum value = slot_getattr(slot, source->seen[i], &isnull);

		key_append(source->key, value, isnull, source->key_types[i]);
	}
	*len = source->key->len;
	return source->key->data;
}

/* ---------------------------------------------------------------- statements */

void
dp_source_sql_select(StringInfo sql, const DpSource *source, bool with_key)
{
	int i;

	appendStringInfoString(sql, "SELECT ");
	if (source->doc_column != NULL)
		appendStringInfo(sql, "s.%s", quote_identifier(source->doc_column));
	else
	{
		dp_sql_own_schema(sql);
		appendStringInfoString(sql, "row_to_bson(s.*)");
	}
	for (i = 0; with_key && i < source->nkeys; i++)
		appendStringInfo(sql, ", s.%s", quote_identifier(source->keys[i]));
	appendStringInfoString(sql, " FROM ");
	dp_sql_table(sql, source->relid);
	appendStringInfoString(sql, " AS s");
}

Oid
dp_source_sql_field(StringInfo sql, const DpSource *source, const DpPath *path)
{
	Relation rel;
	Oid type = InvalidOid;
	int i;

	if (source->doc_column != NULL)
	{
		StringInfoData text;

		initStringInfo(&text);
		dp_path_to_text(&text, path);
		dp_sql_doc_path(sql, source->doc_column, text.data);
		return dp_types()->bson_value;
	}
	if (path->nsteps != 1)
		return InvalidOid;
	rel = table_open(source->relid, AccessShareLock);
	for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), path->steps[0].name) == 0)
		{
			appendStringInfo(sql, "s.%s", quote_identifier(NameStr(att->attname)));
			type = att->atttypid;
		}
	}
	table_close(rel, AccessShareLock);
	return type;
}

Oid
dp_source_sql_require_field(StringInfo sql, const DpSource *source, const DpPath *path)
{
	Oid type = dp_source_sql_field(sql, source, path);

	if (!OidIsValid(type))
	{
		StringInfoData text;

		initStringInfo(&text);
		dp_path_to_text(&text, path);
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
						errmsg("\"%s\" has no column \"%s\"", dp_relation_name(source->relid),
							   text.data)));
	}
	return type;
}

ParamListInfo
dp_source_params(int n)
{
	ParamListInfo params = makeParamList(n);
	int i;

	for (i = 0; i < n; i++)
	{
		params->params[i].value = (Datum) 0;
		params->params[i].isnull = true;
		params->params[i].pflags = 0;
		params->params[i].ptype = InvalidOid;
	}
	return params;
}

void
dp_source_param(ParamListInfo params, int i, Oid type, const DpValue *value)
{
	ParamExternData *param = &params->params[i];

	param->ptype = type;
	param->isnull = false;
	if (type == dp_types()->bson_value)
		param->value = PointerGetDatum(dp_value_to_varlena(value));
	else
		param->value = dp_value_to_datum(value, type, -1, &param->isnull);
}

int64
dp_source_each(DpSource *source, DpDecl *decl, SPIPlanPtr plan, ParamListInfo params, bool latest,
			   bool with_key, DpSourceVisit visit, void *arg)
{
	SourceReceiver receiver = { 0 };
	SPIExecuteOptions options = { 0 };
	Oid user;
	int sec;
	int rc;

	receiver.pub.receiveSlot = receive_row;
	receiver.pub.rStartup = receive_startup;
	receiver.pub.rShutdown = receive_nothing;
	receiver.pub.rDestroy = receive_nothing;
	receiver.pub.mydest =
		DestTuplestore; /* anything but none, which SPI would not treat as a SELECT */
	receiver.source = source;
	receiver.with_key = with_key;
	receiver.visit = visit;
	receiver.arg = arg;
	receiver.row = AllocSetContextCreate(CurrentMemoryContext, "docpatterns source row",
										 ALLOCSET_DEFAULT_SIZES);
	options.params = params;
	options.read_only = true; /* uses the active snapshot */
	options.dest = &receiver.pub;

	GetUserIdAndSecContext(&user, &sec);
	PG_TRY();
	{
		SetUserIdAndSecContext(decl->owner,
							   sec | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
		if (latest)
			PushActiveSnapshot(GetLatestSnapshot());
		rc = SPI_execute_plan_extended(plan, &options);
		if (latest)
			PopActiveSnapshot();
		if (rc != SPI_OK_SELECT)
			elog(ERROR, "SPI_execute_plan_extended returned %s", SPI_result_code_string(rc));
	}
	PG_FINALLY();
	{
		SetUserIdAndSecContext(user, sec);
	}
	PG_END_TRY();
	MemoryContextDelete(receiver.row);
	return receiver.rows;
}

/* Passes a row on; returns false to stop. */
static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	SourceReceiver *r = (SourceReceiver *) self;
	MemoryContext old;
	bool isnull;
	Datum datum;
	bool more = true;

	CHECK_FOR_INTERRUPTS();
	datum = slot_getattr(slot, 1, &isnull);
	if (isnull)
		return true;
	old = MemoryContextSwitchTo(r->row);
	{
		DpSourceRow row = { slot, PG_DETOAST_DATUM_PACKED(datum) };
		DpSource *source = r->source;
		const char *key = NULL;
		uint32 keylen = 0;

		if (r->with_key)
		{
			int i;

			resetStringInfo(source->key);
			for (i = 0; i < source->nkeys; i++)
			{
				Datum value = slot_getattr(slot, i + 2, &isnull);

				key_append(source->key, value, isnull, source->key_types[i]);
			}
			key = source->key->data;
			keylen = source->key->len;
		}
		r->rows++;
		more = r->visit(r->arg, &row, key, keylen);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(r->row);
	return more;
}

static void
receive_startup(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
receive_nothing(DestReceiver *self)
{
}
