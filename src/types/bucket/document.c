/*
 * document.c
 *		The document of a bucket: the default one, and those from a template.
 *
 * A template is compiled into an expression over a document with facts about the bucket.  What an
 * expression cannot compute is replaced in the template first: accumulators over columns and arrays
 * with an element for each measurement become fields of that document, under names that no column
 * has.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "mql/expression_node.h"
#include "types/bucket/accumulate.h"
#include "types/bucket/document.h"

/* Prefix of the names of fields that replace parts of a template */
#define MARK '\001'

/* A field of an element that is a plain copy */
typedef struct RowCopy
{
	const char *name; /* in the element */
	uint32 namelen;
	const char *from; /* a measured column, or the time */
	uint32 fromlen;
} RowCopy;

/* An accumulator, or an array with an element for each measurement */
typedef struct Part
{
	bool is_rows;
	bool is_push;
	DpBucketAccumulator what;
	const char *column;
	uint32 columnlen;
	DpExpr *element; /* NULL: copies */
	int ncopies;
	RowCopy *copies;
} Part;

struct DpBucketDocument
{
	int ngroups;
	char **groups;
	DpConverter *converters;
	int nvalues;
	const char **values;
	bool values_known;
	char *time;
	bool end_exclusive;
	DpExpr *expression; /* NULL: the default document */
	int nparts;
	int maxparts;
	Part *parts;
	bool wants_time; /* the times as an array */
	int nwanted;     /* columns needed as arrays */
	int maxwanted;
	const char **wanted;
};

/* The meaning of names in a template */
typedef enum NameKind
{
	NAME_UNKNOWN,
	NAME_GROUP,
	NAME_SPECIAL,
	NAME_TIME,
	NAME_MEASURED
} NameKind;

/* A bucket from which a document is made */
typedef struct Source
{
	DpBucketReader reader;
	DpBucketFields fields;
	DpBucketRows rows; /* decoded when they are needed first */
	bool has_rows;
	const char
		*documents; /* how templates name the column of documents whose fields these are; or NULL */
	DpBuilder common; /* fields of the group, start, end and count */
} Source;

static void rewrite(DpBucketDocument *d, DpBuilder *b, const char *name, uint32 namelen,
					const DpValue *spec, bool in_row);
static void source_rows(DpBucketDocument *d, Source *s);
static void
append_common(DpBucketDocument *d, DpBuilder *b, const Datum *groups, const bool *nulls);
static void append_ends(DpBucketDocument *d, DpBuilder *b, const char *start_name,
						const char *end_name, const int64 *start, const int64 *until);
static void append_default(DpBucketDocument *d, Source *s, DpBuilder *b);
static void append_sums(Source *s, DpBuilder *b);
static void append_part(DpBucketDocument *d, Source *s, DpBuilder *b, int number);
static void append_wanted(DpBucketDocument *d, Source *s, DpBuilder *b);
static bool accumulator_known(const char *name, uint32 len, Part *part);
static NameKind name_kind(const DpBucketDocument *d, const char *name, uint32 len, bool in_row);

/* ---------------------------------------------------------------- compiling */

DpBucketDocument *
dp_bucket_document_compile(const DpBucketDocumentDef *def)
{
	DpBucketDocument *d = palloc0(sizeof(DpBucketDocument));
	DpBuilder b;
	DpIter iter;
	DpElement element;
	DpValue spec;

	d->ngroups = def->ngroups;
	d->groups = palloc(Max(def->ngroups, 1) * sizeof(char *));
	d->converters = palloc(Max(def->ngroups, 1) * sizeof(DpConverter));
	for (int i = 0; i < def->ngroups; i++)
	{
		d->groups[i] = pstrdup(def->groups[i]);
		dp_converter_init(&d->converters[i], def->group_types[i], CurrentMemoryContext);
	}
	d->nvalues = def->nvalues;
	d->values = palloc(Max(def->nvalues, 1) * sizeof(char *));
	for (int i = 0; i < def->nvalues; i++)
		d->values[i] = pstrdup(def->values[i]);
	d->values_known = def->values_known;
	d->time = def->time != NULL ? pstrdup(def->time) : NULL;
	d->end_exclusive = def->end_exclusive;
	if (def->template == NULL)
		return d;

	spec = dp_value_of_document(dp_document_to_varlena(def->template->data, def->template->len));
	dp_builder_init(&b, spec.len);
	dp_builder_begin_document(&b);
	dp_iter_init_value(&iter, &spec);
	while (dp_iter_next(&iter, &element))
		rewrite(d, &b, element.name, element.namelen, &element.value, false);
	dp_builder_end(&b);
	spec = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	d->expression = dp_expr_compile(&spec, 0, "document");
	return d;
}

