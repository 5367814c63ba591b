/*
 * single_table.c
 *		Single tables: declarations, and the item of a document.
 *
 * Keys are derived from the fields in their templates; a missing field is read from
 * the given key.  A document without an entity keeps its given keys.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/number.h"
#include "bson/reader.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "patterns/single_table/single_table.h"

static char *option_text(const DpValue *document, const char *name);
static DpTemplate *option_template(const DpValue *document, const char *name);
static void entity_compile(DpEntity *entity, const char *name, const DpValue *spec);
static AttrNumber column(DpSingleTable *s, const char *name);
static DpEntity *
entity_infer(DpSingleTable *s, const char *pk, uint32 pklen, const char *sk, uint32 sklen);
static bool entity_keys(DpSingleTable *s, DpEntity *entity, DpItem *item, DpItemProblem *problem);
static bool own_keys(DpSingleTable *s, DpItem *item, DpItemProblem *problem);
static void entity_indexes(DpSingleTable *s, DpEntity *entity, DpItem *item);
static void fields_fill(DpItem *item, const DpTemplate *t, const char *field);
static bool string_field(struct varlena *doc, const char *field, DpValue *value);
static void item_document(DpSingleTable *s, DpItem *item);
static bool field_is(struct varlena *doc, const char *field, const char *wanted);
static bool refuse(DpItemProblem *problem, int sqlstate, char *message, char *detail);
static void set_text(HeapTuple tuple, TupleDesc desc, AttrNumber attnum, const char *wanted,
					 int *cols, Datum *values, bool *nulls, int *n);
static DpSingleTable *single_table_of(DpDecl *decl);
static char *single_table_seen(DpDecl *decl);

/* ---------------------------------------------------------------- declarations */

/* Reads a declaration. */
static DpSingleTable *
single_table_of(DpDecl *decl)
{
	DpSingleTable *s;
	MemoryContext old;
	DpValue options = dp_value_of_document(decl->options);
	DpValue entities;
	int i;

	if (decl->state != NULL)
		return decl->state;
	old = MemoryContextSwitchTo(decl->context);
	s = palloc0(sizeof(DpSingleTable));
	s->decl = decl;
	dp_options_read(decl, s);
	if (dp_document_find(options.data, options.len, "entities", 8, &entities) &&
		entities.type == DP_TYPE_DOCUMENT)
	{
		DpIter iter;
		DpElement element;

		s->entities =
			palloc0(sizeof(DpEntity) * Max(dp_document_count(entities.data, entities.len), 1));
		dp_iter_init_value(&iter, &entities);
		while (dp_iter_next(&iter, &element))
			entity_compile(&s->entities[s->nentities++], pnstrdup(element.name, element.namelen),
						   &element.value);
	}
	s->pk = column(s, "pk");
	s->sk = column(s, "sk");
	s->entity = column(s, "entity");
	s->expires_at = s->ttl != NULL ? column(s, "expires_at") : InvalidAttrNumber;
	for (i = 0; i < s->nindexes; i++)
	{
		s->gsi_pk[i] = column(s, psprintf("gsi%d_pk", i + 1));
		s->gsi_sk[i] = column(s, psprintf("gsi%d_sk", i + 1));
	}
	MemoryContextSwitchTo(old);
	decl->state = s;
	return s;
}

DpSingleTable *
dp_single_table_of(Oid relid)
{
	ListCell *lc;

	foreach(lc, dp_decls(relid))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, "single_table") == 0)
			return single_table_of(decl);
	}
	ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
					errmsg("\"%s\" is not a single table", dp_relation_name(relid)),
					errhint("Create it with single_table_create().")));
}

DpEntity *
dp_single_table_entity(DpSingleTable *s, const char *name, uint32 len)
{
	int i;

	for (i = 0; i < s->nentities; i++)
	{
		if (strlen(s->entities[i].name) == len && memcmp(s->entities[i].name, name, len) == 0)
			return &s->entities[i];
	}
	return NULL;
}

const char *
dp_gsi_field(int n, bool sk)
{
	static const char *const fields[DP_SINGLE_TABLE_INDEXES][2] = { { "GSI1PK", "GSI1SK" },
																	{ "GSI2PK", "GSI2SK" },
																	{ "GSI3PK", "GSI3SK" },
																	{ "GSI4PK", "GSI4SK" },
																	{ "GSI5PK", "GSI5SK" } };

	return fields[n][sk ? 1 : 0];
}

/* A member of a document of options that is a text, or NULL. */
static char *
option_text(const DpValue *document, const char *name)
{
	DpValue value;

	if (!dp_document_find(document->data, document->len, name, strlen(name), &value) ||
		value.type != DP_TYPE_STRING)
		return NULL;
	return pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
}

