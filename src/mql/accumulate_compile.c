/*
 * accumulate_compile.c
 *		Compiles documents of fields: name -> {accumulator: expression}.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/path.h"
#include "mql/accumulate_node.h"
#include "mql/error.h"
#include "mql/expression_node.h"
#include "mql/percentile.h"

/* How an accumulator's argument is written */
typedef enum Form
{
	FORM_NOTHING, /* {} */
	FORM_EXPRESSION,
	FORM_CAPPED,     /* an expression, with "cap" */
	FORM_INPUT,      /* {input, n} */
	FORM_MEDIAN,     /* {input, method}, or an expression */
	FORM_PERCENTILE, /* {input, p, method} */
	FORM_OUTPUT,     /* {sortBy, output} */
	FORM_OUTPUT_N    /* {sortBy, output, n} */
} Form;

typedef struct Accumulator
{
	const char *name;
	Form form;
	DpShow show;
	DpSlot slot;  /* its initial value */
	bool arrival; /* only of groups of rows that come in an order */
} Accumulator;

/* Elements of the lists of a pattern beyond n: fewer groups must be searched */
#define SPARE 8

#define BY_VALUE(down)                                                                             \
	{                                                                                              \
		.kind = DP_SLOT_LIST, .by_value = true, .skip_null = true, .descending = down, .n = 1      \
	}
#define BY_ORDER(down)                                                                             \
	{                                                                                              \
		.kind = DP_SLOT_LIST, .descending = down, .n = 1                                           \
	}

static const Accumulator accumulators[] = {
	{ "$addToSet",
	  FORM_CAPPED,
	  DP_SHOW_LIST,
	  { .kind = DP_SLOT_LIST, .by_value = true, .distinct = true, .skip_missing = true } },
	{ "$avg", FORM_EXPRESSION, DP_SHOW_AVERAGE, { .kind = DP_SLOT_SUM, .count = true } },
	{ "$bottom", FORM_OUTPUT, DP_SHOW_FIRST, BY_ORDER(true) },
	{ "$bottomN", FORM_OUTPUT_N, DP_SHOW_LIST_REVERSED, BY_ORDER(true) },
	{ "$concatArrays",
	  FORM_EXPRESSION,
	  DP_SHOW_LIST,
	  { .kind = DP_SLOT_LIST, .n = PG_INT32_MAX, .skip_missing = true, .elements = true },
	  .arrival = true },
	{ "$count", FORM_NOTHING, DP_SHOW_ROWS, { .kind = DP_SLOT_ROWS } },
	{ "$first", FORM_EXPRESSION, DP_SHOW_FIRST, BY_ORDER(false) },
	{ "$firstN", FORM_INPUT, DP_SHOW_LIST, BY_ORDER(false) },
	{ "$last", FORM_EXPRESSION, DP_SHOW_FIRST, BY_ORDER(true) },
	{ "$lastN", FORM_INPUT, DP_SHOW_LIST_REVERSED, BY_ORDER(true) },
	{ "$max", FORM_EXPRESSION, DP_SHOW_FIRST, BY_VALUE(true) },
	{ "$maxN", FORM_INPUT, DP_SHOW_LIST, BY_VALUE(true) },
	{ "$median", FORM_MEDIAN, DP_SHOW_MEDIAN, { .kind = DP_SLOT_MEDIAN } },
	{ "$mergeObjects",
	  FORM_EXPRESSION,
	  DP_SHOW_MERGED,
	  { .kind = DP_SLOT_LIST, .n = PG_INT32_MAX, .skip_null = true, .objects = true },
	  .arrival = true },
	{ "$min", FORM_EXPRESSION, DP_SHOW_FIRST, BY_VALUE(false) },
	{ "$minN", FORM_INPUT, DP_SHOW_LIST, BY_VALUE(false) },
	{ "$percentile",
	  FORM_PERCENTILE,
	  DP_SHOW_PERCENTILES,
	  { .kind = DP_SLOT_MEDIAN },
	  .arrival = true },
	{ "$push", FORM_CAPPED, DP_SHOW_LIST, { .kind = DP_SLOT_LIST, .skip_missing = true } },
	{ "$setUnion",
	  FORM_EXPRESSION,
	  DP_SHOW_LIST,
	  { .kind = DP_SLOT_LIST,
		.n = PG_INT32_MAX,
		.by_value = true,
		.distinct = true,
		.skip_missing = true,
		.elements = true },
	  .arrival = true },
	{ "$stdDevPop", FORM_EXPRESSION, DP_SHOW_DEVIATION_POP, { .kind = DP_SLOT_DEVIATION } },
	{ "$stdDevSamp", FORM_EXPRESSION, DP_SHOW_DEVIATION_SAMP, { .kind = DP_SLOT_DEVIATION } },
	{ "$sum", FORM_EXPRESSION, DP_SHOW_TOTAL, { .kind = DP_SLOT_SUM } },
	{ "$top", FORM_OUTPUT, DP_SHOW_FIRST, BY_ORDER(false) },
	{ "$topN", FORM_OUTPUT_N, DP_SHOW_LIST, BY_ORDER(false) }
};

