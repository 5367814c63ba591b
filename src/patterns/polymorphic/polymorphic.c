/*
 * polymorphic.c
 *		The polymorphic pattern: its triggers, and validation of documents.
 *
 * BEFORE INSERT or UPDATE, for each row: validates a new document with the schemas
 * of its items' variants, which are compiled once per session.  The trigger sees
 * the document as previous triggers changed it, and changes nothing.  An update
 * that keeps the document costs a comparison.
 *
 * If another pattern stores parts of the document elsewhere, the whole document is
 * validated.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/compare.h"
#include "bson/text.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "kit/view.h"
#include "patterns/polymorphic/polymorphic.h"

/* Contents of an error message */
#define SHOWN_ERRORS 3
#define SHOWN_BYTES 80

/* A look at the items of a document */
typedef struct ItemWalk
{
	DpPoly *p;
	DpPolyReport report; /* NULL: only yes or no is asked for */
	void *arg;
	/* of the item */
	const char *variant;
	const char *part;
	const DpPolyLocation *location;
} ItemWalk;

/* The first few things that are wrong */
typedef struct Refusal
{
	StringInfoData detail;
	int n;
	char *variant; /* of the first */
	bool has_variant;
} Refusal;

static HeapTuple poly_before(DpPoly *p, TriggerData *trigdata);
static void read_variants(DpPoly *p);
static void read_schema(DpDecl *decl, struct varlena *options, const char *option, DpValue *spec,
						DpSchema **schema);
static bool each_item(const DpPath *parent, int step, const DpValue *value,
					  const DpPolyLocation *location, DpPolyVisit visit, void *arg);
static bool
visit_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg);
static bool check_names(ItemWalk *walk, const DpPolyNames *names, const DpValue *document,
						const DpPolyLocation *location);
static const DpPolyNames *find_name(const DpPolyNames *names, const char *name, uint32 len);
static bool report_error(ItemWalk *walk, const char *part, const DpPolyLocation *location,
						 const char *rule, const char *expected, const char *found);
static void report_schema(const char *path, const char *rule, const char *expected,
						  const char *found, void *arg);
static void note_error(const char *variant, const char *part, const char *path, const char *rule,
					   const char *expected, const char *found, void *arg);
static char *shown_value(const DpValue *value);
static bool poly_repair_row(DpDecl *decl, const DpKey *key);
static bool variant_repair_row(DpDecl *decl, const DpKey *key);
static void poly_refuse(DpPoly *p, const DpValue *doc) pg_attribute_noreturn();
static const DpPolyVariant *poly_variant(DpPoly *p, const DpValue *value);

static const DpOption polymorphic_options[] = {
	{ "by", DP_OPTION_PATH, DP_REQUIRED | DP_USED, DP_TEXT_INTO(DpPoly, by) },
	{ "unknown", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("error", "accept"),
	  DP_INTO(DpPoly, accept) },
	{ "common", DP_OPTION_SCHEMA, DP_ALTERABLE },
	{ NULL }
};

static const DpOption variant_options[] = {
	{ "of", DP_OPTION_TEXT, DP_REQUIRED },
	{ "variant", DP_OPTION_TEXT, DP_REQUIRED, DP_INTO(DpPolyVariant, variant) },
	{ "value", DP_OPTION_ANY, DP_REQUIRED },
	{ "schema", DP_OPTION_SCHEMA, DP_ALTERABLE },
	{ "closed", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE, DP_INTO(DpPolyVariant, closed) },
	{ "indexes", DP_OPTION_TEXTS, DP_REQUIRED | DP_ALTERABLE },
	{ "unique_keys", DP_OPTION_TEXTS, DP_REQUIRED | DP_ALTERABLE },
	{ NULL }
};

DP_DEFINE_PATTERN(polymorphic) = { .name = "polymorphic",
								   .views = "common",
								   .options = polymorphic_options,
								   .repair_row = poly_repair_row };

DP_DEFINE_PATTERN(polymorphic_variant) = { .name = "polymorphic_variant",
										   .creator = "polymorphic_variant",
										   .options = variant_options,
										   .repair_row = variant_repair_row };

/*
 * polymorphic_trigger(): the trigger of the pattern.
 */
DP_FUNCTION(dp_polymorphic_trigger);
Datum
dp_polymorphic_trigger(PG_FUNCTION_ARGS)
{
	DpDecl *decl = dp_trigger_enter(fcinfo, "polymorphic", DP_BEFORE_ROW(DP_INSERT | DP_UPDATE));

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	return PointerGetDatum(poly_before(dp_poly(decl), (TriggerData *) fcinfo->context));
}

