/*
 * payload.c
 *		The payload pattern: its triggers, and functions for the views
 *		<table>_whole and the verbs.
 *
 * There are two BEFORE INSERT OR UPDATE triggers for each row: the main one, which
 * extracts, fires early, so that other patterns can process the fields; the one
 * that packs fires late, so that other patterns see the unpacked payload.  An
 * unchanged payload is not unpacked: its fields are those of the old row.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

#include "bson/access.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "kit/adopt.h"
#include "kit/options.h"
#include "kit/rows/write.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "mql/collection_split.h"
#include "patterns/payload/payload.h"

#define PATTERN "payload"

static DpPayload *payload_of(DpDecl *decl);
static bool find_payload(const DpPayload *p, struct varlena *doc, DpValue *value);
static struct varlena *extract(DpPayload *p, struct varlena *doc, const DpKey *key, int sqlstate);
static void refuse_fields(DpPayload *p, struct varlena *before, struct varlena *after);
static struct varlena *
keep_fields(DpPayload *p, struct varlena *before, struct varlena *after, struct varlena *extracted);
static struct varlena *pack(const DpPayload *p, struct varlena *doc);
static struct varlena *unpack(const DpPayload *p, struct varlena *doc);

/*
 * payload_trigger(): the triggers of the pattern.
 */
DP_FUNCTION(dp_payload_trigger);
Datum
dp_payload_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, PATTERN, DP_BEFORE_ROW(DP_INSERT | DP_UPDATE));
	DpPayload *p;
	TupleDesc desc;
	HeapTuple tuple;
	struct varlena *doc;
	struct varlena *changed;
	struct varlena *before = NULL;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	p = payload_of(decl);

	desc = RelationGetDescr(trigdata->tg_relation);
	tuple = dp_trigger_row(trigdata);
	if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) && dp_trigger_same_document(trigdata, decl))
		return PointerGetDatum(tuple);
	doc = dp_tuple_document(decl, tuple, desc);
	if (doc == NULL)
		return PointerGetDatum(tuple);
	if (trigdata->tg_trigger->tgnargs == 1)
	{
		DpValue old;
		DpValue new;

		/* pattern_build and pattern_repair write extracted fields */
		bool by_hand = dp_marked(p->decl->target, p->decl->name) != DP_MARK_INTERNAL;
		bool has = find_payload(p, doc, &new);
		bool same;

		if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
			before = dp_tuple_document(p->decl, trigdata->tg_trigtuple, desc);
		same = has && before != NULL && find_payload(p, before, &old) &&
			   dp_value_identical(&old, &new) &&
			   (dp_payload_is_packed(&old) || p->decl->held != NIL);
		if (by_hand && (same || !has))
			refuse_fields(p, before, doc);
		if (by_hand && (same || (p->decl->held != NIL && !has && before != NULL &&
								 !find_payload(p, before, &old))))
			changed = keep_fields(p, before, doc, NULL);
		else
		{
			DpKey key;

			dp_key_of_tuple(p->decl, tuple, desc, &key);
			changed = extract(p, doc, &key, ERRCODE_INVALID_BINARY_REPRESENTATION);
			if (by_hand && before != NULL && dp_holding(p->decl))
				changed = keep_fields(p, before, changed,
									  extract(p, before, &key, ERRCODE_DATA_CORRUPTED));
		}
	}
	else
		changed = pack(p, doc);
	if (changed == doc)
		return PointerGetDatum(tuple);
	return PointerGetDatum(dp_tuple_with_document(decl, tuple, desc, changed));
}

/* A declaration, compiled once. */
static DpPayload *
payload_of(DpDecl *decl)
{
	if (unlikely(decl->state == NULL))
		decl->state = dp_payload_compile(decl);
	return decl->state;
}

/* Returns the payload of a document, packed or not; false without one. */
static bool
find_payload(const DpPayload *p, struct varlena *doc, DpValue *value)
{
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, value) &&
		   value->type != DP_TYPE_NULL && value->type != DP_TYPE_UNDEFINED;
}

/*
 * The document with the fields that its payload has; doc itself if it has them.
 * sqlstate is for a packed payload that is none.
 */
static struct varlena *
extract(DpPayload *p, struct varlena *doc, const DpKey *key, int sqlstate)
{
	DpValue value;

	if (!find_payload(p, doc, &value))
		return dp_payload_extract(p, doc, NULL, key);
	if (dp_payload_is_packed(&value))
		value = dp_value_of_varlena(dp_payload_unpack(&value, sqlstate));
	return dp_payload_extract(p, doc, &value, key);
}

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if a document has a new value in an extracted field,
 * although its payload does not. An old copy that was read with its payload passes.
 */
