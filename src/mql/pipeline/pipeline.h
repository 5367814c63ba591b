/*
 * pipeline.h
 *		Aggregation pipelines as SQL: one query for all stages.
 *
 * A DpQuery is a SELECT that is put together stage by stage.  It has one result, the document.  A
 * stage adds to the clauses of the query as long as their order allows it, and otherwise makes the
 * query a subquery of a new one.  docs/aggregation.md shows the SQL of each stage.
 *
 * All names in the SQL are qualified and all values are literals.  The text belongs to the current
 * memory context.
 */
#ifndef DP_MQL_PIPELINE_H
#define DP_MQL_PIPELINE_H

#include "lib/stringinfo.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/collation.h"
#include "mql/error.h"

/* What all queries of a pipeline share */
typedef struct DpPipeline
{
	const char *own;         /* "schema" of the extension, quoted */
	const DpValue *compares; /* the collation; NULL: strings are bytes */
	const char *collation;   /* it as SQL, or NULL */
	const char *let;         /* SQL of variables that are only the collation, or NULL */
	int aliases;             /* given so far */
	int depth;               /* of pipelines inside stages */
	bool in_facet;           /* the stages belong to a $facet */
	List *reads;             /* relations (OIDs) that stages name */

	List *writes;  /* of DpWrite; NIL: the result is returned */
	Oid target;    /* of the writes; invalid if they create it */
	bool replaces; /* target loses its documents */
} DpPipeline;

/* A statement that writes the result of the query, which stands between two texts */
typedef struct DpWrite
{
	const char *before;
	const char *after; /* NULL: the statement has no query */
} DpWrite;

/* A pipeline in SQL */
typedef struct DpPipelineSql
{
	List *statements; /* one that returns documents, or some that write them */
	bool writes;
	bool creates; /* the first creates what the others use */
	Oid replaced; /* the relation whose documents they replace, or invalid */
} DpPipelineSql;

typedef struct DpQuery
{
	DpPipeline *pipeline;
	Oid relid;           /* the relation that is read, or invalid */
	List *fields;        /* names (char *) of those that are read of it; NIL: all */
	struct DpRow *row;   /* of a relation without documents, or NULL */
	const char *row_doc; /* its document: doc as long as that is the row's */
	const char *let;     /* SQL: the document of variables; NULL if there are none */
	const char *with;    /* queries that the others name; NULL: none */
	int levels;          /* of subqueries so far */
	const char *members; /* of the last UNION ALL, and the query when it was added */
	const char *united;
	StringInfoData from; /* empty until the source has been chosen */
	StringInfoData where;
	const char *doc;   /* the document, before changes */
	bool computed;     /* it is more than a column: must not be written twice */
	List *changes;     /* stages (DpValue *) that one call of bson_update() applies */
	const char *group; /* expressions to group by; "": one group; NULL: no groups */
	const char *having;
	const char *window; /* of the window "w" */
	const char *order;
	bool ordered; /* rows come from a subquery in an order that matters */
	bool limited;
	int64 limit; /* if limited */
	int64 skip;
	List *stages; /* of the pipeline (DpStageSpec *) */
	List *rest;   /* those that follow */
} DpQuery;

/* ---------------------------------------------------------------- stages */

/* A stage of a pipeline */
typedef struct DpStageSpec
{
	DpValue stage; /* {name: spec} */
	const char *name;
	DpValue spec;
	int flags; /* of dp_expr_compile() */
	DpLocation location;
} DpStageSpec;

/* Makes a stage of what was built, whose specification is still open. */
extern void dp_stage_finish(DpStageSpec *s, DpBuilder *b);

/*
 * Returns a list of stages (DpStageSpec *) with the same result, which computes less; may change
 * the given ones.  *fields: first parts of the paths (char *) that it reads; NIL: all.
 */
extern List *dp_pipeline_optimize(List *stages, List **fields);

/* Whether a projection only includes fields; which (char *), _id among them unless it is left out.
 */
extern bool dp_pipeline_inclusion(const DpValue *projection, List **fields);

/* The fields that optimized stages read, and that a filter does, as above. */
extern List *dp_pipeline_fields(const List *stages);
extern List *dp_pipeline_filter_fields(const DpValue *filter);

