/*
 * text_condition.h
 *		Conditions on the text of a field.
 */
#ifndef DP_INDEX_TEXT_CONDITION_H
#define DP_INDEX_TEXT_CONDITION_H

#include "nodes/primnodes.h"

/* Sets the hook of the planner that lets indexes and statistics of fields serve them. */
extern void dp_text_conditions_init(void);

/* The comparison of a field with a value, and an operator of two values. */
extern Expr *dp_field_compare(Expr *field, const char *op, struct varlena *value);
extern Oid dp_value_operator(const char *name);

#endif /* DP_INDEX_TEXT_CONDITION_H */
