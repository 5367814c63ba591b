/*
 * collection_facts.c
 *		When (doc -> 'path') can replace a condition of a filter on the path.
 *
 * A filter looks into arrays and the operator -> does not, so they are equivalent only without
 * arrays, both at the path and on the way to it.  That must follow from the table's checks.  These
 * are understood, for each part of the path, alone or in a conjunction:
 *
 *		bson_typeof(doc, 'a') = 'string', IN (..), <> 'array', and other expressions
 *		that the planner can prove from; bson_typeof(doc -> 'a') as well
 *
 *		bson_validate(doc, schema), doc @@ '{$jsonSchema: schema}', with a
 *		constant schema in which the part's properties have a type or bsonType
 *		without array
 *
 * Indexes order missing values differently from MongoDB: there, null equals missing, and undefined
 * comes first.  The absence of these is proved in the same way.
 *
 * Indexes are checked first, because conditions without an index would only cost time.  All is read
 * once per table and session, until the table or a function changes.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/reloptions.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "mql/collection_calls.h"

/* The path of an index's expression */
typedef struct IndexedPath
{
	DpPath *path;
	char *text;  /* as the index spells it */
	bool serves; /* it can be searched by this path alone */
} IndexedPath;

struct DpDocFacts
{
	AttrNumber attnum;
	MemoryContext context;
	DpDocFacts *next; /* of another column */
	List *indexed;    /* of IndexedPath */
	List *gin;        /* paths (DpPath) in GIN indexes */
	List *clauses;    /* the checks that call one of the functions, AND between them */
	/* functions of the extension, InvalidOid if missing */
	Oid arrow;    /* the operator -> (bson, text) */
	Oid get;      /* bson_get(bson, text), behind it */
	Oid type_at;  /* bson_typeof(bson, text) */
	Oid type_of;  /* bson_typeof(bson_value) */
	Oid match;    /* bson_match(bson, bson), behind @@ */
	Oid validate; /* bson_validate(bson, bson) */
};

typedef struct KeptFacts
{
	Oid relid;
	DpDocFacts *first;
} KeptFacts;

static HTAB *kept = NULL;  /* facts by table */
static uint64 changes = 0; /* so many invalidations */

static DpDocFacts *read_facts(Relation rel, AttrNumber attnum);
static void forget(Oid relid);
static void relation_changed(Datum arg, Oid relid);
static void function_changed(Datum arg, int cacheid, uint32 hashvalue);
static Oid own_function(const char *name, Oid arg1, Oid arg2);
static void read_indexes(DpDocFacts *facts, Relation rel);
static void read_gin(DpDocFacts *facts, Relation index);
static void read_checks(DpDocFacts *facts, Relation rel);
static bool tells_types(Node *node, void *facts);
static bool is_call(Node *node, Oid function, AttrNumber attnum, Const **arg);
static Oid called_function(Node *node, List **args);
static bool begins_with(const DpPath *path, const DpPath *start);
static bool never_is(DpDocFacts *facts, const DpPath *path, int nsteps, const char *type);
static bool follows(DpDocFacts *facts, Expr *found, const char *type);
static bool schema_forbids(const DpValue *schema, const DpPath *path, int nsteps, const char *type);
static bool has_type(const DpValue *types, const char *type);
static Expr *doc_var(DpDocFacts *facts);

DpDocFacts *
dp_doc_facts(Relation rel, AttrNumber attnum)
{
	Oid relid = RelationGetRelid(rel);
	uint64 before = changes;
	KeptFacts *found;
	MemoryContext old;
	MemoryContext context;
	DpDocFacts *facts;
	bool exists;

	if (kept == NULL)
	{
		HASHCTL control = { .keysize = sizeof(Oid), .entrysize = sizeof(KeptFacts) };

		kept = hash_create("docpatterns facts", 64, &control, HASH_ELEM | HASH_BLOBS);
		dp_on_relation_change(relation_changed);
		CacheRegisterSyscacheCallback(PROCOID, function_changed, (Datum) 0);
	}
	found = hash_search(kept, &relid, HASH_FIND, NULL);
	for (facts = found == NULL ? NULL : found->first; facts != NULL; facts = facts->next)
		if (facts->attnum == attnum)
			return facts;

	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns facts of a table",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	facts = read_facts(rel, attnum);
	facts->context = context;
	MemoryContextSwitchTo(old);
	if (before == changes)
	{
		found = hash_search(kept, &relid, HASH_ENTER, &exists);
		facts->next = exists ? found->first : NULL;
		found->first = facts;
		MemoryContextSetParent(context, CacheMemoryContext);
	}
	return facts;
}

