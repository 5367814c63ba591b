/*
 * chain.c
 *		Versions of a schema and the steps between them: reads the version of a
 *		document and converts it to another one.
 *
 * Generated functions call _schema_versioning_as() with the chain in constant
 * arguments, which is read once per call site.  The result must only depend on
 * these, so that the function is immutable: update documents may not use the time,
 * and functions must be immutable and are called with a fixed search_path, because
 * creating an index and writing use different ones.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/params.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/fetch.h"
#include "bson/number.h"
#include "mql/spec.h"
#include "patterns/schema_versioning/schema_versioning.h"

/* A step in the options */
typedef struct StepSpec
{
	int32 since;
	int32 until;
	DpValue up_update; /* type DP_TYPE_EOD: none */
	DpValue down_update;
	int up_function; /* position, -1: none */
	int down_function;
} StepSpec;

/* Cached by _schema_versioning_as() */
typedef struct AsCache
{
	MemoryContext context;
	struct varlena *spec;
	DpVersions *versions;
	int at;
	bool is_const;
} AsCache;

static int steps_read(const DpValue *spec, StepSpec **steps, int nfunctions);
static int32 spec_int(const DpValue *spec, const char *name);
static bool spec_value(const DpValue *spec, const char *name, DpValue *value);
static void move_make(const DpVersions *v, DpVersionMove *move, const DpValue *update, int function,
					  const Oid *functions, Oid as, bool brief, MemoryContext context);
static bool update_reaches(const DpValue *update, const DpPathStep *step);
static bool path_begins(const char *path, uint32 len, const DpPathStep *step);
static bool update_asks_clock(const DpValue *value, bool stages);
static void function_make(DpVersionMove *move, Oid function, Oid as, MemoryContext context);
static void body_make(DpVersionMove *move);
static Expr *returned_expression(Oid function);
static bool calls_languages(Node *node, void *context);
static uint8 type_read(const DpValue *spec);
static void written_make(DpVersions *v);
static int32 version_of_value(const DpValue *value);
static struct varlena *move_apply(const DpVersionMove *move, struct varlena *doc, bool *own);
static struct varlena *field_insert(const DpVersions *v, struct varlena *doc, const DpValue *value);
static void bad_chain(const char *what) pg_attribute_noreturn();
static void step_context(void *arg);
static AsCache *as_cached(FunctionCallInfo fcinfo);

/*
 * Read a chain.
 */
DpVersions *
dp_versions_make(const DpValue *spec, int32 version, const Oid *functions, int nfunctions, Oid as,
				 bool brief, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	DpVersions *v = palloc0(sizeof(DpVersions));
	StepSpec *steps;
	int nsteps = steps_read(spec, &steps, nfunctions);
	DpValue value;
	int32 end;
	int low;
	int high;
	int i;

	if (!spec_value(spec, "field", &value) || value.type != DP_TYPE_STRING)
		bad_chain("The field is missing.");
	v->field_text = pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	v->field = dp_path_parse(v->field_text, strlen(v->field_text));
	if (v->field->nsteps == 0)
		bad_chain("The field is empty.");
	v->type = type_read(spec);
	v->first =
		spec_value(spec, "first", &value) && value.type == DP_TYPE_BOOL && value.data[0] != 0;

	/* the steps connected with the version: those that end at it, and those that begin */
	for (low = 0; low < nsteps && steps[low].until <= version; low++)
		continue;
	high = low;
	for (end = version; low > 0 && steps[low - 1].until == end; low--)
		end = steps[low - 1].since;
	for (end = version; high < nsteps && steps[high].since == end; high++)
		end = steps[high].until;

	v->n = high - low + 1;
	v->versions = palloc(sizeof(int32) * v->n);
	v->steps = palloc0(sizeof(DpVersionStep) * v->n);
	v->versions[0] = low < high ? steps[low].since : version;
	for (i = low; i < high; i++)
	{
		v->versions[i - low + 1] = steps[i].until;
		move_make(v, &v->steps[i - low].up, &steps[i].up_update, steps[i].up_function, functions,
				  as, brief, context);
		move_make(v, &v->steps[i - low].down, &steps[i].down_update, steps[i].down_function,
				  functions, as, brief, context);
	}
	written_make(v);
	MemoryContextSwitchTo(old);
	return v;
}

/*
 * The steps of a specification.  Raises INVALID_PARAMETER_VALUE unless they
 * are in order and no two begin or end at the same version.
 */