/*
 * polymorphic_variant_trigger(): carries the declaration of a variant and has
 * nothing to do.
 */
DP_FUNCTION(dp_polymorphic_variant_trigger);
Datum
dp_polymorphic_variant_trigger(PG_FUNCTION_ARGS)
{
	(void) dp_trigger_require(fcinfo, "polymorphic_variant",
							  DP_BEFORE_STATEMENT(DP_ANY) | DP_AFTER_STATEMENT(DP_ANY), 1);
	return PointerGetDatum(NULL);
}

/*
 * BEFORE INSERT or UPDATE of a row, which is returned as it is.
 */
static HeapTuple
poly_before(DpPoly *p, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	struct varlena *doc;
	DpValue value;

	if (is_update && dp_trigger_same_document(trigdata, p->decl))
		return tuple;
	doc = dp_tuple_document(p->decl, tuple, desc);
	if (doc == NULL)
		return tuple;
	if (p->splits && is_update)
	{
		DpMarkKind mark = dp_marked(p->decl->target, NULL);

		/* the pattern that splits it moves validated parts */
		if (mark == DP_MARK_INTERNAL &&
			dp_whole_view.is_changed(NULL, dp_decls(p->decl->relid), doc))
			return tuple;
		if (mark == DP_MARK_NONE)
		{
			DpKey key;

			dp_key_of_tuple(p->decl, tuple, desc, &key);
			doc = dp_whole_document(dp_decls(p->decl->relid), doc, &key, true);
		}
	}
	value = dp_value_of_document(doc);
	if (!dp_poly_valid(p, &value))
		poly_refuse(p, &value);
	return tuple;
}

/* ---------------------------------------------------------------- declarations */

/* Returns the options of a declaration, read once. */
DpPoly *
dp_poly(DpDecl *decl)
{
	DpPoly *p = decl->state;
	DpPath *by;
	MemoryContext old;
	const char **names;
	uint32 *lens;
	ListCell *lc;
	int i;

	if (likely(p != NULL))
		return p;
	old = MemoryContextSwitchTo(decl->context);
	p = palloc0(sizeof(DpPoly));
	p->decl = decl;
	dp_options_read(decl, p);
	by = dp_path_parse(p->by, strlen(p->by));
	p->nsteps = by->nsteps - 1;
	if (p->nsteps > 0)
	{
		names = palloc(sizeof(char *) * p->nsteps);
		lens = palloc(sizeof(uint32) * p->nsteps);
		for (i = 0; i < p->nsteps; i++)
		{
			names[i] = by->steps[i].name;
			lens[i] = by->steps[i].namelen;
		}
		p->parent = dp_path_of_names(p->nsteps, names, lens);
	}
	p->field = dp_path_of_name(by->steps[p->nsteps].name, by->steps[p->nsteps].namelen);
	read_schema(decl, decl->options, "common", &p->common_spec, &p->common);
	read_variants(p);
	foreach(lc, dp_decls(decl->relid))
	{
		const DpPattern *m = ((DpDecl *) lfirst(lc))->methods;

		p->splits |= m->is_split != NULL;
	}
	MemoryContextSwitchTo(old);
	decl->state = p;
	return p;
}

/* The variants that are declared, and the table by which they are found. */
static void
read_variants(DpPoly *p)
{
	List *decls = dp_decls(p->decl->target);
	uint32 size = 8;
	ListCell *lc;
	int i;

	p->variants = palloc0(sizeof(DpPolyVariant) * Max(list_length(decls), 1));
	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);
		char *of;
		DpPolyVariant *v = &p->variants[p->nvariants];
		struct varlena *options;

		if (strcmp(decl->pattern, "polymorphic_variant") != 0)
			continue;
		of = dp_decl_text(decl, "of");
		if (of == NULL || strcmp(of, p->decl->name) != 0)
			continue;
		/* the table's declarations may be forgotten before those of a partition */
		options = dp_document_to_varlena(DP_DOC_DATA(decl->options), DP_DOC_SIZE(decl->options));
		dp_options_read(decl, v);
		if (!dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), "value", 5, &v->value))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the declaration of the variant \"%s\" of table \"%s\" is incomplete",
							decl->name, dp_relation_name(decl->target))));
		v->variant = pstrdup(v->variant);
		v->hash = dp_value_hash(&v->value, 0);
		read_schema(decl, options, "schema", &v->schema_spec, &v->schema);
		p->nvariants++;
	}
	for (i = 0; i < p->nvariants; i++)
	{
		if (p->variants[i].closed)
			p->variants[i].foreign = dp_poly_foreign(p, &p->variants[i]);
	}

	while (size < p->nvariants * 2)
		size *= 2;
	p->mask = size - 1;
	p->table = palloc(sizeof(int16) * size);
	memset(p->table, 0xFF, sizeof(int16) * size);
	for (i = 0; i < p->nvariants; i++)
	{
		uint32 slot = (uint32) p->variants[i].hash & p->mask;

		while (p->table[slot] >= 0)
			slot = (slot + 1) & p->mask;
		p->table[slot] = i;
	}
}

