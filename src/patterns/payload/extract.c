/*
 * extract.c
 *		Extracting fields from a payload.
 *
 * An extract is written "kind:expression", "kind:expression::type" or
 * "kind:expression::type[]", or as a document {kind: expression, type: ...,
 * list: ..., namespaces: ...}.  Kinds are xpath, jsonpath, regex and function.
 * Without a type, a field is text from XML and regular expressions, the JSON value,
 * or the result of the function.
 *
 * Dates and times are read as if the session's time zone were UTC and its date
 * style ISO, so that all sessions extract the same.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "bson/access.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/jsonb.h"
#include "bson/reader.h"
#include "kit/options.h"
#include "patterns/payload/payload.h"

/* Types that extracts can be given */
static const struct
{
	const char *name;
	Oid type;
} types[] = { { "text", TEXTOID },
			  { "string", TEXTOID },
			  { "varchar", TEXTOID },
			  { "boolean", BOOLOID },
			  { "bool", BOOLOID },
			  { "integer", INT4OID },
			  { "int", INT4OID },
			  { "int4", INT4OID },
			  { "bigint", INT8OID },
			  { "int8", INT8OID },
			  { "long", INT8OID },
			  { "double precision", FLOAT8OID },
			  { "float8", FLOAT8OID },
			  { "float", FLOAT8OID },
			  { "double", FLOAT8OID },
			  { "numeric", NUMERICOID },
			  { "decimal", NUMERICOID },
			  { "date", DATEOID },
			  { "timestamptz", TIMESTAMPTZOID },
			  { "timestamp with time zone", TIMESTAMPTZOID },
			  { "timestamp", TIMESTAMPOID },
			  { "uuid", UUIDOID } };

/* Names after "::" in XPaths that are not types */
static const char *const axes[] = { "ancestor",  "ancestor-or-self",  "attribute",
									"child",     "descendant",        "descendant-or-self",
									"following", "following-sibling", "namespace",
									"parent",    "preceding",         "preceding-sibling",
									"self" };

/* References to characters that xpath() writes */
static const struct
{
	const char *text;
	char c;
} references[] = { { "&lt;", '<' },    { "&gt;", '>' },    { "&amp;", '&' },  { "&quot;", '"' },
				   { "&apos;", '\'' }, { "&#x0d;", '\r' }, { "&#xD;", '\r' }, { "&#13;", '\r' },
				   { "&#xA;", '\n' },  { "&#10;", '\n' },  { "&#x9;", '\t' }, { "&#9;", '\t' } };

/* Of messages that may repeat what a payload holds */
#define REASON_BYTES 100

static const char *const kinds[] = { "xpath", "jsonpath", "regex", "function" };

static void read_extract(DpPayload *p, DpExtract *x, const DpElement *element);
static void read_text(DpPayload *p, DpExtract *x, const char *s, uint32 len);
static void read_document(DpPayload *p, DpExtract *x, const DpValue *document);
static void set_kind(DpPayload *p, DpExtract *x, const char *kind, uint32 len);
static bool set_type(DpExtract *x, const char *name, uint32 len);
static void prepare(DpPayload *p, DpExtract *x);
static void prepare_function(DpPayload *p, DpExtract *x);
static void try_xpath(const DpExtract *x);
static void bad_extract(const DpExtract *x, const char *what) pg_attribute_noreturn();
static struct varlena *
extract_named(DpPayload *p, struct varlena *doc, const DpValue *payload, const DpKey *key);
static struct varlena *
extract_all(DpPayload *p, struct varlena *doc, const DpValue *payload, DpExtract *volatile *at);
static void extract_one(DpPayload *p, DpExtract *x, const DpValue *payload, struct varlena *xml,
						Jsonb *json, DpBuilder *b);
static void extract_xpath(DpExtract *x, struct varlena *xml, DpBuilder *b);
static char *node_text(char *node);
static void extract_json(DpExtract *x, Jsonb *json, DpBuilder *b);
static void extract_regex(DpExtract *x, const DpValue *payload, DpBuilder *b);
static void extract_function(DpPayload *p, DpExtract *x, const DpValue *payload, DpBuilder *b);
static void append_text(DpExtract *x, DpBuilder *b, const char *s, uint32 len);
static char *short_reason(const ErrorData *error);
static void
wrong_type(DpPayload *p, const DpExtract *x, const DpValue *payload) pg_attribute_noreturn();

