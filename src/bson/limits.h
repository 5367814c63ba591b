/*
 * limits.h
 *		How large a document may be.
 */
#ifndef DP_BSON_LIMITS_H
#define DP_BSON_LIMITS_H

/* docpatterns.max_document_size, in bytes */
extern int dp_max_document_size;

/* Defines the setting. */
extern void dp_limits_init(void);

#endif /* DP_BSON_LIMITS_H */