/* Compiles a schema that is an option, if it is there. */
static void
read_schema(DpDecl *decl, struct varlena *options, const char *option, DpValue *spec,
			DpSchema **schema)
{
	spec->type = DP_TYPE_EOD;
	if (!dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), option, strlen(option),
						  spec) ||
		spec->type != DP_TYPE_DOCUMENT)
	{
		spec->type = DP_TYPE_EOD;
		return;
	}
	*schema = dp_schema_compile(spec, NULL);
}

/* The variant with that value of the field, or NULL. */
static const DpPolyVariant *
poly_variant(DpPoly *p, const DpValue *value)
{
	uint64 hash;
	uint32 slot;
	int i;
	DpPolyVariant **recent =
		&p->recent[(value->len * 5 +
					(value->len > 4 ? value->data[4] * 3 + value->data[value->len / 2] : 0)) %
				   POLY_RECENT];

	if (likely(*recent != NULL && dp_value_identical(&(*recent)->value, value)))
		return *recent;
	hash = dp_value_hash(value, 0);
	slot = (uint32) hash & p->mask;
	while ((i = p->table[slot]) >= 0)
	{
		DpPolyVariant *v = &p->variants[i];

		if (v->hash == hash && dp_value_compare(&v->value, value) == 0)
		{
			*recent = v;
			return v;
		}
		slot = (slot + 1) & p->mask;
	}
	return NULL;
}

/* ---------------------------------------------------------------- items */

bool
dp_poly_each(const DpPath *parent, const DpValue *doc, DpPolyVisit visit, void *arg)
{
	if (parent == NULL)
		return visit(doc, true, NULL, arg);
	return each_item(parent, 0, doc, NULL, visit, arg);
}

/*
 * Continues at a value after the first steps of the path. Visits the elements of arrays, but not
 * of arrays in arrays; a number in the path is a position in an array.
 */
static bool
each_item(const DpPath *parent, int step, const DpValue *value, const DpPolyLocation *location,
		  DpPolyVisit visit, void *arg)
{
	DpValue next;

	check_stack_depth();
	if (value->type == DP_TYPE_ARRAY)
	{
		DpIter iter;
		uint32 index;

		if (step < parent->nsteps && parent->steps[step].is_index)
		{
			DpPolyLocation here = { location, parent->steps[step].name, parent->steps[step].namelen,
									0 };

			if (!dp_array_element(value->data, value->len, parent->steps[step].index, &next))
				return true;
			return each_item(parent, step + 1, &next, &here, visit, arg);
		}
		dp_iter_init_value(&iter, value);
		for (index = 0; dp_iter_next_value(&iter, &next); index++)
		{
			DpPolyLocation here = { location, NULL, 0, index };

			if (next.type == DP_TYPE_DOCUMENT)
			{
				if (!each_item(parent, step, &next, &here, visit, arg))
					return false;
			}
			else if (!visit(&next, false, &here, arg))
				return false;
		}
		return true;
	}
	if (value->type == DP_TYPE_NULL || value->type == DP_TYPE_UNDEFINED)
		return true;
	if (value->type != DP_TYPE_DOCUMENT)
		return visit(value, false, location, arg);
	if (step == parent->nsteps)
		return visit(value, true, location, arg);
	if (dp_field_find(value->data, value->len, parent->steps[step].name,
					  parent->steps[step].namelen, &next))
	{
		DpPolyLocation here = { location, parent->steps[step].name, parent->steps[step].namelen,
								0 };

		return each_item(parent, step + 1, &next, &here, visit, arg);
	}
	return true;
}

