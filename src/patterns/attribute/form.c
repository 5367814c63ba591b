/*
 * form.c
 *		The declared fields of the attribute pattern, and their keys.
 *
 * Names are compared by their bytes.  A placeholder matches at least one byte; if
 * a name can be divided in several ways, earlier placeholders match as much as
 * possible: {descriptor}_{qualifier} divides net_price_euros into net_price and
 * euros.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "patterns/attribute/attribute.h"

static DpAttributeText option_text(const DpValue *options, const char *option, const char *dflt);
static DpAttributeText copy_text(const char *s, uint32 len);
static void read_pattern(DpAttributeForm *form, DpAttributeText pattern);
static void read_paths(DpAttributeForm *form, const DpValue *list);
static void read_renames(DpAttributeForm *form, const DpValue *rename);
static void add_rename(DpAttributeField *field, const DpElement *element);
static void
read_qualifiers(DpAttributeForm *form, const DpValue *options, const DpValue *qualifiers);
static void read_except(DpAttributeForm *form, const DpValue *options);
static void check_names(const DpAttributeForm *form);
static void bad_option(const char *option, const char *what) pg_attribute_noreturn();

static inline bool
same_text(DpAttributeText a, DpAttributeText b)
{
	return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

static inline int
bucket_of(const char *name, uint32 len)
{
	if (len == 0)
		return 0;
	return (len * 31 + (uint8) name[0] * 7 + (uint8) name[len - 1] * 3 + (uint8) name[len / 2]) &
		   (DP_ATTRIBUTE_BUCKETS - 1);
}

DpAttributeForm *
dp_attribute_compile(const DpValue *options)
{
	DpAttributeForm *form = palloc0(sizeof(DpAttributeForm));
	DpAttributeText text;
	DpValue value;
	int given = 0;
	int i;

	if (options->type != DP_TYPE_DOCUMENT)
		bad_option("options", "is not a document");
	for (i = 0; i < DP_ATTRIBUTE_BUCKETS; i++)
		form->buckets[i] = -1;

	text = option_text(options, "into_field", NULL);
	if (text.s == NULL)
		bad_option("into_field", "is missing");
	form->into = dp_path_parse(text.s, text.len);
	form->value_field = option_text(options, "value_field", "value");

	text = option_text(options, "pattern", NULL);
	if (text.s != NULL)
	{
		read_pattern(form, text);
		given++;
	}
	text = option_text(options, "prefix", NULL);
	if (text.s != NULL)
	{
		if (text.len == 0)
			bad_option("prefix", "is empty");
		form->nfields = 1;
		form->literals[0] = text;
		form->literals[1] = copy_text("", 0);
		given++;
	}
	if (dp_document_find(options->data, options->len, "paths", 5, &value) &&
		value.type != DP_TYPE_NULL)
	{
		read_paths(form, &value);
		given++;
	}
	if (given != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("exactly one of pattern, prefix and paths must be specified")));
	text = option_text(options, "name_field", NULL);
	if (form->fields[0].name.s == NULL)
		form->fields[0].name = text.s != NULL ? text : copy_text("name", 4);
	else if (text.s != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("option \"name_field\" cannot be combined with \"pattern\""),
						errhint("The pattern's placeholders name the fields.")));

	if (dp_document_find(options->data, options->len, "rename", 6, &value) &&
		value.type != DP_TYPE_NULL)
		read_renames(form, &value);
	if (dp_document_find(options->data, options->len, "qualifiers", 10, &value) &&
		value.type != DP_TYPE_NULL)
		read_qualifiers(form, options, &value);
	else if (option_text(options, "qualifier_field", NULL).s != NULL)
		bad_option("qualifier_field", "requires qualifiers");
	text = option_text(options, "shape", "packed");
	form->wide = text.len == 4 && memcmp(text.s, "wide", 4) == 0;
	if (!form->wide && !(text.len == 6 && memcmp(text.s, "packed", 6) == 0))
		bad_option("shape", "must be \"packed\" or \"wide\"");
	if (dp_document_find(options->data, options->len, "is_unique", 9, &value) &&
		value.type == DP_TYPE_BOOL)
		form->is_unique = value.data[0] != 0;
	if (form->npaths == 0)
		read_except(form, options);
	check_names(form);

	for (i = 0; i <= form->nfields && form->npaths == 0; i++)
		form->min_len += form->literals[i].len;
	form->min_len += form->nfields;
	return form;
}

/* An option that is a string; s is NULL if it is absent or null. */
static DpAttributeText
option_text(const DpValue *options, const char *option, const char *dflt)
{
	DpAttributeText result = { dflt, dflt != NULL ? strlen(dflt) : 0 };
	DpValue value;

	if (!dp_document_find(options->data, options->len, option, strlen(option), &value) ||
		value.type == DP_TYPE_NULL)
		return result;
	if (value.type != DP_TYPE_STRING)
		bad_option(option, "is not a text");
	result.s = DP_STRING_DATA(&value);
	result.len = DP_STRING_LEN(&value);
	if (memchr(result.s, 0, result.len) != NULL)
		bad_option(option, "has a NUL");
	return result;
}