static DpDocFacts *
read_facts(Relation rel, AttrNumber attnum)
{
	DpDocFacts *facts = palloc0(sizeof(DpDocFacts));
	const DpTypes *types = dp_types();

	facts->attnum = attnum;
	facts->get = own_function("bson_get", types->bson, TEXTOID);
	read_indexes(facts, rel);
	if (facts->indexed != NIL)
	{
		facts->type_at = own_function("bson_typeof", types->bson, TEXTOID);
		facts->type_of = own_function("bson_typeof", types->bson_value, InvalidOid);
		facts->match = own_function("bson_match", types->bson, types->bson);
		facts->validate = own_function("bson_validate", types->bson, types->bson);
		facts->arrow = OpernameGetOprid(list_make2(makeString(get_namespace_name(types->schema)),
												   makeString("->")),
										types->bson, TEXTOID);
		read_checks(facts, rel);
	}
	return facts;
}

/* The facts may be in use until the transaction ends. */
static void
forget(Oid relid)
{
	KeptFacts *found = hash_search(kept, &relid, HASH_FIND, NULL);
	DpDocFacts *next;

	if (found == NULL)
		return;
	for (DpDocFacts *facts = found->first; facts != NULL; facts = next)
	{
		next = facts->next;
		if (TopTransactionContext != NULL)
			MemoryContextSetParent(facts->context, TopTransactionContext);
		else
			MemoryContextDelete(facts->context);
	}
	hash_search(kept, &relid, HASH_REMOVE, NULL);
}

static void
relation_changed(Datum arg, Oid relid)
{
	changes++;
	if (OidIsValid(relid))
		forget(relid);
	else
		function_changed(arg, 0, 0);
}

static void
function_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	HASH_SEQ_STATUS seq;
	KeptFacts *found;

	changes++;
	hash_seq_init(&seq, kept);
	while ((found = hash_seq_search(&seq)) != NULL)
		forget(found->relid);
}

/*
 * A function of the extension by its name and the types of its one or two
 * arguments.
 */
static Oid
own_function(const char *name, Oid arg1, Oid arg2)
{
	Oid args[2] = { arg1, arg2 };
	List *qualified =
		list_make2(makeString(get_namespace_name(dp_types()->schema)), makeString(pstrdup(name)));

	return LookupFuncName(qualified, OidIsValid(arg2) ? 2 : 1, args, true);
}

/*
 * The paths that btree indexes have, whatever their position.
 */
static void
read_indexes(DpDocFacts *facts, Relation rel)
{
	List *oids = RelationGetIndexList(rel);
	ListCell *lc;

	foreach(lc, oids)
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);
		List *expressions = RelationGetIndexExpressions(index);
		ListCell *lc2 = list_head(expressions);

		if (index->rd_rel->relam == BTREE_AM_OID && index->rd_index->indisvalid)
			for (int i = 0; i < index->rd_index->indnkeyatts; i++)
			{
				Const *path;

				if (index->rd_index->indkey.values[i] != 0)
					continue;
				if (is_call(lfirst(lc2), facts->get, facts->attnum, &path))
				{
					IndexedPath *found = palloc(sizeof(IndexedPath));

					found->text = TextDatumGetCString(path->constvalue);
					found->path = dp_path_parse(found->text, strlen(found->text));
					found->serves = i == 0 && RelationGetIndexPredicate(index) == NIL;
					facts->indexed = lappend(facts->indexed, found);
				}
				lc2 = lnext(expressions, lc2);
			}
		else if (index->rd_index->indisvalid && RelationGetIndexPredicate(index) == NIL)
			read_gin(facts, index);
		index_close(index, AccessShareLock);
	}
	list_free(oids);
}

/* The paths of an index of documents that serves filters; no steps: it has all of them. */
static void
read_gin(DpDocFacts *facts, Relation index)
{
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		List *options;
		ListCell *lc;

		if (index->rd_rel->relam != GIN_AM_OID ||
			index->rd_index->indkey.values[i] != facts->attnum ||
			index->rd_opcintype[i] != dp_types()->bson)
			continue;
		options = untransformRelOptions(get_attoptions(RelationGetRelid(index), i + 1));
		if (options == NIL)
			facts->gin = lappend(facts->gin, dp_path_of_names(0, NULL, NULL));
		foreach(lc, options)
		{
			DefElem *option = lfirst(lc);

			if (strcmp(option->defname, "paths") == 0)
				facts->gin =
					list_concat(facts->gin, dp_path_parse_list(strVal(option->arg),
															   strlen(strVal(option->arg))));
		}
	}
}

/*
 * The checks that hold for all rows, as the planner reads them.
 */
