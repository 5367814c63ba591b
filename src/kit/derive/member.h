/*
 * member.h
 *		Documents of a source as elements of an array.
 */
#ifndef DP_KIT_DERIVE_MEMBER_H
#define DP_KIT_DERIVE_MEMBER_H

#include "bson/reader.h"

typedef struct DpMember DpMember;

/* Compiles the option fields (NULL: whole documents are elements); the result points into it. */
extern DpMember *dp_member_compile(const DpValue *fields);

/* The element for a document of the source, in the current context. */
extern struct varlena *dp_member_make(DpMember *member, struct varlena *doc);

/* The name under which elements show the value at that path of the source's documents, or NULL. */
extern char *dp_member_shows(const DpMember *member, const char *path, uint32 len);

#endif /* DP_KIT_DERIVE_MEMBER_H */