static void
refuse_fields(DpPayload *p, struct varlena *before, struct varlena *after)
{
	int i;

	for (i = 0; i < p->nextracts; i++)
	{
		DpValue old;
		DpValue new;

		if (!dp_path_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), p->extracts[i].path, &new) ||
			new.type == DP_TYPE_NULL ||
			(before != NULL &&
			 dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), p->extracts[i].path, &old) &&
			 dp_value_identical(&old, &new)))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("field \"%s\" of table \"%s\" is extracted from \"%s\"",
						p->extracts[i].name, dp_relation_name(p->decl->target), p->field_text),
				 errhint("Write \"%s\" of table \"%s\".", p->field_text,
						 dp_relation_name(p->decl->target))));
	}
}

/*
 * Returns the new document with the old one's extracted fields; unless extracted (the old document
 * with the fields of its payload) is NULL, with those that differed before the declaration.
 */
static struct varlena *
keep_fields(DpPayload *p, struct varlena *before, struct varlena *after, struct varlena *extracted)
{
	int i;

	for (i = 0; i < p->nextracts; i++)
	{
		const DpPath *path = p->extracts[i].path;
		struct varlena *changed = NULL;
		DpValue old;
		DpValue new;
		bool had = dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), path, &old);
		bool has = dp_path_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), path, &new);

		if (extracted != NULL)
		{
			bool extracts =
				dp_path_find(DP_DOC_DATA(extracted), DP_DOC_SIZE(extracted), path, &new);

			if (had && dp_held(p->decl, path) && dp_value_lost(&old, extracts ? &new : NULL, NIL))
				changed = dp_payload_put(p, after, path, &old);
		}
		else if (had && !(has && dp_value_identical(&old, &new)))
			changed = dp_payload_put(p, after, path, &old);
		else if (has && !had)
			changed = dp_document_unset(DP_DOC_DATA(after), DP_DOC_SIZE(after), path);
		if (changed != NULL)
			after = changed;
	}
	return after;
}

/* The document with its payload packed; doc itself if there is nothing to pack. */
static struct varlena *
pack(const DpPayload *p, struct varlena *doc)
{
	DpValue value;

	if (!find_payload(p, doc, &value) || dp_payload_is_packed(&value))
		return doc;
	value = dp_value_of_varlena(dp_payload_pack(&value));
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &value);
}

/* The document with its payload as it was. */
static struct varlena *
unpack(const DpPayload *p, struct varlena *doc)
{
	DpValue value;

	if (!find_payload(p, doc, &value) || !dp_payload_is_packed(&value))
		return doc;
	value = dp_value_of_varlena(dp_payload_unpack(&value, ERRCODE_DATA_CORRUPTED));
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &value);
}

/* Functions for the views <table>_whole and pattern_build */
static bool
methods_is_split(DpDecl *decl, struct varlena *stored)
{
	DpValue value;

	return find_payload(payload_of(decl), stored, &value) && dp_payload_is_packed(&value);
}

static struct varlena *
methods_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest)
{
	return unpack(payload_of(decl), stored);
}

static struct varlena *
methods_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
			 struct varlena *new_whole)
{
	DpPayload *p = payload_of(decl);
	DpValue old;
	DpValue new;
	DpValue packed;

	if (!find_payload(p, old_whole, &old) || !find_payload(p, new_whole, &new) ||
		!dp_value_identical(&old, &new) || !find_payload(p, stored, &packed))
		return NULL;
	return dp_document_set(DP_DOC_DATA(new_whole), DP_DOC_SIZE(new_whole), p->field, &packed);
}

static bool
method_repair_row(DpDecl *decl, const DpKey *key)
{
	DpPayload *p = payload_of(decl);
	DpWriter *w;
	bool written = false;

	if (p->lookup == NULL)
		p->lookup = dp_lookup_primary(decl->target, decl->context);
	w = dp_writer_open(decl->target, decl->doc_column, 0, decl->name);
	while (dp_writer_find(w, p->lookup, key->values))
	{
		struct varlena *doc;

		CHECK_FOR_INTERRUPTS();
		if (dp_writer_lock(w, LockTupleNoKeyExclusive) == DP_LOCK_DELETED)
			continue;
		doc = dp_writer_document(w);
		if (doc != NULL)
		{
			struct varlena *converted = pack(p, extract(p, doc, key, ERRCODE_DATA_CORRUPTED));

			if (converted != doc)
				written = dp_writer_update(w, converted) == DP_WRITE_DONE;
		}
		break;
	}
	dp_writer_close(w);
	return written;
}

