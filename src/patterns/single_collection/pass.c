/*
 * pass.c
 *		The single collection pattern: rows that are referred to, and rows that
 *		refer to them.
 *
 * The former are found by the btree index on the identity and locked FOR KEY SHARE,
 * which allows changes but no deletion.  The latter are found by the GIN index on
 * the relations, or with keys as a range of the btree index, and are written in the
 * order of their primary keys.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "patterns/single_collection/single_collection.h"

/* Rows that name something */
typedef struct Naming
{
	DpRowRef *rows;
	uint64 n;
} Naming;

/* The relations of a row, changed */
typedef struct Change
{
	DpSingle *s;
	const DpSingleRemoved *removed;
	int n;
	DpSingleDoc *read;
} Change;

static bool identity_find(DpSingle *s, DpWriter *w, const DpValue *identity, bool lock);
static bool identity_shown(DpSingle *s, DpWriter *w, const DpValue *identity);
static uint64 naming_run(DpSingle *s, const DpSingleRemoved *removed, int n, long most);
static void naming_rows(DpSingle *s, const DpSingleRemoved *removed, int n, Naming *naming);
static void
row_change(DpSingle *s, DpWriter *w, const DpSingleRemoved *removed, int n, bool *again);
static int removed_compare(const void *a, const void *b);
static const DpSingleRemoved *
removed_search(const DpSingleRemoved *removed, int n, const DpValue *identity);
static const DpSingleRemoved *
removed_find(const DpSingle *s, const DpSingleRemoved *removed, int n, const DpValue *named);
static bool follow(const DpValue *element, DpValue *replacement, void *arg);
static DpValue
key_moved(const DpSingle *s, const DpValue *identity, const DpSingleRemoved *removed);
static void referenced(DpSingle *s, const DpValue *identity) pg_attribute_noreturn();
static void single_sql_identity(StringInfo sql, DpSingle *s);

/* Locks the row with that identity against deletion. */
void
dp_single_require(DpSingle *s, DpWriter *w, const DpValue *identity)
{
	DpSingleRemoved removed = { *identity, false, { NULL, 0, 0 } };
	bool found = identity_find(s, w, identity, s->on_delete != DP_SINGLE_KEEP);

	if (found && identity_shown(s, w, identity))
		return;
	/* a row that was not stored (ON CONFLICT) has no references */
	if (!s->missing_error || naming_run(s, &removed, 1, 1) == 0)
		return;
	if (found)
		ereport(
			ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update"),
			 errdetail(
				 "The document in table \"%s\" that it refers to was written after the transaction took its snapshot.",
				 dp_relation_name(s->decl->target)),
			 errhint("Retry the transaction.")));
	ereport(ERROR,
			(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
			 s->key_field != NULL
				 ? errmsg("a document in table \"%s\" belongs to a document that does not exist",
						  dp_relation_name(s->decl->target))
				 : errmsg("a document in table \"%s\" is related to a document that does not exist",
						  dp_relation_name(s->decl->target)),
			 s->key_field != NULL
				 ? errdetail("No document has the key %s.", dp_single_identity_text(s, identity))
				 : errdetail("No document has the id %s.", dp_single_identity_text(s, identity))));
}

/*
 * Whether a row has the identity; it is locked so that it stays.
 */
static bool
identity_find(DpSingle *s, DpWriter *w, const DpValue *identity, bool lock)
{
	Datum value = PointerGetDatum(dp_value_to_varlena(identity));
	bool again;

	do
	{
		bool found;

		again = false;
		CHECK_FOR_INTERRUPTS();
		for (found = dp_writer_find(w, s->by_identity, &value); found; found = dp_writer_next(w))
		{
			struct varlena *doc;
			DpSingleDoc read;

			if (!lock)
				return true;
			switch (dp_writer_lock(w, LockTupleKeyShare))
			{
				case DP_LOCK_OK:
					return true;
				case DP_LOCK_CHANGED:
					doc = dp_writer_document(w);
					if (doc != NULL)
					{
						dp_single_read(s, doc, &read);
						if (read.has_identity && dp_value_compare(&read.identity, identity) == 0)
							return true;
					}
					/* fall through */
				default:
					again = true;
					break;
			}
		}
		if (again)
			dp_writer_refresh(w);
	} while (again);
	return false;
}

/* Whether the transaction sees that a row has the identity. */
static bool
identity_shown(DpSingle *s, DpWriter *w, const DpValue *identity)
{
	Datum value = PointerGetDatum(dp_value_to_varlena(identity));

	return dp_writer_shown(w, s->by_identity, &value);
}