/* Specifications, found by their bytes */
typedef struct Specs
{
	DpNames bytes;
	int *numbers; /* by their positions there */
} Specs;

typedef struct Compiler
{
	DpAccumulators *acc;
	const DpAccumulateOptions *options;
	Specs exprs;
	Specs orders;
	int (*shared)[DP_SLOT_SERIES + 1]; /* slots, from 1, by expression (first: none) and kind */
} Compiler;

/* ---------------------------------------------------------------- parts */

/*
 * The number of a specification with the same bytes among those that were
 * compiled, or -1 and the next one, which it gets.  One whose bytes have
 * another type there is not shared.
 */
static int
find_spec(Specs *specs, const DpValue *compiled, int next, const DpValue *spec)
{
	bool found;
	uint32 at = dp_names_add(&specs->bytes, (const char *) spec->data, spec->len, &found);

	if (!found)
		specs->numbers[at] = next;
	else if (compiled[specs->numbers[at]].type == spec->type)
		return specs->numbers[at];
	return -1;
}

/* The number of an expression, the same for the same bytes. */
static int
compile_expression(Compiler *c, const DpLocation *location, const DpValue *spec)
{
	DpAccumulators *acc = c->acc;
	int i = find_spec(&c->exprs, acc->specs, acc->nexprs, spec);

	if (i >= 0)
		return i;
	acc->specs[acc->nexprs] = *spec;
	acc->exprs[acc->nexprs] =
		dp_expr_compile(spec, c->options->arrival ? c->options->flags : DP_EXPR_IMMUTABLE,
						dp_location_text(location));
	return acc->nexprs++;
}

/* The number of an order of rows; -1 for that of their keys. */
static int
compile_order(Compiler *c, const DpLocation *location, const DpValue *spec)
{
	DpAccumulators *acc = c->acc;
	int i;

	if (spec == NULL)
		return -1;
	i = find_spec(&c->orders, acc->order_specs, acc->norders, spec);
	if (i >= 0)
		return i;
	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document", spec);
	acc->order_specs[acc->norders] = *spec;
	acc->orders[acc->norders] = dp_sort_spec_compile(spec);
	return acc->norders++;
}

/* The value of an expression of the group's key. */
static DpValue
key_value(Compiler *c, const DpLocation *location, const DpValue *spec)
{
	DpExpr *e = dp_expr_compile(spec, c->options->flags, dp_location_text(location));
	DpValue nothing = { dp_empty_document, DP_DOCUMENT_MIN_SIZE, DP_TYPE_DOCUMENT };
	DpExprState state;
	DpValue v;

	dp_expr_state_init(&state, c->options->key != NULL ? c->options->key : &nothing);
	if (c->options->only_check || !dp_expr_eval(e, &state, &v))
		(void) dp_result_null(&v);
	return v;
}