static List *
methods_split(DpDecl *decl)
{
	return list_make1(dp_split_field(payload_of(decl)->field, NULL));
}

static const DpOption options[] = { { "field", DP_OPTION_PATH, DP_REQUIRED,
									  DP_INTO(DpPayload, field),
									  DP_TEXT_INTO(DpPayload, field_text) },
									{ "extracts", DP_OPTION_DOCUMENT, DP_REQUIRED | DP_ALTERABLE },
									{ NULL } };

DP_DEFINE_PATTERN(payload) = { .name = PATTERN,
							   .views = "whole",
							   .options = options,
							   .is_split = methods_is_split,
							   .whole = methods_whole,
							   .keep = methods_keep,
							   .repair_row = method_repair_row,
							   .split = methods_split };

/*
 * The declaration that a function is called for: rel and name are its first arguments after the
 * document.
 */
static DpPayload *
payload_argument(FunctionCallInfo fcinfo)
{
	return payload_of(dp_decl_find(PG_GETARG_OID(1), PATTERN,
								   text_to_cstring(PG_GETARG_TEXT_PP(2))));
}

/*
 * _payload_is_pending(doc bson, rel, name) -> bool: whether the payload is not packed
 */
DP_FUNCTION(dp_payload_is_pending);
Datum
dp_payload_is_pending(PG_FUNCTION_ARGS)
{
	DpPayload *p = payload_argument(fcinfo);
	DpValue value;

	PG_RETURN_BOOL(find_payload(p, PG_GETARG_VARLENA_PP(0), &value) &&
				   !dp_payload_is_packed(&value));
}

/*
 * _payload_verify(rel, options) -> void: raises errors in the options
 */
DP_FUNCTION(dp_payload_verify);
Datum
dp_payload_verify(PG_FUNCTION_ARGS)
{
	struct varlena *options = PG_GETARG_VARLENA_PP(1);
	char *doc_column = NULL;
	DpDecl *decl;
	DpValue value;

	dp_require_owner(PG_GETARG_OID(0));
	if (dp_option_value(options, "doc_column", DP_TYPE_STRING, &value))
		doc_column = pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	decl = dp_decl_of_table(PG_GETARG_OID(0), PATTERN, "new", doc_column, CurrentMemoryContext);
	decl->options = options;
	dp_payload_try(dp_payload_compile(decl));
	PG_RETURN_VOID();
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

/* A value for messages, not too long. */
static char *
shown(struct varlena *doc, const DpPath *path)
{
	StringInfoData out;
	DpValue value;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value))
		return "absent";
	initStringInfo(&out);
	dp_value_to_text(&out, &value, DP_TEXT_RELAXED, -1);
	if (out.len > 100)
	{
		out.len = pg_mbcliplen(out.data, out.len, 100);
		out.data[out.len] = '\0';
		appendStringInfoString(&out, "...");
	}
	return out.data;
}

/*
 * _payload_faults(doc bson, rel, name, key) -> (what, expected, found)
 */
DP_FUNCTION(dp_payload_faults);
Datum
dp_payload_faults(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpPayload *p = payload_argument(fcinfo);
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	struct varlena *right;
	DpKey key;
	DpValue value;
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_key_of_argument(p->decl, fcinfo, 3, &key);
	if (find_payload(p, doc, &value) && !dp_payload_is_packed(&value))
		put_fault(rsinfo, psprintf("payload \"%s\"", p->field_text), "packed",
				  dp_type_name(value.type));
	right = extract(p, doc, &key, ERRCODE_DATA_CORRUPTED);
	for (i = 0; i < p->nextracts && right != doc; i++)
	{
		const DpExtract *x = &p->extracts[i];
		DpValue a;
		DpValue b;
		bool has = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), x->path, &a);
		bool should = dp_path_find(DP_DOC_DATA(right), DP_DOC_SIZE(right), x->path, &b);

		if (has != should || (has && !dp_value_identical(&a, &b)))
			put_fault(rsinfo, psprintf("field \"%s\"", x->name), shown(right, x->path),
					  shown(doc, x->path));
	}
	return (Datum) 0;
}