/* Adds a stage to a query.  location is that of its specification. */
typedef void (*DpStageAdd)(DpQuery *q, const DpValue *spec, const DpLocation *location);

typedef struct DpStage
{
	const char *name;
	DpStageAdd add;
	bool first; /* must be the first stage of a pipeline */
} DpStage;

extern void dp_stage_match(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_change(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_sort(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_limit(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_skip(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_sample(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_unwind(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_redact(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_bucket(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_bucket_auto(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_window(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_densify(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_fill(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_count(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_group(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_sort_by_count(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_coll_stats(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_index_stats(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_merge(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_out(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_lookup(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_graph_lookup(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_documents(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_union(DpQuery *q, const DpValue *spec, const DpLocation *location);
extern void dp_stage_facet(DpQuery *q, const DpValue *spec, const DpLocation *location);

/* ---------------------------------------------------------------- queries */

/* A pipeline on a relation, with documents of variables and a collation, or NULL. */
extern DpPipelineSql *
dp_pipeline_sql(Oid relid, const DpValue *stages, const DpValue *let, const DpValue *collation);

/* A pipeline inside a stage: on a relation, or on a FROM clause with the column doc. */
extern DpQuery *dp_query_make(DpPipeline *pipeline, Oid relid, const char *let);
extern DpQuery *
dp_query_from(DpPipeline *pipeline, const char *from, const char *doc, const char *let);
extern void dp_query_stages(DpQuery *q, const DpValue *stages, const DpLocation *location);

/* Whether the first stage of a pipeline is $documents, so that it needs no relation. */
extern bool dp_pipeline_has_documents(const DpValue *pipeline);

/* The text of a query. */
extern char *dp_query_text(DpQuery *q);

/* Reads the relation, by its indexes, with a filter and in an order, which may be NULL. */
extern void dp_query_read(DpQuery *q, const DpValue *filter, const DpValue *sort);

/* Whether clauses of the query can use the columns of q->row; chooses the source. */
extern bool dp_query_is_row(DpQuery *q);

/* If so, adds a filter and an order, which may be NULL; the stages that follow are q->rest. */
extern bool dp_query_read_row(DpQuery *q, const DpValue *filter, const DpValue *sort);

/* If the document is the row's and the stage a $project that includes columns, does that. */
extern bool dp_query_project_row(DpQuery *q, const DpValue *stage);

/* Makes the query a subquery of a new one, whose document is a column. */
extern void dp_query_nest(DpQuery *q);

/* The same with more columns; returns the alias of the subquery. */
extern const char *dp_query_nest_with(DpQuery *q, const char *columns);

/* The same with a fence: expressions of the columns are computed once. */
extern const char *dp_query_fence(DpQuery *q, const char *columns);

/* Begins again on a FROM item that has the stages so far and the column doc. */
extern void dp_query_restart(DpQuery *q, const char *from, const char *alias);

/*
 * These make a query ready, nesting it if necessary: for conditions, groups or an order, which need
 * the document as a column, and for another FROM item.
 */
extern void dp_query_before_where(DpQuery *q);
extern void dp_query_before_from(DpQuery *q);

/* The document as SQL, for one use. */
extern const char *dp_query_doc(DpQuery *q);

/* The document as a column, for any number of uses. */
extern const char *dp_query_column(DpQuery *q);

extern void dp_query_where(DpQuery *q, const char *condition);

/* Sets the document to an expression. */
extern void dp_query_set_doc(DpQuery *q, const char *doc);

/* The next alias: a prefix and a number. */
extern char *dp_query_alias(DpQuery *q, const char *prefix);

/* An expression for the document, which must be a column: SQL, NULL where the value is missing. */
extern char *dp_query_eval(DpQuery *q, const DpValue *expression, const DpLocation *location);

/* The same for a field: "a.b". */
extern char *dp_query_field(DpQuery *q, const char *field, const DpLocation *location);

/* The variables as SQL, with the collation: an argument. */
extern const char *dp_query_let(DpQuery *q);

/* The collation as one more argument; nothing if there is none. */
extern const char *dp_query_and_collation(DpQuery *q);

/* SQL of what values, or documents by an order, group and sort by. */
extern const char *dp_query_key_of(DpQuery *q, const char *value);
extern char *dp_query_sort_key(DpQuery *q, const DpValue *order);

/* A call of a function of the extension that takes the document, spec and variables. */
extern char *dp_query_call(DpQuery *q, const char *function, const char *doc, const char *spec);

/*
 * What orders the rows in an aggregate as they come: SQL that a row computes; NULL if they come in
 * no order.  May nest the query.
 */
extern const char *dp_query_row_order(DpQuery *q);

/*
 * Groups by q->group: the document is that of the SQL expression id and of the totals, name ->
 * accumulator.  order is that of the rows, or NULL.
 */
extern void dp_query_group(DpQuery *q, const char *id, const DpValue *totals, const char *order);

/*
 * Does so for columns of a row by SQL's aggregates; returns false unless these give what the
 * documents give.  The id and the totals have been checked.
 */
extern bool dp_query_group_row(DpQuery *q, const DpValue *id, const DpValue *totals);

/* The accumulators' values, in one document. */
extern char *dp_query_accumulate(DpQuery *q, const DpValue *totals, const char *order);

/* Raises the errors of totals. */
extern void dp_stage_check_totals(DpQuery *q, const DpValue *totals, const DpLocation *location);

/* Whether the totals depend on the order in which the documents come. */
extern bool dp_totals_are_ordered(const DpValue *totals);

/* Whether an accumulator counts documents: {$count: {}} or {$sum: 1}. */
extern bool dp_total_is_count(const DpElement *accumulator);

/* ---------------------------------------------------------------- specifications */

/* A named option */
typedef struct DpOption
{
	DpValue value;       /* DP_TYPE_EOD: it is not given */
	DpLocation location; /* if it is given */
} DpOption;

/*
 * Reads named options of what is a stage or a part of it into a struct of a DpOption for each;
 * names as for dp_read_named().
 */
extern void dp_stage_options(const DpValue *spec, const DpLocation *location, const char *what,
							 const char *names, void *options);

static inline bool
dp_option_given(const DpOption *option)
{
	return option->value.type != DP_TYPE_EOD;
}

/* The flags of dp_expr_compile() for expressions of a query. */
extern int dp_stage_flags(DpQuery *q);

/* A whole number of a specification, at least min. */
extern int64 dp_stage_number(const DpValue *spec, int64 min, const DpLocation *location);

/*
 * A number of a specification, made whole as MongoDB does: decimals are rounded, half to even,
 * doubles are cut off, and what is too large becomes the largest.
 */
extern int64 dp_stage_clamp(const DpValue *spec, const DpLocation *location);

/* A document of a specification. */
extern void dp_stage_document(const DpValue *spec, const DpLocation *location);

/* A field path after the dollar sign ("$a.b": "a.b"); raises an error for anything else. */
extern const char *dp_stage_path(const DpValue *spec, const DpLocation *location);

/* Raises the errors of an expression. */
extern void
dp_stage_check_expression(DpQuery *q, const DpValue *expression, const DpLocation *location);

/* The same for a filter; let: it may have variables. */
extern void dp_stage_check_filter(const DpValue *spec, bool let, const DpLocation *location);

/* The value of an expression that must not need a document. */
extern DpValue dp_stage_constant(DpQuery *q, const DpValue *expression, const DpLocation *location);

/* Compares values as the pipeline does. */
extern int dp_stage_compare(DpQuery *q, const DpValue *a, const DpValue *b);

/* The text of a string. */
extern const char *dp_stage_string(const DpValue *spec, const DpLocation *location);

/* Raises an error for what is not the name of a field, with dots between its parts. */
extern void dp_stage_check_field(const char *name, const DpLocation *location);

/* A field as a path of the extension's grammar, as a literal. */
extern char *dp_stage_sql_path(const char *field);

/* The relation of a name as in SQL, with or without a schema, which the pipeline reads. */
extern Oid dp_stage_relation(DpQuery *q, const DpValue *name, const DpLocation *location);

#endif /* DP_MQL_PIPELINE_H */