/* An n or a cap. */
static int
compile_n(Compiler *c, const DpLocation *location, const DpValue *spec)
{
	int most = c->options->arrival ? PG_INT32_MAX : DP_ACCUMULATE_MAX_N;
	DpValue v = *spec;
	int64 n;

	if (c->options->arrival && !dp_type_is_number(spec->type))
	{
		v = key_value(c, location, spec);
		c->acc->varies = true;
		if (c->options->only_check)
			return 1;
	}
	if (!dp_value_to_whole(&v, &n))
		dp_bad_spec_type(location, "a whole number", &v);
	if (n < 1 || n > most)
		dp_bad_spec(location, "\"%s\" must be from 1 to %d", location->name, most);
	return (int) n;
}

/* The numbers of a $percentile, from 0 to 1. */
static void
compile_percentiles(Compiler *c, const DpLocation *location, const DpValue *spec, DpField *field)
{
	DpValue array = spec->type == DP_TYPE_ARRAY ? *spec : key_value(c, location, spec);

	field->npercentiles = 1;
	if (c->options->only_check && spec->type != DP_TYPE_ARRAY)
		return;
	field->npercentiles = dp_percentile_points(&array, &field->percentiles);
	if (field->npercentiles == 0)
		dp_bad_spec(location, "\"p\" must be an array of numbers from 0 to 1");
}

/* The method of a $median or $percentile. */
static void
compile_method(Compiler *c, const DpLocation *location, const DpValue *spec, DpField *field)
{
	if (!dp_percentile_method(spec, &field->continuous))
		dp_bad_spec(location, DP_PERCENTILE_METHODS);
	if (field->continuous && !c->options->arrival)
		dp_bad_spec(location, "\"method\" must be \"approximate\" or \"discrete\"");
}

/* Whether a document has a field of this name. */
static bool
has_field(const DpValue *v, const char *name)
{
	DpValue found;

	return v->type == DP_TYPE_DOCUMENT &&
		   dp_document_find(v->data, v->len, name, strlen(name), &found);
}

/*
 * The arguments of an accumulator in a document, which has all of them and no others; NULL: not one
 * of this accumulator.
 */
static void
compile_arguments(Compiler *c, const DpLocation *location, const DpValue *spec, Form form,
				  DpSlot *slot, DpField *field)
{
	bool percentile = form == FORM_PERCENTILE;
	bool has_method = false;
	bool sorted = form == FORM_OUTPUT || form == FORM_OUTPUT_N;
	const char *input = sorted ? "output" : "input";
	bool n = form == FORM_INPUT || form == FORM_OUTPUT_N;
	bool has_input = false;
	bool has_n = false;
	bool has_sort = false;
	DpIter iter;
	DpElement e;

	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document", spec);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);

		if (strcmp(e.name, input) == 0)
		{
			slot->expr = compile_expression(c, &inner, &e.value);
			has_input = true;
		}
		else if (n && strcmp(e.name, "n") == 0)
		{
			slot->n = compile_n(c, &inner, &e.value);
			has_n = true;
		}
		else if (sorted && strcmp(e.name, "sortBy") == 0)
		{
			slot->order = compile_order(c, &inner, &e.value);
			has_sort = true;
		}
		else if (percentile && strcmp(e.name, "p") == 0)
			compile_percentiles(c, &inner, &e.value, field);
		else if ((percentile || form == FORM_MEDIAN) && strcmp(e.name, "method") == 0)
		{
			compile_method(c, &inner, &e.value, field);
			has_method = true;
		}
		else
			dp_bad_spec(&inner, "\"%s\" is no argument of this accumulator", e.name);
	}
	if (!has_input)
		dp_bad_spec(location, "%s needs \"%s\"", location->name, input);
	if (n && !has_n)
		dp_bad_spec(location, "%s needs \"n\"", location->name);
	if (sorted && !has_sort)
		dp_bad_spec(location, "%s needs \"sortBy\"", location->name);
	if (percentile && field->npercentiles == 0)
		dp_bad_spec(location, "%s needs \"p\"", location->name);
	if (c->options->arrival && (percentile || form == FORM_MEDIAN) && !has_method)
		dp_bad_spec(location, "%s needs \"method\"", location->name);
}

