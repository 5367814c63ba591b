/*
 * text_condition.h
 *		Conditions on the text of a field.
 */
#ifndef DP_INDEX_TEXT_CONDITION_H
#define DP_INDEX_TEXT_CONDITION_H

/* Sets the hook of the planner that lets indexes and statistics of fields serve them. */
extern void dp_text_conditions_init(void);

#endif /* DP_INDEX_TEXT_CONDITION_H */
