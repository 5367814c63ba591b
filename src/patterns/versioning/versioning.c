/*
 * versioning.c
 *		The document versioning pattern: its options and its triggers.
 *
 * BEFORE UPDATE, for each row: refuses a document with an old revision, leaves an
 * otherwise unchanged one as it was, and gives any other the next number.  INSERT
 * stores the document unchanged, so that EXCLUDED of an upsert is what the user
 * wrote; a document without a number is at revision 1, so a save without one is
 * based on the inserted document.
 *
 * AFTER INSERT, UPDATE or DELETE, for each row: records the revision, with the
 * difference to the former document.  Triggers may be called in another order than
 * the row was written (an earlier trigger may write it again), so the numbers are
 * read from documents.  A new document with an impossible number, or without one
 * if the key had revisions before, is written again.
 *
 * BEFORE INSERT, for each statement: records it, because it has not read the rows
 * that it updates instead.
 *
 * BEFORE TRUNCATE, for each table with rows: records all as deleted.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/diff.h"
#include "bson/edit.h"
#include "bson/number.h"
#include "kit/options.h"
#include "kit/rows/later.h"
#include "kit/rows/write.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "kit/statement.h"
#include "kit/trigger.h"
#include "patterns/versioning/versioning.h"

/* Whole documents are kept at every so many revisions: more for large ones */
#define LEAST_DISTANCE 4
#define BYTES_PER_REVISION 64

/* A document whose number is being put right */
typedef struct Correction
{
	Oid table;
	const DpKey *key;
	int64 revision;
	char operation;
	struct varlena *before;
	bool recorded;
	struct Correction *outer;
} Correction;

static Correction *correcting = NULL;

/* A statement that inserts into a table, and may update its rows as well */
typedef struct Inserting
{
	DpState state;
	Oid table;
	DpStatement statement;
} Inserting;

static DpStates inserting; /* of Inserting */

/* Beyond this number of keys an UPDATE no longer remembers what it found */
#define MANY_IRREGULAR 64

/*
 * A statement that updates documents.  Its BEFORE triggers look whether the revisions before are
 * recorded as those will be that the AFTER triggers add, so that these need not.
 */
typedef struct Updating
{
	DpState state; /* its context has the keys */
	Oid revisions;
	DpStatement statement;
	int nirregular;
	DpKey irregular[MANY_IRREGULAR]; /* keys for which it is not so */
} Updating;

static DpStates updating; /* of Updating */

static int compare_texts(const ListCell *a, const ListCell *b);
static void note_insert(DpVersioning *v);
static bool has_read_nothing(DpVersioning *v);
static bool is_own_write(DpVersioning *v);
static void require_current(DpVersioning *v, const DpKey *key, int64 number, struct varlena *after);
static bool differs_elsewhere(List *paths, struct varlena *a, struct varlena *b);
static bool only_kept_differs(DpVersioning *v, struct varlena *a, struct varlena *b);
static bool leaves_out_kept(DpVersioning *v, const DpKey *key, int64 revision);
static bool is_part_of_write(DpVersioning *v, const DpKey *key, int64 revision);
static HeapTuple before_update(DpVersioning *v, TriggerData *trigdata);
static void after_insert(DpVersioning *v, TriggerData *fired, HeapTuple tuple, const DpKey *key);
static void after_update(DpVersioning *v, TriggerData *trigdata);
static void
after_delete(DpVersioning *v, const TriggerData *fired, struct varlena *doc, const DpKey *key);
static int64 insert_number(DpVersioning *v, const DpKey *key, bool *exists);
static int64
stored_number(DpVersioning *v, const DpKey *key, struct varlena *doc, bool *missing, bool *regular);
static bool is_regular(DpVersioning *v, const DpRevision *r);
static Updating *updating_find(DpVersioning *v);
static void note_update(DpVersioning *v, const DpKey *key, bool regular);
static bool was_regular(DpVersioning *v, const DpKey *key);
static bool is_superseded(HeapTuple tuple);
static struct varlena *current_document(DpVersioning *v, const DpKey *key);
static void correct_number(DpVersioning *v, const DpKey *key, int64 revision, char operation,
						   struct varlena *before);
static Correction *correction_of(DpVersioning *v, const DpKey *key);
static void all_deleted(DpVersioning *v, Relation rel);
static void trim(DpVersioning *v, const DpKey *key, int64 revision);
static void check_number(int64 revision);
static void check_path(DpVersioning *v, struct varlena *doc);
static void
versioning_record(DpVersioning *v, const TriggerData *fired, const DpKey *key, int64 revision,
				  char operation, struct varlena *before, struct varlena *after);
static DpKey key_of_revision(DpVersioning *v, HeapTuple row, TupleDesc desc);
static bool is_first(DpVersioning *v, HeapTuple row, TupleDesc desc);
static int compare_added(const void *a, const void *b);
static void write_alone(DpVersioning *v, HeapTuple row, TupleDesc desc);

/*
 * versioning_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_versioning_trigger);
Datum
dp_versioning_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "versioning",
									DP_BEFORE_ROW(DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
										DP_BEFORE_STATEMENT(DP_INSERT | DP_TRUNCATE));
	DpVersioning *v;
	TupleDesc desc;
	DpKey key;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	v = dp_versioning(decl);
	if (!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
	{
		if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
			note_insert(v);
		else if (trigdata->tg_relation->rd_rel->relkind == RELKIND_RELATION)
			all_deleted(v, trigdata->tg_relation);
		return PointerGetDatum(NULL);
	}
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(before_update(v, trigdata));

	dp_versioning_require(v);
	desc = RelationGetDescr(trigdata->tg_relation);
	if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
		after_update(v, trigdata);
	else
	{
		dp_key_of_tuple(decl, trigdata->tg_trigtuple, desc, &key);
		if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
			after_insert(v, trigdata, trigdata->tg_trigtuple, &key);
		else
			after_delete(v, trigdata, dp_tuple_document(v->decl, trigdata->tg_trigtuple, desc),
						 &key);
	}
	return PointerGetDatum(NULL);
}

/* ---------------------------------------------------------------- options */