void
dp_poly_location_text(StringInfo out, const DpPolyLocation *location)
{
	const char *name;
	DpPath *path;

	if (location == NULL)
		return;
	dp_poly_location_text(out, location->up);
	if (out->len > 0)
		appendStringInfoChar(out, '.');
	if (location->name == NULL)
	{
		appendStringInfo(out, "%u", location->index);
		return;
	}
	name = location->name;
	path = dp_path_of_name(name, location->namelen);
	dp_path_to_text(out, path);
	pfree(path);
}

bool
dp_poly_valid(DpPoly *p, const DpValue *doc)
{
	ItemWalk walk = { p };

	return dp_poly_each(p->parent, doc, visit_item, &walk);
}

void
dp_poly_errors(DpPoly *p, const DpValue *doc, DpPolyReport report, void *arg)
{
	ItemWalk walk = { p, report, arg };

	(void) dp_poly_each(p->parent, doc, visit_item, &walk);
}

/* Validates one item. Returns false if it is invalid and the caller needs no more errors. */
static bool
visit_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg)
{
	ItemWalk *walk = arg;
	DpPoly *p = walk->p;
	const DpPolyVariant *v = NULL;
	DpValue kind;
	bool has_kind;
	bool ok = true;

	walk->variant = NULL;
	walk->location = location;
	if (!is_item)
	{
		if (p->accept)
			return true;
		return report_error(walk, "by", location, "bsonType", "object", dp_type_name(item->type));
	}
	has_kind = dp_field_find(item->data, item->len, p->field->steps[0].name,
							 p->field->steps[0].namelen, &kind);
	if (has_kind)
		v = poly_variant(p, &kind);
	if (v == NULL && !p->accept)
	{
		DpPolyLocation here = { location, p->field->steps[0].name, p->field->steps[0].namelen, 0 };

		ok = report_error(walk, "by", &here, "variant", "a declared variant",
						  walk->report == NULL ? NULL
						  : has_kind           ? shown_value(&kind)
											   : "missing");
		if (!ok)
			return false;
	}
	if (v != NULL)
		walk->variant = v->variant;
	if (p->common != NULL)
	{
		if (walk->report == NULL)
		{
			if (!dp_schema_match(p->common, item))
				return false;
		}
		else
		{
			walk->part = "common";
			(void) dp_schema_errors(p->common, item, report_schema, walk);
		}
	}
	if (v == NULL)
		return true;
	if (v->schema != NULL)
	{
		if (walk->report == NULL)
		{
			if (!dp_schema_match(v->schema, item))
				return false;
		}
		else
		{
			walk->part = "variant";
			(void) dp_schema_errors(v->schema, item, report_schema, walk);
		}
	}
	if (v->foreign != NULL)
		return check_names(walk, v->foreign, item, location);
	return true;
}

/* Fields that belong to other variants. */
static bool
check_names(ItemWalk *walk, const DpPolyNames *names, const DpValue *document,
			const DpPolyLocation *location)
{
	DpIter iter;
	DpElement field;

	check_stack_depth();
	dp_iter_init_value(&iter, document);
	while (dp_iter_next(&iter, &field))
	{
		const DpPolyNames *below;
		DpPolyLocation here = { location, field.name, field.namelen, 0 };

		if ((names->filter & dp_poly_name_bit(field.name, field.namelen)) == 0)
			continue;
		below = find_name(names, field.name, field.namelen);
		if (below == NULL)
			continue;
		if (below->refused)
		{
			if (!report_error(walk, "closed", &here, "closed", "no field of other variants",
							  dp_type_name(field.value.type)))
				return false;
		}
		else if (field.value.type == DP_TYPE_DOCUMENT)
		{
			if (!check_names(walk, below, &field.value, &here))
				return false;
		}
		else if (field.value.type == DP_TYPE_ARRAY)
		{
			DpIter elements;
			DpValue element;
			uint32 index;

			dp_iter_init_value(&elements, &field.value);
			for (index = 0; dp_iter_next_value(&elements, &element); index++)
			{
				DpPolyLocation there = { &here, NULL, 0, index };

				if (element.type == DP_TYPE_DOCUMENT && !check_names(walk, below, &element, &there))
					return false;
			}
		}
	}
	return true;
}

static const DpPolyNames *
find_name(const DpPolyNames *names, const char *name, uint32 len)
{
	int i;

	for (i = 0; i < names->nbelow; i++)
	{
		if (names->below[i].namelen == len && memcmp(names->below[i].name, name, len) == 0)
			return &names->below[i];
	}
	return NULL;
}

/* ---------------------------------------------------------------- reports */