/* A copy, followed by a NUL. */
static DpAttributeText
copy_text(const char *s, uint32 len)
{
	DpAttributeText result;

	result.s = pnstrdup(s, len);
	result.len = len;
	return result;
}

/* Parses release_{location}: alternating literals and placeholders. Doubled braces are literals. */
static void
read_pattern(DpAttributeForm *form, DpAttributeText pattern)
{
	StringInfoData literal;
	const char *s = pattern.s;
	const char *end = s + pattern.len;

	initStringInfo(&literal);
	while (s < end)
	{
		if ((*s == '{' || *s == '}') && s + 1 < end && s[1] == *s)
		{
			appendStringInfoChar(&literal, *s);
			s += 2;
		}
		else if (*s == '{')
		{
			const char *close = memchr(s, '}', end - s);
			DpAttributeField *field;

			if (close == NULL)
				bad_option("pattern", "has a placeholder that does not end");
			if (close == s + 1)
				bad_option("pattern", "has a placeholder without a name");
			if (form->nfields == DP_ATTRIBUTE_MAX_KEYS)
				bad_option("pattern", "has too many placeholders");
			if (form->nfields > 0 && literal.len == 0)
				bad_option("pattern", "has two placeholders with nothing between them");
			form->literals[form->nfields] = copy_text(literal.data, literal.len);
			resetStringInfo(&literal);
			field = &form->fields[form->nfields++];
			field->name = copy_text(s + 1, close - s - 1);
			s = close + 1;
		}
		else if (*s == '}')
			bad_option("pattern", "has an unmatched brace");
		else
			appendStringInfoChar(&literal, *s++);
	}
	if (form->nfields == 0)
		bad_option("pattern", "has no placeholder");
	form->literals[form->nfields] = copy_text(literal.data, literal.len);
	if (form->nfields == 1 && form->literals[0].len + literal.len == 0)
		bad_option("pattern", "would match every field");
}

