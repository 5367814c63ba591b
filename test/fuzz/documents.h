/*
 * documents.h
 *		Random numbers, random documents and random damage.
 */
#ifndef FUZZ_DOCUMENTS_H
#define FUZZ_DOCUMENTS_H

#include "bson/builder.h"

/* The whole state of the random numbers: the same seed gives the same run. */
extern uint64 fuzz_state;

extern uint64 fuzz_random(void);

/* A number from 0 to n - 1. */
static inline uint32
fuzz_below(uint32 n)
{
	return (uint32) (fuzz_random() % n);
}

/* A new valid document; palloc'd by the builder, to be read by dp_builder_view. */
extern void fuzz_document(DpBuilder *b);

/* Damages the *n bytes, of which there is room for cap. */
extern void fuzz_damage_bytes(uint8 *bytes, Size *n, Size cap);
extern void fuzz_damage_text(char *text, Size *n, Size cap);

/* Texts in the spellings of the shell, one of them. */
extern const char *fuzz_text(void);

/* Adds the lines of a file to them. */
extern void fuzz_read_texts(const char *name);

#endif /* FUZZ_DOCUMENTS_H */