static DpTemplate *
option_template(const DpValue *document, const char *name)
{
	char *text = option_text(document, name);

	return text != NULL ? dp_template_parse(text) : NULL;
}

/* The templates of an entity. */
static void
entity_compile(DpEntity *entity, const char *name, const DpValue *spec)
{
	int i;

	entity->name = pstrdup(name);
	if (spec->type != DP_TYPE_DOCUMENT || (entity->pk = option_template(spec, "pk")) == NULL ||
		(entity->sk = option_template(spec, "sk")) == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("entity \"%s\" requires the templates pk and sk", name)));
	for (i = 0; i < DP_SINGLE_TABLE_INDEXES; i++)
	{
		entity->gsi_pk[i] = option_template(spec, psprintf("gsi%d_pk", i + 1));
		entity->gsi_sk[i] = option_template(spec, psprintf("gsi%d_sk", i + 1));
	}
	for (i = 0; i < entity->pk->nparts; i++)
		entity->literals += entity->pk->parts[i].len;
	for (i = 0; i < entity->sk->nparts; i++)
		entity->literals += entity->sk->parts[i].len;
}

/* A column that the table must have. */
static AttrNumber
column(DpSingleTable *s, const char *name)
{
	AttrNumber attnum = get_attnum(s->decl->relid, name);

	if (attnum <= 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the single table \"%s\" has no column \"%s\"",
							   dp_relation_name(s->decl->relid), name),
						errhint("Rename the column back.")));
	return attnum;
}

/* ---------------------------------------------------------------- items */

bool
dp_item_compute(DpSingleTable *s, struct varlena *doc, const char *entity, DpItem *item,
				DpItemProblem *problem)
{
	DpEntity *e = NULL;
	DpValue value;
	DpValue pk;
	DpValue sk;

	memset(item, 0, sizeof(DpItem));
	item->doc = doc;
	if (dp_document_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), "entity", 6, &value) &&
		value.type == DP_TYPE_STRING)
		entity = pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	if (entity != NULL)
	{
		e = dp_single_table_entity(s, entity, strlen(entity));
		item->entity = pstrdup(entity);
	}
	else if (string_field(doc, "PK", &pk) && string_field(doc, "SK", &sk))
	{
		e = entity_infer(s, DP_STRING_DATA(&pk), DP_STRING_LEN(&pk), DP_STRING_DATA(&sk),
						 DP_STRING_LEN(&sk));
		item->entity = e != NULL ? pstrdup(e->name) : NULL;
	}
	if (!(e != NULL ? entity_keys(s, e, item, problem) : own_keys(s, item, problem)))
		return false;
	entity_indexes(s, e, item);
	item_document(s, item);
	item->expires = s->ttl != NULL &&
					dp_path_find(DP_DOC_DATA(item->doc), DP_DOC_SIZE(item->doc), s->ttl, &value) &&
					dp_value_expiry(&value, &item->expires_at);
	return true;
}

void
dp_item_refuse(DpSingleTable *s, const DpItemProblem *problem)
{
	ereport(ERROR, (errcode(problem->sqlstate), errmsg("%s", problem->message),
					problem->detail != NULL ? errdetail_internal("%s", problem->detail) : 0));
}

/*
 * Returns the entity whose templates match two keys; of several, the one with the most specific
 * templates.
 */
static DpEntity *
entity_infer(DpSingleTable *s, const char *pk, uint32 pklen, const char *sk, uint32 sklen)
{
	DpEntity *found = NULL;
	int i;

	for (i = 0; i < s->nentities; i++)
	{
		DpEntity *e = &s->entities[i];

		if (dp_template_match(e->pk, pk, pklen, NULL) &&
			dp_template_match(e->sk, sk, sklen, NULL) &&
			(found == NULL || e->literals > found->literals))
			found = e;
	}
	return found;
}