/* The list of paths. */
static void
read_paths(DpAttributeForm *form, const DpValue *list)
{
	DpIter iter;
	DpValue value;
	int n;
	int i;

	if (list->type != DP_TYPE_ARRAY)
		bad_option("paths", "is not an array");
	n = dp_document_count(list->data, list->len);
	if (n == 0)
		bad_option("paths", "is empty");
	form->nfields = 1;
	form->paths = palloc0(sizeof(DpAttributePath) * n);
	dp_iter_init_value(&iter, list);
	while (dp_iter_next_value(&iter, &value))
	{
		DpAttributePath *p = &form->paths[form->npaths];
		StringInfoData text;

		CHECK_FOR_INTERRUPTS();
		if (value.type != DP_TYPE_STRING)
			bad_option("paths", "is not an array of texts");
		p->path = dp_path_parse(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
		initStringInfo(&text);
		dp_path_to_text(&text, p->path);
		p->text.s = pnstrdup(text.data, text.len);
		p->text.len = text.len;
		pfree(text.data);
		for (i = 0; i < form->npaths; i++)
		{
			const DpPath *other = form->paths[i].path;
			int step = 0;

			while (step < other->nsteps && step < p->path->nsteps &&
				   other->steps[step].namelen == p->path->steps[step].namelen &&
				   memcmp(other->steps[step].name, p->path->steps[step].name,
						  other->steps[step].namelen) == 0)
				step++;
			if (step == other->nsteps || step == p->path->nsteps)
				bad_option("paths", "names a field twice, or one inside another");
		}
		if (p->path->nsteps == 1)
		{
			int bucket = bucket_of(p->path->steps[0].name, p->path->steps[0].namelen);

			p->next = form->buckets[bucket];
			form->buckets[bucket] = form->npaths;
		}
		else
			form->nested = true;
		form->npaths++;
	}
}

/* {wide: packed, ...} of the first key field; {field: {wide: packed, ...}} of any. */
static void
read_renames(DpAttributeForm *form, const DpValue *rename)
{
	DpIter iter;
	DpElement element;
	int i;

	if (rename->type != DP_TYPE_DOCUMENT)
		bad_option("rename", "is not a document");
	dp_iter_init_value(&iter, rename);
	while (dp_iter_next(&iter, &element))
	{
		DpAttributeField *field = &form->fields[0];

		if (element.value.type == DP_TYPE_DOCUMENT)
		{
			DpIter inner;
			DpElement one;

			for (i = 0; i < form->nfields; i++)
			{
				field = &form->fields[i];
				if (field->name.len == element.namelen &&
					memcmp(field->name.s, element.name, element.namelen) == 0)
					break;
			}
			if (i == form->nfields)
				bad_option("rename", "has a document that is not named by a placeholder");
			dp_iter_init_value(&inner, &element.value);
			while (dp_iter_next(&inner, &one))
				add_rename(field, &one);
			continue;
		}
		add_rename(field, &element);
	}
}

/* One name of a key field that is another one in members. */
static void
add_rename(DpAttributeField *field, const DpElement *element)
{
	DpAttributeRename *r;
	int i;

	if (element->value.type != DP_TYPE_STRING || DP_STRING_LEN(&element->value) == 0 ||
		element->namelen == 0)
		bad_option("rename", "has a name that is not a text or is empty");
	if (memchr(DP_STRING_DATA(&element->value), 0, DP_STRING_LEN(&element->value)) != NULL)
		bad_option("rename", "has a name with a NUL");
	field->renames =
		field->renames == NULL
			? palloc(sizeof(DpAttributeRename))
			: repalloc(field->renames, sizeof(DpAttributeRename) * (field->nrenames + 1));
	r = &field->renames[field->nrenames++];
	r->wide.s = element->name;
	r->wide.len = element->namelen;
	r->packed.s = DP_STRING_DATA(&element->value);
	r->packed.len = DP_STRING_LEN(&element->value);
	for (i = 0; i < field->nrenames - 1; i++)
	{
		if (same_text(field->renames[i].wide, r->wide) ||
			same_text(field->renames[i].packed, r->packed))
			bad_option("rename", "gives two names to one, or one name to two");
	}
}

/* {name: qualifier, ...}, by names of the wide shape. */
static void
read_qualifiers(DpAttributeForm *form, const DpValue *options, const DpValue *qualifiers)
{
	DpIter iter;
	DpElement element;

	if (qualifiers->type != DP_TYPE_DOCUMENT)
		bad_option("qualifiers", "is not a document");
	form->qualifier_field = option_text(options, "qualifier_field", "qualifier");
	form->qualifiers = palloc(sizeof(DpAttributeQualifier) *
							  Max(1, dp_document_count(qualifiers->data, qualifiers->len)));
	dp_iter_init_value(&iter, qualifiers);
	while (dp_iter_next(&iter, &element))
	{
		DpAttributeQualifier *q = &form->qualifiers[form->nqualifiers++];

		q->wide.s = element.name;
		q->wide.len = element.namelen;
		q->value = element.value;
		if (form->npaths > 0)
		{
			int i;

			for (i = 0; i < form->npaths && !same_text(form->paths[i].text, q->wide); i++)
				;
			if (i == form->npaths)
				bad_option("qualifiers", "has a name that is not among paths");
		}
	}
}

/* _id, the array itself, and what else is not to be packed by a pattern. */
static void
read_except(DpAttributeForm *form, const DpValue *options)
{
	DpValue list;
	DpValue value;
	DpIter iter;
	bool has = dp_document_find(options->data, options->len, "except", 6, &list) &&
			   list.type == DP_TYPE_ARRAY;

	form->except =
		palloc(sizeof(DpAttributeText) * (2 + (has ? dp_document_count(list.data, list.len) : 0)));
	form->except[form->nexcept++] = copy_text("_id", 3);
	form->except[form->nexcept].s = form->into->steps[0].name;
	form->except[form->nexcept++].len = form->into->steps[0].namelen;
	if (!has)
		return;
	dp_iter_init_value(&iter, &list);
	while (dp_iter_next_value(&iter, &value))
	{
		if (value.type != DP_TYPE_STRING)
			bad_option("except", "is not an array of texts");
		form->except[form->nexcept].s = DP_STRING_DATA(&value);
		form->except[form->nexcept++].len = DP_STRING_LEN(&value);
	}
}

/* Requires different names of member fields, and an array outside of the packed fields. */
static void
check_names(const DpAttributeForm *form)
{
	int i;
	int j;

	if (form->value_field.len == 0)
		bad_option("value_field", "is empty");
	if (form->into->nsteps == 0 || form->into->steps[0].namelen == 0 ||
		strcmp(form->into->steps[0].name, "_id") == 0)
		bad_option("into_field", "is not a field that can hold an array");
	for (i = 0; i < form->nfields; i++)
	{
		const DpAttributeText *name = &form->fields[i].name;

		if (name->len == 0)
			bad_option("name_field", "is empty");
		for (j = 0; j < i; j++)
		{
			if (same_text(*name, form->fields[j].name))
				bad_option("pattern", "has two placeholders of one name");
		}
		if (same_text(*name, form->value_field) ||
			(form->qualifier_field.s != NULL && same_text(*name, form->qualifier_field)))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the fields of a member must have different names"),
					 errdetail("\"%.*s\" stands for two of them.", (int) name->len, name->s)));
	}
	if (form->qualifier_field.s != NULL && same_text(form->qualifier_field, form->value_field))
		bad_option("qualifier_field", "is the same as value_field");
	for (i = 0; i < form->npaths; i++)
	{
		const DpPath *path = form->paths[i].path;
		int step = 0;

		if (path->nsteps == 0 || strcmp(path->steps[0].name, "_id") == 0)
			bad_option("paths", "names _id");
		while (step < path->nsteps && step < form->into->nsteps &&
			   strcmp(path->steps[step].name, form->into->steps[step].name) == 0)
			step++;
		if (step == path->nsteps || step == form->into->nsteps)
			bad_option("paths", "names the array itself, or something around or inside it");
	}
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_option(const char *option, const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("%s of the attribute pattern %s", option, what)));
}

