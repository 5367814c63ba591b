/*
 * accumulate_document.c
 *		Target documents: fields and state are put into them, kept and taken out.
 */
#include "postgres.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "mql/accumulate_node.h"

#define STATE_SUBTYPE 0x80

/* A value to put into a document; the type DP_TYPE_EOD removes the field */
typedef struct Put
{
	const DpAccumulators *acc;
	const DpValue *fields;
	const DpValue *state; /* our element of the states */
} Put;

/* The number of the field of a name, -1: none, -2: the states. */
static int
find_field(const DpAccumulators *acc, const DpElement *e)
{
	if (acc->state != NULL && e->namelen == acc->statelen &&
		memcmp(e->name, acc->state, e->namelen) == 0)
		return -2;
	return dp_names_find(&acc->names, e->name, e->namelen);
}

/* The states with ours among them; nothing if none is left. */
static void
put_states(DpBuilder *b, const Put *put, const DpValue *old)
{
	const DpAccumulators *acc = put->acc;
	uint32 before = b->len;
	bool any = false;
	bool done = false;
	DpIter iter;
	DpElement e;

	dp_builder_begin_document_field(b, acc->state, acc->statelen);
	if (old != NULL && old->type == DP_TYPE_DOCUMENT)
	{
		dp_iter_init_value(&iter, old);
		while (dp_iter_next(&iter, &e))
		{
			const DpValue *v = &e.value;

			if (e.namelen == acc->namelen && memcmp(e.name, acc->name, e.namelen) == 0)
			{
				if (done)
					continue;
				done = true;
				v = put->state;
				if (v->type == DP_TYPE_EOD)
					continue;
			}
			dp_builder_append_value(b, e.name, e.namelen, v);
			any = true;
		}
	}
	if (!done && put->state->type != DP_TYPE_EOD)
	{
		dp_builder_append_value(b, acc->name, acc->namelen, put->state);
		any = true;
	}
	dp_builder_end(b);
	if (!any)
		b->len = before;
}

/* The document with these values instead of its own; NULL if no byte differs. */
static struct varlena *
put_into(const DpValue *doc, const Put *put)
{
	const DpAccumulators *acc = put->acc;
	bool *done = palloc0(sizeof(bool) * acc->nfields);
	bool states = false;
	DpBuilder b;
	DpIter iter;
	DpElement e;
	DpValue view;

	dp_builder_init(&b, doc->len + 32 * acc->nfields +
							(put->state->type == DP_TYPE_EOD ? 0 : put->state->len + 32));
	dp_builder_begin_document(&b);
	dp_iter_init_value(&iter, doc);
	while (dp_iter_next(&iter, &e))
	{
		int i = find_field(acc, &e);

		if (i == -2)
		{
			if (!states)
				put_states(&b, put, &e.value);
			states = true;
		}
		else if (i >= 0)
		{
			if (!done[i] && put->fields[i].type != DP_TYPE_EOD)
				dp_builder_append_value(&b, e.name, e.namelen, &put->fields[i]);
			done[i] = true;
		}
		else
			dp_builder_append_value(&b, e.name, e.namelen, &e.value);
	}
	for (int i = 0; i < acc->nfields; i++)
	{
		if (!done[i] && put->fields[i].type != DP_TYPE_EOD)
			dp_builder_append_value(&b, acc->fields[i].name, acc->fields[i].namelen,
									&put->fields[i]);
	}
	if (acc->state != NULL && !states)
		put_states(&b, put, NULL);
	dp_builder_end(&b);
	pfree(done);

	view = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	if (dp_value_identical(&view, doc))
	{
		dp_builder_free(&b);
		return NULL;
	}
	return dp_builder_finish_bson(&b);
}

/* The packed state as a Binary; DP_TYPE_EOD if it is empty.  The bytes are palloc'd. */
static void
state_value(DpAccumulation *g, DpValue *v)
{
	uint8 *bytes;

	dp_state_write(g);
	v->type = DP_TYPE_EOD;
	if (g->packed.len == 0)
		return;
	bytes = palloc(g->packed.len + 5);
	dp_put_int32(bytes, g->packed.len);
	bytes[4] = STATE_SUBTYPE;
	memcpy(bytes + 5, g->packed.data, g->packed.len);
	v->type = DP_TYPE_BINARY;
	v->data = bytes;
	v->len = g->packed.len + 5;
}

struct varlena *
dp_accumulation_write(DpAccumulation *g, const DpValue *target)
{
	DpValue state;
	Put put = { g->acc, NULL, &state };

	dp_accumulation_show(g);
	put.fields = g->results;
	state_value(g, &state);
	return put_into(target, &put);
}

struct varlena *
dp_accumulation_fields(DpAccumulation *g)
{
	const DpAccumulators *acc = g->acc;
	DpBuilder b;

	if (!acc->arrival)
		dp_accumulation_show(g);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (acc->arrival)
		dp_accumulation_show_arrived(g, &b);
	for (int i = 0; i < acc->nfields && !acc->arrival; i++)
		dp_builder_append_value(&b, acc->fields[i].name, acc->fields[i].namelen, &g->results[i]);
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

struct varlena *
dp_accumulators_keep(const DpAccumulators *acc, const DpValue *kept, const DpValue *changed)
{
	DpValue *fields = palloc(sizeof(DpValue) * acc->nfields * 2);
	DpValue *others = fields + acc->nfields;
	DpValue state;
	DpValue other;
	Put put = { acc, fields, &state };
	struct varlena *result = NULL;
	bool same;

	dp_state_find(acc, kept, fields, &state);
	dp_state_find(acc, changed, others, &other);
	same = state.type == other.type &&
		   (state.type == DP_TYPE_EOD || dp_value_identical(&state, &other));
	for (int i = 0; i < acc->nfields && same; i++)
		same = fields[i].type == others[i].type &&
			   (fields[i].type == DP_TYPE_EOD || dp_value_identical(&fields[i], &others[i]));
	if (!same)
		result = put_into(changed, &put);
	pfree(fields);
	return result;
}

const char *
dp_accumulators_claim(const DpAccumulators *acc, const DpValue *empty, const DpValue *doc)
{
	DpValue *none = palloc(sizeof(DpValue) * acc->nfields * 2);
	DpValue *given = none + acc->nfields;
	DpValue state;
	const char *claim = NULL;

	dp_state_find(acc, empty, none, &state);
	dp_state_find(acc, doc, given, &state);
	for (int i = 0; i < acc->nfields && claim == NULL; i++)
	{
		if (given[i].type != DP_TYPE_EOD && given[i].type != DP_TYPE_NULL &&
			(none[i].type == DP_TYPE_EOD || dp_value_compare(&given[i], &none[i]) != 0))
			claim = acc->fields[i].name;
	}
	pfree(none);
	return claim;
}

struct varlena *
dp_accumulators_strip(const DpAccumulators *acc, const DpValue *doc, bool fields)
{
	DpValue *values = palloc(sizeof(DpValue) * acc->nfields);
	DpValue state;
	Put put = { acc, values, &state };
	struct varlena *result;

	dp_state_find(acc, doc, values, &state);
	state.type = DP_TYPE_EOD;
	for (int i = 0; i < acc->nfields && fields; i++)
		values[i].type = DP_TYPE_EOD;
	result = put_into(doc, &put);
	pfree(values);
	return result;
}