static int
steps_read(const DpValue *spec, StepSpec **steps, int nfunctions)
{
	DpValue list;
	DpValue value;
	DpIter iter;
	int n = 0;
	int function = 0;

	*steps = NULL;
	if (!spec_value(spec, "steps", &list))
		return 0;
	if (list.type != DP_TYPE_ARRAY)
		bad_chain("The steps are not an array.");
	*steps = palloc0(sizeof(StepSpec) * (dp_document_count(list.data, list.len) + 1));
	dp_iter_init_value(&iter, &list);
	while (dp_iter_next_value(&iter, &value))
	{
		StepSpec *s = &(*steps)[n];
		DpValue found;

		if (value.type != DP_TYPE_DOCUMENT)
			bad_chain("A step is not a document.");
		s->since = spec_int(&value, "since");
		s->until = spec_int(&value, "until");
		if (s->since < 1 || s->until <= s->since || (n > 0 && s->since < (*steps)[n - 1].until))
			bad_chain("The steps are not in order.");
		s->up_function = spec_value(&value, "up_function", &found) ? function++ : -1;
		s->down_function = spec_value(&value, "down_function", &found) ? function++ : -1;
		if (!spec_value(&value, "up_update", &s->up_update))
			s->up_update.type = DP_TYPE_EOD;
		if (!spec_value(&value, "down_update", &s->down_update))
			s->down_update.type = DP_TYPE_EOD;
		if ((s->up_function >= 0) == (s->up_update.type != DP_TYPE_EOD) ||
			(s->down_function >= 0 && s->down_update.type != DP_TYPE_EOD))
			bad_chain("A step must be an update or a function.");
		n++;
	}
	if (function != nfunctions)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the steps of a schema require %d functions, not %d", function,
							   nfunctions)));
	return n;
}

/* A whole number of a specification, 0 if it is none. */
static int32
spec_int(const DpValue *spec, const char *name)
{
	DpValue value;

	return spec_value(spec, name, &value) ? version_of_value(&value) : 0;
}

/* A member of a specification; null is as good as none. */
static bool
spec_value(const DpValue *spec, const char *name, DpValue *value)
{
	return dp_document_find(spec->data, spec->len, name, strlen(name), value) &&
		   value->type != DP_TYPE_NULL;
}

/* One direction of a step; the current context is the chain's. */
static void
move_make(const DpVersions *v, DpVersionMove *move, const DpValue *update, int function,
		  const Oid *functions, Oid as, bool brief, MemoryContext context)
{
	if (function >= 0)
	{
		function_make(move, functions[function], as, context);
		if (brief)
			body_make(move);
	}
	else if (update->type != DP_TYPE_EOD)
	{
		if (update->type != DP_TYPE_DOCUMENT && update->type != DP_TYPE_ARRAY)
			bad_chain("An update must be a document or an array of stages.");
		if (update_asks_clock(update, update->type == DP_TYPE_ARRAY))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("a step cannot be an update that uses the time or random values"),
					 errdetail("A document must be the same whenever it is read.")));
		move->update = dp_update_compile(update, NULL, NULL, false);
		move->leaves_field =
			update->type == DP_TYPE_DOCUMENT && !update_reaches(update, &v->field->steps[0]);
	}
}

/* Returns whether an update may change the field with the version, true if in doubt. */
static bool
update_reaches(const DpValue *update, const DpPathStep *step)
{
	DpIter operators;
	DpElement operator;

	dp_iter_init_value(&operators, update);
	while (dp_iter_next(&operators, &operator))
	{
		DpIter fields;
		DpElement field;

		/* replaced by a whole document */
		if (operator.name[0] != '$' || operator.value.type != DP_TYPE_DOCUMENT)
			return true;
		dp_iter_init_value(&fields, &operator.value);
		while (dp_iter_next(&fields, &field))
		{
			if (path_begins(field.name, field.namelen, step))
				return true;
			if (strcmp(operator.name, "$rename") == 0 &&
				(field.value.type != DP_TYPE_STRING ||
				 path_begins(DP_STRING_DATA(&field.value), DP_STRING_LEN(&field.value), step)))
				return true;
		}
	}
	return false;
}

/* Whether the first part of a path of an update is that name. */
static bool
path_begins(const char *path, uint32 len, const DpPathStep *step)
{
	return len >= step->namelen && memcmp(path, step->name, step->namelen) == 0 &&
		   (len == step->namelen || path[step->namelen] == '.');
}