/* The number of a slot: sums and deviations of the same expression share one. */
static int
add_slot(Compiler *c, const DpSlot *slot)
{
	DpAccumulators *acc = c->acc;

	if (slot->kind != DP_SLOT_LIST && slot->kind != DP_SLOT_SERIES)
	{
		int *shared = &c->shared[slot->expr + 1][slot->kind];

		if (*shared > 0)
		{
			acc->slots[*shared - 1].count |= slot->count;
			return *shared - 1;
		}
		*shared = acc->nslots + 1;
	}
	acc->slots[acc->nslots] = *slot;
	return acc->nslots++;
}

static bool accumulators_has(const DpAccumulators *acc, const char *name, uint32 namelen);

/* One field: {accumulator: argument}. */
static void
compile_field(Compiler *c, const DpElement *element)
{
	DpAccumulators *acc = c->acc;
	DpLocation location = dp_location_field(c->options->location, element);
	DpField *field = &acc->fields[acc->nfields];
	const Accumulator *a = NULL;
	DpElement argument = { 0 };
	DpElement cap = { 0 };
	bool by_arrival;
	DpLocation at;
	DpLocation at_cap;
	DpSlot slot;
	DpIter iter;
	DpElement e;
	bool twice;

	if (element->name[0] == '$' || memchr(element->name, '.', element->namelen) != NULL)
		dp_bad_spec(&location, "the name of a field may not begin with a dollar or hold a dot");
	if (accumulators_has(acc, element->name, element->namelen))
		dp_bad_spec(&location, "field \"%s\" is there already", element->name);
	if (element->value.type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(&location, "a document with an accumulator", &element->value);

	dp_iter_init_value(&iter, &element->value);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(&location, &e);

		if (strcmp(e.name, "cap") == 0 && cap.name == NULL && !c->options->arrival)
		{
			cap = e;
			continue;
		}
		if (argument.name != NULL)
			dp_bad_spec(&inner, "a field has one accumulator");
		argument = e;
		for (int i = 0; i < (int) lengthof(accumulators); i++)
		{
			if (strcmp(accumulators[i].name, e.name) == 0 &&
				(c->options->arrival || !accumulators[i].arrival))
				a = &accumulators[i];
		}
		if (a == NULL)
		{
			DpNearest nearest = { e.name, e.namelen };

			for (int i = 0; i < (int) lengthof(accumulators); i++)
				dp_nearest_try(&nearest, accumulators[i].name);
			dp_unknown_operator(&inner, "accumulator", &nearest);
		}
	}
	if (a == NULL)
		dp_bad_spec(&location, "field \"%s\" needs an accumulator", element->name);
	at = dp_location_field(&location, &argument);
	at_cap = dp_location_field(&location, &cap);

	slot = a->slot;
	slot.expr = -1;
	slot.order = -1;
	slot.visible = -1;
	by_arrival = slot.kind == DP_SLOT_LIST && !slot.by_value && a->form != FORM_OUTPUT &&
				 a->form != FORM_OUTPUT_N;
	if (by_arrival)
		slot.order = compile_order(c, &at, c->options->order_by);
	switch (a->form)
	{
		case FORM_NOTHING:
			if (argument.value.type != DP_TYPE_DOCUMENT ||
				argument.value.len != DP_DOCUMENT_MIN_SIZE)
				dp_bad_spec(&at, "%s takes an empty document", a->name);
			break;
		case FORM_CAPPED:
		case FORM_EXPRESSION:
			if (c->options->arrival && argument.value.type == DP_TYPE_ARRAY)
				dp_bad_spec(&at, "%s needs one expression, not an array", a->name);
			if (c->options->arrival && a->show == DP_SHOW_TOTAL &&
				argument.value.type == DP_TYPE_INT32 && dp_get_int32(argument.value.data) == 1)
				slot.kind = DP_SLOT_ROWS;
			else
				slot.expr = compile_expression(c, &at, &argument.value);
			break;
		case FORM_MEDIAN:
			if (!has_field(&argument.value, "input") && !c->options->arrival)
			{
				slot.expr = compile_expression(c, &at, &argument.value);
				break;
			}
			/* FALLTHROUGH */
		default:
			compile_arguments(c, &at, &argument.value, a->form, &slot, field);
			break;
	}
	if (a->form == FORM_CAPPED)
	{
		if (cap.name != NULL)
			slot.n = compile_n(c, &at_cap, &cap.value);
		else if (c->options->uncapped || c->options->arrival)
			slot.n = PG_INT32_MAX;
		else
			dp_bad_spec(&location, "%s needs \"cap\" beside it, the most elements that it may have",
						a->name);
	}
	else if (cap.name != NULL)
		dp_bad_spec(&at_cap, "\"cap\" is no argument of this accumulator");

	slot.cap = slot.n > PG_INT32_MAX - SPARE ? slot.n : slot.n + SPARE;
	if (c->options->arrival && slot.kind == DP_SLOT_LIST)
	{
		/* without sort keys; in a window, sets and the n best values are lists that count */
		if (by_arrival || (slot.by_value && a->show == DP_SHOW_FIRST) ||
			(slot.distinct && !c->options->window))
			slot.kind = DP_SLOT_SERIES;
		slot.cap = c->options->window || slot.distinct ? PG_INT32_MAX : slot.n;
	}
	if (slot.kind == DP_SLOT_MEDIAN && a->form == FORM_MEDIAN && c->options->arrival)
	{
		static double half = 0.5;

		field->percentiles = &half;
		field->npercentiles = 1;
	}

	field->name = element->name;
	field->namelen = element->namelen;
	field->show = slot.kind == DP_SLOT_ROWS ? DP_SHOW_ROWS : a->show;
	field->slot = add_slot(c, &slot);
	if (slot.kind == DP_SLOT_LIST || slot.kind == DP_SLOT_SERIES || a->show == DP_SHOW_ROWS ||
		a->show == DP_SHOW_TOTAL)
		acc->slots[field->slot].visible = acc->nfields;
	if (c->options->arrival ? by_arrival : slot.kind == DP_SLOT_LIST && !slot.by_value)
		acc->need_key = true;
	(void) dp_names_add(&acc->names, field->name, field->namelen, &twice);
	acc->nfields++;
}

