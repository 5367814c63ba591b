/*
 * diff.h
 *		How two documents differ: a packed difference that turns one into the
 *		other byte for byte, the changed paths, and the same change made to a
 *		third document.
 *
 * Members of documents are compared by name and elements of arrays by what
 * they are; their order counts.  A difference has one direction: it says what
 * has to be done to one document, names the bytes that are new and copies the
 * others from the old document.  For the other direction make the other one.
 *
 * The packed form is (numbers are varints as in varint.h):
 *
 *		byte	version, 1
 *		4 bytes	CRC-32C of the document that comes out, little endian
 *		varint	size of the document that goes in
 *		varint	size of the document that comes out
 *		...		what is done to the elements of the document, up to its end
 *
 * There is a place among the elements of the container that goes in, at first
 * in front of the first one.  Each instruction is a varint of n * 8 + code:
 *
 *		0 end		n is 0; the elements from the place on are copied
 *		1 copy		n elements are copied, the place is behind them
 *		2 skip		n elements are left out
 *		3 go to		the place is in front of element n, counted from 0
 *		4 insert	n elements follow: type, name and its NUL, value; without
 *					names in an array
 *		5 replace	the value of the element at the place is another one: its
 *					type and n bytes follow
 *		6 inside	the element at the place is a document (n = 0) or an array
 *					(n = 1): instructions for its elements follow
 *		7 splice	the text or the bytes of the element at the place are
 *					another, of which n bytes in the middle are new: varint
 *					bytes in front that stay, varint bytes at the end that stay,
 *					then the n bytes
 *
 * Elements of an array get their positions as names when they are copied.  An
 * array with other names than its positions is treated as a document (inside,
 * n = 0).
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
 * The document that a difference makes of another one: a new bson.  Raises
 * DATA_CORRUPTED unless the bytes are a difference from that document.  What
 * comes out has the bytes that the difference was made for (their checksum is
 * compared); who does not trust where the difference was kept validates it.
 */
extern struct varlena *
dp_diff_apply(const uint8 *diff, uint32 diffsize, const uint8 *from, uint32 fromsize);

/*
 * Calls visit for each path at which two documents differ: members of a document
 * in the old order, then those that are new; elements of an array in order.
 * A value that is not there is NULL.  It goes as deep as both sides have
 * documents, or arrays.  Of an array, elements that were taken away have their
 * old positions, others their new ones.  Where nothing but the order of members
 * differs, the document is named with both its values; the path of the whole
 * document is empty.  Paths live until visit returns; it returns false to stop.
 */
typedef bool (*DpDiffVisit)(const DpPath *path, const DpValue *before, const DpValue *after,
							void *arg);

extern void dp_diff_each(const uint8 *from, uint32 fromsize, const uint8 *to, uint32 tosize,
						 DpDiffVisit visit, void *arg);

/*
 * Makes the change between two documents to a third one, which is like the
 * first but may have more: what did not change is left as it is there.  Members
 * are found by name; elements of arrays by being like the first's, else by
 * position, and those that only the third one has stay where they are.  Where
 * the first had a value that changed and the third has something else, the new
 * value is put.  Returns a new bson.
 */
extern struct varlena *dp_diff_carry(const uint8 *from, uint32 fromsize, const uint8 *to,
									 uint32 tosize, const uint8 *onto, uint32 ontosize);

#endif /* DP_BSON_DIFF_H */