DpPayload *
dp_payload_compile(DpDecl *decl)
{
	MemoryContext old = MemoryContextSwitchTo(decl->context);
	DpPayload *p = palloc0(sizeof(DpPayload));
	DpValue extracts;
	DpIter iter;
	DpElement element;

	p->decl = decl;
	dp_options_read(decl, p);
	(void) dp_option_value(decl->options, "extracts", DP_TYPE_DOCUMENT, &extracts);
	p->extracts =
		palloc0(sizeof(DpExtract) * Max(1, dp_document_count(extracts.data, extracts.len)));
	dp_iter_init_value(&iter, &extracts);
	while (dp_iter_next(&iter, &element))
		read_extract(p, &p->extracts[p->nextracts++], &element);
	MemoryContextSwitchTo(old);
	return p;
}

/* One of the extracts. */
static void
read_extract(DpPayload *p, DpExtract *x, const DpElement *element)
{
	x->name = pnstrdup(element->name, element->namelen);
	x->path = dp_path_parse(element->name, element->namelen);
	if (element->value.type == DP_TYPE_STRING)
		read_text(p, x, DP_STRING_DATA(&element->value), DP_STRING_LEN(&element->value));
	else if (element->value.type == DP_TYPE_DOCUMENT)
		read_document(p, x, &element->value);
	else
		bad_extract(x, "must be a string or a document");
	prepare(p, x);
}

/* kind:expression::type[] */
static void
read_text(DpPayload *p, DpExtract *x, const char *s, uint32 len)
{
	const char *colon = memchr(s, ':', len);
	const char *end = s + len;
	const char *at;

	if (memchr(s, 0, len) != NULL)
		bad_extract(x, "has a NUL");
	if (colon == NULL)
		bad_extract(x, "has no kind");
	set_kind(p, x, s, colon - s);
	s = colon + 1;
	for (at = end - 2; at > s; at--)
	{
		uint32 name = end - at - 2;
		bool list;
		bool axis = false;
		int i;

		if (at[0] != ':' || at[1] != ':')
			continue;
		for (i = 0; i < lengthof(axes) && x->kind == DP_EXTRACT_XPATH; i++)
		{
			uint32 n = strlen(axes[i]);

			axis = axis || (at - s >= n && memcmp(at - n, axes[i], n) == 0 &&
							(at - s == n || strchr("/[(|, @=<>+*", at[-(int) n - 1]) != NULL));
		}
		list = name > 2 && memcmp(end - 2, "[]", 2) == 0;
		if (!axis && set_type(x, at + 2, name - (list ? 2 : 0)))
		{
			x->is_list = list;
			end = at;
		}
		break;
	}
	x->expression = pnstrdup(s, end - s);
}