/*
 * Returns whether an update is not immutable. Of the update operators only $currentDate is; stages
 * are searched for operators, including those in literals.
 */
static bool
update_asks_clock(const DpValue *value, bool stages)
{
	DpIter iter;
	DpElement e;

	check_stack_depth();
	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &e))
	{
		if (!stages)
		{
			if (strcmp(e.name, "$currentDate") == 0)
				return true;
			continue;
		}
		if (strcmp(e.name, "$rand") == 0 || strcmp(e.name, "$sampleRate") == 0)
			return true;
		if (e.value.type == DP_TYPE_STRING &&
			(strncmp(DP_STRING_DATA(&e.value), "$$NOW", 5) == 0 ||
			 strncmp(DP_STRING_DATA(&e.value), "$$CLUSTER_TIME", 14) == 0))
			return true;
		if (dp_type_is_container(e.value.type) && update_asks_clock(&e.value, true))
			return true;
	}
	return false;
}

/* A step that is a function.  Raises INVALID_OBJECT_DEFINITION and INSUFFICIENT_PRIVILEGE. */
static void
function_make(DpVersionMove *move, Oid function, Oid as, MemoryContext context)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid bson = dp_types()->bson;
	Form_pg_proc form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("function with OID %u does not exist", function)));
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prokind != PROKIND_FUNCTION || form->proretset || form->prorettype != bson ||
		form->pronargs != 1 || form->proargtypes.values[0] != bson)
		ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
						errmsg("function %s cannot be a step", format_procedure(function)),
						errdetail("A step must take one bson and return bson.")));
	if (form->provolatile != PROVOLATILE_IMMUTABLE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("function %s cannot be a step", format_procedure(function)),
				 errdetail("It is not marked IMMUTABLE, and indexes depend on its result.")));
	if (!dp_may_execute(function, as))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
	ReleaseSysCache(tuple);
	move->function = MemoryContextAllocZero(context, sizeof(DpUserFunction));
	dp_user_function_init(move->function, function, context);
}

/*
 * A function that consists of one expression is evaluated as that, because a call costs many times
 * as much: RETURN expr, and functions that the planner would inline. The expression may not
 * outlive the statement, which would miss a replaced function.
 */
static void
body_make(DpVersionMove *move)
{
	Expr *expr;
	ParamListInfo params;
	int nestlevel;

	if (move->function->search_path == NULL)
		return; /* in C, or with settings of its own */
	expr = returned_expression(move->function->oid);
	if (expr == NULL)
	{
		Param *param = makeNode(Param);

		param->paramkind = PARAM_EXTERN;
		param->paramid = 1;
		param->paramtype = dp_types()->bson;
		param->paramtypmod = -1;
		param->location = -1;
		expr = (Expr *) makeFuncExpr(move->function->oid, param->paramtype, list_make1(param),
									 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	}
	nestlevel = dp_user_path_begin(move->function->search_path);
	expr = expression_planner(expr);
	dp_user_path_end(nestlevel);
	if (IsA(expr, FuncExpr) && ((FuncExpr *) expr)->funcid == move->function->oid)
		return;

	params = makeParamList(1);
	params->params[0].ptype = dp_types()->bson;
	move->body = ExecInitExprWithParams(expr, params);
	move->context = CreateStandaloneExprContext();
	move->context->ecxt_param_list_info = params;
	/* C functions look up nothing */
	if (calls_languages((Node *) expr, NULL))
		move->body_path = move->function->search_path;
}

/*
 * The expression that a function returns, if it is written as RETURN expr, without queries in it;
 * else NULL.
 */
static Expr *
returned_expression(Oid function)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Expr *expr = NULL;
	Datum body;
	bool isnull;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	body = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);
	if (!isnull && ((Form_pg_proc) GETSTRUCT(tuple))->prolang == SQLlanguageId &&
		!((Form_pg_proc) GETSTRUCT(tuple))->prosecdef &&
		!((Form_pg_proc) GETSTRUCT(tuple))->proisstrict &&
		heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL))
	{
		Query *query = (Query *) stringToNode(TextDatumGetCString(body));

		if (IsA(query, Query) && query->commandType == CMD_SELECT && query->rtable == NIL &&
			query->cteList == NIL && !query->hasSubLinks && !query->hasAggs &&
			!query->hasWindowFuncs && !query->hasTargetSRFs && query->jointree->fromlist == NIL &&
			query->jointree->quals == NULL && query->limitCount == NULL &&
			query->limitOffset == NULL && list_length(query->targetList) == 1)
			expr = ((TargetEntry *) linitial(query->targetList))->expr;
		if (expr != NULL && exprType((Node *) expr) != dp_types()->bson)
			expr = NULL;
	}
	ReleaseSysCache(tuple);
	return expr;
}

