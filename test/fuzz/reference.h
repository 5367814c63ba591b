/*
 * reference.h
 *		A second opinion on what a valid document is.
 */
#ifndef FUZZ_REFERENCE_H
#define FUZZ_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool reference_valid(const uint8_t *bytes, size_t n);

#endif /* FUZZ_REFERENCE_H */