/* Renames the parts of a key and finds its qualifier. */
static inline void
finish_key(const DpAttributeForm *form, DpAttributeKey *key)
{
	int i;
	int j;

	key->wide = key->parts[0];
	key->qualifier = NULL;
	for (i = 0; i < form->nqualifiers; i++)
	{
		if (same_text(form->qualifiers[i].wide, key->wide))
		{
			key->qualifier = &form->qualifiers[i].value;
			break;
		}
	}
	for (i = 0; i < form->nfields; i++)
	{
		const DpAttributeField *field = &form->fields[i];

		for (j = 0; j < field->nrenames; j++)
		{
			if (same_text(field->renames[j].wide, key->parts[i]))
			{
				key->parts[i] = field->renames[j].packed;
				break;
			}
		}
	}
}

void
dp_attribute_path_key(const DpAttributeForm *form, int path, DpAttributeKey *key)
{
	key->parts[0] = form->paths[path].text;
	finish_key(form, key);
}

/*
 * Matches from the end of the name: each placeholder matches as little as possible, so that the
 * previous ones match more.
 */
static bool
match_pattern(const DpAttributeForm *form, const char *name, uint32 len, DpAttributeKey *key)
{
	const char *start = name + form->literals[0].len;
	const char *end = name + len - form->literals[form->nfields].len;
	int i;

	for (i = form->nfields - 1; i > 0; i--)
	{
		const DpAttributeText *literal = &form->literals[i];
		const char *at = end - 1 - literal->len;

		while (at > start && memcmp(at, literal->s, literal->len) != 0)
			at--;
		if (at <= start)
			return false;
		key->parts[i].s = at + literal->len;
		key->parts[i].len = end - key->parts[i].s;
		end = at;
	}
	if (end <= start)
		return false;
	key->parts[0].s = start;
	key->parts[0].len = end - start;
	return true;
}