static bool
same_name(const char *a, uint32 alen, const char *b)
{
	return b != NULL && strlen(b) == alen && memcmp(a, b, alen) == 0;
}

/* The meaning of a name.  Measured columns come first in elements, last elsewhere. */
static NameKind
name_kind(const DpBucketDocument *d, const char *name, uint32 len, bool in_row)
{
	for (int pass = 0; pass < 2; pass++)
	{
		if ((pass == 0) == in_row)
		{
			if (same_name(name, len, d->time))
				return NAME_TIME;
			for (int i = 0; i < d->nvalues; i++)
			{
				if (same_name(name, len, d->values[i]))
					return NAME_MEASURED;
			}
		}
		else
		{
			if (same_name(name, len, "start") || same_name(name, len, "end") ||
				same_name(name, len, "count"))
				return NAME_SPECIAL;
			for (int i = 0; i < d->ngroups; i++)
			{
				if (same_name(name, len, d->groups[i]))
					return NAME_GROUP;
			}
		}
	}
	return d->values_known ? NAME_UNKNOWN : NAME_MEASURED;
}

/* The first part of a field path "$a.b" or "$$ROOT.a.b"; false for anything else. */
static bool
path_head(const DpValue *v, const char **name, uint32 *len)
{
	static const char *const prefixes[] = { "$$ROOT.", "$$CURRENT." };
	const char *s;
	const char *dot;
	uint32 n;

	if (v->type != DP_TYPE_STRING)
		return false;
	s = DP_STRING_DATA(v);
	n = DP_STRING_LEN(v);
	if (n < 2 || s[0] != '$')
		return false;
	if (s[1] != '$')
	{
		s++;
		n--;
	}
	else
	{
		int i;

		for (i = 0; i < (int) lengthof(prefixes); i++)
		{
			uint32 plen = strlen(prefixes[i]);

			if (n > plen && memcmp(s, prefixes[i], plen) == 0)
			{
				s += plen;
				n -= plen;
				break;
			}
		}
		if (i == (int) lengthof(prefixes))
			return false;
	}
	dot = memchr(s, '.', n);
	*name = s;
	*len = dot != NULL ? dot - s : n;
	return true;
}

static void
pg_attribute_noreturn() no_such_column(const char *name, uint32 len)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("document of a bucket refers to \"%.*s\", which is not a column",
					(int) Min(len, 100), name),
			 errhint("Valid names are those of columns, \"$start\", \"$end\" and \"$count\".")));
}

/* Whether something in the specification is measured: it names the time or a measured column. */
static bool
is_measured(const DpBucketDocument *d, const DpValue *spec)
{
	const char *name;
	uint32 len;
	DpIter iter;
	DpElement element;
	NameKind kind;

	check_stack_depth();
	if (path_head(spec, &name, &len))
	{
		/* what is known under another name is meant by it */
		kind = name_kind(d, name, len, false);
		return kind == NAME_TIME || kind == NAME_MEASURED;
	}
	if (!dp_type_is_container(spec->type))
		return false;
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &element))
	{
		if (element.namelen == 8 && memcmp(element.name, "$literal", 8) == 0)
			continue;
		if (is_measured(d, &element.value))
			return true;
	}
	return false;
}

/* A new part. */
static Part *
part_add(DpBucketDocument *d)
{
	if (d->nparts == d->maxparts)
	{
		d->maxparts = Max(2 * d->maxparts, 4);
		d->parts = d->parts == NULL ? palloc(d->maxparts * sizeof(Part))
									: repalloc(d->parts, d->maxparts * sizeof(Part));
	}
	memset(&d->parts[d->nparts], 0, sizeof(Part));
	return &d->parts[d->nparts++];
}

