/*
 * diff.h
 *		Differences of two documents: a packed difference that turns one into the other byte for
 *		byte, the changed paths, and the same change applied to a third document.
 *
 * Members of documents are compared by name and elements of arrays by value and order.  A
 * difference has one direction: it is applied to one document, contains the new bytes and copies
 * the others from the old document.
 *
 * The packed form is (numbers are varints as in varint.h):
 *
 *		byte	version, 1
 *		4 bytes	CRC-32C of the result, little endian
 *		varint	size of the input document
 *		varint	size of the result
 *		...		instructions for the elements of the document, up to its end
 *
 * The instructions keep a position among the elements of the input container, initially before the
 * first one.  Each instruction is a varint of n * 8 + code:
 *
 *		0 end		n is 0; the remaining elements are copied
 *		1 copy		n elements are copied, the position is after them
 *		2 skip		n elements are omitted
 *		3 go to		the position is before element n, counted from 0
 *		4 insert	n elements follow: type, name and its NUL, value; without
 *					names in an array
 *		5 replace	the element at the position gets another value: its
 *					type and n bytes follow
 *		6 inside	the element at the position is a document (n = 0) or an array
 *					(n = 1): instructions for its elements follow
 *		7 splice	the text or the bytes of the element at the position
 *					change, with n new bytes in the middle: varint number of
 *					unchanged bytes at the front, varint number of those at the
 *					end, then the n bytes
 *
 * Elements of an array get their positions as names when they are copied.  An array with other
 * names than its positions is treated as a document (inside, n = 0).
 */
#ifndef DP_BSON_DIFF_H
#define DP_BSON_DIFF_H

#include "bson/path.h"
#include "bson/reader.h"

#define DP_DIFF_VERSION 1

/*
 * The difference that turns a document into another one: a new bytea.  NULL
 * if they have the same bytes.
 */
extern struct varlena *
dp_diff_make(const uint8 *from, uint32 fromsize, const uint8 *to, uint32 tosize);

/*
 * Applies a difference to a document: returns a new bson.  Raises DATA_CORRUPTED unless the bytes
 * are a difference from that document.  The result has the bytes for which the difference was made
 * (verified by checksum); a caller that does not trust the storage of the difference validates it.
 */
extern struct varlena *
dp_diff_apply(const uint8 *diff, uint32 diffsize, const uint8 *from, uint32 fromsize);

/*
 * Calls visit for each path at which two documents differ: members of a document in the old order,
 * then new ones; elements of an array in order.  A missing value is NULL.  It descends as far as
 * both sides have documents, or arrays.  Removed elements of an array have their old positions,
 * others their new ones.  If only the order of members differs, the document is passed with both
 * its values; the path of the whole document is empty.  Paths live until visit returns; it returns
 * false to stop.
 */
typedef bool (*DpDiffVisit)(const DpPath *path, const DpValue *before, const DpValue *after,
							void *arg);

extern void dp_diff_each(const uint8 *from, uint32 fromsize, const uint8 *to, uint32 tosize,
						 DpDiffVisit visit, void *arg);

/*
 * Applies the change between two documents to a third one, which is like the first but may have
 * more; everything unchanged stays as in the third.  Members are matched by name; elements of
 * arrays by equality with the first's, else by position, and elements that only the third one has
 * stay where they are.  If the first had a value that changed and the third has another one, the
 * new value is used.  Returns a new bson.
 */
extern struct varlena *dp_diff_carry(const uint8 *from, uint32 fromsize, const uint8 *to,
									 uint32 tosize, const uint8 *onto, uint32 ontosize);

#endif /* DP_BSON_DIFF_H */
