/*
 * collection_split.h
 *		What the calls for collections know about split documents, and whether a filter, an
 *		update or a projection concerns split fields; and which rows they do not see.
 *
 * mql does not know the patterns: they fill the hooks.
 */
#ifndef DP_MQL_COLLECTION_SPLIT_H
#define DP_MQL_COLLECTION_SPLIT_H

#include "nodes/pg_list.h"
#include "utils/relcache.h"

#include "bson/path.h"

/* A field that differs between the stored document and the whole one */
typedef struct DpSplitField
{
	DpPath *path;
	const char *direct; /* the update operator that is right for what is stored; or NULL */

	/*
	 * The SQL condition that a side row of a row t has an element that equals one of the values,
	 * which is SQL for an array in a bson_value.  NULL if only the whole document can tell.
	 */
	char *(*search)(const struct DpSplitField *field, const char *values);
	void *arg; /* of a search: the declaration, with the names that t's columns have */
} DpSplitField;

/* Of a table, or of a view of it, whose rows are called t; the functions return SQL */
typedef struct DpSplit
{
	List *fields; /* of DpSplitField */
	/* the whole document */
	char *(*whole)(const struct DpSplit *split);
	/* the call that changes a whole document, up to its first arguments */
	char *(*change)(const struct DpSplit *split);
	void *arg;
} DpSplit;

/* NULL unless documents of the column are split; in the current context. */
extern DpSplit *(*dp_split_hook)(Relation rel, AttrNumber doc);

/*
 * What calls do not see of a table: the SQL condition for the rows t that they see, NULL for all.
 * base is the table, or the one that a view shows.
 */
extern char *(*dp_seen_hook)(Relation base);

/*
 * Deletes rows of the table that calls do not see, where documents (bson[]) that are about to be
 * inserted would meet them in a unique index.
 */
extern void (*dp_make_way_hook)(Oid base, Datum docs);

/* Whether the rows of a table are on other servers. */
extern bool (*dp_remote_hook)(Oid relid);

/* A field without a search, in the current memory context. */
extern DpSplitField *dp_split_field(DpPath *path, const char *direct);

/* Whether the path, or something above or below it, is such a field; which. */
extern DpSplitField *dp_split_find(const DpSplit *split, const DpPath *path);

/*
 * Divides a filter: near gets the part that the stored document decides, far the part that needs
 * the whole one; both must match.  NULL for an empty part.
 */
extern void dp_split_filter(const DpSplit *split, const DpValue *filter, struct varlena **near,
							struct varlena **far);

/* Whether the update has to be applied to the whole document. */
extern bool dp_split_update(const DpSplit *split, const DpValue *update);

/* True if the projection shows a split field; {} shows all. */
extern bool dp_split_projection(const DpSplit *split, const DpValue *projection);

/* True if a sort specification uses a split field. */
extern bool dp_split_sort(const DpSplit *split, const DpValue *spec);

#endif /* DP_MQL_COLLECTION_SPLIT_H */