/*
 * Finds the rows that refer to removed identities, in their latest state; SPI has tableoid and
 * ctid, in the order of primary keys. Returns their number; most: the limit, 0 for all.
 */
static uint64
naming_run(DpSingle *s, const DpSingleRemoved *removed, int n, long most)
{
	DpDecl *decl = s->decl;
	SPIPlanPtr plan = dp_statement(
		decl,
		s->key_field != NULL
			? "SELECT t.tableoid, t.ctid FROM ROWS FROM (pg_catalog.unnest({$1 bson_value[]}),"
			  " pg_catalog.unnest({$2 bson_value[]})) AS r (low, high) JOIN {table} AS t"
			  " ON {identity}{own >=}r.low AND {identity}{own <}r.high ORDER BY {t.key}"
			: "SELECT t.tableoid, t.ctid FROM {table} AS t WHERE t.{doc}{own @@}{$1 bson}"
			  " ORDER BY {t.key}");
	Datum values[2];
	int i;

	if (s->key_field != NULL)
	{
		Datum *low = palloc(sizeof(Datum) * n);
		Datum *high = palloc(sizeof(Datum) * n);

		for (i = 0; i < n; i++)
		{
			low[i] = PointerGetDatum(dp_single_bound(&removed[i].identity, 0));
			high[i] = PointerGetDatum(dp_single_bound(&removed[i].identity, 1));
		}
		values[0] = PointerGetDatum(construct_array(low, n, dp_types()->bson_value, -1, false,
													TYPALIGN_INT));
		values[1] = PointerGetDatum(construct_array(high, n, dp_types()->bson_value, -1, false,
													TYPALIGN_INT));
	}
	else
	{
		DpValue *ids = palloc(sizeof(DpValue) * n);

		for (i = 0; i < n; i++)
			ids[i] = removed[i].identity;
		values[0] = PointerGetDatum(dp_single_filter(s, ids, n, NULL));
	}
	return dp_run(decl, plan, values, NULL, DP_RUN_AS_OWNER, most, SPI_OK_SELECT);
}

/* Returns them as a list, in the current context. */
static void
naming_rows(DpSingle *s, const DpSingleRemoved *removed, int n, Naming *naming)
{
	uint64 i;
	MemoryContext context = CurrentMemoryContext;

	naming->n = naming_run(s, removed, n, 0);
	MemoryContextSwitchTo(context);
	naming->rows = MemoryContextAllocHuge(context, sizeof(DpRowRef) * Max(naming->n, 1));
	memset(naming->rows, 0, sizeof(DpRowRef) * naming->n);
	for (i = 0; i < naming->n; i++)
	{
		bool isnull;

		naming->rows[i].relid = DatumGetObjectId(dp_result(i, 1, &isnull));
		naming->rows[i].tid = *(ItemPointer) DatumGetPointer(dp_result(i, 2, &isnull));
	}
	SPI_freetuptable(SPI_tuptable);
}

/*
 * Processes identities that may have been removed: rows that refer to removed and changed ones are
 * written. Returns their number.
 */
int64
dp_single_deleted(DpSingle *s, DpSingleRemoved *removed, int n)
{
	DpWriter *w;
	int64 written;
	MemoryContext context;
	MemoryContext row_context;
	MemoryContext old;
	Naming naming;
	bool again;
	int kept = 0;
	uint64 i;

	if (s->on_delete == DP_SINGLE_KEEP || n == 0)
		return 0;
	check_stack_depth();
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns naming rows",
									ALLOCSET_DEFAULT_SIZES);
	row_context = AllocSetContextCreate(context, "docpatterns naming row", ALLOCSET_DEFAULT_SIZES);
	w = dp_writer_open(s->decl->target, s->decl->doc_column, 0, NULL);
	dp_writer_refresh(w);
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (removed[i].moved && !identity_find(s, w, &removed[i].becomes, false))
			removed[i].moved = false;
		if (removed[i].moved || !identity_find(s, w, &removed[i].identity, true))
			removed[kept++] = removed[i];
	}

	qsort(removed, kept, sizeof(DpSingleRemoved), removed_compare);
	old = MemoryContextSwitchTo(context);
	again = kept > 0;
	while (again)
	{
		again = false;
		naming_rows(s, removed, kept, &naming);
		for (i = 0; i < naming.n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (i > 0 && naming.rows[i].relid == naming.rows[i - 1].relid &&
				ItemPointerEquals(&naming.rows[i].tid, &naming.rows[i - 1].tid))
				continue;
			if (!dp_writer_fetch(w, &naming.rows[i]))
			{
				again = true;
				continue;
			}
			MemoryContextSwitchTo(row_context);
			row_change(s, w, removed, kept, &again);
			MemoryContextSwitchTo(context);
			MemoryContextReset(row_context);
		}
		pfree(naming.rows);
		if (again)
			dp_writer_refresh(w);
	}
	MemoryContextSwitchTo(old);
	written = dp_writer_close(w);
	MemoryContextDelete(context);
	return written;
}