/* A copy of a value's bytes. */
static DpValue
copy_value(const DpValue *v)
{
	DpValue copy = *v;
	uint8 *bytes = palloc(Max(v->len, 1));

	memcpy(bytes, v->data, v->len);
	copy.data = bytes;
	return copy;
}

/* The name of the field, if the expression is "$name". */
static bool
plain_field(const DpValue *spec, const char **name, uint32 *len)
{
	if (spec->type != DP_TYPE_STRING)
		return false;
	*name = DP_STRING_DATA(spec) + 1;
	*len = DP_STRING_LEN(spec) - 1;
	return DP_STRING_LEN(spec) > 1 && (*name)[-1] == '$' && (*name)[0] != '$' &&
		   memchr(*name, '.', *len) == NULL && memchr(*name, 0, *len) == NULL;
}

/* The length of the state of a slot. */
static Size
state_size(const DpSlot *slot)
{
	switch (slot->kind)
	{
		case DP_SLOT_ROWS:
			return offsetof(DpSlotState, sum);
		case DP_SLOT_SUM:
			return offsetof(DpSlotState, sum) + sizeof(DpExactSum);
		case DP_SLOT_SERIES:
			return offsetof(DpSlotState, series) + sizeof(DpSeries);
		default:
			return sizeof(DpSlotState);
	}
}