/*
 * Returns the options of a declaration, read once. Raises INVALID_PARAMETER_VALUE: a user may
 * create a trigger with any argument.
 */
DpVersioning *
dp_versioning(DpDecl *decl)
{
	DpVersioning *v = decl->state;

	if (likely(v != NULL))
		return v;
	v = MemoryContextAllocZero(decl->context, sizeof(DpVersioning));
	v->decl = decl;
	dp_options_read(decl, v);
	decl->state = v;
	return v;
}

/*
 * The fields that other declarations of the table derive, of the same column.
 * They are looked for when a document changes, and again after declarations do.
 */
List *
dp_versioning_left_out(DpVersioning *v)
{
	DpDecl *decl = v->decl;
	List *decls;
	ListCell *lc;
	Datum *patterns;
	Datum *options;
	Datum values[2];
	int n = 0;
	List *texts = NIL;
	const char *last = "";
	StringInfoData list;
	MemoryContext old;

	if (likely(v->left_out_known))
		return v->left_out;
	decls = v->kept ? NIL : dp_decls(decl->target);
	patterns = palloc(list_length(decls) * sizeof(Datum));
	options = palloc(list_length(decls) * sizeof(Datum));
	foreach(lc, decls)
	{
		DpDecl *d = lfirst(lc);

		if (strcmp(d->pattern, "versioning") == 0 || d->doc_column == NULL ||
			strcmp(d->doc_column, decl->doc_column) != 0)
			continue;
		patterns[n] = CStringGetTextDatum(d->pattern);
		options[n++] = PointerGetDatum(d->options);
	}
	if (n > 0)
	{
		Oid bson = dp_types()->bson;
		SPIPlanPtr plan;
		int16 len;
		bool byval;
		char align;

		values[0] = PointerGetDatum(construct_array(patterns, n, TEXTOID, -1, false, TYPALIGN_INT));
		get_typlenbyvalalign(bson, &len, &byval, &align);
		values[1] = PointerGetDatum(construct_array(options, n, bson, len, byval, align));
		SPI_connect();
		plan = dp_statement(decl, "SELECT p.path FROM ROWS FROM (pg_catalog.unnest({$1 text[]}),"
								  " pg_catalog.unnest({$2 bson[]})) AS d (pattern, options)"
								  " CROSS JOIN LATERAL docpatterns._pattern_paths(d.pattern,"
								  " d.options) AS p WHERE p.derived");
		(void) dp_run(decl, plan, values, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool isnull;
			text *path = DatumGetTextPP(dp_result(i, 1, &isnull));

			initStringInfo(&list);
			dp_path_to_text(&list, dp_path_parse(VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path)));
			texts = lappend(texts, list.data);
		}
		list_sort(texts, compare_texts);
		initStringInfo(&list);
		foreach(lc, texts)
		{
			if (strcmp(lfirst(lc), last) != 0)
				appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "", (char *) lfirst(lc));
			last = lfirst(lc);
		}
		old = MemoryContextSwitchTo(decl->context);
		if (list.len > 0)
		{
			v->left_out = dp_path_parse_list(list.data, list.len);
			v->left_out_list = cstring_to_text_with_len(list.data, list.len);
		}
		MemoryContextSwitchTo(old);
		SPI_finish();
	}
	v->left_out_known = true;
	return v->left_out;
}

static int
compare_texts(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

struct varlena *
dp_versioning_bare(List *paths, struct varlena *doc)
{
	struct varlena *bare =
		paths == NIL ? NULL : dp_document_without(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), paths);

	return bare != NULL ? bare : doc;
}

int32
dp_versioning_checksum(struct varlena *doc)
{
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
	FIN_CRC32C(crc);
	return (int32) crc;
}

void
dp_versioning_require(DpVersioning *v)
{
	AttrNumber numbers[INDEX_MAX_KEYS + DP_VERSION_COLUMNS];
	AttrNumber of_change[INDEX_MAX_KEYS + lengthof(v->change_columns)];
	int nkeys;
	Oid revisions;
	Oid changes;

	if (likely(OidIsValid(v->revisions) && OidIsValid(v->changes)))
		return;
	revisions = dp_side_find(v->decl, v->link_id,
							 "{side key}, revision int8; change int8, operation char, delta bytea,"
							 " previous bson, checksum int4, kept text",
							 numbers);
	changes = dp_link_side(v->second_link_id, v->decl->target);
	nkeys = OidIsValid(changes) &&
					get_attnum(changes, v->decl->nkeys == 1 ? "key" : "key1") != InvalidAttrNumber
				? v->decl->nkeys
				: 0;
	changes = dp_side_find(
		v->decl, v->second_link_id,
		nkeys > 0
			? "change int8 identity, {side key}; since timestamptz, who text, transaction xid8"
			: "change int8 identity; since timestamptz, who text, transaction xid8",
		of_change);
	memcpy(v->key_columns, numbers, sizeof(AttrNumber) * v->decl->nkeys);
	memcpy(v->columns, numbers + v->decl->nkeys, sizeof(v->columns));
	v->change_columns[0] = of_change[0];
	v->change_nkeys = nkeys;
	memcpy(v->change_key, of_change + 1, sizeof(AttrNumber) * nkeys);
	memcpy(v->change_columns + 1, of_change + 1 + nkeys, sizeof(AttrNumber) * 3);

	/* an error has left it as if it had not been called */
	v->revisions = revisions;
	v->changes = changes;
}

/* ---------------------------------------------------------------- numbers */