/* Sets PK and SK of an item of an entity, and fields that are only in them. */
static bool
entity_keys(DpSingleTable *s, DpEntity *entity, DpItem *item, DpItemProblem *problem)
{
	int i;

	fields_fill(item, entity->pk, "PK");
	fields_fill(item, entity->sk, "SK");
	for (i = 0; i < 2; i++)
	{
		const DpTemplate *t = i == 0 ? entity->pk : entity->sk;
		const char *name = i == 0 ? "PK" : "SK";
		DpValue doc = dp_value_of_document(item->doc);
		const char *field = NULL;
		StringInfoData out;

		initStringInfo(&out);
		switch (dp_template_format(t, &doc, &out, &field))
		{
			case DP_TEMPLATE_OK:
				break;
			case DP_TEMPLATE_MISSING:
				return refuse(problem, ERRCODE_NOT_NULL_VIOLATION,
							  psprintf("an item of entity \"%s\" has no \"%s\"", entity->name,
									   field),
							  psprintf("%s is made by the template \"%s\".", name, t->text));
			case DP_TEMPLATE_EMPTY:
				return refuse(problem, ERRCODE_CHECK_VIOLATION,
							  psprintf("\"%s\" of an item of entity \"%s\" is empty", field,
									   entity->name),
							  psprintf("%s is made by the template \"%s\".", name, t->text));
			case DP_TEMPLATE_UNFIT:
				return refuse(
					problem, ERRCODE_CHECK_VIOLATION,
					psprintf("\"%s\" of an item of entity \"%s\" cannot be part of a key", field,
							 entity->name),
					psprintf(
						"%s is made by the template \"%s\" from strings, numbers, dates, ids and booleans; where a template says so, from whole numbers of that many digits.",
						name, t->text));
		}
		*(i == 0 ? &item->pk : &item->sk) = out.data;
	}
	return true;
}

/* Sets the given keys of an item without an entity. */
static bool
own_keys(DpSingleTable *s, DpItem *item, DpItemProblem *problem)
{
	int i;

	for (i = 0; i < 2; i++)
	{
		const char *name = i == 0 ? "PK" : "SK";
		DpValue value;

		if (!dp_document_find(DP_DOC_DATA(item->doc), DP_DOC_SIZE(item->doc), name, strlen(name),
							  &value) ||
			value.type == DP_TYPE_NULL || value.type == DP_TYPE_UNDEFINED)
			return refuse(problem, ERRCODE_NOT_NULL_VIOLATION,
						  item->entity != NULL
							  ? psprintf("there is no entity \"%s\", and the item has no \"%s\"",
										 item->entity, name)
							  : psprintf("an item without an entity has no \"%s\"", name),
						  "An item has its keys, or \"entity\" says which templates make them.");
		if (!string_field(item->doc, name, &value))
			return refuse(problem, ERRCODE_CHECK_VIOLATION,
						  psprintf("\"%s\" of an item must be a string that is not empty", name),
						  NULL);
		*(i == 0 ? &item->pk : &item->sk) = pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	}
	return true;
}

/* Sets keys of secondary indexes: from templates, or the given ones. */
static void
entity_indexes(DpSingleTable *s, DpEntity *entity, DpItem *item)
{
	int i;

	for (i = 0; i < s->nindexes; i++)
	{
		DpValue doc = dp_value_of_document(item->doc);
		DpTemplate *pk = entity != NULL ? entity->gsi_pk[i] : NULL;
		DpTemplate *sk = entity != NULL ? entity->gsi_sk[i] : NULL;
		const char *field;
		StringInfoData out;
		DpValue value;

		if (pk != NULL)
		{
			initStringInfo(&out);
			if (dp_template_format(pk, &doc, &out, &field) != DP_TEMPLATE_OK)
				continue;
			item->gsi_pk[i] = out.data;
			item->gsi_sk[i] = "";
			if (sk == NULL)
				continue;
			initStringInfo(&out);
			if (dp_template_format(sk, &doc, &out, &field) == DP_TEMPLATE_OK)
				item->gsi_sk[i] = out.data;
			else
				item->gsi_pk[i] = item->gsi_sk[i] = NULL;
		}
		else if (string_field(item->doc, dp_gsi_field(i, false), &value))
		{
			item->gsi_pk[i] = pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
			item->gsi_sk[i] = string_field(item->doc, dp_gsi_field(i, true), &value)
								  ? pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value))
								  : "";
		}
	}
}

/* Fields of a template that the document lacks are read from the key that it has. */
static void
fields_fill(DpItem *item, const DpTemplate *t, const char *field)
{
	DpValue *values = palloc0(sizeof(DpValue) * Max(t->nparts, 1));
	bool parsed = false;
	int i;

	for (i = 0; i < t->nparts; i++)
	{
		DpValue value;

		if (t->parts[i].path == NULL ||
			(dp_path_find(DP_DOC_DATA(item->doc), DP_DOC_SIZE(item->doc), t->parts[i].path,
						  &value) &&
			 value.type != DP_TYPE_NULL && value.type != DP_TYPE_UNDEFINED))
			continue;
		if (!parsed)
		{
			if (!string_field(item->doc, field, &value) ||
				!dp_template_match(t, DP_STRING_DATA(&value), DP_STRING_LEN(&value), values))
				return;
			parsed = true;
		}
		item->doc = dp_document_set(DP_DOC_DATA(item->doc), DP_DOC_SIZE(item->doc),
									t->parts[i].path, &values[i]);
	}
}