static void
read_checks(DpDocFacts *facts, Relation rel)
{
	TupleConstr *constr = rel->rd_att->constr;

	if (constr == NULL || (rel->rd_rel->relkind != RELKIND_RELATION &&
						   rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE))
		return;
	for (int i = 0; i < constr->num_check; i++)
	{
		Node *check;

		if (!constr->check[i].ccvalid || constr->check[i].ccnoinherit)
			continue;
		check = eval_const_expressions(NULL, stringToNode(constr->check[i].ccbin));
		if (!tells_types(check, facts))
			continue;
		facts->clauses = list_concat(facts->clauses,
									 make_ands_implicit(canonicalize_qual((Expr *) check, true)));
	}
}

/* Whether the expression calls a function that says something of the types of fields. */
static bool
tells_types(Node *node, void *facts)
{
	const DpDocFacts *f = facts;
	List *args;
	Oid called;

	if (node == NULL)
		return false;
	called = called_function(node, &args);
	if (OidIsValid(called) && (called == f->type_at || called == f->type_of || called == f->match ||
							   called == f->validate))
		return true;
	return expression_tree_walker(node, tells_types, facts);
}

/*
 * Whether the expression calls the function, by name or as an operator, with
 * the column of documents (InvalidAttrNumber: any column) and a constant that
 * is not null.
 */
static bool
is_call(Node *node, Oid function, AttrNumber attnum, Const **arg)
{
	List *args = NIL;
	Node *doc;

	if (!OidIsValid(function) || called_function(node, &args) != function || list_length(args) != 2)
		return false;
	doc = linitial(args);
	if (!IsA(doc, Var) || (attnum != InvalidAttrNumber && ((Var *) doc)->varattno != attnum) ||
		!IsA(lsecond(args), Const) || ((Const *) lsecond(args))->constisnull)
		return false;
	*arg = lsecond(args);
	return true;
}

/* InvalidOid for other expressions. */
static Oid
called_function(Node *node, List **args)
{
	if (IsA(node, FuncExpr))
	{
		*args = ((FuncExpr *) node)->args;
		return ((FuncExpr *) node)->funcid;
	}
	if (IsA(node, OpExpr))
	{
		*args = ((OpExpr *) node)->args;
		return get_opcode(((OpExpr *) node)->opno);
	}
	return InvalidOid;
}

bool
dp_doc_is_call(Node *node, const char *function, Oid argtype, Const **arg)
{
	List *args = NIL;
	Oid called = called_function(node, &args);
	char *name;

	/* the planner asks this of any expression, so the types come first */
	if (!is_call(node, called, InvalidAttrNumber, arg) || (*arg)->consttype != argtype ||
		((Var *) linitial(args))->vartype != dp_types()->bson ||
		get_func_namespace(called) != dp_types()->schema)
		return false;
	name = get_func_name(called);
	return name != NULL && strcmp(name, function) == 0;
}

/* Whether a path has at least the parts of another one, which come first. */
static bool
begins_with(const DpPath *path, const DpPath *start)
{
	if (path->nsteps < start->nsteps)
		return false;
	for (int i = 0; i < start->nsteps; i++)
		if (path->steps[i].namelen != start->steps[i].namelen ||
			memcmp(path->steps[i].name, start->steps[i].name, path->steps[i].namelen) != 0)
			return false;
	return true;
}

const char *
dp_doc_index(DpDocFacts *facts, const DpPath *path, bool *arrays)
{
	const char *found = NULL;
	bool serves = false;
	bool numbered = false;
	ListCell *lc;

	if (arrays != NULL)
		*arrays = false;
	foreach(lc, facts->indexed)
	{
		IndexedPath *indexed = lfirst(lc);

		if (path->nsteps != indexed->path->nsteps || !begins_with(path, indexed->path))
			continue;
		found = indexed->text;
		serves |= indexed->serves;
	}
	if (found == NULL)
		return NULL;
	for (int n = 1; n <= path->nsteps; n++)
	{
		numbered |= path->steps[n - 1].is_index;
		if (!never_is(facts, path, n, "array"))
		{
			if (arrays == NULL || !serves)
				return NULL;
			*arrays = true;
		}
	}
	/* the operator -> takes a number for a position, a filter for a name as well */
	return arrays != NULL && *arrays && numbered ? NULL : found;
}

bool
dp_doc_gin(DpDocFacts *facts, const DpPath *path)
{
	ListCell *lc;

	foreach(lc, facts->gin)
	{
		DpPath *indexed = lfirst(lc);

		if (begins_with(path, indexed))
			return true;
	}
	return false;
}

bool
dp_doc_never(DpDocFacts *facts, const DpPath *path, const char *type)
{
	return never_is(facts, path, path->nsteps, type);
}