bool
dp_versioning_number(DpVersioning *v, struct varlena *doc, int64 *revision)
{
	DpValue value;
	DpNumber number;
	uint8 digits[DP_EXACT_MAX_DIGITS];

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field, &value) ||
		value.type == DP_TYPE_NULL)
		return false;
	if (likely(value.type == DP_TYPE_INT32))
		*revision = dp_get_int32(value.data);
	else if (value.type == DP_TYPE_INT64)
		*revision = dp_get_int64(value.data);
	else
	{
		*revision = 0;
		if (dp_type_is_number(value.type))
		{
			dp_number_from_value(&number, &value, digits);
			if (number.kind == DP_NUMBER_INTEGER)
				*revision = number.i;
		}
	}
	if (*revision < 1)
		ereport(
			ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("invalid revision of a document in table \"%s\"",
					dp_relation_name(v->decl->target)),
			 errdetail(
				 "Field \"%s\" contains a value of BSON type \"%s\" that is not a positive integer.",
				 dp_decl_text(v->decl, "revision_field"), dp_type_name(value.type))));
	return true;
}

/* Raises CHECK_VIOLATION if a document has something in the way of the number. */
static void
check_path(DpVersioning *v, struct varlena *doc)
{
	int step;
	uint8 type;

	if (v->field->nsteps > 1 &&
		dp_path_blocked(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field, &step, &type))
		ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
						errmsg("cannot store the revision in a document of table \"%s\"",
							   dp_relation_name(v->decl->target)),
						errdetail("Part %d of the path \"%s\", \"%s\", is a value of type %s.",
								  step + 1, dp_decl_text(v->decl, "revision_field"),
								  v->field->steps[step].name, dp_type_name(type))));
}

struct varlena *
dp_versioning_with_number(DpVersioning *v, struct varlena *doc, int64 revision,
						  struct varlena *like)
{
	DpValue value;
	uint8 bytes[8];

	check_path(v, doc);
	if (like == NULL || !dp_path_find(DP_DOC_DATA(like), DP_DOC_SIZE(like), v->field, &value))
		value.type = DP_TYPE_INT32;
	if (value.type == DP_TYPE_DOUBLE && revision < (INT64CONST(1) << 53))
	{
		dp_put_double(bytes, (double) revision);
		value.len = 8;
	}
	else if (value.type == DP_TYPE_INT64 || revision > PG_INT32_MAX)
	{
		value.type = DP_TYPE_INT64;
		dp_put_int64(bytes, revision);
		value.len = 8;
	}
	else
	{
		value.type = DP_TYPE_INT32;
		dp_put_int32(bytes, (int32) revision);
		value.len = 4;
	}
	value.data = bytes;
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field, &value);
}

static void
check_number(int64 revision)
{
	if (unlikely(revision == PG_INT64_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("revision is out of range")));
}

/*
 * Returns the number of a document that is about to be inserted, or was. *exists: the key has
 * revisions. Unless the newest is a deletion, that of the former document is still to be recorded.
 */
static int64
insert_number(DpVersioning *v, const DpKey *key, bool *exists)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	int64 number = 1;

	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	*exists = dp_revisions_last(&store, key, &r);
	if (*exists)
	{
		check_number(r.revision);
		check_number(r.revision + 1);
		number = r.operation == DP_VERSION_DELETE ? r.revision + 1 : r.revision + 2;
	}
	dp_revisions_close(&store);
	return number;
}

/*
 * The number of a document that is there without one of its own: that of its
 * first revision.  *missing: it has not been recorded yet.  *regular: see Updating, set if the
 * number is not its own.
 */
static int64
stored_number(DpVersioning *v, const DpKey *key, struct varlena *doc, bool *missing, bool *regular)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	int64 number = 1;

	*missing = false;
	if (doc != NULL && dp_versioning_number(v, doc, &number))
		return number;
	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	*missing = true;
	if (dp_revisions_last(&store, key, &r))
	{
		number = r.revision + 1;
		if (r.operation != DP_VERSION_DELETE)
		{
			*missing = false;
			number = r.revision;
			*regular = number == 1 && is_regular(v, &r);

			/*
			 * A document inserted after this deletion may have been recorded first: then it has
			 * left a number for the deletion.
			 */
			if (r.operation == DP_VERSION_INSERT && number > 2 &&
				!dp_revisions_find(&store, key, number - 1, &r) &&
				dp_revisions_find(&store, key, number - 2, &r))
				number -= 2;
		}
	}
	dp_revisions_close(&store);
	return number;
}

/* Whether a revision leaves out what the next one will. */
static bool
is_regular(DpVersioning *v, const DpRevision *r)
{
	return dp_versioning_left_out(v) == NIL ||
		   (r->kept != NULL &&
			dp_same_bytes(DatumGetTextPP(PointerGetDatum(r->kept)), v->left_out_list));
}

/* What is known of the statement whose triggers fire, or NULL. */
static Updating *
updating_find(DpVersioning *v)
{
	DpStatement now = dp_statement_now();
	ListCell *lc;

	foreach(lc, updating.list)
	{
		Updating *u = lfirst(lc);

		if (u->revisions == v->revisions && u->statement.depth == now.depth &&
			u->statement.command == now.command)
			return u;
	}
	return NULL;
}

static void
note_update(DpVersioning *v, const DpKey *key, bool regular)
{
	Updating *u = updating_find(v);

	if (u == NULL)
	{
		DpStatement now = dp_statement_now();

		for (int i = list_length(updating.list) - 1; i >= 0; i--)
		{
			u = list_nth(updating.list, i);
			if (u->statement.depth > now.depth ||
				(u->statement.depth == now.depth && u->statement.command != now.command))
				dp_state_end(&updating, u); /* it has ended */
		}
		u = dp_state_begin(&updating, sizeof(Updating));
		u->revisions = v->revisions;
		u->statement = now;
		u->state.context = AllocSetContextCreate(TopTransactionContext, "docpatterns revisions",
												 ALLOCSET_SMALL_SIZES);
	}
	if (!regular)
	{
		if (u->nirregular < MANY_IRREGULAR)
		{
			MemoryContext old = MemoryContextSwitchTo(u->state.context);

			dp_key_copy(v->decl, key, &u->irregular[u->nirregular]);
			MemoryContextSwitchTo(old);
		}
		u->nirregular = Min(u->nirregular + 1, MANY_IRREGULAR + 1);
	}
}