/* Whether an expression calls a function that may look for something by name. */
static bool
calls_languages(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, dp_function_keeps_state, NULL))
		return true;
	return expression_tree_walker(node, calls_languages, context);
}

/* The type that the field is written in. */
static uint8
type_read(const DpValue *spec)
{
	DpValue value;
	static const struct
	{
		const char *name;
		uint8 type;
	} types[] = { { "int", DP_TYPE_INT32 },
				  { "long", DP_TYPE_INT64 },
				  { "double", DP_TYPE_DOUBLE },
				  { "decimal", DP_TYPE_DECIMAL128 },
				  { "string", DP_TYPE_STRING } };
	int i;

	if (!spec_value(spec, "type", &value))
		return DP_TYPE_INT32;
	for (i = 0; i < lengthof(types); i++)
	{
		if (value.type == DP_TYPE_STRING && strcmp(DP_STRING_DATA(&value), types[i].name) == 0)
			return types[i].type;
	}
	bad_chain("The type of the field must be int, long, double, decimal or string.");
}

/* The versions as they are written. */
static void
written_make(DpVersions *v)
{
	int i;

	v->written = palloc(sizeof(DpValue) * v->n);
	for (i = 0; i < v->n; i++)
	{
		uint8 *bytes = palloc0(DP_DECIMAL128_SIZE);
		char digits[12];
		int len = pg_ltoa(v->versions[i], digits);

		v->written[i].type = v->type;
		v->written[i].data = bytes;
		v->written[i].len = 8;
		switch (v->type)
		{
			case DP_TYPE_INT32:
				dp_put_int32(bytes, v->versions[i]);
				v->written[i].len = 4;
				break;
			case DP_TYPE_INT64:
				dp_put_int64(bytes, v->versions[i]);
				break;
			case DP_TYPE_DOUBLE:
				dp_put_double(bytes, v->versions[i]);
				break;
			case DP_TYPE_DECIMAL128:
				(void) dp_decimal128_from_text(digits, len, bytes);
				v->written[i].len = DP_DECIMAL128_SIZE;
				break;
			default:
				dp_put_int32(bytes, len + 1);
				memcpy(bytes + 4, digits, len + 1);
				v->written[i].len = len + 5;
				break;
		}
	}
}

/*
 * The version that a document has.
 */
int32
dp_versions_of(DpVersions *v, Datum doc, bool *absent)
{
	DpValue value;
	bool present = dp_fetch_path(doc, v->field, true, &value);

	if (absent != NULL)
		*absent = !present;
	return present ? version_of_value(&value) : 1;
}

/* Returns the version in a field: a positive whole number of any type, or its digits. */
static int32
version_of_value(const DpValue *value)
{
	if (likely(value->type == DP_TYPE_INT32))
		return Max(dp_get_int32(value->data), DP_VERSION_NONE);
	if (value->type == DP_TYPE_NULL || value->type == DP_TYPE_UNDEFINED)
		return 1;
	if (value->type == DP_TYPE_STRING)
	{
		const char *s = DP_STRING_DATA(value);
		int len = DP_STRING_LEN(value);
		int64 n = 0;
		int i;

		if (len < 1 || len > 10 || s[0] == '0')
			return DP_VERSION_NONE;
		for (i = 0; i < len; i++)
		{
			if (s[i] < '0' || s[i] > '9')
				return DP_VERSION_NONE;
			n = n * 10 + (s[i] - '0');
		}
		return n <= PG_INT32_MAX ? (int32) n : DP_VERSION_NONE;
	}
	if (dp_type_is_number(value->type))
	{
		double d = dp_number_approximate(value);

		return d >= 1 && d <= PG_INT32_MAX && floor(d) == d ? (int32) d : DP_VERSION_NONE;
	}
	return DP_VERSION_NONE;
}

int
dp_versions_find(const DpVersions *v, int32 version)
{
	int i;

	for (i = 0; i < v->n; i++)
	{
		if (v->versions[i] == version)
			return i;
	}
	return -1;
}