/* Corrects the current row; sets again if it must be searched again. */
static void
row_change(DpSingle *s, DpWriter *w, const DpSingleRemoved *removed, int n, bool *again)
{
	struct varlena *doc;
	DpSingleDoc read;
	DpWriteResult result = DP_WRITE_SAME;
	bool concerned = false;
	bool others = false;
	int i;

	if (dp_writer_lock(w, s->on_delete == DP_SINGLE_CASCADE
							  ? LockTupleExclusive
							  : LockTupleNoKeyExclusive) == DP_LOCK_DELETED)
	{
		*again = true;
		return;
	}
	doc = dp_writer_document(w);
	if (doc == NULL)
		return;
	dp_single_read(s, doc, &read);

	if (s->key_field != NULL)
	{
		const DpSingleRemoved *g =
			read.has_identity ? removed_find(s, removed, n, &read.identity) : NULL;

		if (g == NULL)
			return;
		if (g->moved)
		{
			DpValue key = key_moved(s, &read.identity, g);

			result = dp_writer_update(w, dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
														 s->key_field, &key));
		}
		else if (s->on_delete == DP_SINGLE_CASCADE)
			result = dp_writer_delete(w);
		else
			referenced(s, &g->identity);
	}
	else
	{
		DpValue value;
		DpValue array;
		Change change = { s, removed, n, &read };
		bool moved = false;

		for (i = 0; i < read.nparents; i++)
		{
			const DpSingleRemoved *g = removed_find(s, removed, n, &read.parents[i]);

			if (g == NULL || g->moved)
				others = true;
			if (g == NULL)
				continue;
			if (!g->moved && s->on_delete == DP_SINGLE_RESTRICT)
				referenced(s, &g->identity);
			concerned = true;
			moved |= g->moved;
		}
		if (!concerned)
			return;
		if (s->on_delete == DP_SINGLE_CASCADE && !others && !moved && !read.names_itself)
			result = dp_writer_delete(w);
		else if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->related_field, &value))
		{
			array = dp_value_of_varlena(dp_single_rebuild(&value, NULL, follow, &change));
			result = dp_writer_update(w, dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
														 s->related_field, &array));
		}
	}
	if (result == DP_WRITE_CHANGED)
		*again = true;
}

/* Sorts removed identities, deleted before changed ones. */
static int
removed_compare(const void *a, const void *b)
{
	const DpSingleRemoved *left = a;
	const DpSingleRemoved *right = b;
	int cmp = dp_value_compare(&left->identity, &right->identity);

	if (cmp == 0)
		cmp = left->moved - right->moved;
	return cmp != 0 || !left->moved ? cmp : dp_value_compare(&left->becomes, &right->becomes);
}