/* Whether the BEFORE trigger found the revision of an updated document regular. */
static bool
was_regular(DpVersioning *v, const DpKey *key)
{
	const Updating *u = updating_find(v);

	if (u == NULL || u->nirregular > MANY_IRREGULAR)
		return false;
	for (int i = 0; i < u->nirregular; i++)
	{
		if (dp_key_identical(v->decl, &u->irregular[i], key))
			return false;
	}
	return true;
}

/* ---------------------------------------------------------------- before */

/*
 * Called before a statement that inserts: it has not read the rows that it updates instead (ON
 * CONFLICT, MERGE).
 */
static void
note_insert(DpVersioning *v)
{
	DpStatement now = dp_statement_now();
	Inserting *note;
	ListCell *lc;

	if (!v->optimistic)
		return;
	foreach(lc, inserting.list)
	{
		note = lfirst(lc);
		if (note->statement.depth > now.depth ||
			(note->statement.depth == now.depth && note->statement.command != now.command))
		{
			dp_state_end(&inserting, note); /* it has ended */
			break;
		}
	}
	note = dp_state_begin(&inserting, sizeof(Inserting));
	note->table = v->decl->target;
	note->statement = now;
}

/* Returns whether the statement that updates the row is an INSERT or MERGE. */
static bool
has_read_nothing(DpVersioning *v)
{
	DpStatement now = dp_statement_now();
	ListCell *lc;

	foreach(lc, inserting.list)
	{
		const Inserting *note = lfirst(lc);

		if (note->table == v->decl->target && note->statement.depth == now.depth &&
			note->statement.command == now.command)
			return true;
	}
	return false;
}

/* Returns whether a pattern writes fields that it keeps: it has read the present row. */
static bool
is_own_write(DpVersioning *v)
{
	return dp_marked_derived(v->decl->target, NULL) ||
		   dp_marked(v->decl->target, NULL) == DP_MARK_INTERNAL;
}

/*
 * Raises T_R_SERIALIZATION_FAILURE unless the new document of a key is based on the present one,
 * which has that number. A document without a number is as it was inserted: it becomes visible
 * with the number 1.
 */
static void
require_current(DpVersioning *v, const DpKey *key, int64 number, struct varlena *after)
{
	int64 given = 1;
	bool has_number = dp_versioning_number(v, after, &given);
	const char *field = dp_decl_text(v->decl, "revision_field");

	if (!v->optimistic || given == number ||
		(!has_number && (has_read_nothing(v) || is_own_write(v))))
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
		 errmsg("document was changed since it was read"),
		 has_number
			 ? errdetail("Document %s of table \"%s\" is at revision " INT64_FORMAT
						 "; the written document is based on revision " INT64_FORMAT ".",
						 dp_key_to_text(v->decl, key), dp_relation_name(v->decl->target), number,
						 given)
			 : errdetail("Document %s of table \"%s\" is at revision " INT64_FORMAT
						 "; the written document has no revision, like a new one.",
						 dp_key_to_text(v->decl, key), dp_relation_name(v->decl->target), number),
		 errhint(
			 "Read the document again, or copy \"%s\" from the stored document to write without this check.",
			 field)));
}

/* Whether the first field in which two documents differ is in both not one of the paths. */
static bool
differs_elsewhere(List *paths, struct varlena *a, struct varlena *b)
{
	DpIter left;
	DpIter right;
	DpElement x;
	DpElement y;
	ListCell *lc;

	dp_iter_init(&left, DP_DOC_DATA(a), DP_DOC_SIZE(a));
	dp_iter_init(&right, DP_DOC_DATA(b), DP_DOC_SIZE(b));
	do
	{
		if (!dp_iter_next(&left, &x) || !dp_iter_next(&right, &y))
			return false;
	} while (x.namelen == y.namelen && memcmp(x.name, y.name, x.namelen) == 0 &&
			 dp_value_identical(&x.value, &y.value));
	foreach(lc, paths)
	{
		const DpPathStep *step = &((DpPath *) lfirst(lc))->steps[0];

		if ((step->namelen == x.namelen && memcmp(step->name, x.name, x.namelen) == 0) ||
			(step->namelen == y.namelen && memcmp(step->name, y.name, y.namelen) == 0))
			return false;
	}
	return true;
}

/* Whether two documents are the same but for what patterns keep. */
static bool
only_kept_differs(DpVersioning *v, struct varlena *a, struct varlena *b)
{
	List *paths = dp_versioning_left_out(v);

	return paths != NIL && !differs_elsewhere(paths, a, b) &&
		   dp_same_bytes(dp_versioning_bare(paths, a), dp_versioning_bare(paths, b));
}

/*
 * Whether the row may change in what patterns keep while it stays at a revision:
 * not if that was recorded when they kept something else.  One that is not
 * recorded yet will be as it should.
 */
static bool
leaves_out_kept(DpVersioning *v, const DpKey *key, int64 revision)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	bool right;

	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	right = !dp_revisions_find(&store, key, revision, &r);
	if (!right && r.kept != NULL)
	{
		text *list = DatumGetTextPP(PointerGetDatum(r.kept));

		right = dp_same_bytes(list, v->left_out_list);
	}
	dp_revisions_close(&store);
	return right;
}

/*
 * Whether a pattern moves something out of a document while the statement is
 * under way that wrote it: that will be recorded as it is then.
 */
static bool
is_part_of_write(DpVersioning *v, const DpKey *key, int64 revision)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	bool recorded;

	if (dp_marked(v->decl->target, NULL) != DP_MARK_INTERNAL)
		return false;
	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	recorded = dp_revisions_find(&store, key, revision, &r);
	dp_revisions_close(&store);
	return !recorded;
}

