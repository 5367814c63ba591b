/*
 * calls.c
 *		SQL functions of the attribute pattern: packing and unpacking documents,
 *		and functions for checks.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "mql/spec.h"
#include "patterns/attribute/attribute.h"

static void *compile(const DpValue *spec, void *arg);
static void
put_fault(ReturnSetInfo *rsinfo, const char *what, const char *expected, const char *found);

/* For dp_spec_arg(). */
static void *
compile(const DpValue *spec, void *arg)
{
	return dp_attribute_compile(spec);
}

/*
 * _attribute_pack(doc bson, options bson) -> bson
 */
DP_FUNCTION(dp_attribute_pack_document);
Datum
dp_attribute_pack_document(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 1, compile, NULL);
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	struct varlena *packed = dp_attribute_pack(form, doc, NULL);
	char *text;

	if (packed == NULL)
		packed = doc;
	if (form->is_unique && dp_attribute_twice(form, packed, &text))
		ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
						errmsg("duplicate attribute %s in the document", text)));
	PG_RETURN_POINTER(packed);
}

/*
 * _attribute_unpack(doc bson, options bson) -> bson
 */
DP_FUNCTION(dp_attribute_unpack_document);
Datum
dp_attribute_unpack_document(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 1, compile, NULL);
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	struct varlena *wide = dp_attribute_unpack(form, doc);

	PG_RETURN_POINTER(wide != NULL ? wide : doc);
}

/*
 * _attribute_left(doc bson, options bson) -> int: number of members that cannot become fields
 */
DP_FUNCTION(dp_attribute_left);
Datum
dp_attribute_left(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 1, compile, NULL);
	int left;

	(void) dp_attribute_returning(form, PG_GETARG_VARLENA_PP(0), &left);
	PG_RETURN_INT32(left);
}

/*
 * _attribute_has_twice(doc bson, options bson) -> bool: whether the array has a duplicate key
 */
DP_FUNCTION(dp_attribute_has_twice);
Datum
dp_attribute_has_twice(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 1, compile, NULL);
	char *text;

	PG_RETURN_BOOL(dp_attribute_twice(form, PG_GETARG_VARLENA_PP(0), &text));
}

/*
 * _attribute_is_pending(doc bson, options bson) -> bool: whether the document has another layout
 * than the options
 */
DP_FUNCTION(dp_attribute_is_pending);
Datum
dp_attribute_is_pending(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 1, compile, NULL);
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	int left;

	PG_RETURN_BOOL(form->wide ? dp_attribute_returning(form, doc, &left) > 0
							  : dp_attribute_is_wide(form, doc, NULL));
}

/*
 * _attribute_is_wide(doc bson, options bson) -> bool
 */
DP_FUNCTION(dp_attribute_is_wide_document);
Datum
dp_attribute_is_wide_document(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 1, compile, NULL);

	PG_RETURN_BOOL(dp_attribute_is_wide(form, PG_GETARG_VARLENA_PP(0), NULL));
}

/*
 * _attribute_faults(doc bson, options bson) -> (what, expected, found)
 */
DP_FUNCTION(dp_attribute_faults);
Datum
dp_attribute_faults(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpAttributeForm *form = dp_spec_arg(fcinfo, 1, compile, NULL);
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	int left;
	StringInfoData into;
	DpAttributeText name;
	char *text;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	initStringInfo(&into);
	dp_path_to_text(&into, form->into);
	if (form->wide)
	{
		if (dp_attribute_returning(form, doc, &left) > 0)
			put_fault(rsinfo, psprintf("members of \"%s\"", into.data), "fields", "packed");
	}
	else if (dp_attribute_is_wide(form, doc, &name))
		put_fault(rsinfo,
				  psprintf("field \"%s\"", pnstrdup(name.s, pg_mbcliplen(name.s, name.len, 100))),
				  psprintf("packed into \"%s\"", into.data), "in the document");
	if (form->is_unique && dp_attribute_twice(form, doc, &text))
		put_fault(rsinfo, psprintf("attribute %s in \"%s\"", text, into.data), "once", "twice");
	return (Datum) 0;
}

/* A row of the result. */
static void
put_fault(ReturnSetInfo *rsinfo, const char *what, const char *expected, const char *found)
{
	Datum values[3] = { CStringGetTextDatum(what), CStringGetTextDatum(expected),
						CStringGetTextDatum(found) };
	bool nulls[3] = { false, false, false };

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * _attribute_meant(options bson, name text) -> bool: whether the form means a field of that name.
 */
DP_FUNCTION(dp_attribute_meant);
Datum
dp_attribute_meant(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 0, compile, NULL);
	text *name = PG_GETARG_TEXT_PP(1);
	DpAttributeKey key;

	PG_RETURN_BOOL(dp_attribute_match(form, VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), &key));
}

/*
 * _attribute_fields(options bson) -> text[]: the names of the key fields.
 */
DP_FUNCTION(dp_attribute_fields);
Datum
dp_attribute_fields(PG_FUNCTION_ARGS)
{
	DpAttributeForm *form = dp_spec_arg(fcinfo, 0, compile, NULL);
	Datum names[DP_ATTRIBUTE_MAX_KEYS];
	int i;

	for (i = 0; i < form->nfields; i++)
		names[i] = PointerGetDatum(cstring_to_text_with_len(form->fields[i].name.s,
															form->fields[i].name.len));
	PG_RETURN_ARRAYTYPE_P(construct_array(names, form->nfields, TEXTOID, -1, false, TYPALIGN_INT));
}
