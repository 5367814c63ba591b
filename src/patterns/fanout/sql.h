/*
 * sql.h
 *		The fan-out pattern: texts of statements that run as the owner and as the
 *		reader of a timeline.
 */
#ifndef DP_PATTERNS_FANOUT_SQL_H
#define DP_PATTERNS_FANOUT_SQL_H

#include "patterns/fanout/fanout.h"

/* Document and primary key of the first $2 (int8) posts of author $1 */
extern void dp_fanout_sql_posts(StringInfo sql, DpFanout *f);

/* The distinct authors that reader $1 follows */
extern void dp_fanout_sql_authors(StringInfo sql, DpFanout *f);

#endif /* DP_PATTERNS_FANOUT_SQL_H */