static HeapTuple
before_update(DpVersioning *v, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *before = dp_tuple_document(v->decl, trigdata->tg_trigtuple, desc);
	struct varlena *after = dp_tuple_document(v->decl, trigdata->tg_newtuple, desc);
	struct varlena *same;
	DpKey old_key;
	DpKey new_key;
	bool key_changes;
	bool missing;
	bool regular = false;
	bool has_old = false;
	int64 number;
	int64 given;

	dp_key_of_tuple(v->decl, trigdata->tg_trigtuple, desc, &old_key);
	if (correction_of(v, &old_key) != NULL)
		return trigdata->tg_newtuple;
	if (after == NULL)
		return trigdata->tg_newtuple; /* the table lets the column be null */
	dp_key_of_tuple(v->decl, trigdata->tg_newtuple, desc, &new_key);
	key_changes = !dp_key_identical(v->decl, &old_key, &new_key);
	if (before != NULL && !key_changes && dp_same_bytes(before, after))
		return trigdata->tg_newtuple;

	dp_versioning_require(v);
	number = stored_number(v, &old_key, before, &missing, &regular);
	if (before != NULL)
		require_current(v, &old_key, number, after);
	else
		(void) dp_versioning_number(v, after, &given); /* raises an error for an invalid number */

	if (key_changes)
		number = insert_number(v, &new_key, &missing);
	else
	{
		/* but for its number the same? */
		if (before != NULL)
		{
			DpValue old_number;
			DpValue new_number;

			has_old = dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), v->field, &old_number);
			if (has_old &&
				dp_path_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), v->field, &new_number) &&
				dp_value_identical(&old_number, &new_number))
				same = after; /* in its number it does not differ */
			else if (has_old)
				same =
					dp_document_set(DP_DOC_DATA(after), DP_DOC_SIZE(after), v->field, &old_number);
			else
			{
				same = dp_document_unset(DP_DOC_DATA(after), DP_DOC_SIZE(after), v->field);
				if (same == NULL)
					same = after;
			}
			if (dp_same_bytes(before, same) ||
				(only_kept_differs(v, before, same) && leaves_out_kept(v, &old_key, number)) ||
				is_part_of_write(v, &old_key, number))
			{
				return dp_tuple_with_document(v->decl, trigdata->tg_newtuple, desc, same);
			}
			if (has_old && dp_versioning_left_out(v) != NIL)
				regular = leaves_out_kept(v, &old_key, number);
			if (!has_old || dp_versioning_left_out(v) != NIL)
				note_update(v, &old_key, regular);
		}
		check_number(number);
		number++;
	}
	return dp_tuple_with_document(v->decl, trigdata->tg_newtuple, desc,
								  dp_versioning_with_number(v, after, number,
															before != NULL ? before : after));
}

/* ---------------------------------------------------------------- after */

/*
 * Records an inserted document. One that was written again before this trigger was called has been
 * recorded by that, unless it was inserted with a number.
 */
static void
after_insert(DpVersioning *v, TriggerData *fired, HeapTuple tuple, const DpKey *key)
{
	struct varlena *doc = dp_tuple_document(v->decl, tuple, RelationGetDescr(fired->tg_relation));
	int64 number;
	int64 given = 0;
	bool has_number;
	bool exists;

	if (doc == NULL)
		return;
	has_number = dp_versioning_number(v, doc, &given);
	if (!has_number)
		check_path(v, doc);
	if (is_superseded(tuple))
	{
		DpRevisionStore store;
		SnapshotData latest;
		DpRevision r;
		bool recorded;

		InitDirtySnapshot(latest);
		dp_revisions_open(&store, v, &latest);
		exists = has_number && dp_revisions_find(&store, key, given, &r);
		recorded = has_number
					   ? !exists && dp_revisions_find(&store, key, given + 1, &r)
					   : dp_revisions_last(&store, key, &r) && r.operation != DP_VERSION_DELETE;
		dp_revisions_close(&store);
		if (exists || (recorded && !has_number))
			return;
		if (recorded)
		{
			versioning_record(v, fired, key, given, DP_VERSION_INSERT, NULL, doc);
			return;
		}
		/* patterns have written fields that they keep, or it was deleted */
		doc = current_document(v, key);
		if (doc == NULL)
			return;
		has_number = dp_versioning_number(v, doc, &given);
	}
	else if ((!has_number || given == 1) &&
			 dp_writes_later(fired, v->revisions, dp_versioning_write, v))
	{
		/* whether the key had revisions is found out then */
		versioning_record(v, fired, key, 1, DP_VERSION_INSERT, NULL, doc);
		return;
	}
	number = insert_number(v, key, &exists);
	if (has_number ? given != number : number > 1)
		correct_number(v, key, number, DP_VERSION_INSERT, NULL);
	else
		versioning_record(v, fired, key, number, DP_VERSION_INSERT, NULL, doc);
}

/* The document of that key as it is now; NULL if there is none. */
static struct varlena *
current_document(DpVersioning *v, const DpKey *key)
{
	DpWriter *w = dp_writer_open(v->decl->target, v->decl->doc_column, 0, v->decl->name);
	struct varlena *doc = NULL;

	dp_writer_refresh(w);
	if (dp_writer_find(w, dp_lookup_primary(v->decl->target, CurrentMemoryContext), key->values))
		doc = dp_writer_document(w);
	if (doc != NULL)
		doc = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
	dp_writer_close(w);
	return doc;
}