/* ---------------------------------------------------------------- exported */

DpAccumulators *
dp_accumulators_compile(const DpValue *fields, const DpAccumulateOptions *options)
{
	DpAccumulators *acc = palloc0(sizeof(DpAccumulators));
	DpAccumulateOptions own = *options;
	Compiler c = { acc, &own, { { 0 } }, { { 0 } }, NULL };
	DpValue copy = copy_value(fields);
	DpValue order;
	DpIter iter;
	DpElement e;
	uint32 n = dp_document_count(fields->data, fields->len);

	acc->context = CurrentMemoryContext;
	acc->fields = palloc0(sizeof(DpField) * (n + 1));
	acc->slots = palloc0(sizeof(DpSlot) * (n + 1));
	acc->exprs = palloc0(sizeof(DpExpr *) * (n + 1));
	acc->specs = palloc0(sizeof(DpValue) * (n + 1));
	acc->values = palloc0(sizeof(DpValue) * (n + 1));
	acc->known = palloc0(sizeof(bool) * (n + 1));
	acc->orders = palloc0(sizeof(DpSortSpec *) * (n + 1));
	acc->order_specs = palloc0(sizeof(DpValue) * (n + 1));
	acc->keys = palloc0(sizeof(StringInfoData) * (n + 1));
	acc->keys_known = palloc0(sizeof(bool) * (n + 1));
	c.exprs.numbers = palloc(sizeof(int) * (n + 1));
	c.orders.numbers = palloc(sizeof(int) * (n + 2));
	c.shared = palloc0(sizeof(*c.shared) * (n + 2));
	initStringInfo(&acc->key);
	if (options->order_by != NULL)
	{
		order = copy_value(options->order_by);
		own.order_by = &order;
		/* a wrong one is an error even if nothing depends on it */
		if (order.type != DP_TYPE_DOCUMENT)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the order of rows must be a document")));
		(void) dp_sort_spec_compile(&order);
	}
	if (options->state != NULL)
	{
		acc->state = pstrdup(options->state);
		acc->statelen = strlen(acc->state);
		acc->name = pstrdup(options->name);
		acc->namelen = strlen(acc->name);
	}
	acc->keep_rows = options->keep_rows;
	acc->arrival = options->arrival;
	acc->window = options->window;

	dp_iter_init_value(&iter, &copy);
	while (dp_iter_next(&iter, &e))
		compile_field(&c, &e);
	if (acc->nfields == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("fields to accumulate must not be empty")));
	if (acc->keep_rows)
	{
		DpSlot slot = { .kind = DP_SLOT_ROWS, .expr = -1, .order = -1, .visible = -1 };

		(void) add_slot(&c, &slot);
	}
	for (int i = 0; i < acc->nexprs && acc->nexprs <= DP_NAMES_FEW; i++)
	{
		DpPlain *plain = &acc->plain[acc->nplain];

		plain->expr = i;
		acc->nplain += plain_field(&acc->specs[i], &plain->name, &plain->len) ? 1 : 0;
	}
	for (int i = 0; i < acc->nslots; i++)
	{
		acc->slots[i].offset = acc->states_size;
		acc->states_size += MAXALIGN(state_size(&acc->slots[i]));
	}
	for (int i = 0; i < acc->norders; i++)
		initStringInfo(&acc->keys[i]);
	dp_names_free(&c.exprs.bytes);
	dp_names_free(&c.orders.bytes);
	pfree(c.exprs.numbers);
	pfree(c.orders.numbers);
	pfree(c.shared);
	acc->fingerprint =
		(uint32) dp_value_hash(&copy, options->order_by ? dp_value_hash(&order, 0) : 0) ^
		(acc->keep_rows ? 1 : 0);
	return acc;
}

bool
dp_accumulators_need_key(const DpAccumulators *acc)
{
	return acc->need_key;
}