/* The path of the field that replaces a part. */
static void
append_mark(DpBuilder *b, const char *name, uint32 namelen, int number)
{
	char path[16];
	int len = snprintf(path, sizeof(path), "$%c%d", MARK, number);

	dp_builder_append_string(b, name, namelen, path, len);
}

/* Records that a column is needed as an array. */
static void
want(DpBucketDocument *d, const char *name, uint32 len)
{
	for (int i = 0; i < d->nwanted; i++)
	{
		if (same_name(name, len, d->wanted[i]))
			return;
	}
	if (d->nwanted == d->maxwanted)
	{
		d->maxwanted = Max(2 * d->maxwanted, 4);
		d->wanted = d->wanted == NULL ? palloc(d->maxwanted * sizeof(char *))
									  : repalloc(d->wanted, d->maxwanted * sizeof(char *));
	}
	d->wanted[d->nwanted++] = pnstrdup(name, len);
}

/*
 * If the document is an accumulator over a column, makes a part of it and
 * returns true.
 */
static bool
rewrite_accumulator(DpBucketDocument *d, DpBuilder *b, const char *name, uint32 namelen,
					const DpValue *spec)
{
	DpIter iter;
	DpElement element;
	DpElement more;
	Part part;
	const char *column;
	uint32 len;
	NameKind kind;

	dp_iter_init_value(&iter, spec);
	if (!dp_iter_next(&iter, &element) || dp_iter_next(&iter, &more))
		return false;
	if (element.namelen == 6 && memcmp(element.name, "$count", 6) == 0 &&
		element.value.type == DP_TYPE_DOCUMENT && element.value.len == DP_DOCUMENT_MIN_SIZE)
	{
		dp_builder_append_string(b, name, namelen, "$count", 6);
		return true;
	}
	memset(&part, 0, sizeof(part));
	if (!accumulator_known(element.name, element.namelen, &part) ||
		element.value.type != DP_TYPE_STRING)
		return false;
	column = DP_STRING_DATA(&element.value);
	len = DP_STRING_LEN(&element.value);
	if (len > 0 && column[0] == '$')
	{
		/* an ordinary expression, unless it is over a measured column */
		if (!path_head(&element.value, &column, &len))
			return false;
		kind = name_kind(d, column, len, false);
		if (kind != NAME_TIME && kind != NAME_MEASURED)
			return false;
		/* dots lead into its values */
		len = DP_STRING_DATA(&element.value) + DP_STRING_LEN(&element.value) - column;
	}
	else
	{
		const char *dot = memchr(column, '.', len);

		kind = name_kind(d, column,
						 dot != NULL && !d->values_known ? len : (dot != NULL ? dot - column : len),
						 true);
		if (kind == NAME_UNKNOWN && dot != NULL)
			kind = name_kind(d, column, len, true);
		if (kind != NAME_TIME && kind != NAME_MEASURED)
			no_such_column(column, len);
	}
	part.column = pnstrdup(column, len);
	part.columnlen = len;
	*part_add(d) = part;
	append_mark(b, name, namelen, d->nparts - 1);
	return true;
}

/* The element of an array as plain copies; false if there is more to it. */
static bool
rows_as_copies(DpBucketDocument *d, Part *part, const DpValue *spec)
{
	DpIter iter;
	DpElement element;
	int n;

	if (spec->type != DP_TYPE_DOCUMENT)
		return false;
	n = dp_document_count(spec->data, spec->len);
	part->copies = palloc(Max(n, 1) * sizeof(RowCopy));
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &element))
	{
		RowCopy *copy = &part->copies[part->ncopies];
		const char *name;
		uint32 len;
		NameKind kind;

		if (element.namelen == 0 || element.name[0] == '$' ||
			memchr(element.name, '.', element.namelen) != NULL ||
			!path_head(&element.value, &name, &len) || len != DP_STRING_LEN(&element.value) - 1)
			return false;
		kind = name_kind(d, name, len, true);
		if (kind == NAME_UNKNOWN)
			no_such_column(name, len);
		if (kind != NAME_TIME && kind != NAME_MEASURED)
			return false;
		copy->name = element.name;
		copy->namelen = element.namelen;
		copy->from = name;
		copy->fromlen = len;
		part->ncopies++;
	}
	return true;
}

/*
 * If the array has one element, which is measured, makes a part of it and
 * returns true.
 */
