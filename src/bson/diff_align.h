/*
 * diff_align.h
 *		Which element of one container is which of another: for diff*.c only.
 */
#ifndef DP_BSON_DIFF_ALIGN_H
#define DP_BSON_DIFF_ALIGN_H

#include "bson/reader.h"

/* The elements of a document or an array, or those from one on. */
typedef struct DpMembers
{
	uint32 n;
	DpElement *elements;
} DpMembers;

/* Where an element's type byte stands, and where the next element begins. */
#define DP_MEMBER_START(e) ((const uint8 *) (e)->name - 1)
#define DP_MEMBER_END(e) ((e)->value.data + (e)->value.len)

static inline bool
dp_member_same_name(const DpElement *a, const DpElement *b)
{
	return a->namelen == b->namelen && memcmp(a->name, b->name, a->namelen) == 0;
}

/* All elements that an iterator has not given yet; the array is palloc'd. */
extern void dp_members_read(DpIter *iter, DpMembers *members);

/* Whether the names of an array are its positions. */
extern bool dp_array_is_plain(const DpValue *array);

/*
 * For each element of to the index of the one of from that it is (or is a
 * version of), or -1: a palloc'd array.  No element of from is given twice.
 * Members of documents are the same if they have the same name.  Elements of
 * arrays are the same if they have the same bytes; those between two that are
 * the same are taken one after the other.  monotone: indexes only rise.
 */
extern int32 *
dp_members_align(const DpMembers *from, const DpMembers *to, bool is_array, bool monotone);

#endif /* DP_BSON_DIFF_ALIGN_H */