/* {kind: expression, type: "date", list: true, namespaces: {a: "http://..."}} */
static void
read_document(DpPayload *p, DpExtract *x, const DpValue *document)
{
	DpIter iter;
	DpElement element;

	dp_iter_init_value(&iter, document);
	while (dp_iter_next(&iter, &element))
	{
		if (strcmp(element.name, "type") == 0)
		{
			if (element.value.type != DP_TYPE_STRING ||
				!set_type(x, DP_STRING_DATA(&element.value), DP_STRING_LEN(&element.value)))
				bad_extract(x, "has a type that does not exist");
		}
		else if (strcmp(element.name, "list") == 0)
		{
			if (element.value.type != DP_TYPE_BOOL)
				bad_extract(x, "has a \"list\" that is not a boolean");
			x->is_list = element.value.data[0] != 0;
		}
		else if (strcmp(element.name, "namespaces") == 0)
		{
			DpIter inner;
			DpElement one;
			Datum *names;
			int dims[2] = { 0, 2 };
			int lower[2] = { 1, 1 };

			if (element.value.type != DP_TYPE_DOCUMENT)
				bad_extract(x, "has namespaces that are not a document");
			names = palloc(sizeof(Datum) * 2 *
						   Max(1, dp_document_count(element.value.data, element.value.len)));
			dp_iter_init_value(&inner, &element.value);
			while (dp_iter_next(&inner, &one))
			{
				if (one.value.type != DP_TYPE_STRING)
					bad_extract(x, "has a namespace that is not a string");
				names[2 * dims[0]] =
					PointerGetDatum(cstring_to_text_with_len(one.name, one.namelen));
				names[2 * dims[0] + 1] =
					PointerGetDatum(cstring_to_text_with_len(DP_STRING_DATA(&one.value),
															 DP_STRING_LEN(&one.value)));
				dims[0]++;
			}
			if (dims[0] > 0)
				x->namespaces =
					PointerGetDatum(construct_md_array(names, NULL, 2, dims, lower, TEXTOID, -1,
													   false, TYPALIGN_INT));
		}
		else
		{
			if (x->expression != NULL)
				bad_extract(x, "has several kinds or an unknown field");
			if (element.value.type != DP_TYPE_STRING ||
				memchr(DP_STRING_DATA(&element.value), 0, DP_STRING_LEN(&element.value)) != NULL)
				bad_extract(x, "has an expression that is not a string");
			set_kind(p, x, element.name, element.namelen);
			x->expression = pnstrdup(DP_STRING_DATA(&element.value), DP_STRING_LEN(&element.value));
		}
	}
	if (x->expression == NULL)
		bad_extract(x, "has no kind");
	if (DatumGetPointer(x->namespaces) != NULL && x->kind != DP_EXTRACT_XPATH)
		bad_extract(x, "has namespaces but is not an XPath");
}

/* By its name. */
static void
set_kind(DpPayload *p, DpExtract *x, const char *kind, uint32 len)
{
	int i;

	for (i = 0; i < lengthof(kinds); i++)
	{
		if (strlen(kinds[i]) == len && memcmp(kinds[i], kind, len) == 0)
		{
			x->kind = i;
			p->needs_xml = p->needs_xml || i == DP_EXTRACT_XPATH;
			p->needs_json = p->needs_json || i == DP_EXTRACT_JSONPATH;
			return;
		}
	}
	bad_extract(x, "has an unknown kind");
}

/* Returns false for an unknown type. */
static bool
set_type(DpExtract *x, const char *name, uint32 len)
{
	int i;

	for (i = 0; i < lengthof(types); i++)
	{
		if (strlen(types[i].name) == len && pg_strncasecmp(types[i].name, name, len) == 0)
		{
			x->type = types[i].type;
			return true;
		}
	}
	return false;
}

/* Looks up types and functions once. */
static void
prepare(DpPayload *p, DpExtract *x)
{
	if (x->expression[0] == '\0')
		bad_extract(x, "has an empty expression");
	if (OidIsValid(x->type))
	{
		Oid input;

		getTypeInputInfo(x->type, &input, &x->ioparam);
		fmgr_info_cxt(input, &x->input, CurrentMemoryContext);
		p->needs_zone = p->needs_zone || x->type == DATEOID || x->type == TIMESTAMPOID ||
						x->type == TIMESTAMPTZOID;
	}
	switch (x->kind)
	{
		case DP_EXTRACT_XPATH:
			if (DatumGetPointer(x->namespaces) == NULL)
				x->namespaces = PointerGetDatum(construct_empty_array(TEXTOID));
			break;
		case DP_EXTRACT_JSONPATH:
			x->jsonpath = DirectFunctionCall1(jsonpath_in, CStringGetDatum(x->expression));
			break;
		case DP_EXTRACT_REGEX:
			x->regex = dp_regex_compile(x->expression, strlen(x->expression), "", 0);
			break;
		case DP_EXTRACT_FUNCTION:
			if (x->is_list)
				bad_extract(x, "is a function, which may return an array itself");
			prepare_function(p, x);
			break;
	}
}

/*
 * Reads a function of one argument, written like a regprocedure. It must be immutable, and the
 * owner of the table must be allowed to call it, because every writer will.
 */
