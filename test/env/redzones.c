/*
 * redzones.c
 *		Gives each piece of memory that our library allocates, or gets as the
 *		value of an argument, its own bounds.
 *
 * PostgreSQL cuts the pieces that palloc() gives from blocks, of which a
 * sanitizer and valgrind know only the blocks: reading behind the end of a
 * piece, or a piece that was freed, is no fault to them.  This library is
 * preloaded into the server, and ours is linked with --wrap for the functions
 * below, which make each piece larger than what memory contexts put into their
 * blocks (so that it comes from malloc() alone and goes to free()) and forbid
 * what lies behind its end.  Values that come out of tuples are copied into
 * such a piece.  Nothing of the server changes: it frees and resizes these
 * pieces as any others.
 *
 * It is preloaded into other programs, too, which have no palloc(); so it
 * refers to functions only, which are looked up when they are called.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef UNDER_VALGRIND
/* For what was never written, which is all it is to find, a piece from malloc() will do. */
#include <valgrind/memcheck.h>
#define FORBID(at, n) ((void) (at), (void) (n))
#define WRITTEN(at, n) VALGRIND_CHECK_MEM_IS_DEFINED(at, n)
#else
#include <sanitizer/asan_interface.h>
#pragma weak __asan_poison_memory_region
#define FORBID(at, n) __asan_poison_memory_region(at, n)
#define WRITTEN(at, n) ((void) 0)
#endif

/* Memory contexts put no piece of more than 8192 bytes into a block. */
#define OWN_BLOCK 8256
#define REDZONE 16

/* A context with more than this gets ordinary pieces: a million small ones would take 8 GB. */
#define ENOUGH (64 * 1024 * 1024)

/*
 * So many pieces of a process have bounds; then, for the sake of time, one of 64
 * has, and values stay where they are (all of them: macros may ask twice for one).
 */
#define FIRST_PIECES (2 * 1000 * 1000)

static unsigned long pieces;

/* Beyond this nothing is added: the server's own limits must stay what they are. */
#define LARGE (512 * 1024 * 1024)

typedef void *Context;

extern void *palloc(size_t size);
extern void *palloc0(size_t size);
extern void *palloc_extended(size_t size, int flags);
extern void *MemoryContextAlloc(Context context, size_t size);
extern void *MemoryContextAllocZero(Context context, size_t size);
extern void *MemoryContextAllocZeroAligned(Context context, size_t size);
extern void *MemoryContextAllocExtended(Context context, size_t size, int flags);
extern void *MemoryContextAllocHuge(Context context, size_t size);
extern size_t MemoryContextMemAllocated(Context context, char recurse);
extern void *repalloc(void *pointer, size_t size);
extern void *repalloc_huge(void *pointer, size_t size);
extern void *pg_detoast_datum(void *datum);
extern void *pg_detoast_datum_copy(void *datum);
extern void *pg_detoast_datum_packed(void *datum);
extern void *pg_detoast_datum_slice(void *datum, int32_t first, int32_t count);

#define EXPORT __attribute__((visibility("default")))

/* Whether it is a piece's turn. */
static int
turn(void)
{
	return pieces++ < FIRST_PIECES || pieces % 64 == 0;
}

/* Whether a piece in this context gets bounds of its own. */
static int
guarded_in(Context context, size_t size)
{
	return turn() && size < LARGE && MemoryContextMemAllocated(context, 0) < ENOUGH;
}

/* The same in the current context. */
static int
guarded(size_t size)
{
	static Context *current;

	if (current == NULL)
		current = dlsym(RTLD_DEFAULT, "CurrentMemoryContext");
	return current != NULL && guarded_in(*current, size);
}

/* What to ask for. */
static size_t
room(size_t size)
{
	return size + REDZONE < OWN_BLOCK ? OWN_BLOCK : size + REDZONE;
}

/* Forbids what lies behind the end. */
static void *
fence(void *piece, size_t size)
{
	if (piece != NULL)
		FORBID((char *) piece + size, room(size) - size);
	return piece;
}

EXPORT void *
__wrap_palloc(size_t size)
{
	return guarded(size) ? fence(palloc(room(size)), size) : palloc(size);
}