/*
 * True if the checks imply that the first steps of the path never lead to a value of the type,
 * given that no earlier step leads to an array.
 */
static bool
never_is(DpDocFacts *facts, const DpPath *path, int nsteps, const char *type)
{
	const char **names = palloc(nsteps * sizeof(char *));
	uint32 *lens = palloc(nsteps * sizeof(uint32));
	StringInfoData text;
	Expr *spelled;
	ListCell *lc;

	if (facts->clauses == NIL)
		return false;
	foreach(lc, facts->clauses)
	{
		Const *arg;
		DpValue value;

		if (is_call(lfirst(lc), facts->validate, facts->attnum, &arg))
			value = dp_value_of_document(PG_DETOAST_DATUM_PACKED(arg->constvalue));
		else if (is_call(lfirst(lc), facts->match, facts->attnum, &arg))
		{
			DpValue filter = dp_value_of_document(PG_DETOAST_DATUM_PACKED(arg->constvalue));

			if (!dp_document_find(filter.data, filter.len, "$jsonSchema", 11, &value) ||
				value.type != DP_TYPE_DOCUMENT)
				continue;
		}
		else
			continue;
		if (schema_forbids(&value, path, nsteps, type))
			return true;
	}

	for (int i = 0; i < nsteps; i++)
	{
		names[i] = path->steps[i].name;
		lens[i] = path->steps[i].namelen;
	}
	initStringInfo(&text);
	dp_path_to_text(&text, dp_path_of_names(nsteps, names, lens));
	spelled = (Expr *) makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
								 CStringGetTextDatum(text.data), false, false);
	if (follows(facts,
				(Expr *) makeFuncExpr(facts->type_at, TEXTOID, list_make2(doc_var(facts), spelled),
									  DEFAULT_COLLATION_OID, DEFAULT_COLLATION_OID,
									  COERCE_EXPLICIT_CALL),
				type))
		return true;
	spelled = make_opclause(facts->arrow, dp_types()->bson_value, false, doc_var(facts), spelled,
							InvalidOid, DEFAULT_COLLATION_OID);
	return follows(facts,
				   (Expr *) makeFuncExpr(facts->type_of, TEXTOID, list_make1(spelled),
										 DEFAULT_COLLATION_OID, InvalidOid, COERCE_EXPLICIT_CALL),
				   type);
}

/* The column of documents. */
static Expr *
doc_var(DpDocFacts *facts)
{
	return (Expr *) makeVar(1, facts->attnum, dp_types()->bson, -1, InvalidOid, 0);
}

/*
 * Whether found <> 'type' follows from the checks, or at least that it is not
 * false: a check that is null holds as well, and the type of nothing is null.
 */
static bool
follows(DpDocFacts *facts, Expr *found, const char *type)
{
	Expr *name = (Expr *) makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
									CStringGetTextDatum(type), false, false);
	Expr *differs = make_opclause(get_negator(TextEqualOperator), BOOLOID, false, found, name,
								  InvalidOid, DEFAULT_COLLATION_OID);

	fix_opfuncids((Node *) differs);
	return predicate_implied_by(list_make1(differs), facts->clauses, true);
}

/*
 * True if a schema excludes values of the type at the first steps of the path, given that no
 * earlier step leads to an array.
 */
static bool
schema_forbids(const DpValue *schema, const DpPath *path, int nsteps, const char *type)
{
	DpValue at = *schema;
	DpValue types;

	for (int i = 0; i < nsteps; i++)
	{
		DpValue properties;

		if (!dp_document_find(at.data, at.len, "properties", 10, &properties) ||
			properties.type != DP_TYPE_DOCUMENT ||
			!dp_document_find(properties.data, properties.len, path->steps[i].name,
							  path->steps[i].namelen, &at) ||
			at.type != DP_TYPE_DOCUMENT)
			return false;
	}
	return (dp_document_find(at.data, at.len, "bsonType", 8, &types) ||
			dp_document_find(at.data, at.len, "type", 4, &types)) &&
		   !has_type(&types, type);
}

/* Whether the type is the one that is named, or among them. */
static bool
has_type(const DpValue *types, const char *type)
{
	DpIter iter;
	DpValue value;

	if (types->type == DP_TYPE_STRING)
		return DP_STRING_LEN(types) == strlen(type) &&
			   memcmp(DP_STRING_DATA(types), type, strlen(type)) == 0;
	if (types->type != DP_TYPE_ARRAY)
		return true;
	dp_iter_init_value(&iter, types);
	while (dp_iter_next_value(&iter, &value))
		if (value.type != DP_TYPE_STRING || has_type(&value, type))
			return true;
	return false;
}