static bool
rewrite_rows(DpBucketDocument *d, DpBuilder *b, const char *name, uint32 namelen,
			 const DpValue *spec)
{
	DpIter iter;
	DpValue element;
	DpValue more;
	Part part;

	dp_iter_init_value(&iter, spec);
	if (!dp_iter_next_value(&iter, &element) || dp_iter_next_value(&iter, &more) ||
		!is_measured(d, &element))
		return false;
	memset(&part, 0, sizeof(part));
	part.is_rows = true;
	if (!rows_as_copies(d, &part, &element))
	{
		DpBuilder inner;
		DpValue whole;

		part.ncopies = 0;
		dp_builder_init(&inner, element.len);
		dp_builder_begin_document(&inner);
		rewrite(d, &inner, "e", 1, &element, true);
		dp_builder_end(&inner);
		whole = dp_builder_view(&inner, DP_TYPE_DOCUMENT);
		dp_iter_init_value(&iter, &whole);
		dp_iter_next_value(&iter, &whole);
		part.element = dp_expr_compile(&whole, 0, "document");
	}
	*part_add(d) = part;
	append_mark(b, name, namelen, d->nparts - 1);
	return true;
}

/*
 * Appends a part of a template with accumulators and arrays of measurements replaced, and records
 * which columns are named.
 */
static void
rewrite(DpBucketDocument *d, DpBuilder *b, const char *name, uint32 namelen, const DpValue *spec,
		bool in_row)
{
	DpIter iter;
	DpElement element;
	const char *column;
	uint32 len;

	check_stack_depth();
	if (path_head(spec, &column, &len))
	{
		NameKind kind = name_kind(d, column, len, in_row);

		if (kind == NAME_UNKNOWN)
			no_such_column(column, len);
		if (!in_row && kind == NAME_MEASURED)
			want(d, column, len);
		if (!in_row && kind == NAME_TIME)
			d->wants_time = true;
	}
	if (!dp_type_is_container(spec->type))
	{
		dp_builder_append_value(b, name, namelen, spec);
		return;
	}
	if (!in_row && spec->type == DP_TYPE_DOCUMENT && rewrite_accumulator(d, b, name, namelen, spec))
		return;
	if (!in_row && spec->type == DP_TYPE_ARRAY && rewrite_rows(d, b, name, namelen, spec))
		return;

	if (spec->type == DP_TYPE_DOCUMENT)
		dp_builder_begin_document_field(b, name, namelen);
	else
		dp_builder_begin_array_field(b, name, namelen);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &element))
	{
		if (element.namelen == 8 && memcmp(element.name, "$literal", 8) == 0)
			dp_builder_append_value(b, element.name, element.namelen, &element.value);
		else
			rewrite(d, b, element.name, element.namelen, &element.value, in_row);
	}
	dp_builder_end(b);
}

/* The accumulator of a name. */
static bool
accumulator_known(const char *name, uint32 len, Part *part)
{
	static const struct
	{
		const char *name;
		DpBucketAccumulator what;
	} known[] = { { "$sum", DP_BUCKET_SUM },
				  { "$avg", DP_BUCKET_AVG },
				  { "$min", DP_BUCKET_MIN },
				  { "$max", DP_BUCKET_MAX },
				  { "$first", DP_BUCKET_FIRST },
				  { "$last", DP_BUCKET_LAST },
				  { "$stdDevPop", DP_BUCKET_STDDEV_POP },
				  { "$stdDevSamp", DP_BUCKET_STDDEV_SAMP },
				  { "$push", DP_BUCKET_SUM } };

	for (int i = 0; i < (int) lengthof(known); i++)
	{
		if (same_name(name, len, known[i].name))
		{
			part->what = known[i].what;
			part->is_push = i == (int) lengthof(known) - 1;
			return true;
		}
	}
	return false;
}

/* ---------------------------------------------------------------- building */