/* Converts a document along the chain. */
struct varlena *
dp_versions_move(DpVersions *v, struct varlena *doc, int from, int to, bool absent)
{
	bool own = false; /* doc is a private copy */
	ErrorContextCallback callback;
	int32 versions[2];

	if (from == to)
		return doc;
	callback.callback = step_context;
	callback.arg = versions;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	while (from != to)
	{
		int next = from < to ? from + 1 : from - 1;
		const DpVersionMove *move = from < to ? &v->steps[from].up : &v->steps[next].down;

		versions[0] = v->versions[from];
		versions[1] = v->versions[next];
		if (move->update == NULL && move->function == NULL)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("cannot convert documents from version %d to version %d",
								   versions[0], versions[1]),
							errhint("Declare the step down with schema_versioning_step().")));
		doc = move_apply(move, doc, &own);
		if (absent && move->leaves_field && v->field->nsteps == 1)
			doc = field_insert(v, doc, &v->written[next]);
		else
			doc = dp_versions_mark(v, doc, next);
		absent = false;
		from = next;
	}
	error_context_stack = callback.previous;
	return doc;
}

/* Executes one step. Sets *own if the result is a private copy. */
static struct varlena *
move_apply(const DpVersionMove *move, struct varlena *doc, bool *own)
{
	struct varlena *result;
	Datum d;
	bool isnull;

	if (move->update != NULL)
	{
		result = dp_update_apply(move->update, doc, *own);
		if (result == NULL)
			return doc;
		*own = true;
		return result;
	}

	if (move->body != NULL)
	{
		int nestlevel = dp_user_path_begin(move->body_path);

		move->context->ecxt_param_list_info->params[0].value = PointerGetDatum(doc);
		move->context->ecxt_param_list_info->params[0].isnull = false;
		d = ExecEvalExpr(move->body, move->context, &isnull);
		dp_user_path_end(nestlevel);
	}
	else
		d = dp_user_function_call(move->function, InvalidOid, PointerGetDatum(doc), false, &isnull);
	if (isnull)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("step %s returned null", format_procedure(move->function->oid))));
	*own = false;
	return PG_DETOAST_DATUM_PACKED(d);
}

/* Writes the version. A new field is added after _id, where it is found fastest. */
struct varlena *
dp_versions_mark(DpVersions *v, struct varlena *doc, int at)
{
	DpValue found;
	bool present = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field, &found);

	if (v->versions[at] == 1 && !v->first)
	{
		struct varlena *without =
			present ? dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field) : NULL;

		return without != NULL ? without : doc;
	}
	if (present && dp_value_identical(&found, &v->written[at]))
		return doc;
	if (!present && v->field->nsteps == 1)
		return field_insert(v, doc, &v->written[at]);
	dp_versions_check_path(v, doc);
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field, &v->written[at]);
}

void
dp_versions_check_path(const DpVersions *v, struct varlena *doc)
{
	int step;
	uint8 type;

	if (v->field->nsteps > 1 &&
		dp_path_blocked(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field, &step, &type))
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION), errmsg("cannot store the version in a document"),
				 errdetail("Part %d of the path \"%s\", \"%s\", is a value of type %s.", step + 1,
						   v->field_text, v->field->steps[step].name, dp_type_name(type))));
}

/* A new document with the field behind _id, or first. */
static struct varlena *
field_insert(const DpVersions *v, struct varlena *doc, const DpValue *value)
{
	const DpPathStep *step = &v->field->steps[0];
	const uint8 *bytes = DP_DOC_DATA(doc);
	uint32 size = DP_DOC_SIZE(doc);
	uint32 more = 1 + step->namelen + 1 + value->len;
	uint32 front = 4;
	struct varlena *result;
	uint8 *p;
	DpIter iter;
	DpElement e;

	dp_check_document_size((Size) size + more);
	dp_iter_init(&iter, bytes, size);
	if (dp_iter_next(&iter, &e) && e.namelen == 3 && memcmp(e.name, "_id", 3) == 0)
		front = iter.next - bytes;
	result = palloc(VARHDRSZ + size + more);
	SET_VARSIZE(result, VARHDRSZ + size + more);
	p = (uint8 *) VARDATA(result);
	memcpy(p, bytes, front);
	dp_put_int32(p, size + more);
	p += front;
	*p++ = value->type;
	memcpy(p, step->name, step->namelen);
	p += step->namelen;
	*p++ = 0;
	memcpy(p, value->data, value->len);
	memcpy(p + value->len, bytes + front, size - front);
	return result;
}