static void
prepare_function(DpPayload *p, DpExtract *x)
{
	Oid function =
		DatumGetObjectId(DirectFunctionCall1(regprocedurein, CStringGetDatum(x->expression)));
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	char volatility;
	bool fits;

	if (!HeapTupleIsValid(tuple))
		bad_extract(x, "names a function that does not exist");
	form = (Form_pg_proc) GETSTRUCT(tuple);
	x->argtype = form->pronargs == 1 ? form->proargtypes.values[0] : InvalidOid;
	x->result = form->prorettype;
	volatility = form->provolatile;
	fits = form->prokind == PROKIND_FUNCTION && !form->proretset &&
		   get_typtype(form->prorettype) != TYPTYPE_PSEUDO &&
		   (x->argtype == TEXTOID || x->argtype == BYTEAOID || x->argtype == JSONBOID ||
			x->argtype == dp_types()->bson || x->argtype == dp_types()->bson_value);
	ReleaseSysCache(tuple);
	if (!fits)
		bad_extract(
			x,
			"must be a function of one argument of type text, bytea, jsonb, bson or bson_value that returns one value");
	if (volatility != PROVOLATILE_IMMUTABLE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
						errmsg("function %s is not immutable", x->expression),
						errdetail("An extracted value must depend only on the payload.")));
	if (!DatumGetBool(DirectFunctionCall3(has_function_privilege_id_id,
										  ObjectIdGetDatum(p->decl->owner),
										  ObjectIdGetDatum(function),
										  CStringGetTextDatum("EXECUTE"))))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("the owner of table \"%s\" lacks EXECUTE on function %s",
							   dp_relation_name(p->decl->target), x->expression)));
	dp_user_function_init(&x->function, function, CurrentMemoryContext);
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_extract(const DpExtract *x, const char *what)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		 errmsg("the extract of field \"%s\" %s", x->name, what),
		 errhint(
			 "Write xpath:..., jsonpath:..., regex:... or function:..., followed by ::type to convert the value.")));
}

void
dp_payload_try(DpPayload *p)
{
	int i;

	for (i = 0; i < p->nextracts; i++)
	{
		if (p->extracts[i].kind == DP_EXTRACT_XPATH)
			try_xpath(&p->extracts[i]);
	}
}

/* Runs an XPath on an empty document. */
static void
try_xpath(const DpExtract *x)
{
	MemoryContext caller = CurrentMemoryContext;

	PG_TRY();
	{
		(void) DirectFunctionCall3(xpath, CStringGetTextDatum(x->expression),
								   CStringGetTextDatum("<a/>"), x->namespaces);
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
			error->sqlerrcode == ERRCODE_OUT_OF_MEMORY)
			PG_RE_THROW();
		FlushErrorState();
		if (error->sqlerrcode == ERRCODE_FEATURE_NOT_SUPPORTED)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this server cannot read XML"),
					 errdetail("It was built without libxml.")));
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the extract of field \"%s\" is not a valid XPath", x->name),
						errdetail("%s%s%s", error->message, error->detail != NULL ? ": " : "",
								  error->detail != NULL ? error->detail : "")));
	}
	PG_END_TRY();
}

/* Raises CHECK_VIOLATION. */
static void
wrong_type(DpPayload *p, const DpExtract *x, const DpValue *payload)
{
	ereport(ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("payload \"%s\" is of type %s", p->field_text, dp_type_name(payload->type)),
			 errdetail("Field \"%s\" is extracted by %s from a string%s.", x->name, kinds[x->kind],
					   x->kind == DP_EXTRACT_JSONPATH ? ", a document or an array" : "")));
}