/* Returns the first with an identity, of sorted ones. */
static const DpSingleRemoved *
removed_search(const DpSingleRemoved *removed, int n, const DpValue *identity)
{
	int low = 0;
	int high = n;

	while (low < high)
	{
		int middle = low + (high - low) / 2;

		if (dp_value_compare(&removed[middle].identity, identity) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && dp_value_compare(&removed[low].identity, identity) == 0 ? &removed[low]
																			  : NULL;
}

/* Returns the removed identity to which a document refers; for a key below several, the nearest. */
static const DpSingleRemoved *
removed_find(const DpSingle *s, const DpSingleRemoved *removed, int n, const DpValue *named)
{
	const DpSingleRemoved *found = NULL;
	DpValue above = *named;

	if (s->key_field == NULL)
		return removed_search(removed, n, named);
	while (found == NULL && --above.len > 4)
	{
		if (above.data[above.len - 1] == 0)
			found = removed_search(removed, n, &above);
	}
	return found;
}

/* Sets the new element of the relations; returns false to remove it. */
static bool
follow(const DpValue *element, DpValue *replacement, void *arg)
{
	Change *change = arg;
	const DpSingleRemoved *g = removed_find(change->s, change->removed, change->n, element);
	int i;

	*replacement = *element;
	if (g == NULL ||
		(change->read->has_identity && dp_value_compare(element, &change->read->identity) == 0))
		return true;
	if (!g->moved)
		return false;
	*replacement = g->becomes;
	/* it may be named already */
	for (i = 0; i < change->read->nparents; i++)
	{
		if (dp_value_compare(&change->read->parents[i], &g->becomes) == 0)
			return false;
	}
	return true;
}

/* Returns the new key of a document below one whose key has changed, with its separators. */
static DpValue
key_moved(const DpSingle *s, const DpValue *identity, const DpSingleRemoved *removed)
{
	StringInfoData key;
	const char *parts[2] = { DP_STRING_DATA(&removed->becomes),
							 DP_STRING_DATA(identity) + DP_STRING_LEN(&removed->identity) };
	uint32 lens[2] = { DP_STRING_LEN(&removed->becomes),
					   DP_STRING_LEN(identity) - DP_STRING_LEN(&removed->identity) };
	DpValue result;
	int i;
	int j;

	initStringInfo(&key);
	appendStringInfoSpaces(&key, 4);
	for (i = 0; i < 2; i++)
	{
		for (j = 0; j < lens[i]; j++)
		{
			if (parts[i][j] == 0)
				appendBinaryStringInfo(&key, s->separator, s->separatorlen);
			else
				appendStringInfoChar(&key, parts[i][j]);
		}
	}
	dp_put_int32((uint8 *) key.data, key.len - 4 + 1);
	result.type = DP_TYPE_STRING;
	result.data = (uint8 *) key.data;
	result.len = key.len + 1;
	return result;
}

/* Raises FOREIGN_KEY_VIOLATION. */
static void
referenced(DpSingle *s, const DpValue *identity)
{
	ereport(ERROR, (errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
					errmsg("cannot delete a document in table \"%s\": others belong to it",
						   dp_relation_name(s->decl->target)),
					s->key_field != NULL
						? errdetail("Its key is %s.", dp_single_identity_text(s, identity))
						: errdetail("Its id is %s.", dp_single_identity_text(s, identity))));
}

/*
 * Applies the delete rule to all that is named and is not there.  Inside
 * SPI_connect().
 */
int64
dp_single_forget_missing(DpSingle *s)
{
	DpDecl *decl = s->decl;
	SPIPlanPtr plan;
	Datum values[2];
	DpSingleRemoved *removed;
	MemoryContext context = CurrentMemoryContext;
	uint64 n;
	uint64 i;

	if (s->on_delete == DP_SINGLE_KEEP)
		return 0;
	plan =
		dp_statement(decl,
					 "SELECT DISTINCT p.id FROM {table} AS b CROSS JOIN LATERAL"
					 " docpatterns._single_collection_read(b.{doc}, {$1 regclass}, {$2 text}) AS r"
					 " CROSS JOIN LATERAL pg_catalog.unnest(r.parents) AS p (id) WHERE NOT EXISTS"
					 " (SELECT FROM {table} AS t WHERE {identity}{own =}p.id)");
	values[0] = ObjectIdGetDatum(decl->target);
	values[1] = CStringGetTextDatum(decl->name);
	n = dp_run(decl, plan, values, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
	MemoryContextSwitchTo(context);
	removed = MemoryContextAllocHuge(context, sizeof(DpSingleRemoved) * Max(n, 1));
	for (i = 0; i < n; i++)
	{
		bool isnull;
		struct varlena *value = (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull));
		DpValue id = dp_value_of_varlena(value);

		removed[i].identity = dp_value_of_varlena(dp_value_to_varlena(&id));
		removed[i].moved = false;
	}
	SPI_freetuptable(SPI_tuptable);
	return dp_single_deleted(s, removed, n);
}

/* ---------------------------------------------------------------- pieces of statements */

/* "identity" is what the functions of the indexes give, of a row t. */
bool
dp_single_word(DpDecl *decl, const char *word, StringInfo sql)
{
	bool known = strcmp(word, "identity") == 0;

	if (known)
		single_sql_identity(sql, dp_single(decl));
	return known;
}

static void
single_sql_identity(StringInfo sql, DpSingle *s)
{
	StringInfoData ids;
	DpValue value;
	char *first = dp_decl_text(s->decl, s->key_field != NULL ? "key_field" : "type_field");

	initStringInfo(&ids);
	if (s->key_field != NULL)
		appendStringInfoString(&ids, s->separator);
	else if (dp_document_find(DP_DOC_DATA(s->decl->options), DP_DOC_SIZE(s->decl->options),
							  "id_fields", strlen("id_fields"), &value))
		dp_value_to_text(&ids, &value, DP_TEXT_RELAXED, -1);
	else
		appendStringInfoString(&ids, "{}");
	dp_sql_own_schema(sql);
	appendStringInfo(sql, "%s(t.%s, %s::pg_catalog.text, %s::pg_catalog.text)",
					 s->key_field != NULL ? "single_collection_key" : "single_collection_id",
					 quote_identifier(s->decl->doc_column),
					 quote_literal_cstr(first != NULL ? first : ""), quote_literal_cstr(ids.data));
}

struct varlena *
dp_single_bound(const DpValue *identity, uint8 byte)
{
	uint32 n = DP_STRING_LEN(identity);
	uint8 *p = palloc(n + 6);
	DpValue bound;

	dp_put_int32(p, n + 2);
	memcpy(p + 4, DP_STRING_DATA(identity), n);
	p[n + 4] = byte;
	p[n + 5] = 0;
	bound.type = DP_TYPE_STRING;
	bound.data = p;
	bound.len = n + 6;
	return dp_value_to_varlena(&bound);
}

/* Returns a path as a field of a filter: its names, separated by dots. */
static char *
filter_path(const DpPath *path)
{
	StringInfoData text;
	int i;

	initStringInfo(&text);
	for (i = 0; i < path->nsteps; i++)
		appendStringInfo(&text, "%s%s", i > 0 ? "." : "", path->steps[i].name);
	return text.data;
}

struct varlena *
dp_single_filter(const DpSingle *s, const DpValue *ids, int n, const DpValue *type)
{
	DpBuilder b;
	int i;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (n > 0)
	{
		char *path = filter_path(s->related_field);

		dp_builder_begin_document_field(&b, path, strlen(path));
		if (n == 1)
			dp_builder_append_value(&b, "$eq", 3, &ids[0]);
		else
		{
			dp_builder_begin_array_field(&b, "$in", 3);
			for (i = 0; i < n; i++)
				dp_builder_append_value(&b, NULL, 0, &ids[i]);
			dp_builder_end(&b);
		}
		dp_builder_end(&b);
	}
	if (type != NULL)
	{
		char *path = filter_path(s->ids.type_field);

		dp_builder_append_value(&b, path, strlen(path), type);
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

char *
dp_single_sql(DpSingle *s, bool with_type)
{
	StringInfoData sql;
	char *doc = psprintf("t.%s", quote_identifier(s->decl->doc_column));

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s FROM ", doc);
	dp_sql_table(&sql, s->decl->target);
	appendStringInfoString(&sql, " AS t WHERE ");
	if (s->key_field == NULL)
	{
		appendStringInfo(&sql, "%s", doc);
		dp_sql_own_operator(&sql, "@@");
		appendStringInfoString(&sql, "$1");
		return sql.data;
	}
	single_sql_identity(&sql, s);
	dp_sql_own_operator(&sql, ">=");
	appendStringInfoString(&sql, "$1 AND ");
	single_sql_identity(&sql, s);
	dp_sql_own_operator(&sql, "<");
	appendStringInfoString(&sql, "$2");
	if (with_type)
	{
		appendStringInfo(&sql, " AND %s", doc);
		dp_sql_own_operator(&sql, "@@");
		appendStringInfoString(&sql, "$3");
	}
	appendStringInfoString(&sql, " ORDER BY ");
	single_sql_identity(&sql, s);
	return sql.data;
}

char *
dp_single_identity_text(const DpSingle *s, const DpValue *identity)
{
	StringInfoData buf;
	int len;

	initStringInfo(&buf);
	if (s != NULL && s->key_field != NULL)
	{
		const char *key = DP_STRING_DATA(identity);
		uint32 i;

		appendStringInfoChar(&buf, '"');
		for (i = 0; i < DP_STRING_LEN(identity); i++)
		{
			if (key[i] == 0)
				appendStringInfoString(&buf, s->separator);
			else
				appendStringInfoChar(&buf, key[i]);
		}
		appendStringInfoChar(&buf, '"');
	}
	else
		dp_value_to_text(&buf, identity, DP_TEXT_RELAXED, -1);
	len = pg_mbcliplen(buf.data, buf.len, 100);
	if (len < buf.len)
		return psprintf("%.*s...", len, buf.data);
	return buf.data;
}
