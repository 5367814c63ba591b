/*
 * keys.h
 *		Index keys of documents that may be damaged.
 */
#ifndef FUZZ_KEYS_H
#define FUZZ_KEYS_H

#include "postgres.h"

/*
 * Makes the keys that indexes would store for the document.  Returns what is
 * wrong with them, or NULL.
 */
extern const char *fuzz_keys(const uint8 *doc, uint32 size, bool valid);

#endif /* FUZZ_KEYS_H */