/* Reports an error at a path. Returns whether to continue. */
static bool
report_error(ItemWalk *walk, const char *part, const DpPolyLocation *location, const char *rule,
			 const char *expected, const char *found)
{
	StringInfoData path;

	if (walk->report == NULL)
		return false;
	initStringInfo(&path);
	dp_poly_location_text(&path, location);
	walk->report(walk->variant, part, path.data, rule, expected, found, walk->arg);
	return true;
}

/* A rule of a schema: the path is one in the item. */
static void
report_schema(const char *path, const char *rule, const char *expected, const char *found,
			  void *arg)
{
	ItemWalk *walk = arg;
	StringInfoData full;

	initStringInfo(&full);
	dp_poly_location_text(&full, walk->location);
	if (full.len > 0 && path[0] != '\0')
		appendStringInfoChar(&full, '.');
	appendStringInfoString(&full, path);
	walk->report(walk->variant, walk->part, full.data, rule, expected, found, walk->arg);
}

/* For an error: the first few. */
static void
note_error(const char *variant, const char *part, const char *path, const char *rule,
		   const char *expected, const char *found, void *arg)
{
	Refusal *r = arg;

	if (r->n++ >= SHOWN_ERRORS)
		return;
	if (r->n == 1)
	{
		r->has_variant = variant != NULL;
		if (variant != NULL)
			r->variant = pstrdup(variant);
	}
	if (r->n > 1)
		appendStringInfoChar(&r->detail, '\n');
	if (path[0] != '\0')
		appendStringInfo(&r->detail, "Field \"%s\": ", path);
	else
		appendStringInfoString(&r->detail, "Document: ");
	if (variant != NULL && r->n > 1 && (!r->has_variant || strcmp(variant, r->variant) != 0))
		appendStringInfo(&r->detail, "variant \"%s\", ", variant);
	appendStringInfo(&r->detail, "rule \"%s\"%s, expected %s, found %s.", rule,
					 strcmp(part, "common") == 0 ? " of all variants" : "", expected, found);
}

/*
 * The document is refused.
 */
static void
poly_refuse(DpPoly *p, const DpValue *doc)
{
	Refusal r = { 0 };

	initStringInfo(&r.detail);
	dp_poly_errors(p, doc, note_error, &r);
	if (r.n > SHOWN_ERRORS)
		appendStringInfo(&r.detail, "\nAnd %d more.", r.n - SHOWN_ERRORS);
	ereport(ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 r.has_variant ? errmsg("document is not valid for variant \"%s\" of table \"%s\"",
									r.variant, dp_relation_name(p->decl->target))
						   : errmsg("document does not match a variant of table \"%s\"",
									dp_relation_name(p->decl->target)),
			 errdetail_internal("%s", r.detail.data)));
}

/* A value for people to read, its beginning if it is long. */
static char *
shown_value(const DpValue *value)
{
	StringInfoData out;

	if (dp_type_is_container(value->type))
		return psprintf("%s", dp_type_name(value->type));
	initStringInfo(&out);
	dp_value_to_text(&out, value, DP_TEXT_RELAXED, -1);
	if (out.len > SHOWN_BYTES)
	{
		out.len = pg_mbcliplen(out.data, out.len, SHOWN_BYTES);
		out.data[out.len] = '\0';
		appendStringInfoString(&out, "...");
	}
	return out.data;
}

/* ---------------------------------------------------------------- building */

/*
 * pattern_build: a document that is wrong cannot be put right here, it is
 * refused.  Called inside SPI_connect().
 */
static bool
poly_repair_row(DpDecl *decl, const DpKey *key)
{
	DpPoly *p = dp_poly(decl);
	struct varlena *doc;
	DpValue value;
	if (!dp_row_read(decl, key, "", 0, &doc) || doc == NULL)
		return false;
	if (p->splits)
		doc = dp_whole_document(dp_decls(p->decl->relid), doc, key, true);
	value = dp_value_of_document(doc);
	if (!dp_poly_valid(p, &value))
		ereport(
			ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("document with key %s does not match a variant of table \"%s\"",
					dp_key_to_text(decl, key), dp_relation_name(decl->target)),
			 errhint(
				 "polymorphic_errors() and pattern_check() show the errors; polymorphic_retype() changes the variant.")));
	return false;
}

/* DpPattern: for a variant validates the document with all variants. */
static bool
variant_repair_row(DpDecl *decl, const DpKey *key)
{
	return poly_repair_row(dp_decl_find(decl->target, "polymorphic", dp_decl_text(decl, "of")),
						   key);
}
