/*
 * fetch.h
 *		Reads stored documents only as far as needed.
 *
 * A large document is compressed, or stored outside its row in chunks, or both.  A field near its
 * front is found in the first chunk.  One slice from the front is read, and if that is not enough,
 * the whole document: more steps would cost more than they save.
 */
#ifndef DP_BSON_FETCH_H
#define DP_BSON_FETCH_H

#include "bson/path.h"

/*
 * Finds the value at the path in a stored bson (a Datum that was not detoasted).  With whole, all
 * bytes of the value are available; otherwise only its type, its length and perhaps some bytes: see
 * dp_path_find_partial().  The value points into the datum or into memory of the current context.
 * Records the depth of the path in it.
 */
extern bool dp_fetch_path(Datum document, DpPath *path, bool whole, DpValue *value);

/* The same for a bson_value.  A path into anything but a document or an array finds nothing. */
extern bool dp_fetch_value_path(Datum bson_value, DpPath *path, bool whole, DpValue *value);

/* The element of a bson_value that is an array; false if it is not one, or has no such position. */
extern bool dp_fetch_element(Datum bson_value, int32 position, bool whole, DpValue *value);

/*
 * The first bytes of a stored value, or all of it if it is small or plain in its row; NULL if there
 * is no cheap way to get them.  The result is palloc'd or the stored value itself.
 */
extern struct varlena *dp_fetch_first(struct varlena *stored);

/* Tells the processor that a document, and the one stored next to it, will be read soon. */
extern void dp_fetch_ahead(const uint8 *doc, uint32 size);

/*
 * The first part of a stored bson, for searches other than by path: start becomes the whole
 * document as a value, of which the first avail bytes are available.  With whole, or without a
 * cheap part, all of them are.
 */
extern void dp_fetch_document(Datum document, bool whole, DpValue *start, uint32 *avail);

/* The number of bytes of a bson or bson_value, known without reading it. */
extern uint32 dp_datum_size(Datum d);

/* The first byte of a stored bson or bson_value: the type of the latter. */
extern uint8 dp_datum_first_byte(Datum d);

#endif /* DP_BSON_FETCH_H */