/* A field that is a string which can be a key. */
static bool
string_field(struct varlena *doc, const char *field, DpValue *value)
{
	return dp_document_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), field, strlen(field), value) &&
		   value->type == DP_TYPE_STRING && DP_STRING_LEN(value) > 0 &&
		   memchr(DP_STRING_DATA(value), 0, DP_STRING_LEN(value)) == NULL;
}

/*
 * The document with its keys: as it is if they are in it, else with them in front.
 */
static void
item_document(DpSingleTable *s, DpItem *item)
{
	const char *names[3 + 2 * DP_SINGLE_TABLE_INDEXES];
	const char *wanted[3 + 2 * DP_SINGLE_TABLE_INDEXES];
	int n = 0;
	bool same = true;
	DpBuilder b;
	DpIter iter;
	DpElement element;
	int i;

	names[n] = "PK";
	wanted[n++] = item->pk;
	names[n] = "SK";
	wanted[n++] = item->sk;
	for (i = 0; i < s->nindexes; i++)
	{
		names[n] = dp_gsi_field(i, false);
		wanted[n++] = item->gsi_pk[i];
		names[n] = dp_gsi_field(i, true);
		wanted[n++] = item->gsi_sk[i] != NULL && *item->gsi_sk[i] != '\0' ? item->gsi_sk[i] : NULL;
	}
	if (item->entity != NULL)
	{
		names[n] = "entity";
		wanted[n++] = item->entity;
	}
	for (i = 0; i < n && same; i++)
		same = field_is(item->doc, names[i], wanted[i]);
	if (same)
		return;

	dp_builder_init(&b, DP_DOC_SIZE(item->doc) + 100);
	dp_builder_begin_document(&b);
	for (i = 0; i < n; i++)
	{
		if (wanted[i] != NULL)
			dp_builder_append_string(&b, names[i], strlen(names[i]), wanted[i], strlen(wanted[i]));
	}
	dp_iter_init_varlena(&iter, item->doc);
	while (dp_iter_next(&iter, &element))
	{
		for (i = 0; i < n; i++)
		{
			if (strlen(names[i]) == element.namelen &&
				memcmp(names[i], element.name, element.namelen) == 0)
				break;
		}
		if (i == n)
			dp_builder_append_value(&b, element.name, element.namelen, &element.value);
	}
	dp_builder_end(&b);
	item->doc = dp_builder_finish_bson(&b);
}

/* Whether a field is that string; NULL: absent. */
static bool
field_is(struct varlena *doc, const char *field, const char *wanted)
{
	DpValue value;

	if (!dp_document_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), field, strlen(field), &value))
		return wanted == NULL;
	return wanted != NULL && value.type == DP_TYPE_STRING &&
		   DP_STRING_LEN(&value) == strlen(wanted) &&
		   memcmp(DP_STRING_DATA(&value), wanted, DP_STRING_LEN(&value)) == 0;
}

static bool
refuse(DpItemProblem *problem, int sqlstate, char *message, char *detail)
{
	problem->sqlstate = sqlstate;
	problem->message = message;
	problem->detail = detail;
	return false;
}

/* ---------------------------------------------------------------- trigger */

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if an update writes a key that is neither that of the old
 * item nor what the templates make.  Old copies have keys that agree with their fields.
 */
static void
refuse_keys(DpSingleTable *s, struct varlena *old, struct varlena *given, struct varlena *made)
{
	int i;

	for (i = 0; i < 2 + 2 * s->nindexes; i++)
	{
		const char *name = i == 0 ? "PK" : i == 1 ? "SK" : dp_gsi_field(i / 2 - 1, i % 2 == 1);
		DpValue is;
		DpValue other;

		if (!dp_field_find(DP_DOC_DATA(given), DP_DOC_SIZE(given), name, strlen(name), &is) ||
			is.type == DP_TYPE_NULL ||
			(dp_field_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), name, strlen(name), &other) &&
			 dp_value_identical(&is, &other)) ||
			(dp_field_find(DP_DOC_DATA(made), DP_DOC_SIZE(made), name, strlen(name), &other) &&
			 dp_value_identical(&is, &other)))
			continue;
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg(
				 "cannot write key \"%s\" of an item of table \"%s\", which is made from other fields",
				 name, dp_relation_name(s->decl->target)),
			 errhint("Write the fields that its template names.")));
	}
}