struct varlena *
dp_bucket_document_build(DpBucketDocument *d, Datum bucket, const Datum *groups,
						 const bool *group_nulls, const int64 *start, const int64 *until)
{
	Source s;
	DpBuilder b;
	DpExprState state;
	DpValue root;
	DpValue result;

	memset(&s, 0, sizeof(s));
	dp_bucket_reader_init(&s.reader, CurrentMemoryContext);
	dp_bucket_open(&s.reader, bucket);
	dp_bucket_fields(&s.reader, d->values, d->nvalues, &s.fields);
	if (s.fields.split && d->nvalues == 1)
		s.documents = d->values[0];

	if (d->expression == NULL)
	{
		dp_builder_init(&b, 0);
		dp_builder_begin_document(&b);
		append_common(d, &b, groups, group_nulls);
		append_ends(d, &b, "start_date", "end_date", start, until);
		append_default(d, &s, &b);
		dp_builder_end(&b);
		return dp_builder_finish_bson(&b);
	}

	dp_builder_init(&s.common, 0);
	dp_builder_begin_document(&s.common);
	append_ends(d, &s.common, "start", "end", start, until);
	dp_builder_append_int32(&s.common, "count", 5, s.reader.count);
	append_common(d, &s.common, groups, group_nulls);
	dp_builder_end(&s.common);
	root = dp_builder_view(&s.common, DP_TYPE_DOCUMENT);

	/* what is known comes first: of two fields with one name the first is meant */
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (int i = 0; i < d->nparts; i++)
		append_part(d, &s, &b, i);
	dp_builder_append_elements(&b, root.data + 4, root.len - DP_DOCUMENT_MIN_SIZE);
	append_wanted(d, &s, &b);
	dp_builder_end(&b);

	root = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	dp_expr_state_init(&state, &root);
	if (!dp_expr_eval(d->expression, &state, &result) || result.type != DP_TYPE_DOCUMENT)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("template of a bucket's document must be a document")));
	dp_check_value_depth(&result);
	dp_check_document_size(result.len);
	return dp_document_to_varlena(result.data, result.len);
}

/* The group's columns. */
static void
append_common(DpBucketDocument *d, DpBuilder *b, const Datum *groups, const bool *nulls)
{
	for (int i = 0; i < d->ngroups; i++)
		dp_converter_append(&d->converters[i], b, d->groups[i], strlen(d->groups[i]), groups[i],
							nulls[i]);
}

/* The beginning and the end of the span, if known. */
static void
append_ends(DpBucketDocument *d, DpBuilder *b, const char *start_name, const char *end_name,
			const int64 *start, const int64 *until)
{
	if (start != NULL)
		dp_builder_append_date(b, start_name, strlen(start_name), dp_bucket_ms(*start));
	if (until != NULL)
		dp_builder_append_date(b, end_name, strlen(end_name),
							   d->end_exclusive ? dp_bucket_ms(*until) : dp_bucket_ms(*until - 1));
}

/* Decodes the measurements. */
static void
source_rows(DpBucketDocument *d, Source *s)
{
	if (s->has_rows)
		return;
	dp_bucket_rows_init(&s->rows, &s->fields);
	if (!(s->reader.flags & DP_BUCKET_TIMELESS))
		s->rows.times = dp_bucket_times_ms(&s->reader);
	s->has_rows = true;
}

/* The measurements, their number and the sums. */
static void
append_default(DpBucketDocument *d, Source *s, DpBuilder *b)
{
	source_rows(d, s);
	dp_builder_begin_array_field(b, "measurements", 12);
	for (int i = 0; i < s->rows.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		dp_builder_begin_document_field(b, NULL, 0);
		dp_bucket_rows_append(&s->rows, i, b);
		dp_builder_end(b);
		dp_check_document_size(b->len - b->head);
	}
	dp_builder_end(b);
	dp_builder_append_int32(b, "transaction_count", 17, s->reader.count);
	append_sums(s, b);
}

/* Whether the values of a field are numbers, all of them. */
static bool
is_number_field(Source *s, const DpBucketField *field)
{
	DpBucketSource source = { field->packed, field->column, NULL, 0 };
	DpValue *values;
	bool found = false;

	switch (field->packed->kind)
	{
		case DP_PACKED_INT2:
		case DP_PACKED_INT4:
		case DP_PACKED_INT8:
		case DP_PACKED_FLOAT4:
		case DP_PACKED_FLOAT8:
		case DP_PACKED_NUMERIC:
			return true;
		case DP_PACKED_VALUE:
			if (field->packed->bson_type != 0)
				return dp_type_is_number(field->packed->bson_type);
			break;
		default:
			return false;
	}

	/* BSON values of several types */
	values = dp_bucket_values_of(&s->reader, &source);
	for (int i = 0; i < s->reader.count; i++)
	{
		if (!dp_bucket_is_value(&values[i]))
			continue;
		found = dp_type_is_number(values[i].type);
		if (!found)
			break;
	}
	pfree(values);
	return found;
}

