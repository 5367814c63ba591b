/*
 * io.h
 *		Shared by input and output functions and the named functions of the same purpose.
 */
#ifndef DP_BSON_IO_H
#define DP_BSON_IO_H

#include "lib/stringinfo.h"

#include "bson/builder.h"

/*
 * A bson or a bson_value with a copy of bytes that come from outside.  Raises
 * INVALID_BINARY_REPRESENTATION with the offset of the first fault, and
 * PROGRAM_LIMIT_EXCEEDED.
 */
extern struct varlena *dp_document_from_bytes(const uint8 *bytes, Size n);
extern struct varlena *dp_value_from_bytes(const uint8 *bytes, Size n);

/* An empty string with the estimated room for the text of so many bytes of BSON. */
extern void dp_text_start(StringInfo out, uint32 size);

#endif /* DP_BSON_IO_H */