/* A document has changed, or its row. */
static void
after_update(DpVersioning *v, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *before = dp_tuple_document(v->decl, trigdata->tg_trigtuple, desc);
	struct varlena *after = dp_tuple_document(v->decl, trigdata->tg_newtuple, desc);
	DpKey old_key;
	DpKey new_key;
	Correction *c;
	int64 number;
	int64 old_number = 0;
	bool had_number;
	bool missing;
	bool regular;

	dp_key_of_tuple(v->decl, trigdata->tg_trigtuple, desc, &old_key);
	dp_key_of_tuple(v->decl, trigdata->tg_newtuple, desc, &new_key);
	c = correction_of(v, &old_key);
	if (c != NULL)
	{
		/* its state after all other triggers */
		if (after != NULL)
			versioning_record(v, trigdata, &new_key, c->revision, c->operation, c->before, after);
		c->recorded = true;
		return;
	}
	if (!dp_key_identical(v->decl, &old_key, &new_key))
	{
		after_delete(v, trigdata, before, &old_key);
		after_insert(v, trigdata, trigdata->tg_newtuple, &new_key);
		return;
	}
	if (before == NULL || after == NULL)
	{
		if (before != NULL)
			after_delete(v, trigdata, before, &old_key);
		else if (after != NULL)
			after_insert(v, trigdata, trigdata->tg_newtuple, &new_key);
		return;
	}
	if (dp_same_bytes(before, after))
		return;
	had_number = dp_versioning_number(v, before, &old_number);
	if (had_number == dp_versioning_number(v, after, &number) &&
		(!had_number || number == old_number) &&
		(only_kept_differs(v, before, after) ||
		 is_part_of_write(v, &old_key, stored_number(v, &old_key, before, &missing, &regular))))
		return;

	if (had_number)
		number = old_number;
	else if (dp_versioning_number(v, after, &number) && number == 2 && was_regular(v, &old_key))
		number = 1;
	else
	{
		/* the first revision, which may not have been recorded */
		DpRevisionStore store;
		SnapshotData latest;
		DpRevision r;

		if (dp_versioning_number(v, after, &number) && number > 1)
			number--;
		else
			number = stored_number(v, &old_key, before, &missing, &regular);
		InitDirtySnapshot(latest);
		dp_revisions_open(&store, v, &latest);
		missing = !dp_revisions_find(&store, &old_key, number, &r);
		dp_revisions_close(&store);
		if (missing)
			versioning_record(v, trigdata, &old_key, number, DP_VERSION_INSERT, NULL, before);
	}
	check_number(number);
	if (is_superseded(trigdata->tg_newtuple))
	{
		/*
		 * by a pattern, see is_part_of_write(), or by another change, which has a number of its own
		 */
		struct varlena *doc = current_document(v, &old_key);
		int64 current;

		if (doc != NULL && dp_versioning_number(v, doc, &current) && current == number + 1)
			after = doc;
	}
	if (!dp_versioning_number(v, after, &old_number) || old_number != number + 1)
		correct_number(v, &old_key, number + 1, DP_VERSION_UPDATE, before);
	else
		versioning_record(v, trigdata, &old_key, number + 1, DP_VERSION_UPDATE, before, after);
}

/* Records a deleted document. */
static void
after_delete(DpVersioning *v, const TriggerData *fired, struct varlena *doc, const DpKey *key)
{
	bool missing;
	bool regular;
	int64 number;

	if (doc == NULL)
		return;
	number = stored_number(v, key, doc, &missing, &regular);
	check_number(number);
	if (missing)
		versioning_record(v, fired, key, number, DP_VERSION_INSERT, NULL, doc);
	versioning_record(v, fired, key, number + 1, DP_VERSION_DELETE, doc, NULL);
}

/* Whether this transaction has written the row again, or deleted it. */
static bool
is_superseded(HeapTuple tuple)
{
	return (tuple->t_data->t_infomask & HEAP_XMAX_INVALID) == 0 &&
		   !HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_data->t_infomask) &&
		   TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data));
}

int64
dp_versioning_adopt(DpVersioning *v, const DpKey *key, struct varlena *doc)
{
	int64 given = 0;
	bool exists;
	bool has_number = dp_versioning_number(v, doc, &given);
	int64 number = insert_number(v, key, &exists);

	if (exists && (has_number ? given != number : number > 1))
	{
		correct_number(v, key, number, DP_VERSION_INSERT, NULL);
		return number;
	}
	if (has_number)
		number = given;
	versioning_record(v, NULL, key, number, DP_VERSION_INSERT, NULL, doc);
	return number;
}

/*
 * Adds a revision. before is the document of the previous number, after its own one, NULL without
 * a document.
 */
static void
versioning_record(DpVersioning *v, const TriggerData *fired, const DpKey *key, int64 revision,
				  char operation, struct varlena *before, struct varlena *after)
{
	List *paths = dp_versioning_left_out(v);
	struct varlena *delta = NULL;
	struct varlena *previous = NULL;
	bool same = true;

	if (after != NULL)
		after = dp_versioning_bare(paths, after);
	if (before != NULL && paths != NIL)
	{
		/* if fewer fields are kept now, the difference must include the others */
		same = (operation == DP_VERSION_UPDATE && fired != NULL && was_regular(v, key)) ||
			   leaves_out_kept(v, key, revision - 1);
		if (same)
			before = dp_versioning_bare(paths, before);
	}
	if (before != NULL && after != NULL && !v->full && same)
	{
		int distance = LEAST_DISTANCE;

		while (distance < DP_VERSION_DISTANCE &&
			   DP_DOC_SIZE(before) >= 2 * distance * BYTES_PER_REVISION)
			distance *= 2;
		if (revision % distance != 0)
		{
			delta = dp_diff_make(DP_DOC_DATA(after), DP_DOC_SIZE(after), DP_DOC_DATA(before),
								 DP_DOC_SIZE(before));
			if (delta != NULL &&
				VARSIZE_ANY_EXHDR(delta) > DP_DOC_SIZE(before) - DP_DOC_SIZE(before) / 4)
				delta = NULL;
		}
	}
	if (before != NULL && delta == NULL)
		previous = before;
	if (unlikely(dp_versioning_clock_behind(v, key)) && revision > 1)
	{
		DpRevisionStore store;
		SnapshotData latest;
		DpRevision r;
		TimestampTz since;

		InitDirtySnapshot(latest);
		dp_revisions_open(&store, v, &latest);
		if (dp_revisions_find(&store, key, revision - 1, &r) &&
			dp_revisions_since(&store, r.change, &since, NULL, NULL))
			dp_versioning_later_than(v, key, since);
		dp_revisions_close(&store);
	}
	if (v->keep > 0 && revision > v->keep)
		fired = NULL;
	dp_revisions_add(v, fired, key, revision, dp_versioning_change(v, key), operation, delta,
					 previous, after);
	if (delta != NULL)
		pfree(delta);
	if (v->keep > 0 && revision > v->keep)
		trim(v, key, revision);
}