/* sum_<field> for each field of numbers. */
static void
append_sums(Source *s, DpBuilder *b)
{
	for (int i = 0; i < s->fields.n; i++)
	{
		const DpBucketField *field = &s->fields.fields[i];
		DpBucketSource source = { field->packed, field->column, NULL, 0 };
		char *name;
		DpValue sum;

		if (!is_number_field(s, field))
			continue;
		name = psprintf("sum_%.*s", (int) field->namelen, field->name);
		if (dp_bucket_accumulate(&s->reader, &source, DP_BUCKET_SUM, &sum))
			dp_builder_append_value(b, name, strlen(name), &sum);
		else
			dp_builder_append_int32(b, name, strlen(name), 0);
	}
}

/* The source of a column that a template names; false if the bucket has it not. */
static bool
find_source(Source *s, const char *name, uint32 len, DpBucketSource *source)
{
	const DpBucketField *field = dp_bucket_fields_find(&s->fields, name, len);
	const char *dot;

	source->path = NULL;
	source->step = 0;
	if (field == NULL && s->documents != NULL)
	{
		/* the documents themselves, or a field of theirs */
		uint32 n = strlen(s->documents);

		if (same_name(name, len, s->documents))
		{
			source->column = 0;
			source->packed = dp_bucket_column(&s->reader, 0);
			return true;
		}
		if (len > n && name[n] == '.' && memcmp(name, s->documents, n) == 0)
		{
			name += n + 1;
			len -= n + 1;
			field = dp_bucket_fields_find(&s->fields, name, len);
		}
	}
	if (field == NULL)
	{
		/* the rest leads into the values of the first part */
		DpPath *path;

		dot = memchr(name, '.', len);
		if (dot == NULL || (field = dp_bucket_fields_find(&s->fields, name, dot - name)) == NULL)
			return false;
		path = dp_path_parse(dot + 1, name + len - dot - 1);
		if (path->nsteps > 0)
			source->path = path;
	}
	source->column = field->column;
	source->packed = field->packed;
	return true;
}

/* An accumulator over the times. */
static void
append_time_part(DpBucketDocument *d, Source *s, DpBuilder *b, const char *name, uint32 len,
				 const Part *part)
{
	if (part->is_push)
	{
		source_rows(d, s);
		dp_builder_begin_array_field(b, name, len);
		for (int i = 0; i < s->rows.count; i++)
			dp_builder_append_date(b, NULL, 0, s->rows.times[i]);
		dp_builder_end(b);
	}
	else if (part->what == DP_BUCKET_MIN || part->what == DP_BUCKET_FIRST)
		dp_builder_append_date(b, name, len, dp_bucket_ms(s->reader.first));
	else if (part->what == DP_BUCKET_MAX || part->what == DP_BUCKET_LAST)
		dp_builder_append_date(b, name, len, dp_bucket_ms(s->reader.last));
	else if (part->what == DP_BUCKET_SUM)
		dp_builder_append_int32(b, name, len, 0);
	else
		dp_builder_append_null(b, name, len);
}

