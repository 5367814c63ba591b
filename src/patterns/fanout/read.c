/*
 * read.c
 *		The fan-out pattern: reading posts and follows by the pattern's indexes,
 *		and recomputing walls.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/path.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "patterns/fanout/fanout.h"

/* Receiver of a statement's rows */
typedef struct Reading
{
	DpFanout *f;
	MemoryContext context;
	DpFanoutEntries *entries;
	DpFanoutEntry *entry;
	DpFanoutVisit visit;
	void *arg;
	List *values; /* bson_values */
} Reading;

static bool visit_post(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_value(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_nothing(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool keep_value(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static DpSource *followers(DpFanout *f);
static void fanout_sql_order(StringInfo sql, DpFanout *f);

/* ---------------------------------------------------------------- statements */

bool
dp_fanout_word(DpDecl *decl, const char *word, StringInfo sql)
{
	DpFanout *f = dp_fanout(decl);

	if (strcmp(word, "follower") == 0)
		(void) dp_source_sql_field(sql, followers(f), f->follower);
	else if (strcmp(word, "followee") == 0)
		(void) dp_source_sql_field(sql, followers(f), f->followee);
	else if (strcmp(word, "author") == 0)
		(void) dp_source_sql_field(sql, f->posts, f->author);
	else if (strcmp(word, "posts") == 0)
		dp_source_sql_select(sql, f->posts, true);
	else if (strcmp(word, "order") == 0)
		fanout_sql_order(sql, f);
	else
		return false;
	return true;
}

/* The order of posts s on walls */
static void
fanout_sql_order(StringInfo sql, DpFanout *f)
{
	DpDecl *decl = f->derivation->decl;
	int i;

	if (f->order_by != NULL)
	{
		Oid output;
		bool varlena;

		getTypeOutputInfo(dp_types()->bson, &output, &varlena);
		dp_sql_own_schema(sql);
		appendStringInfo(sql, "bson_sort_key(s.%s, %s::", quote_identifier(decl->doc_column),
						 quote_literal_cstr(OidOutputFunctionCall(output,
																  PointerGetDatum(f->order_by))));
		dp_sql_own_schema(sql);
		appendStringInfoString(sql, "bson), ");
	}
	for (i = 0; i < decl->nkeys; i++)
		appendStringInfo(sql, "%ss.%s DESC", i > 0 ? ", " : "",
						 quote_identifier(decl->keys[i].name));
}

/* Returns the table of follows. Raises OBJECT_NOT_IN_PREREQUISITE_STATE if it is missing. */
static DpSource *
followers(DpFanout *f)
{
	if (f->followers == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the followers of the fan-out \"%s\" of table \"%s\" are missing",
							   f->derivation->decl->name, dp_relation_name(f->derivation->source)),
						errhint("Call pattern_disable() to end the fan-out.")));
	return f->followers;
}

static void
param_int(ParamListInfo params, int i, int64 value)
{
	params->params[i].ptype = INT8OID;
	params->params[i].value = Int64GetDatum(value);
	params->params[i].isnull = false;
}

/* ---------------------------------------------------------------- posts */

/* Returns a row (document, primary key) as an entry. */
static bool
row_entry(DpFanout *f, const DpSourceRow *row, DpFanoutEntry *entry)
{
	DpKey key;
	int i;

	key.n = f->derivation->decl->nkeys;
	for (i = 0; i < key.n; i++)
	{
		bool isnull;

		key.values[i] = slot_getattr(row->slot, i + 2, &isnull);
	}
	return dp_fanout_entry(f, row->doc, &key, entry);
}

static bool
visit_post(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Reading *reading = arg;
	MemoryContext old = MemoryContextSwitchTo(reading->context);
	DpFanoutEntry entry;

	if (row_entry(reading->f, row, &entry))
	{
		if (reading->entry != NULL)
		{
			*reading->entry = entry;
			reading->entry = NULL;
		}
		else
			dp_fanout_append(reading->entries, &entry);
	}
	MemoryContextSwitchTo(old);
	return true;
}

void
dp_fanout_top(DpFanout *f, const DpValue *author, bool latest, DpFanoutEntries *entries)
{
	DpDecl *decl = f->derivation->decl;
	SPIPlanPtr plan = dp_statement(decl, "{as owner}" DP_FANOUT_POSTS);
	ParamListInfo params = dp_source_params(2);
	Reading reading = { .f = f, .context = CurrentMemoryContext, .entries = entries };

	dp_source_param(params, 0, dp_types()->bson_value, author);
	param_int(params, 1, f->keep);
	(void) dp_source_each(f->posts, decl, plan, params, latest, false, visit_post, &reading);
}

bool
dp_fanout_post(DpFanout *f, const DpValue *key, DpFanoutEntry *entry)
{
	DpDecl *decl = f->derivation->decl;
	SPIPlanPtr plan = dp_statement(decl, "{as owner}{posts} WHERE {key = $key}");
	ParamListInfo params = dp_source_params(decl->nkeys);
	DpKey row;
	Reading reading = { .f = f, .context = CurrentMemoryContext, .entry = entry };
	int i;

	if (!dp_key_of_value(decl, key, &row))
		return false;
	for (i = 0; i < decl->nkeys; i++)
	{
		params->params[i].ptype = decl->keys[i].type;
		params->params[i].value = row.values[i];
		params->params[i].isnull = false;
	}
	(void) dp_source_each(f->posts, decl, plan, params, true, false, visit_post, &reading);
	return reading.entry == NULL;
}

/* ---------------------------------------------------------------- follows */

/* Passes a valid reader on. */
static bool
visit_value(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Reading *reading = arg;
	DpValue value = dp_value_of_varlena(row->doc);

	if (value.type != DP_TYPE_NULL && value.type != DP_TYPE_UNDEFINED &&
		value.type != DP_TYPE_ARRAY && value.type != DP_TYPE_REGEX)
		reading->visit(reading->arg, &value);
	return true;
}

static bool
visit_nothing(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	return true;
}

/* The first $2 readers that follow author $1, once for each row. */
static SPIPlanPtr
followers_plan(DpFanout *f)
{
	return dp_statement(f->derivation->decl,
						"SELECT {follower} FROM {relation} AS s"
						" WHERE {followee}{own =}{$1 bson_value} LIMIT {$2 int8}",
						f->follows);
}

int64
dp_fanout_followers(DpFanout *f, const DpValue *author, int64 limit, DpFanoutVisit visit, void *arg)
{
	SPIPlanPtr plan = followers_plan(f);
	ParamListInfo params = dp_source_params(2);
	Reading reading = { .f = f, .visit = visit, .arg = arg };

	dp_source_param(params, 0, dp_types()->bson_value, author);
	param_int(params, 1, limit > 0 ? limit : PG_INT64_MAX);
	return dp_source_each(f->followers, f->derivation->decl, plan, params, true, false, visit_value,
						  &reading);
}

int64
dp_fanout_count(DpFanout *f, const DpValue *author, int64 limit, bool latest)
{
	SPIPlanPtr plan = followers_plan(f);
	ParamListInfo params = dp_source_params(2);

	dp_source_param(params, 0, dp_types()->bson_value, author);
	param_int(params, 1, limit);
	return dp_source_each(f->followers, f->derivation->decl, plan, params, latest, false,
						  visit_nothing, NULL);
}

bool
dp_fanout_follows(DpFanout *f, const DpValue *reader, const DpValue *author)
{
	SPIPlanPtr plan = dp_statement(f->derivation->decl,
								   "SELECT {follower} FROM {relation} AS s"
								   " WHERE {follower}{own =}{$1 bson_value}"
								   " AND {followee}{own =}{$2 bson_value} LIMIT 1",
								   f->follows);
	ParamListInfo params = dp_source_params(2);

	dp_source_param(params, 0, dp_types()->bson_value, reader);
	dp_source_param(params, 1, dp_types()->bson_value, author);
	return dp_source_each(f->followers, f->derivation->decl, plan, params, true, false,
						  visit_nothing, NULL) > 0;
}

static bool
keep_value(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Reading *reading = arg;
	DpValue value = dp_value_of_varlena(row->doc);

	if (value.type != DP_TYPE_NULL && value.type != DP_TYPE_UNDEFINED)
	{
		MemoryContext old = MemoryContextSwitchTo(reading->context);

		reading->values = lappend(reading->values, dp_value_to_varlena(&value));
		MemoryContextSwitchTo(old);
	}
	return true;
}

/* Returns the authors that a reader follows: bson_values in the current context. */
static List *
authors_of(DpFanout *f, const DpValue *reader, bool latest)
{
	DpDecl *decl = f->derivation->decl;
	SPIPlanPtr plan = dp_statement(decl, "{as owner}" DP_FANOUT_AUTHORS, f->follows);
	ParamListInfo params = dp_source_params(1);
	Reading reading = { .f = f, .context = CurrentMemoryContext };

	dp_source_param(params, 0, dp_types()->bson_value, reader);
	(void) dp_source_each(followers(f), decl, plan, params, latest, false, keep_value, &reading);
	return reading.values;
}

bool
dp_fanout_follows_any(DpFanout *f, const DpValue *reader)
{
	return authors_of(f, reader, true) != NIL;
}

void
dp_fanout_readers(DpFanout *f, DpFanoutVisit visit, void *arg)
{
	DpDecl *decl = f->derivation->decl;
	SPIPlanPtr plan =
		dp_statement(decl, "SELECT DISTINCT {follower} FROM {relation} AS s", f->follows);
	Reading reading = { .f = f, .visit = visit, .arg = arg };

	(void) dp_source_each(f->followers, decl, plan, NULL, true, false, visit_value, &reading);
}

/* ---------------------------------------------------------------- walls */

struct varlena *
dp_fanout_compute(DpFanout *f, const DpValue *reader, List **merged, bool latest)
{
	List *authors = authors_of(f, reader, latest);
	List *apart = NIL;
	DpFanoutEntries entries = { 0 };
	ListCell *lc;

	if (authors == NIL)
		return NULL;
	foreach(lc, authors)
	{
		DpValue *author = palloc(sizeof(DpValue));

		CHECK_FOR_INTERRUPTS();
		*author = dp_value_of_varlena(lfirst(lc));
		if (merged != NULL ? dp_fanout_has(*merged, author)
						   : dp_fanout_count(f, author, f->threshold + 1, latest) > f->threshold)
			apart = lappend(apart, author);
		else
		{
			dp_fanout_top(f, author, latest, &entries);

			/* keeps no more than a wall can show while reading the others */
			if (entries.n > 20 * f->keep)
			{
				dp_fanout_sort(f, &entries);
				entries.n = f->keep;
			}
		}
	}
	dp_fanout_sort(f, &entries);
	return dp_fanout_build(f, reader, &entries, Min(entries.n, f->keep), apart);
}
