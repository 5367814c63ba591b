/*
 * computed_scan.c
 *		The computed pattern: reading the rows of a group from the source.
 *
 * Rows are read by prepared statements, with the latest snapshot at every
 * isolation level and as the owner of the tables: the lock of the group's
 * target row is held, and whoever has changed the group before has committed.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "mql/sort_key.h"
#include "patterns/change.h"
#include "patterns/computed.h"
#include "patterns/run.h"
#include "patterns/sqlgen.h"

/* Receives the rows of a group. */
typedef struct GroupReceiver
{
	DestReceiver pub;
	Computed   *c;
	DpAccumulation *g;
	int			field;			/* what is searched for; -1: all rows are taken in */
	bool		ended;			/* the search needs no more rows */
	int64		rows;
	MemoryContext row;
	DpDerive   *run;			/* groups are added to it instead */
	bool		latest;			/* reads with the latest snapshot, else with the one that is active */
} GroupReceiver;

static void source_document_sql(Computed *c, StringInfo sql);
static void group_select(Computed *c, StringInfo sql);
static SPIPlanPtr group_plan(Computed *c, int field);
static void group_run(Computed *c, GroupReceiver *receiver, SPIPlanPtr plan, const DpValue *key);
static bool group_receive(TupleTableSlot *slot, DestReceiver *self);
static void group_startup(DestReceiver *self, int operation, TupleDesc desc);
static void group_nothing(DestReceiver *self);
static StringInfo key_begin(Computed *c);

/*
 * What is known of the source: its document column (the one that was named, or the
 * only one), or else that its rows are the documents; and its primary key.
 */
void
dp_computed_read_source(Computed *c)
{
	DpDerivation *d = c->derivation;
	char	   *wanted = dp_decl_text(d->decl, "source_doc_column");
	Oid			bson = dp_types()->bson;
	Relation	rel;
	int			i;

	c->id_path = dp_path_parse("_id", 3);
	c->plan_ids = palloc0(dp_accumulators_count(c->acc) + 2);
	if (!OidIsValid(d->source))
		return;
	rel = table_open(d->source, AccessShareLock);
	for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (att->attisdropped)
			continue;
		if (att->atttypid == bson && rel->rd_rel->relkind != RELKIND_FOREIGN_TABLE &&
			(c->doc_column == NULL || (wanted != NULL && strcmp(NameStr(att->attname), wanted) == 0)))
			c->doc_column = pstrdup(NameStr(att->attname));
	}
	c->has_document = c->doc_column != NULL;
	d->source_column = c->doc_column;
	if (!c->has_document && c->on_field->nsteps == 1)
	{
		for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

			if (!att->attisdropped && strcmp(NameStr(att->attname), c->on_field->steps[0].name) == 0)
			{
				c->link_column = pstrdup(NameStr(att->attname));
				c->link_type = att->atttypid;
			}
		}
	}

	list_free(RelationGetIndexList(rel));
	if (OidIsValid(rel->rd_pkindex))
	{
		Relation	index = index_open(rel->rd_pkindex, AccessShareLock);

		c->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
		c->keys = palloc(sizeof(char *) * c->nkeys);
		c->key_types = palloc(sizeof(Oid) * c->nkeys);
		for (i = 0; i < c->nkeys; i++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), index->rd_index->indkey.values[i] - 1);

			c->keys[i] = pstrdup(NameStr(att->attname));
			c->key_types[i] = att->atttypid;
		}
		index_close(index, AccessShareLock);
	}
	table_close(rel, AccessShareLock);
	if (c->need_key && c->nkeys == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s has no primary key", dp_relation_name(d->source)),
				 errdetail("Accumulators that go by the order of rows need it.")));
}

/* ---------------------------------------------------------------- keys of rows */

/* An empty buffer for a key. */
static StringInfo
key_begin(Computed *c)
{
	if (c->key == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(c->derivation->context);

		c->key = makeStringInfo();
		MemoryContextSwitchTo(old);
	}
	resetStringInfo(c->key);
	return c->key;
}

/* Appends a column of a key. */
static void
key_append(StringInfo key, Datum value, bool isnull, Oid type)
{
	DpValue		v = {NULL, 0, DP_TYPE_NULL};

	if (!isnull)
		v = dp_value_of_varlena(dp_datum_to_value(value, type));
	dp_sort_key_append_value(key, &v, false);
}

/*
 * The key of a row of the source.
 */