/* For errors of steps. */
static void
step_context(void *arg)
{
	const int32 *versions = arg;

	errcontext("step from version %d to version %d of a schema", versions[0], versions[1]);
}

/*
 * A document whose version is not in the chain.
 */
void
dp_versions_unknown(DpVersions *v, Datum doc, const char *of_row)
{
	int32 version = dp_versions_of(v, doc, NULL);
	StringInfoData known;
	DpValue value;
	int i;

	initStringInfo(&known);
	for (i = 0; i < v->n; i++)
		appendStringInfo(&known, "%s%d", i > 0 ? ", " : "", v->versions[i]);
	if (version == DP_VERSION_NONE && dp_fetch_path(doc, v->field, false, &value))
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("field \"%s\" of a document%s does not contain a version", v->field_text,
						of_row),
				 errdetail("It is of type %s; a version must be a positive integer, or its digits.",
						   dp_type_name(value.type))));
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					errmsg("a document%s has the unknown version %d", of_row, version),
					errdetail("Field \"%s\"; known versions are %s.", v->field_text, known.data)));
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_chain(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("invalid declaration of the versions of a schema"),
					errdetail_internal("%s", what)));
}

/*
 * _schema_versioning_as(doc bson, chain bson, steps regprocedure[]) -> bson: the document in the
 * chain's version; the same datum if it has it
 */
DP_FUNCTION(dp_schema_versioning_as);
Datum
dp_schema_versioning_as(PG_FUNCTION_ARGS)
{
	AsCache *cache = fcinfo->flinfo->fn_extra;
	bool absent;
	int32 version;
	int from;

	if (unlikely(cache == NULL || !cache->is_const))
		cache = as_cached(fcinfo);
	version = dp_versions_of(cache->versions, PG_GETARG_DATUM(0), &absent);
	if (version == cache->versions->versions[cache->at])
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	from = dp_versions_find(cache->versions, version);
	if (from < 0)
		dp_versions_unknown(cache->versions, PG_GETARG_DATUM(0), "");
	PG_RETURN_POINTER(dp_versions_move(cache->versions, PG_GETARG_VARLENA_PP(0), from, cache->at,
									   absent));
}

/* The chain of its arguments, kept as long as they are the same. */
static AsCache *
as_cached(FunctionCallInfo fcinfo)
{
	AsCache *cache = fcinfo->flinfo->fn_extra;
	MemoryContext context;
	MemoryContext old;
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(2);
	Datum *functions;
	bool *nulls;
	Oid *oids;
	int n;
	int i;
	DpValue spec;
	int32 version;

	deconstruct_array(array, REGPROCEDUREOID, sizeof(Oid), true, TYPALIGN_INT, &functions, &nulls,
					  &n);
	context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns versions", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	oids = palloc(sizeof(Oid) * Max(n, 1));
	for (i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("a step must not be null")));
		oids[i] = DatumGetObjectId(functions[i]);
	}
	{
		struct varlena *given = PG_GETARG_VARLENA_PP(1);
		struct varlena *copy = palloc(VARSIZE_ANY(given));

		memcpy(copy, given, VARSIZE_ANY(given));
		spec = dp_value_of_document(copy);
	}
	if (cache == NULL)
		cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(AsCache));
	else
	{
		fcinfo->flinfo->fn_extra = NULL;
		MemoryContextDelete(cache->context);
		cache->context = NULL;
	}
	version = spec_int(&spec, "version");
	if (version < 1)
		bad_chain("The version is missing.");
	cache->versions = dp_versions_make(&spec, version, oids, n, GetUserId(), true, context);
	cache->at = dp_versions_find(cache->versions, version);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, fcinfo->flinfo->fn_mcxt);
	cache->context = context;
	cache->is_const = dp_arg_is_const(fcinfo, 1) && dp_arg_is_const(fcinfo, 2);
	fcinfo->flinfo->fn_extra = cache;
	return cache;
}

/*
 * _schema_versioning_version(doc, field) -> int: NULL if not valid
 */
DP_FUNCTION(dp_schema_versioning_version);
Datum
dp_schema_versioning_version(PG_FUNCTION_ARGS)
{
	DpPath *path = dp_path_arg(fcinfo, 1);
	DpValue value;
	int32 version = 1;

	if (dp_fetch_path(PG_GETARG_DATUM(0), path, true, &value))
		version = version_of_value(&value);
	if (version == DP_VERSION_NONE)
		PG_RETURN_NULL();
	PG_RETURN_INT32(version);
}