/* One element of an array of measurements. */
static void
append_element(DpBucketDocument *d, Source *s, DpBuilder *b, const Part *part,
			   const DpBucketField **from, DpBuilder *row, DpExprState *state, int i)
{
	const DpBucketRows *rows = &s->rows;
	DpValue common;
	DpValue root;
	DpValue result;

	if (part->element == NULL)
	{
		dp_builder_begin_document_field(b, NULL, 0);
		for (int k = 0; k < part->ncopies; k++)
		{
			const RowCopy *copy = &part->copies[k];

			if (same_name(copy->from, copy->fromlen, d->time) && rows->times != NULL)
				dp_builder_append_date(b, copy->name, copy->namelen, rows->times[i]);
			else if (rows->documents != NULL)
			{
				DpValue v;

				if (rows->documents[i].type != DP_TYPE_DOCUMENT)
					continue;
				if (dp_document_find(rows->documents[i].data, rows->documents[i].len, copy->from,
									 copy->fromlen, &v))
					dp_builder_append_nested(b, copy->name, copy->namelen, &v);
				else if (same_name(copy->from, copy->fromlen, s->documents))
					dp_builder_append_nested(b, copy->name, copy->namelen, &rows->documents[i]);
			}
			else if (from[k] != NULL &&
					 rows->values[from[k] - rows->columns][i].type != DP_TYPE_EOD)
				dp_builder_append_nested(b, copy->name, copy->namelen,
										 &rows->values[from[k] - rows->columns][i]);
		}
		dp_builder_end(b);
		return;
	}

	dp_builder_reset(row);
	dp_builder_begin_document(row);
	if (rows->times != NULL && d->time != NULL)
		dp_builder_append_date(row, d->time, strlen(d->time), rows->times[i]);
	if (rows->documents != NULL)
	{
		if (rows->documents[i].type == DP_TYPE_DOCUMENT)
		{
			dp_builder_append_elements(row, rows->documents[i].data + 4,
									   rows->documents[i].len - DP_DOCUMENT_MIN_SIZE);
			if (s->documents != NULL)
				dp_builder_append_value(row, s->documents, strlen(s->documents),
										&rows->documents[i]);
		}
	}
	else
	{
		for (int k = 0; k < rows->ncolumns; k++)
		{
			if (rows->values[k][i].type != DP_TYPE_EOD)
				dp_builder_append_value(row, rows->columns[k].name, rows->columns[k].namelen,
										&rows->values[k][i]);
		}
	}
	common = dp_builder_view(&s->common, DP_TYPE_DOCUMENT);
	dp_builder_append_elements(row, common.data + 4, common.len - DP_DOCUMENT_MIN_SIZE);
	dp_builder_end(row);
	root = dp_builder_view(row, DP_TYPE_DOCUMENT);
	dp_expr_state_root(state, &root);
	if (dp_expr_eval(part->element, state, &result))
		dp_builder_append_nested(b, NULL, 0, &result);
	else
		dp_builder_append_null(b, NULL, 0);
}

/* The field of a part: what the accumulator gives, or the array of measurements. */
static void
append_part(DpBucketDocument *d, Source *s, DpBuilder *b, int number)
{
	const Part *part = &d->parts[number];
	char name[16];
	uint32 len = snprintf(name, sizeof(name), "%c%d", MARK, number);
	DpBucketSource source;
	DpValue result;

	if (part->is_rows)
	{
		const DpBucketField **from = palloc0(Max(part->ncopies, 1) * sizeof(DpBucketField *));
		DpBuilder row;
		DpExprState state;
		DpLoop loop;

		source_rows(d, s);
		for (int k = 0; k < part->ncopies; k++)
			from[k] =
				dp_bucket_fields_find(&s->fields, part->copies[k].from, part->copies[k].fromlen);
		dp_builder_init(&row, 0);
		memset(&result, 0, sizeof(result));
		dp_expr_state_init(&state, &result);
		dp_builder_begin_array_field(b, name, len);
		dp_loop_begin(&loop);
		for (int i = 0; i < s->rows.count; i++)
		{
			dp_loop_round(&loop);
			append_element(d, s, b, part, from, &row, &state, i);
			dp_check_document_size(b->len - b->head);
		}
		dp_loop_end(&loop);
		dp_builder_end(b);
		dp_builder_free(&row);
		return;
	}

	if (same_name(part->column, part->columnlen, d->time) &&
		!(s->reader.flags & DP_BUCKET_TIMELESS))
		append_time_part(d, s, b, name, len, part);
	else if (!find_source(s, part->column, part->columnlen, &source))
	{
		if (part->is_push)
		{
			dp_builder_begin_array_field(b, name, len);
			dp_builder_end(b);
		}
		else if (part->what == DP_BUCKET_SUM)
			dp_builder_append_int32(b, name, len, 0);
		else
			dp_builder_append_null(b, name, len);
	}
	else if (part->is_push)
	{
		DpValue *values = dp_bucket_values_of(&s->reader, &source);

		dp_builder_begin_array_field(b, name, len);
		for (int i = 0; i < s->reader.count; i++)
		{
			if (values[i].type != DP_TYPE_EOD)
				dp_builder_append_nested(b, NULL, 0, &values[i]);
		}
		dp_builder_end(b);
	}
	else if (dp_bucket_accumulate(&s->reader, &source, part->what, &result))
		dp_builder_append_nested(b, name, len, &result);
	else if (part->what == DP_BUCKET_SUM)
		dp_builder_append_int32(b, name, len, 0);
	else
		dp_builder_append_null(b, name, len);
}