static const DpOption options[] = {
	{ "indexes", DP_OPTION_INT, DP_REQUIRED | DP_ALTERABLE, DP_BETWEEN(0, DP_SINGLE_TABLE_INDEXES),
	  DP_INTO(DpSingleTable, nindexes) },
	{ "ttl_field", DP_OPTION_PATH, DP_ALTERABLE, DP_INTO(DpSingleTable, ttl) },
	{ "entities", DP_OPTION_DOCUMENT }, /* written by single_table_entity() */
	{ NULL }
};

DP_DEFINE_PATTERN(single_table) = { .name = "single_table",
									.whole_table = true,
									.creator = "single_table_create",
									.seen = single_table_seen,
									.options = options };

/* Calls for collections do not see expired items, as those of the pattern. */
static char *
single_table_seen(DpDecl *decl)
{
	if (single_table_of(decl)->ttl == NULL)
		return NULL;
	return pstrdup("(t.expires_at IS NULL OR t.expires_at OPERATOR(pg_catalog.>) "
				   "pg_catalog.clock_timestamp())");
}

/*
 * single_table_trigger(): BEFORE INSERT OR UPDATE, for each row.
 */
DP_FUNCTION(dp_single_table_trigger);
Datum
dp_single_table_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "single_table", DP_BEFORE_ROW(DP_INSERT | DP_UPDATE));
	DpSingleTable *s;
	HeapTuple tuple;
	TupleDesc desc;
	Datum value;
	bool isnull;
	char *entity = NULL;
	struct varlena *doc;
	DpItem item;
	DpItemProblem problem;
	int cols[6 + 2 * DP_SINGLE_TABLE_INDEXES];
	Datum values[6 + 2 * DP_SINGLE_TABLE_INDEXES];
	bool nulls[6 + 2 * DP_SINGLE_TABLE_INDEXES];
	int n = 0;
	int i;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	tuple = dp_trigger_row(trigdata);
	s = single_table_of(decl);
	desc = RelationGetDescr(trigdata->tg_relation);
	doc = dp_tuple_document(decl, tuple, desc);
	if (doc == NULL)
		return PointerGetDatum(tuple);
	value = heap_getattr(tuple, s->entity, desc, &isnull);
	if (!isnull)
		entity = TextDatumGetCString(value);
	if (!dp_item_compute(s, doc, entity, &item, &problem))
		dp_item_refuse(s, &problem);

	if (item.doc != doc)
	{
		if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
		{
			struct varlena *old = dp_tuple_document(decl, trigdata->tg_trigtuple, desc);

			if (old != NULL)
				refuse_keys(s, old, doc, item.doc);
		}
		cols[n] = decl->doc_attnum;
		values[n] = PointerGetDatum(item.doc);
		nulls[n++] = false;
	}
	set_text(tuple, desc, s->pk, item.pk, cols, values, nulls, &n);
	set_text(tuple, desc, s->sk, item.sk, cols, values, nulls, &n);
	set_text(tuple, desc, s->entity, item.entity, cols, values, nulls, &n);
	for (i = 0; i < s->nindexes; i++)
	{
		set_text(tuple, desc, s->gsi_pk[i], item.gsi_pk[i], cols, values, nulls, &n);
		set_text(tuple, desc, s->gsi_sk[i], item.gsi_sk[i], cols, values, nulls, &n);
	}
	if (s->ttl != NULL)
	{
		value = heap_getattr(tuple, s->expires_at, desc, &isnull);
		if (isnull == item.expires || (!isnull && DatumGetTimestampTz(value) != item.expires_at))
		{
			cols[n] = s->expires_at;
			values[n] = TimestampTzGetDatum(item.expires_at);
			nulls[n++] = !item.expires;
		}
	}
	if (n > 0)
		tuple = heap_modify_tuple_by_cols(tuple, desc, n, cols, values, nulls);
	return PointerGetDatum(tuple);
}

/* A column of the row becomes a text, or null, unless it is that already. */
static void
set_text(HeapTuple tuple, TupleDesc desc, AttrNumber attnum, const char *wanted, int *cols,
		 Datum *values, bool *nulls, int *n)
{
	bool isnull;
	Datum value = heap_getattr(tuple, attnum, desc, &isnull);

	if (isnull && wanted == NULL)
		return;
	if (!isnull && wanted != NULL)
	{
		text *t = DatumGetTextPP(value);

		if (VARSIZE_ANY_EXHDR(t) == strlen(wanted) &&
			memcmp(VARDATA_ANY(t), wanted, strlen(wanted)) == 0)
			return;
	}
	cols[*n] = attnum;
	nulls[*n] = wanted == NULL;
	values[*n] = wanted == NULL ? (Datum) 0 : CStringGetTextDatum(wanted);
	(*n)++;
}