bool
dp_accumulators_vary(const DpAccumulators *acc)
{
	return acc->varies;
}

bool
dp_accumulators_same_n(const DpAccumulators *acc, const DpAccumulators *other)
{
	for (int i = 0; i < acc->nslots; i++)
		if (acc->slots[i].n != other->slots[i].n)
			return false;
	return true;
}

int
dp_accumulators_count(const DpAccumulators *acc)
{
	return acc->nfields;
}

const char *
dp_accumulators_name(const DpAccumulators *acc, int field)
{
	return acc->fields[field].name;
}

/* Whether a field of this name is one of the fields or the field of states. */
static bool
accumulators_has(const DpAccumulators *acc, const char *name, uint32 namelen)
{
	if (acc->state != NULL && acc->statelen == namelen && memcmp(acc->state, name, namelen) == 0)
		return true;
	return dp_names_find(&acc->names, name, namelen) >= 0;
}

DpAccumulateSearch
dp_accumulators_search(const DpAccumulators *acc, int field, bool *descending, bool *not_null)
{
	const DpSlot *slot = &acc->slots[acc->fields[field].slot];

	*descending = false;
	*not_null = false;
	if (slot->kind == DP_SLOT_MEDIAN)
	{
		*not_null = true;
		return DP_SEARCH_VALUE;
	}
	if (slot->kind != DP_SLOT_LIST)
		return DP_SEARCH_NONE;
	*descending = slot->descending;
	*not_null = slot->by_value && slot->skip_null;
	if (slot->by_value)
		return DP_SEARCH_VALUE;
	return slot->order >= 0 ? DP_SEARCH_ORDER : DP_SEARCH_KEY;
}

/* Appends a literal of one of the extension's types. */
static void
append_literal(StringInfo sql, const DpValue *v, bool document)
{
	struct varlena *d = document ? dp_document_to_varlena(v->data, v->len) : dp_value_to_varlena(v);
	const DpTypes *types = dp_types();
	Oid type = document ? types->bson : types->bson_value;
	Oid output;
	bool is_varlena;

	getTypeOutputInfo(type, &output, &is_varlena);
	appendStringInfoString(sql,
						   quote_literal_cstr(OidOutputFunctionCall(output, PointerGetDatum(d))));
	appendStringInfoString(sql, "::");
	dp_sql_own_schema(sql);
	appendStringInfoString(sql, document ? "bson" : "bson_value");
}

char *
dp_accumulators_search_sql(const DpAccumulators *acc, int field, const char *doc_column)
{
	const DpSlot *slot = &acc->slots[acc->fields[field].slot];
	const char *column = quote_identifier(doc_column);
	StringInfoData sql;
	const char *name;
	uint32 len;
	bool ignored;

	initStringInfo(&sql);
	switch (dp_accumulators_search(acc, field, &ignored, &ignored))
	{
		case DP_SEARCH_VALUE:
			if (plain_field(&acc->specs[slot->expr], &name, &len))
			{
				StringInfoData path;

				initStringInfo(&path);
				dp_path_to_text(&path, dp_path_of_name(name, len));
				appendStringInfo(&sql, "%s ", column);
				dp_sql_own_operator(&sql, "->");
				appendStringInfo(&sql, " %s::pg_catalog.text", quote_literal_cstr(path.data));
			}
			else
			{
				dp_sql_own_schema(&sql);
				appendStringInfo(&sql, "bson_eval_immutable(%s, ", column);
				append_literal(&sql, &acc->specs[slot->expr], false);
				appendStringInfoChar(&sql, ')');
			}
			return sql.data;
		case DP_SEARCH_ORDER:
			dp_sql_own_schema(&sql);
			appendStringInfo(&sql, "bson_sort_key(%s, ", column);
			append_literal(&sql, &acc->order_specs[slot->order], true);
			appendStringInfoChar(&sql, ')');
			return sql.data;
		default:
			return NULL;
	}
}