const char *
dp_computed_row_key(Computed *c, TupleTableSlot *slot, uint32 *len)
{
	StringInfo	key = key_begin(c);
	TupleDesc	desc = slot->tts_tupleDescriptor;
	int			i;

	if (c->seen_type != desc->tdtypeid || c->seen_type == RECORDOID)
	{
		for (i = 0; i < c->nkeys; i++)
		{
			int			j;

			c->seen[i] = 0;
			for (j = 0; j < desc->natts; j++)
			{
				if (!TupleDescAttr(desc, j)->attisdropped && strcmp(NameStr(TupleDescAttr(desc, j)->attname), c->keys[i]) == 0)
					c->seen[i] = j + 1;
			}
			if (c->seen[i] == 0)
				elog(ERROR, "a row has no column \"%s\"", c->keys[i]);
		}
		c->seen_type = desc->tdtypeid;
	}
	for (i = 0; i < c->nkeys; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, c->seen[i], &isnull);

		key_append(key, value, isnull, c->key_types[i]);
	}
	*len = key->len;
	return key->data;
}

/* ---------------------------------------------------------------- reading groups */

/* The source's document in a statement. */
static void
source_document_sql(Computed *c, StringInfo sql)
{
	if (c->has_document)
		appendStringInfo(sql, "s.%s", quote_identifier(c->doc_column));
	else
	{
		dp_sql_own_schema(sql);
		appendStringInfoString(sql, "row_to_bson(s)");
	}
}

/* SELECT document, key columns FROM source WHERE link = $1 */
static void
group_select(Computed *c, StringInfo sql)
{
	StringInfoData path;
	int			i;

	appendStringInfoString(sql, "SELECT ");
	source_document_sql(c, sql);
	for (i = 0; c->need_key && i < c->nkeys; i++)
		appendStringInfo(sql, ", s.%s", quote_identifier(c->keys[i]));
	appendStringInfoString(sql, " FROM ");
	dp_sql_table(sql, c->derivation->source);
	appendStringInfoString(sql, " AS s WHERE ");
	initStringInfo(&path);
	dp_path_to_text(&path, c->on_field);
	if (c->has_document)
	{
		dp_sql_doc_path(sql, c->doc_column, path.data);
		appendStringInfoChar(sql, ' ');
		dp_sql_own_operator(sql, "=");
		appendStringInfoString(sql, " $1");
	}
	else if (c->link_column != NULL)
	{
		appendStringInfo(sql, "s.%s", quote_identifier(c->link_column));
		dp_sql_type_operator(sql, c->link_type, BTEqualStrategyNumber);
		appendStringInfoString(sql, "$1");
	}
	else
		elog(ERROR, "the source has no column of that name");
}

/*
 * The statement that reads a group: all rows (field -1), or in the order of a
 * field's search.
 */
static SPIPlanPtr
group_plan(Computed *c, int field)
{
	DpDecl	   *decl = c->derivation->decl;
	const void *id = &c->plan_ids[field + 1];
	SPIPlanPtr	plan = dp_plan(decl, id);
	StringInfoData sql;
	Oid			type = c->has_document ? dp_types()->bson_value : c->link_type;

	if (plan != NULL)
		return plan;
	initStringInfo(&sql);
	group_select(c, &sql);
	if (field >= 0)
	{
		bool		descending;
		bool		not_null;
		DpAccumulateSearch search = dp_accumulators_search(c->acc, field, &descending, &not_null);

		if (search == DP_SEARCH_KEY)
		{
			int			i;

			appendStringInfoString(&sql, " ORDER BY ");
			for (i = 0; i < c->nkeys; i++)
				appendStringInfo(&sql, "%ss.%s%s", i > 0 ? ", " : "", quote_identifier(c->keys[i]), descending ? " DESC" : "");
		}
		else
		{
			char	   *expression = dp_accumulators_search_sql(c->acc, field, c->doc_column);

			if (not_null)
				appendStringInfo(&sql, " AND (%s) IS NOT NULL", expression);
			/* the indexes that computed_enable() makes have nulls first, as the order of values has */
			appendStringInfo(&sql, " ORDER BY (%s)%s", expression, descending ? " DESC NULLS LAST" : " NULLS FIRST");
		}
	}
	return dp_plan_make(decl, id, sql.data, 1, &type);
}

/*
 * Runs a statement and hands its rows to the receiver, one by one.
 */