/*
 * The first revision of a document is right unless its key had revisions before.  Most often no key
 * in the range of those added has any.
 */
void
dp_versioning_write(void *arg, HeapTuple *rows, int n)
{
	DpVersioning *v = arg;
	HeapTuple *alone = palloc(sizeof(HeapTuple) * n);
	int nalone = 0;
	int nmany = 0;
	int first = n;
	int last = -1;
	bool known = false;
	bool distinct = true;
	DpTable t;
	DpRevisionStore store;
	DpRevision r;
	SnapshotData latest;
	TupleDesc desc;
	HeapTuple *sorted = palloc(sizeof(HeapTuple) * n);

	InitDirtySnapshot(latest);
	dp_table_open(&t, v->revisions, RowExclusiveLock);
	desc = RelationGetDescr(t.rel);
	memcpy(sorted, rows, sizeof(HeapTuple) * n);
	for (int i = 1; i < n && distinct; i++)
		distinct = dp_table_compare(&t, sorted[i - 1], sorted[i], v->decl->nkeys) < 0;
	if (!distinct)
		dp_table_sort(&t, sorted, n);
	for (int i = 0; i < n; i++)
	{
		if (is_first(v, sorted[i], desc))
		{
			first = Min(first, i);
			last = i;
		}
	}
	if (last >= 0)
	{
		DpKey low = key_of_revision(v, sorted[first], desc);
		DpKey high = key_of_revision(v, sorted[last], desc);

		known = dp_table_any(&t, &latest, low.values[0], high.values[0]);
		dp_revisions_open(&store, v, &latest);
	}
	for (int i = 0; i < n; i++)
	{
		bool is_alone = false;

		/* several rows of a key are written in their order */
		if (last >= 0 && !distinct)
			is_alone =
				(i > 0 && dp_table_compare(&t, sorted[i - 1], sorted[i], v->decl->nkeys) == 0) ||
				(i < n - 1 && dp_table_compare(&t, sorted[i], sorted[i + 1], v->decl->nkeys) == 0);
		if (known && !is_alone && is_first(v, sorted[i], desc))
		{
			DpKey key = key_of_revision(v, sorted[i], desc);

			is_alone = dp_revisions_last(&store, &key, &r);
		}
		if (is_alone)
			alone[nalone++] = sorted[i];
		else
			sorted[nmany++] = sorted[i];
	}
	if (last >= 0)
		dp_revisions_close(&store);
	dp_table_insert_many(&t, sorted, nmany);
	if (nalone > 0)
	{
		desc = CreateTupleDescCopy(desc);
		qsort(alone, nalone, sizeof(HeapTuple), compare_added);
	}
	dp_table_close(&t);
	for (int i = 0; i < nalone; i++)
		write_alone(v, alone[i], desc);
	pfree(alone);
	pfree(sorted);
}

/* Orders rows as they were added. */
static int
compare_added(const void *a, const void *b)
{
	return ItemPointerCompare(&(*(HeapTuple *) a)->t_self, &(*(HeapTuple *) b)->t_self);
}

/* Writes a row of a key that has others. */
static void
write_alone(DpVersioning *v, HeapTuple row, TupleDesc desc)
{
	DpKey key = key_of_revision(v, row, desc);
	bool exists = false;
	int64 number;
	DpTable t;

	CHECK_FOR_INTERRUPTS();
	if (is_first(v, row, desc))
		number = insert_number(v, &key, &exists);
	if (!exists)
	{
		dp_table_open(&t, v->revisions, RowExclusiveLock);
		dp_table_insert_many(&t, &row, 1);
		dp_table_close(&t);
	}
	else if (current_document(v, &key) != NULL)
		correct_number(v, &key, number, DP_VERSION_INSERT, NULL);
}

static bool
is_first(DpVersioning *v, HeapTuple row, TupleDesc desc)
{
	bool isnull;

	return DatumGetChar(heap_getattr(row, v->columns[DP_VERSION_OPERATION], desc, &isnull)) ==
			   DP_VERSION_INSERT &&
		   DatumGetInt64(heap_getattr(row, v->columns[DP_VERSION_REVISION], desc, &isnull)) == 1;
}

/* The key of a row of the table of revisions. */
static DpKey
key_of_revision(DpVersioning *v, HeapTuple row, TupleDesc desc)
{
	DpKey key = { .n = v->decl->nkeys };
	bool isnull;

	for (int i = 0; i < key.n; i++)
		key.values[i] = heap_getattr(row, v->key_columns[i], desc, &isnull);
	return key;
}

/*
 * The document in the row has another number than its revision: it is written
 * with the right one.  The trigger that this calls records it.
 */
static void
correct_number(DpVersioning *v, const DpKey *key, int64 revision, char operation,
			   struct varlena *before)
{
	Correction c = { v->decl->target, key, revision, operation, before, false, correcting };
	DpWriter *w;

