/*
 * member.h
 *		What documents of a source look like as elements of an array.
 */
#ifndef DP_KIT_DERIVE_MEMBER_H
#define DP_KIT_DERIVE_MEMBER_H

#include "bson/reader.h"

typedef struct DpMember DpMember;

/* Compiles the option fields (NULL: whole documents are members); the result points into it. */
extern DpMember *dp_member_compile(const DpValue *fields);

/* The member that a document of the source is, in the current context. */
extern struct varlena *dp_member_make(DpMember *member, struct varlena *doc);

/* The name under which members show what is at that path in the source's documents, or NULL. */
extern char *dp_member_shows(const DpMember *member, const char *path, uint32 len);

#endif /* DP_KIT_DERIVE_MEMBER_H */