static void
group_run(Computed *c, GroupReceiver *receiver, SPIPlanPtr plan, const DpValue *key)
{
	DpDecl	   *decl = c->derivation->decl;
	SPIExecuteOptions options = {0};
	ParamListInfo params = NULL;
	Oid			user;
	int			sec;
	int			rc;

	if (key != NULL)
	{
		bool		isnull = false;

		params = makeParamList(1);
		params->params[0].isnull = false;
		params->params[0].pflags = 0;
		params->params[0].ptype = c->has_document ? dp_types()->bson_value : c->link_type;
		params->params[0].value = c->has_document ? PointerGetDatum(dp_value_to_varlena(key)) :
			dp_value_to_datum(key, c->link_type, -1, &isnull);
	}
	receiver->pub.receiveSlot = group_receive;
	receiver->pub.rStartup = group_startup;
	receiver->pub.rShutdown = group_nothing;
	receiver->pub.rDestroy = group_nothing;
	receiver->pub.mydest = DestTuplestore;
	receiver->c = c;
	receiver->row = AllocSetContextCreate(CurrentMemoryContext, "docpatterns source row", ALLOCSET_DEFAULT_SIZES);
	options.params = params;
	options.read_only = true;	/* with the snapshot that is active */
	options.dest = &receiver->pub;

	GetUserIdAndSecContext(&user, &sec);
	PG_TRY();
	{
		SetUserIdAndSecContext(decl->owner, sec | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
		if (receiver->latest)
			PushActiveSnapshot(GetLatestSnapshot());
		rc = SPI_execute_plan_extended(plan, &options);
		if (receiver->latest)
			PopActiveSnapshot();
		if (rc != SPI_OK_SELECT)
			elog(ERROR, "SPI_execute_plan_extended returned %s", SPI_result_code_string(rc));
	}
	PG_FINALLY();
	{
		SetUserIdAndSecContext(user, sec);
	}
	PG_END_TRY();
	MemoryContextDelete(receiver->row);
}

/* Takes a row in; returns false when no more are wanted. */
static bool
group_receive(TupleTableSlot *slot, DestReceiver *self)
{
	GroupReceiver *r = (GroupReceiver *) self;
	Computed   *c = r->c;
	MemoryContext old;
	bool		isnull;
	Datum		datum;
	bool		more = true;

	CHECK_FOR_INTERRUPTS();
	datum = slot_getattr(slot, 1, &isnull);
	old = MemoryContextSwitchTo(r->row);
	if (!isnull)
	{
		struct varlena *bson = PG_DETOAST_DATUM_PACKED(datum);
		DpValue		doc = dp_value_of_document(bson);

		if (r->run != NULL)
		{
			DpSourceRow row = {slot, bson};
			DpValue		link;

			if (dp_computed_row_counts(c, &row, &link))
				dp_derive_group(r->run, c->derivation, &link)->recompute = true;
		}
		else if (c->filter == NULL || dp_filter_match(c->filter, &doc))
		{
			const char *key = NULL;
			uint32		keylen = 0;

			if (c->need_key)
			{
				StringInfo	buf = key_begin(c);
				int			i;

				for (i = 0; i < c->nkeys; i++)
				{
					Datum		value = slot_getattr(slot, i + 2, &isnull);

					key_append(buf, value, isnull, c->key_types[i]);
				}
				key = buf->data;
				keylen = buf->len;
			}
			r->rows++;
			if (r->field < 0)
				dp_accumulation_row(r->g, &doc, key, keylen, 1);
			else
			{
				more = dp_accumulation_found(r->g, r->field, &doc, key, keylen);
				r->ended = !more;
			}
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(r->row);
	return more;
}

static void
group_startup(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
group_nothing(DestReceiver *self)
{
}

bool
dp_computed_scan(Computed *c, DpAccumulation *g, const DpValue *key, bool latest)
{
	GroupReceiver receiver = {0};

	receiver.latest = latest;
	dp_accumulation_reset(g);
	receiver.g = g;
	receiver.field = -1;
	group_run(c, &receiver, group_plan(c, -1), key);
	return receiver.rows > 0;
}

void
dp_computed_search(Computed *c, DpAccumulation *g, const DpValue *key)
{
	int			field = -1;

	while ((field = dp_accumulation_searches(g, field)) >= 0)
	{
		GroupReceiver receiver = {0};
		bool		descending;
		bool		not_null;

		/* rows of measurements have no index for it */
		if (!c->has_document && dp_accumulators_search(c->acc, field, &descending, &not_null) != DP_SEARCH_KEY)
		{
			(void) dp_computed_scan(c, g, key, true);
			return;
		}
		receiver.g = g;
		receiver.field = field;
		receiver.latest = true;
		group_run(c, &receiver, group_plan(c, field), key);
		dp_accumulation_found_all(g, field);
	}
}

/*
 * All groups that the source has.
 */
void
dp_computed_each_group(Computed *c, DpDerive *run)
{
	DpDecl	   *decl = c->derivation->decl;
	const void *id = &c->plan_ids[dp_accumulators_count(c->acc) + 1];
	GroupReceiver receiver = {0};
	SPIPlanPtr	plan;

	SPI_connect();
	plan = dp_plan(decl, id);
	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT ");
		source_document_sql(c, &sql);
		appendStringInfoString(&sql, " FROM ");
		dp_sql_table(&sql, c->derivation->source);
		appendStringInfoString(&sql, " AS s");
		plan = dp_plan_make(decl, id, sql.data, 0, NULL);
	}
	receiver.run = run;
	receiver.latest = true;
	group_run(c, &receiver, plan, NULL);
	SPI_finish();
}

/* ---------------------------------------------------------------- later */

/* The group is computed anew by computed_refresh(). */
void
dp_computed_enqueue(Computed *c, const DpValue *key)
{
	DpQueue    *queue = dp_queue_open(c->derivation->decl, "second_pair");

	dp_queue_add(queue, key, NULL);
	dp_queue_close(queue);
}