bool
dp_attribute_match(const DpAttributeForm *form, const char *name, uint32 len, DpAttributeKey *key)
{
	const DpAttributeText *last;
	int i;

	if (form->npaths > 0)
	{
		for (i = form->buckets[bucket_of(name, len)]; i >= 0; i = form->paths[i].next)
		{
			const DpPathStep *step = &form->paths[i].path->steps[0];

			if (step->namelen == len && memcmp(step->name, name, len) == 0)
			{
				dp_attribute_path_key(form, i, key);
				return true;
			}
		}
		return false;
	}

	last = &form->literals[form->nfields];
	if (len < form->min_len || memcmp(name, form->literals[0].s, form->literals[0].len) != 0 ||
		memcmp(name + len - last->len, last->s, last->len) != 0 ||
		!match_pattern(form, name, len, key))
		return false;
	for (i = 0; i < form->nexcept; i++)
	{
		if (form->except[i].len == len && memcmp(form->except[i].s, name, len) == 0)
			return false;
	}
	finish_key(form, key);
	return true;
}

bool
dp_attribute_name(const DpAttributeForm *form, const DpAttributeText *parts, DpAttributeText *name,
				  int *path, DpAttributeKey *key)
{
	DpAttributeText wide[DP_ATTRIBUTE_MAX_KEYS];
	uint32 len = 0;
	char *s;
	int i;
	int j;

	*path = -1;
	for (i = 0; i < form->nfields; i++)
	{
		const DpAttributeField *field = &form->fields[i];

		wide[i] = parts[i];
		if (wide[i].len == 0 || memchr(wide[i].s, 0, wide[i].len) != NULL)
			return false;
		for (j = 0; j < field->nrenames; j++)
		{
			if (same_text(field->renames[j].packed, wide[i]))
			{
				wide[i] = field->renames[j].wide;
				break;
			}
		}
	}
	if (form->npaths > 0)
	{
		for (i = 0; i < form->npaths && !same_text(form->paths[i].text, wide[0]); i++)
			;
		if (i == form->npaths)
			return false;
		dp_attribute_path_key(form, i, key);
		if (form->paths[i].path->nsteps > 1)
		{
			*path = i;
			*name = form->paths[i].text;
		}
		else
		{
			name->s = form->paths[i].path->steps[0].name;
			name->len = form->paths[i].path->steps[0].namelen;
		}
		return same_text(key->parts[0], parts[0]);
	}

	for (i = 0; i <= form->nfields; i++)
		len += form->literals[i].len + (i < form->nfields ? wide[i].len : 0);
	name->s = s = palloc(len + 1);
	name->len = len;
	for (i = 0; i <= form->nfields; i++)
	{
		memcpy(s, form->literals[i].s, form->literals[i].len);
		s += form->literals[i].len;
		if (i < form->nfields)
		{
			memcpy(s, wide[i].s, wide[i].len);
			s += wide[i].len;
		}
	}
	*s = '\0';
	/* only if the name leads back to the same parts */
	if (!dp_attribute_match(form, name->s, name->len, key))
		return false;
	for (i = 0; i < form->nfields; i++)
	{
		if (!same_text(key->parts[i], parts[i]))
			return false;
	}
	return true;
}