	correcting = &c;
	PG_TRY();
	{
		w = dp_writer_open(v->decl->target, v->decl->doc_column, 0, v->decl->name);
		dp_writer_refresh(w);
		if (dp_writer_find(w, dp_lookup_primary(v->decl->target, CurrentMemoryContext),
						   key->values) &&
			dp_writer_lock(w, LockTupleNoKeyExclusive) != DP_LOCK_DELETED)
		{
			struct varlena *doc = dp_writer_document(w);

			(void) dp_writer_update(w, dp_versioning_with_number(v, doc, revision, doc));
		}
		dp_writer_close(w);
	}
	PG_FINALLY();
	{
		correcting = c.outer;
	}
	PG_END_TRY();
	if (!c.recorded)
		dp_write_refused(v->decl, v->decl->target);
}

void
dp_versioning_correct(DpVersioning *v, const DpKey *key, int64 revision, char operation)
{
	correct_number(v, key, revision, operation, NULL);
}

/* The correction that is under way for a row, if there is one. */
static Correction *
correction_of(DpVersioning *v, const DpKey *key)
{
	Correction *c;

	for (c = correcting; c != NULL; c = c->outer)
	{
		if (c->table == v->decl->target && !c->recorded && dp_key_identical(v->decl, c->key, key))
			return c;
	}
	return NULL;
}

/*
 * Deletes the oldest revisions if only some are kept, except while a function rewrites them; then
 * the next write deletes them.
 */
static void
trim(DpVersioning *v, const DpKey *key, int64 revision)
{
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan;
	int n = v->decl->nkeys;

	if (!dp_versioning_trim_begin(v))
		return;
	memcpy(values, key->values, n * sizeof(Datum));
	values[n] = Int64GetDatum(revision - v->keep);
	SPI_connect();
	plan = dp_statement(v->decl,
						"DELETE FROM {relation} WHERE {side key = $key}"
						" AND revision OPERATOR(pg_catalog.<=) {$key+1 int8}",
						v->revisions);
	if (dp_run_marked(v->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, v->revisions,
					  v->decl->name, DP_MARK_INTERNAL) > 0)
	{
		values[n] = Int64GetDatum(revision - v->keep + 1);
		plan = dp_statement(v->decl,
							"UPDATE {relation} SET delta = '', previous = NULL"
							" WHERE {side key = $key}"
							" AND revision OPERATOR(pg_catalog.=) {$key+1 int8}"
							" AND operation OPERATOR(pg_catalog.<>) 'i'",
							v->revisions);
		(void) dp_run_marked(v->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_UPDATE,
							 v->revisions, v->decl->name, DP_MARK_INTERNAL);
	}
	SPI_finish();
	dp_versioning_trim_end(v);
}

/* ---------------------------------------------------------------- tables */

/* All documents of a table or a partition go at once. */
static void
all_deleted(DpVersioning *v, Relation rel)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	TupleTableSlot *row = table_slot_create(rel, NULL);
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "truncated documents", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	dp_versioning_require(v);
	while (table_scan_getnextslot(scan, ForwardScanDirection, row))
	{
		HeapTuple tuple = ExecFetchSlotHeapTuple(row, false, NULL);
		DpKey key;

		CHECK_FOR_INTERRUPTS();
		dp_key_of_tuple(v->decl, tuple, RelationGetDescr(rel), &key);
		after_delete(v, NULL, dp_tuple_document(v->decl, tuple, RelationGetDescr(rel)), &key);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	ExecDropSingleTupleTableSlot(row);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
}

/*
 * Whether a document's deletion was recorded before: by a repair, while its partition was being
 * detached.
 */
static bool
is_recorded_deleted(DpVersioning *v, const DpKey *key, struct varlena *doc)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	int64 number;
	bool result;

	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	result = dp_versioning_number(v, doc, &number) && dp_revisions_last(&store, key, &r) &&
			 r.operation == DP_VERSION_DELETE && r.revision > number;
	dp_revisions_close(&store);
	return result;
}

/* Records attached rows as inserted, detached ones as deleted. */
void
dp_versioning_partition(Oid table, Oid partition, bool attached)
{
	ListCell *lc;

	foreach(lc, dp_decls(table))
	{
		DpDecl *decl = lfirst(lc);
		DpVersioning *v;
		StringInfoData sql;
		Portal portal;
		SPIPlanPtr plan;

		if (strcmp(decl->pattern, "versioning") != 0 || decl->target != table ||
			!dp_decl_maintained(decl))
			continue;
		v = dp_versioning(decl);
		dp_versioning_require(v);
		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT ");
		dp_sql_key_list(&sql, decl);
		appendStringInfo(&sql, ", %s FROM ", quote_identifier(decl->doc_column));
		dp_sql_table(&sql, partition);
		SPI_connect();
		plan = SPI_prepare(sql.data, 0, NULL);
		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		PushActiveSnapshot(GetLatestSnapshot());
		portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
		PopActiveSnapshot();
		for (;;)
		{
			SPITupleTable *rows;

			SPI_cursor_fetch(portal, true, 100);
			rows = SPI_tuptable;
			if (SPI_processed == 0)
				break;
			for (uint64 i = 0; i < rows->numvals; i++)
			{
				DpKey key;
				bool isnull;
				Datum doc;

				CHECK_FOR_INTERRUPTS();
				key.n = decl->nkeys;
				for (int k = 0; k < key.n; k++)
					key.values[k] = SPI_getbinval(rows->vals[i], rows->tupdesc, k + 1, &isnull);
				doc = SPI_getbinval(rows->vals[i], rows->tupdesc, key.n + 1, &isnull);
				if (isnull)
					continue;
				/* frees memory after each row */
				SPI_connect();
				if (attached)
					dp_versioning_adopt(v, &key, (struct varlena *) PG_DETOAST_DATUM_PACKED(doc));
				else if (!is_recorded_deleted(v, &key,
											  (struct varlena *) PG_DETOAST_DATUM_PACKED(doc)))
					after_delete(v, NULL, (struct varlena *) PG_DETOAST_DATUM_PACKED(doc), &key);
				SPI_finish();
			}
			SPI_freetuptable(rows);
		}
		SPI_cursor_close(portal);
		SPI_finish();
	}
}
