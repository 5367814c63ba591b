/*
 * scan.c
 *		The computed pattern: reading the rows of a group from the source.
 *
 * Reads with the latest snapshot at every isolation level: this transaction has
 * locked the group's target row, so previous changes of the group have committed.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "executor/spi.h"
#include "utils/builtins.h"

#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "patterns/computed/computed.h"

/* Argument of row visitors */
typedef struct Visit
{
	DpComputed *c;
	DpAccumulation *g;
	int field;            /* the field to search for; -1: all rows */
	int64 rows;           /* counted rows */
	DpDeriveBatch *batch; /* groups are added to it instead */
} Visit;

static SPIPlanPtr group_plan(DpComputed *c, int field);
static void group_read(Visit *visit, const DpValue *key, bool latest);
static bool visit_row(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_group(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);

/*
 * Returns the statement that reads a group: all rows (field -1), or in the order of a field's
 * search.
 */
static SPIPlanPtr
group_plan(DpComputed *c, int field)
{
	DpDecl *decl = c->derivation->decl;
	const void *id = &c->plan_ids[field + 1];
	SPIPlanPtr plan = dp_plan(decl, id);
	StringInfoData sql;

	if (plan != NULL)
		return plan;
	initStringInfo(&sql);
	dp_source_sql_select(&sql, c->source, c->need_key);
	appendStringInfoString(&sql, " WHERE ");
	c->link_type = dp_source_sql_require_field(&sql, c->source, c->on_field);
	dp_sql_type_operator(&sql, c->link_type, BTEqualStrategyNumber);
	appendStringInfoString(&sql, "$1");
	if (field >= 0)
	{
		bool descending;
		bool not_null;
		DpAccumulateSearch search = dp_accumulators_search(c->acc, field, &descending, &not_null);

		if (search == DP_SEARCH_KEY)
		{
			int i;

			appendStringInfoString(&sql, " ORDER BY ");
			for (i = 0; i < c->source->nkeys; i++)
				appendStringInfo(&sql, "%ss.%s%s", i > 0 ? ", " : "",
								 quote_identifier(c->source->keys[i]), descending ? " DESC" : "");
		}
		else
		{
			char *expression = dp_accumulators_search_sql(c->acc, field, c->source->doc_column);

			if (not_null)
				appendStringInfo(&sql, " AND (%s) IS NOT NULL", expression);
			/* the indexes of computed_enable() have nulls first, like the order of values */
			appendStringInfo(&sql, " ORDER BY (%s)%s", expression,
							 descending ? " DESC NULLS LAST" : " NULLS FIRST");
		}
	}
	return dp_plan_make(decl, id, sql.data, 1, &c->link_type, 0);
}

/* Reads the rows of a group, all or in the order of the search. */
static void
group_read(Visit *visit, const DpValue *key, bool latest)
{
	DpComputed *c = visit->c;
	SPIPlanPtr plan = group_plan(c, visit->field);
	ParamListInfo params = dp_source_params(1);

	dp_source_param(params, 0, c->link_type, key);
	(void) dp_source_each(c->source, c->derivation->decl, plan, params, latest, c->need_key,
						  visit_row, visit);
}

/* Adds a row; returns false when no more are needed. */
static bool
visit_row(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Visit *visit = arg;
	DpValue doc = dp_value_of_document(row->doc);

	if (visit->c->filter != NULL && !dp_filter_match(visit->c->filter, &doc))
		return true;
	visit->rows++;
	if (visit->field >= 0)
		return dp_accumulation_found(visit->g, visit->field, &doc, key, keylen);
	dp_accumulation_row(visit->g, &doc, key, keylen, 1);
	return true;
}

/* Marks the group of a row for recomputation. */
static bool
visit_group(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Visit *visit = arg;
	DpValue link;

	if (dp_computed_row_counts(visit->c, row, &link))
		dp_derive_group(visit->batch, visit->c->derivation, &link)->recompute = true;
	return true;
}

bool
dp_computed_scan(DpComputed *c, DpAccumulation *g, const DpValue *key, bool latest)
{
	Visit visit = { .c = c, .g = g, .field = -1 };

	dp_accumulation_reset(g);
	group_read(&visit, key, latest);
	return visit.rows > 0;
}

void
dp_computed_search(DpComputed *c, DpAccumulation *g, const DpValue *key)
{
	int field = -1;

	while ((field = dp_accumulation_searches(g, field)) >= 0)
	{
		Visit visit = { .c = c, .g = g, .field = field };
		bool descending;
		bool not_null;

		/* relations of buckets have no index for it */
		if (c->source->doc_column == NULL &&
			dp_accumulators_search(c->acc, field, &descending, &not_null) != DP_SEARCH_KEY)
		{
			(void) dp_computed_scan(c, g, key, true);
			return;
		}
		group_read(&visit, key, true);
		dp_accumulation_found_all(g, field);
	}
}

/* Adds all groups of the source. */
void
dp_computed_each_group(DpComputed *c, DpDeriveBatch *batch)
{
	DpDecl *decl = c->derivation->decl;
	const void *id = &c->plan_ids[dp_accumulators_count(c->acc) + 1];
	Visit visit = { .c = c, .batch = batch };
	SPIPlanPtr plan;

	SPI_connect();
	plan = dp_plan(decl, id);
	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		dp_source_sql_select(&sql, c->source, false);
		plan = dp_plan_make(decl, id, sql.data, 0, NULL, 0);
	}
	(void) dp_source_each(c->source, decl, plan, NULL, true, false, visit_group, &visit);
	SPI_finish();
}

/* ---------------------------------------------------------------- later */

/* Leaves the group to computed_refresh(). */
void
dp_computed_enqueue(DpComputed *c, const DpValue *key)
{
	DpQueue *queue = dp_queue_open(c->derivation->decl, "second_link_id");

	dp_queue_add(queue, key, NULL);
	dp_queue_close(queue);
}
