/*
 * subscript.c
 *		Subscripts of bson and bson_value: doc['price']['value'] reads a field, and UPDATE ...
 *		SET doc['stock'] = 5 writes one.
 *
 * Each subscript is one literal part of a path: a text may contain dots, a whole number is a
 * position in an array and a name in a document.  Reading returns a bson_value; an assigned value
 * becomes one by an assignment cast.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/execExpr.h"
#include "nodes/nodeFuncs.h"
#include "nodes/subscripting.h"
#include "parser/parse_coerce.h"
#include "parser/parse_expr.h"
#include "utils/builtins.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/fetch.h"

/* Shared by the steps of an execution; lives as long as the expression. */
typedef struct SubscriptWorkspace
{
	bool is_value;      /* the container is a bson_value */
	bool *is_position;  /* for each subscript: an int4, not a text */
	const char **names; /* this row's subscripts */
	uint32 *lens;
	char (*digits)[12]; /* room for positions */
	DpPath *path;       /* the same as a path, in the row's memory */
} SubscriptWorkspace;

static void subscript_transform(SubscriptingRef *sbsref, List *indirection, ParseState *pstate,
								bool isSlice, bool isAssignment);
static void subscript_exec_setup(const SubscriptingRef *sbsref, SubscriptingRefState *state,
								 SubscriptExecSteps *methods);
static bool subscript_check(ExprState *state, ExprEvalStep *op, ExprContext *econtext);
static void subscript_fetch(ExprState *state, ExprEvalStep *op, ExprContext *econtext);
static void subscript_fetch_old(ExprState *state, ExprEvalStep *op, ExprContext *econtext);
static void subscript_assign(ExprState *state, ExprEvalStep *op, ExprContext *econtext);

/*
 * bson_subscript(internal) -> internal: the subscripting methods of both types.
 */
DP_FUNCTION(dp_bson_subscript);
Datum
dp_bson_subscript(PG_FUNCTION_ARGS)
{
	static const SubscriptRoutines routines = { .transform = subscript_transform,
												.exec_setup = subscript_exec_setup,
												.fetch_strict = true, /* NULL in, NULL out */
												.fetch_leakproof =
													false, /* corrupt bytes raise an error */
												.store_leakproof = false };

	PG_RETURN_POINTER(&routines);
}

/*
 * Parse analysis: every subscript becomes an int4 or a text.
 */
static void
subscript_transform(SubscriptingRef *sbsref, List *indirection, ParseState *pstate, bool isSlice,
					bool isAssignment)
{
	List *subscripts = NIL;
	ListCell *lc;

	foreach(lc, indirection)
	{
		A_Indices *index = lfirst_node(A_Indices, lc);
		Node *expr;
		Node *coerced;
		Oid type;

		if (isSlice)
			ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
							errmsg("type %s does not have slices",
								   format_type_be(sbsref->refcontainertype)),
							parser_errposition(pstate, exprLocation(index->uidx ? index->uidx
																				: index->lidx))));

		expr = transformExpr(pstate, index->uidx, pstate->p_expr_kind);
		type = exprType(expr);
		coerced = coerce_to_target_type(pstate, expr, type,
										type == INT2OID || type == INT4OID ? INT4OID : TEXTOID, -1,
										COERCION_IMPLICIT, COERCE_IMPLICIT_CAST, -1);
		if (coerced == NULL)
			ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
							errmsg("subscript of type %s cannot have the type %s",
								   format_type_be(sbsref->refcontainertype), format_type_be(type)),
							errhint("Use a name of type text or a position of type integer."),
							parser_errposition(pstate, exprLocation(expr))));
		subscripts = lappend(subscripts, coerced);
	}

	sbsref->refupperindexpr = subscripts;
	sbsref->reflowerindexpr = NIL;
	sbsref->refrestype = dp_types()->bson_value;
	sbsref->reftypmod = -1;
}

/*
 * Expression start-up.
 */
static void
subscript_exec_setup(const SubscriptingRef *sbsref, SubscriptingRefState *state,
					 SubscriptExecSteps *methods)
{
	SubscriptWorkspace *workspace = palloc0(sizeof(SubscriptWorkspace));
	int n = list_length(sbsref->refupperindexpr);

	workspace->is_value = sbsref->refcontainertype == dp_types()->bson_value;
	workspace->is_position = palloc(sizeof(bool) * n);
	workspace->names = palloc(sizeof(char *) * n);
	workspace->lens = palloc(sizeof(uint32) * n);
	workspace->digits = palloc(sizeof(workspace->digits[0]) * n);
	for (int i = 0; i < n; i++)
		workspace->is_position[i] = exprType(list_nth(sbsref->refupperindexpr, i)) == INT4OID;
	state->workspace = workspace;

	methods->sbs_check_subscripts = subscript_check;
	methods->sbs_fetch = subscript_fetch;
	methods->sbs_assign = subscript_assign;
	methods->sbs_fetch_old = subscript_fetch_old;
}