EXPORT void *
__wrap_palloc0(size_t size)
{
	void *piece;

	if (!guarded(size))
		return palloc0(size);
	piece = palloc(room(size));
	memset(piece, 0, size);
	return fence(piece, size);
}

EXPORT void *
__wrap_palloc_extended(size_t size, int flags)
{
	return guarded(size) ? fence(palloc_extended(room(size), flags), size)
						 : palloc_extended(size, flags);
}

EXPORT void *
__wrap_MemoryContextAlloc(Context context, size_t size)
{
	return guarded_in(context, size) ? fence(MemoryContextAlloc(context, room(size)), size)
									 : MemoryContextAlloc(context, size);
}

EXPORT void *
__wrap_MemoryContextAllocZero(Context context, size_t size)
{
	return guarded_in(context, size) ? fence(MemoryContextAllocZero(context, room(size)), size)
									 : MemoryContextAllocZero(context, size);
}

EXPORT void *
__wrap_MemoryContextAllocZeroAligned(Context context, size_t size)
{
	return __wrap_MemoryContextAllocZero(context, size);
}

EXPORT void *
__wrap_MemoryContextAllocExtended(Context context, size_t size, int flags)
{
	return guarded_in(context, size)
			   ? fence(MemoryContextAllocExtended(context, room(size), flags), size)
			   : MemoryContextAllocExtended(context, size, flags);
}

EXPORT void *
__wrap_MemoryContextAllocHuge(Context context, size_t size)
{
	return guarded_in(context, size) ? fence(MemoryContextAllocHuge(context, room(size)), size)
									 : MemoryContextAllocHuge(context, size);
}

/* The address sanitizer gives another piece, of which nothing is forbidden yet. */
EXPORT void *
__wrap_repalloc(void *pointer, size_t size)
{
	return guarded(size) ? fence(repalloc(pointer, room(size)), size) : repalloc(pointer, size);
}

EXPORT void *
__wrap_repalloc_huge(void *pointer, size_t size)
{
	return guarded(size) ? fence(repalloc_huge(pointer, room(size)), size)
						 : repalloc_huge(pointer, size);
}

EXPORT char *
__wrap_pnstrdup(const char *in, size_t len)
{
	char *out;

	len = strnlen(in, len);
	out = __wrap_palloc(len + 1);
	memcpy(out, in, len);
	out[len] = '\0';
	return out;
}

EXPORT char *
__wrap_pstrdup(const char *in)
{
	return __wrap_pnstrdup(in, strlen(in));
}

/*
 * A copy of a value, with bounds.  Its header has four bytes, as that of any
 * value that was not simply passed on: code that asks whether it got a copy
 * counts on that.
 */
static void *
copy_of_value(const void *value)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "not written for this byte order"
#endif
	const uint8_t *from = value;
	uint32_t header;
	uint8_t *copy;

	if (from[0] & 1)
	{
		header = (from[0] >> 1) - 1 + 4;
		from++;
	}
	else
	{
		memcpy(&header, from, 4);
		header >>= 2;
		from += 4;
	}
	copy = __wrap_palloc(header);
	memcpy(copy + 4, from, header - 4);
	/* each byte of a value that was made in this process: the gaps in it go to disk, too */
	WRITTEN(copy + 4, header - 4);
	header <<= 2;
	memcpy(copy, &header, 4);
	return copy;
}

EXPORT void *
__wrap_pg_detoast_datum(void *datum)
{
	datum = pg_detoast_datum(datum);
	return pieces < FIRST_PIECES ? copy_of_value(datum) : datum;
}

EXPORT void *
__wrap_pg_detoast_datum_copy(void *datum)
{
	datum = pg_detoast_datum_copy(datum);
	return pieces < FIRST_PIECES ? copy_of_value(datum) : datum;
}

EXPORT void *
__wrap_pg_detoast_datum_packed(void *datum)
{
	datum = pg_detoast_datum_packed(datum);
	return pieces < FIRST_PIECES ? copy_of_value(datum) : datum;
}

EXPORT void *
__wrap_pg_detoast_datum_slice(void *datum, int32_t first, int32_t count)
{
	datum = pg_detoast_datum_slice(datum, first, count);
	return pieces < FIRST_PIECES ? copy_of_value(datum) : datum;
}
