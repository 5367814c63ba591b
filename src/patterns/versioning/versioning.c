/*
 * versioning.c
 *		The document versioning pattern: its options, and the numbers of revisions in documents.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "port/pg_crc32c.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/number.h"
#include "kit/options.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/versioning/versioning.h"

static int compare_texts(const ListCell *a, const ListCell *b);

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
void
dp_versioning_check_path(DpVersioning *v, struct varlena *doc)
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

	dp_versioning_check_path(v, doc);
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

void
dp_versioning_check_number(int64 revision)
{
	if (unlikely(revision == PG_INT64_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("revision is out of range")));
}