struct varlena *
dp_payload_extract(DpPayload *p, struct varlena *doc, const DpValue *payload, const DpKey *key)
{
	struct varlena *result;
	int nestlevel;

	if (payload == NULL || payload->type == DP_TYPE_NULL || payload->type == DP_TYPE_UNDEFINED)
		return extract_named(p, doc, NULL, key);
	if (!p->needs_zone)
		return extract_named(p, doc, payload, key);
	nestlevel = NewGUCNestLevel();
	(void) set_config_option("TimeZone", "UTC", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
							 0, false);
	(void) set_config_option("DateStyle", "ISO, YMD", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	result = extract_named(p, doc, payload, key);
	AtEOXact_GUC(true, nestlevel);
	return result;
}

/*
 * Why an extract failed, in short: PostgreSQL's errors about values repeat these
 * as they are, and those about XML show the line.
 */
static char *
short_reason(const ErrorData *error)
{
	StringInfoData out;
	const char *parts[2] = { error->message, error->detail };
	int i;

	initStringInfo(&out);
	for (i = 0; i < lengthof(parts) && parts[i] != NULL; i++)
	{
		int line = strcspn(parts[i], "\n");
		int len = pg_mbcliplen(parts[i], line, REASON_BYTES);

		appendStringInfo(&out, "%s%.*s%s", i > 0 ? ": " : "", len, parts[i],
						 len < line ? "..." : "");
	}
	return out.data;
}

/* Does the same and names the document in errors caused by it. */
static struct varlena *
extract_named(DpPayload *p, struct varlena *doc, const DpValue *payload, const DpKey *key)
{
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *volatile result = NULL;
	DpExtract *volatile at = NULL;

	PG_TRY();
	{
		result = extract_all(p, doc, payload, &at);
	}
	PG_CATCH();
	{
		ErrorData *error;
		int category;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		category = ERRCODE_TO_CATEGORY(error->sqlerrcode);
		/* errors of the server or the transaction are raised unchanged */
		if (at == NULL || category == ERRCODE_OPERATOR_INTERVENTION ||
			category == ERRCODE_INSUFFICIENT_RESOURCES ||
			category == ERRCODE_TRANSACTION_ROLLBACK || category == ERRCODE_INTERNAL_ERROR)
			PG_RE_THROW();
		FlushErrorState();
		ereport(
			ERROR,
			(errcode(error->sqlerrcode),
			 errmsg(
				 "cannot extract field \"%s\" from payload \"%s\" of document %s in table \"%s\"",
				 at->name, p->field_text, dp_key_to_text(p->decl, key),
				 dp_relation_name(p->decl->target)),
			 errdetail_internal("%s", short_reason(error))));
	}
	PG_END_TRY();
	return result;
}

/* The document with all fields; *at is the one that is being extracted. */
static struct varlena *
extract_all(DpPayload *p, struct varlena *doc, const DpValue *payload, DpExtract *volatile *at)
{
	struct varlena *result = doc;
	struct varlena *xml = NULL;
	Jsonb *json = NULL;
	int i;

	for (i = 0; i < p->nextracts; i++)
	{
		DpExtract *x = &p->extracts[i];
		struct varlena *changed = NULL;
		DpBuilder b;
		DpValue made;
		DpValue found;
		DpValue before;
		bool had = dp_path_find(DP_DOC_DATA(result), DP_DOC_SIZE(result), x->path, &before);
		bool has;

		CHECK_FOR_INTERRUPTS();
		*at = x;
		dp_builder_init(&b, 0);
		dp_builder_begin_document(&b);
		if (payload != NULL)
		{
			if (payload->type != DP_TYPE_STRING &&
				(x->kind == DP_EXTRACT_XPATH || x->kind == DP_EXTRACT_REGEX ||
				 (x->kind == DP_EXTRACT_JSONPATH && !dp_type_is_container(payload->type))))
				wrong_type(p, x, payload);
			if (x->kind == DP_EXTRACT_XPATH && xml == NULL)
				xml = (struct varlena *) cstring_to_text_with_len(DP_STRING_DATA(payload),
																  DP_STRING_LEN(payload));
			if (x->kind == DP_EXTRACT_JSONPATH && json == NULL)
				json = payload->type != DP_TYPE_STRING
						   ? dp_value_to_jsonb(payload)
						   : DatumGetJsonbP(DirectFunctionCall1(
								 jsonb_in, CStringGetDatum(pnstrdup(DP_STRING_DATA(payload),
																	DP_STRING_LEN(payload)))));
			extract_one(p, x, payload, xml, json, &b);
		}
		dp_builder_end(&b);
		made = dp_builder_view(&b, DP_TYPE_DOCUMENT);
		has = dp_document_find(made.data, made.len, "v", 1, &found);
		if (has && !(had && dp_value_identical(&found, &before)))
			changed = dp_payload_put(p, result, x->path, &found);
		else if (had && !has)
			changed = dp_document_unset(DP_DOC_DATA(result), DP_DOC_SIZE(result), x->path);
		if (changed != NULL)
			result = changed;
	}
	return result;
}

/* Adds a new field before the payload, so that it is in the first chunk of a large document. */
struct varlena *
dp_payload_put(const DpPayload *p, struct varlena *doc, const DpPath *path, const DpValue *value)
{
	DpValue whole = dp_value_of_document(doc);
	const uint8 *payload;
	DpValue there;
	struct varlena *field;
	DpBuilder b;

	if (dp_step_find(&whole, &path->steps[0], &payload, &there) ||
		!dp_step_find(&whole, &p->field->steps[0], &payload, &there))
		return dp_document_set(whole.data, whole.len, path, value);
	field = dp_document_set(dp_empty_document, sizeof(dp_empty_document), path, value);
	dp_builder_init(&b, whole.len + DP_DOC_SIZE(field));
	dp_builder_begin_document(&b);
	dp_builder_append_elements(&b, whole.data + 4, payload - whole.data - 4);
	dp_builder_append_elements(&b, DP_DOC_DATA(field) + 4,
							   DP_DOC_SIZE(field) - DP_DOCUMENT_MIN_SIZE);
	dp_builder_append_elements(&b, payload, whole.data + whole.len - 1 - payload);
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* Appends the result as element "v" if there is one. */
static void
extract_one(DpPayload *p, DpExtract *x, const DpValue *payload, struct varlena *xml, Jsonb *json,
			DpBuilder *b)
{
	if (x->kind == DP_EXTRACT_FUNCTION)
	{
		extract_function(p, x, payload, b);
		return;
	}
	if (x->is_list)
		dp_builder_begin_array_field(b, "v", 1);
	switch (x->kind)
	{
		case DP_EXTRACT_XPATH:
			extract_xpath(x, xml, b);
			break;
		case DP_EXTRACT_JSONPATH:
			extract_json(x, json, b);
			break;
		case DP_EXTRACT_REGEX:
			extract_regex(x, payload, b);
			break;
		default:
			break;
	}
	if (x->is_list)
		dp_builder_end(b);
}

/* A text that was found, as a value of the type. */
static void
append_text(DpExtract *x, DpBuilder *b, const char *s, uint32 len)
{
	DpConverter converter;
	char *copy = pnstrdup(s, len);
	Datum value;

	if (!OidIsValid(x->type) || x->type == TEXTOID)
	{
		dp_builder_append_string(b, "v", 1, s, len);
		return;
	}
	value = InputFunctionCall(&x->input, copy, x->ioparam, -1);
	dp_converter_init(&converter, x->type, CurrentMemoryContext);
	dp_converter_append(&converter, b, "v", 1, value, false);
}

/* The nodes that an XPath finds, or the value that it has. */
static void
extract_xpath(DpExtract *x, struct varlena *xml, DpBuilder *b)
{
	Datum nodes = DirectFunctionCall3(xpath, PointerGetDatum(cstring_to_text(x->expression)),
									  PointerGetDatum(xml), x->namespaces);
	Datum *items;
	bool *nulls;
	int n;
	int i;

	deconstruct_array(DatumGetArrayTypeP(nodes), XMLOID, -1, false, TYPALIGN_INT, &items, &nulls,
					  &n);
	for (i = 0; i < n && (x->is_list || i == 0); i++)
	{
		char *found = node_text(text_to_cstring(DatumGetTextPP(items[i])));

		append_text(x, b, found, strlen(found));
	}
}

/*
 * Returns the text of a node as xpath() does: of an element all text inside, of other nodes their
 * expanded references.
 */
static char *
node_text(char *node)
{
	char *from;
	char *to;

	if (node[0] == '<')
	{
		Datum *items;
		bool *nulls;
		int n;
		Datum inner;

		if (node[1] == '!' || node[1] == '?')
			return node; /* comments and such are as they are written */
		inner =
			DirectFunctionCall3(xpath, CStringGetTextDatum("string(/*)"), CStringGetTextDatum(node),
								PointerGetDatum(construct_empty_array(TEXTOID)));
		deconstruct_array(DatumGetArrayTypeP(inner), XMLOID, -1, false, TYPALIGN_INT, &items,
						  &nulls, &n);
		if (n == 0)
			return pstrdup("");
		node = text_to_cstring(DatumGetTextPP(items[0]));
	}
	for (from = to = node; *from != '\0';)
	{
		int i = lengthof(references);

		if (*from == '&')
		{
			for (i = 0; i < lengthof(references); i++)
			{
				if (strncmp(from, references[i].text, strlen(references[i].text)) == 0)
					break;
			}
		}
		if (i < lengthof(references))
		{
			*to++ = references[i].c;
			from += strlen(references[i].text);
		}
		else
			*to++ = *from++;
	}
	*to = '\0';
	return node;
}

/* Appends the results of a JSON path. */
static void
extract_json(DpExtract *x, Jsonb *json, DpBuilder *b)
{
	Datum empty = DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"));
	Datum found = DirectFunctionCall4(jsonb_path_query_array, JsonbPGetDatum(json), x->jsonpath,
									  empty, BoolGetDatum(false));
	JsonbIterator *it = JsonbIteratorInit(&DatumGetJsonbP(found)->root);
	JsonbIteratorToken token;
	JsonbValue item;
	int n = 0;

	while ((token = JsonbIteratorNext(&it, &item, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM || (n > 0 && !x->is_list))
			continue;
		n++;
		if (!OidIsValid(x->type))
			dp_builder_append_jsonb(b, "v", 1, (struct varlena *) JsonbValueToJsonb(&item));
		else if (item.type == jbvNull)
			dp_builder_append_null(b, "v", 1);
		else if (item.type == jbvString)
			append_text(x, b, item.val.string.val, item.val.string.len);
		else
		{
			char *shown = JsonbToCString(NULL, &JsonbValueToJsonb(&item)->root, 0);

			append_text(x, b, shown, strlen(shown));
		}
	}
}

/* Appends the match of a regular expression: its first group, if it has one. */
static void
extract_regex(DpExtract *x, const DpValue *payload, DpBuilder *b)
{
	const char *s = DP_STRING_DATA(payload);
	uint32 len = DP_STRING_LEN(payload);
	uint32 from = 0;
	DpRegexSpan spans[2];
	int nspans = dp_regex_groups(x->regex) > 0 ? 2 : 1;

	while (from <= len && dp_regex_find(x->regex, s, len, from, spans, nspans))
	{
		const DpRegexSpan *span = &spans[nspans - 1];

		CHECK_FOR_INTERRUPTS();
		if (span->start >= 0)
		{
			append_text(x, b, s + span->start, span->len);
			if (!x->is_list)
				return;
		}
		from = dp_regex_next(s, len, from, &spans[0]);
	}
}

/* Appends the result of a function of the payload. */
static void
extract_function(DpPayload *p, DpExtract *x, const DpValue *payload, DpBuilder *b)
{
	DpConverter converter;
	bool isnull;
	Datum arg;
	Datum result;

	/* a function that was dropped and created again is called by name */
	if (unlikely(!dp_user_function_exists(&x->function)))
	{
		MemoryContext old = MemoryContextSwitchTo(p->decl->context);

		prepare_function(p, x);
		MemoryContextSwitchTo(old);
	}
	arg = dp_value_to_datum(payload, x->argtype, -1, &isnull);
	result = dp_user_function_call(&x->function, DEFAULT_COLLATION_OID, arg, isnull, &isnull);
	if (isnull)
		return;
	if (OidIsValid(x->type) && x->type != x->result)
	{
		char *shown;
		Oid output;
		bool is_varlena;

		getTypeOutputInfo(x->result, &output, &is_varlena);
		shown = OidOutputFunctionCall(output, result);
		append_text(x, b, shown, strlen(shown));
		return;
	}
	dp_converter_init(&converter, x->result, CurrentMemoryContext);
	dp_converter_append(&converter, b, "v", 1, result, false);
}