/*
 * Makes a path of this row's subscripts.  Returns false, for a result of NULL,
 * if one of them is NULL in a fetch; in an assignment that is an error.
 */
static bool
subscript_check(ExprState *state, ExprEvalStep *op, ExprContext *econtext)
{
	SubscriptingRefState *sbsrefstate = op->d.sbsref_subscript.state;
	SubscriptWorkspace *workspace = sbsrefstate->workspace;

	for (int i = 0; i < sbsrefstate->numupper; i++)
	{
		if (sbsrefstate->upperindexnull[i])
		{
			if (sbsrefstate->isassignment)
				ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
								errmsg("subscript in assignment must not be null")));
			*op->resnull = true;
			return false;
		}
		if (workspace->is_position[i])
		{
			workspace->lens[i] =
				pg_ltoa(DatumGetInt32(sbsrefstate->upperindex[i]), workspace->digits[i]);
			workspace->names[i] = workspace->digits[i];
		}
		else
		{
			text *name = DatumGetTextPP(sbsrefstate->upperindex[i]);

			workspace->lens[i] = VARSIZE_ANY_EXHDR(name);
			workspace->names[i] = VARDATA_ANY(name);
		}
	}
	workspace->path = dp_path_of_names(sbsrefstate->numupper, workspace->names, workspace->lens);
	return true;
}

/* The value at the path in a container that is not NULL. */
static Datum
fetch_from(const SubscriptWorkspace *workspace, Datum container, bool *isnull)
{
	DpValue value;
	bool found;

	if (workspace->is_value)
		found = dp_fetch_value_path(container, workspace->path, true, &value);
	else
		found = dp_fetch_path(container, workspace->path, true, &value);
	*isnull = !found;
	return found ? PointerGetDatum(dp_value_to_varlena(&value)) : (Datum) 0;
}

/* Reads the value at the subscripts. */
static void
subscript_fetch(ExprState *state, ExprEvalStep *op, ExprContext *econtext)
{
	SubscriptingRefState *sbsrefstate = op->d.sbsref.state;

	*op->resvalue = fetch_from(sbsrefstate->workspace, *op->resvalue, op->resnull);
}

/*
 * The old value, when what is assigned is a part of it.
 */
static void
subscript_fetch_old(ExprState *state, ExprEvalStep *op, ExprContext *econtext)
{
	SubscriptingRefState *sbsrefstate = op->d.sbsref.state;

	if (*op->resnull)
	{
		sbsrefstate->prevvalue = (Datum) 0;
		sbsrefstate->prevnull = true;
		return;
	}
	sbsrefstate->prevvalue =
		fetch_from(sbsrefstate->workspace, *op->resvalue, &sbsrefstate->prevnull);
}

/*
 * The container with a new value.  SQL NULL is stored as null; a container
 * that is NULL begins as an empty document, or as an empty array if it is a
 * bson_value and the first subscript is a position.
 */
static void
subscript_assign(ExprState *state, ExprEvalStep *op, ExprContext *econtext)
{
	static const uint8 empty[] = { 5, 0, 0, 0, 0 };
	SubscriptingRefState *sbsrefstate = op->d.sbsref.state;
	SubscriptWorkspace *workspace = sbsrefstate->workspace;
	DpValue value = { empty, 0, DP_TYPE_NULL };
	DpValue root = { empty, sizeof(empty), DP_TYPE_DOCUMENT };
	struct varlena *result;

	if (!sbsrefstate->replacenull)
		value = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(sbsrefstate->replacevalue));
	if (workspace->is_value)
	{
		if (!*op->resnull)
			root = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(*op->resvalue));
		else if (workspace->is_position[0])
			root.type = DP_TYPE_ARRAY;
		result = dp_value_set_if(&root, workspace->path, &value, true);
	}
	else
	{
		if (!*op->resnull)
			root = dp_value_of_document(PG_DETOAST_DATUM_PACKED(*op->resvalue));
		result = dp_document_set(root.data, root.len, workspace->path, &value);
	}
	*op->resvalue = PointerGetDatum(result);
	*op->resnull = false;
}