/* The columns that are needed as arrays. */
static void
append_wanted(DpBucketDocument *d, Source *s, DpBuilder *b)
{
	if (d->wants_time && d->time != NULL)
	{
		source_rows(d, s);
		if (s->rows.times != NULL)
		{
			dp_builder_begin_array_field(b, d->time, strlen(d->time));
			for (int i = 0; i < s->rows.count; i++)
				dp_builder_append_date(b, NULL, 0, s->rows.times[i]);
			dp_builder_end(b);
		}
	}
	for (int k = 0; k < d->nwanted; k++)
	{
		DpBucketSource source;
		DpValue *values;

		if (!find_source(s, d->wanted[k], strlen(d->wanted[k]), &source))
			continue;
		values = dp_bucket_values_of(&s->reader, &source);
		dp_builder_begin_array_field(b, d->wanted[k], strlen(d->wanted[k]));
		for (int i = 0; i < s->reader.count; i++)
		{
			if (values[i].type == DP_TYPE_EOD)
				dp_builder_append_null(b, NULL, 0);
			else
				dp_builder_append_nested(b, NULL, 0, &values[i]);
		}
		dp_builder_end(b);
	}
}

/* ---------------------------------------------------------------- measurements */

int64 *
dp_bucket_times_ms(DpBucketReader *r)
{
	int64 *times = palloc_extended(r->count * sizeof(int64), MCXT_ALLOC_HUGE);

	dp_bucket_times(r, times);
	for (int i = 0; i < r->count; i++)
		times[i] = dp_bucket_ms(times[i]);
	return times;
}

void
dp_bucket_rows_init(DpBucketRows *rows, const DpBucketFields *fields)
{
	DpBucketReader *r = fields->reader;

	memset(rows, 0, sizeof(DpBucketRows));
	rows->count = r->count;
	rows->ncolumns = fields->n;
	rows->columns = fields->fields;
	rows->has_time_field =
		dp_bucket_fields_find(fields, DP_BUCKET_NAME_TIME, strlen(DP_BUCKET_NAME_TIME)) != NULL;
	if (fields->split)
	{
		rows->documents = palloc_extended(r->count * sizeof(DpValue), MCXT_ALLOC_HUGE);
		dp_bucket_values(r, 0, rows->documents);
		return;
	}
	rows->values = palloc(Max(fields->n, 1) * sizeof(DpValue *));
	for (int i = 0; i < fields->n; i++)
	{
		rows->values[i] = palloc_extended(r->count * sizeof(DpValue), MCXT_ALLOC_HUGE);
		dp_bucket_column_values(r, fields->fields[i].column, rows->values[i]);
	}
}

void
dp_bucket_rows_append(const DpBucketRows *rows, int i, DpBuilder *b)
{
	/* a measurement's own field of that name would be a second one */
	bool skip = rows->times != NULL && rows->has_time_field;

	if (rows->times != NULL)
		dp_builder_append_date(b, DP_BUCKET_NAME_TIME, strlen(DP_BUCKET_NAME_TIME), rows->times[i]);
	if (rows->documents != NULL)
	{
		const DpValue *doc = &rows->documents[i];
		DpIter iter;
		DpElement element;

		if (doc->type != DP_TYPE_DOCUMENT)
			return;
		dp_iter_init_value(&iter, doc);
		while (dp_iter_next(&iter, &element))
		{
			if (!skip || !same_name(element.name, element.namelen, DP_BUCKET_NAME_TIME))
				dp_builder_append_nested(b, element.name, element.namelen, &element.value);
		}
		return;
	}
	for (int k = 0; k < rows->ncolumns; k++)
	{
		if (rows->values[k][i].type != DP_TYPE_EOD &&
			(!skip ||
			 !same_name(rows->columns[k].name, rows->columns[k].namelen, DP_BUCKET_NAME_TIME)))
			dp_builder_append_nested(b, rows->columns[k].name, rows->columns[k].namelen,
									 &rows->values[k][i]);
	}
}
