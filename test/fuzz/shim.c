/*
 * shim.c
 *		The few functions of a PostgreSQL server that the code under test calls.
 *
 * A function does here what the one of the same name does in the server, as far
 * as the code under test can tell.
 *
 * Memory comes from malloc piece by piece, so that the address sanitizer sees
 * the bounds of each; errors go through longjmp to the driver.
 */
#include "shim.h"

#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "dp.h"
#include "bson/collation.h"

typedef struct Piece
{
	struct Piece *next;
	struct Piece *previous;
	Size size;
	Size context; /* none; keeps the memory behind it aligned to 16 */
} Piece;

static Piece pieces = { &pieces, &pieces, 0, 0 };

jmp_buf fuzz_error;
int fuzz_sqlstate;
char fuzz_message[256];
char fuzz_detail[1024];
char *fuzz_stack_base;

int dp_max_document_size = 16 * 1024 * 1024;
bool dp_maintain = true;
volatile sig_atomic_t InterruptPending = 0;
MemoryContext CurrentMemoryContext = NULL;

/* Memory */

void *
palloc(Size size)
{
	Piece *piece;

	if (!AllocSizeIsValid(size))
		elog(ERROR, "invalid memory alloc request size %zu", size);
	piece = malloc(sizeof(Piece) + size);
	if (piece == NULL)
		abort();
	piece->size = size;
	piece->context = 0;
	piece->next = pieces.next;
	piece->previous = &pieces;
	pieces.next->previous = piece;
	pieces.next = piece;
	return piece + 1;
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return palloc(size);
}

/*
 * Before PostgreSQL 16 an inline function, which reads the word in front of the piece:
 * Piece.context.
 */
#if PG_VERSION_NUM >= 160000
MemoryContext
GetMemoryChunkContext(void *pointer)
{
	return CurrentMemoryContext;
}
#endif

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
palloc_extended(Size size, int flags)
{
	return flags & MCXT_ALLOC_ZERO ? palloc0(size) : palloc(size);
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return palloc_extended(size, flags);
}

Size
MemoryContextMemAllocated(MemoryContext context, bool recurse)
{
	return 0;
}

void
pfree(void *pointer)
{
	Piece *piece = (Piece *) pointer - 1;

	piece->next->previous = piece->previous;
	piece->previous->next = piece->next;
	free(piece);
}

void *
repalloc(void *pointer, Size size)
{
	Piece *old = (Piece *) pointer - 1;
	void *new = palloc(size);

	memcpy(new, pointer, Min(size, old->size));
	pfree(pointer);
	return new;
}

void *
repalloc_huge(void *pointer, Size size)
{
	return repalloc(pointer, size);
}

char *
pnstrdup(const char *in, Size len)
{
	char *out;

	len = strnlen(in, len);
	out = palloc(len + 1);
	memcpy(out, in, len);
	out[len] = '\0';
	return out;
}

char *
pstrdup(const char *in)
{
	return pnstrdup(in, strlen(in));
}

void
fuzz_reset_memory(void)
{
	while (pieces.next != &pieces)
		pfree(pieces.next + 1);
}

/* Errors */

bool
errstart(int elevel, const char *domain)
{
	fuzz_sqlstate = ERRCODE_INTERNAL_ERROR;
	fuzz_message[0] = '\0';
	fuzz_detail[0] = '\0';
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	longjmp(fuzz_error, 1);
}

int
errcode(int sqlerrcode)
{
	fuzz_sqlstate = sqlerrcode;
	return 0;
}

#define STORE(where)                                                                               \
	do                                                                                             \
	{                                                                                              \
		va_list args;                                                                              \
		va_start(args, fmt);                                                                       \
		vsnprintf(where, sizeof(where), fmt, args);                                                \
		va_end(args);                                                                              \
	} while (0)

int
errmsg(const char *fmt, ...)
{
	STORE(fuzz_message);
	return 0;
}

int
errmsg_internal(const char *fmt, ...)
{
	STORE(fuzz_message);
	return 0;
}

int
errdetail(const char *fmt, ...)
{
	STORE(fuzz_detail);
	return 0;
}

int
errhint(const char *fmt, ...)
{
	char hint[1024];

	STORE(hint);
	return 0;
}

#if PG_VERSION_NUM >= 160000
bool
errsave_start(struct Node *context, const char *domain)
{
	return errstart(ERROR, domain);
}

void
errsave_finish(struct Node *context, const char *filename, int lineno, const char *funcname)
{
	errfinish(filename, lineno, funcname);
}
#endif

void
ProcessInterrupts(void)
{
}

void
check_stack_depth(void)
{
	char here;

	if (labs((long) (fuzz_stack_base - &here)) > 4 * 1024 * 1024)
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX), errmsg("stack depth limit exceeded")));
}

/* Strings */

void
initStringInfo(StringInfo str)
{
	str->data = palloc(1024);
	str->maxlen = 1024;
	resetStringInfo(str);
}

void
resetStringInfo(StringInfo str)
{
	str->data[0] = '\0';
	str->len = 0;
	str->cursor = 0;
}

void
enlargeStringInfo(StringInfo str, int needed)
{
	if (needed < 0 || (Size) needed >= MaxAllocSize - (Size) str->len)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("out of memory")));
	if (str->len + needed + 1 <= str->maxlen)
		return;
	str->maxlen = Max(2 * str->maxlen, str->len + needed + 1);
	str->data = repalloc(str->data, str->maxlen);
}

void
appendStringInfo(StringInfo str, const char *fmt, ...)
{
	char buf[1024];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);
	if (n >= sizeof(buf))
		abort();
	appendBinaryStringInfo(str, buf, n);
}

void
appendStringInfoString(StringInfo str, const char *s)
{
	appendBinaryStringInfo(str, s, strlen(s));
}

void
appendStringInfoChar(StringInfo str, char c)
{
	appendBinaryStringInfo(str, &c, 1);
}

void
#if PG_VERSION_NUM >= 160000
appendBinaryStringInfo(StringInfo str, const void *data, int n)
#else
appendBinaryStringInfo(StringInfo str, const char *data, int n)
#endif
{
	enlargeStringInfo(str, n);
	memcpy(str->data + str->len, data, n);
	str->len += n;
	str->data[str->len] = '\0';
}

/* Numbers and digits */

int
pg_ultoa_n(uint32 value, char *a)
{
	char digits[12];
	int n = sprintf(digits, "%u", value);

	memcpy(a, digits, n);
	return n;
}

int
pg_ltoa(int32 value, char *a)
{
	return sprintf(a, "%d", value);
}

int
pg_lltoa(int64 value, char *a)
{
	return sprintf(a, "%lld", (long long) value);
}

uint64
hex_encode(const char *src, size_t len, char *dst)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++)
	{
		dst[2 * i] = hex[(uint8) src[i] >> 4];
		dst[2 * i + 1] = hex[(uint8) src[i] & 15];
	}
	return 2 * len;
}

/* Arguments of functions */

struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return datum;
}

struct varlena *
pg_detoast_datum_copy(struct varlena *datum)
{
	struct varlena *copy = palloc(VARSIZE_ANY(datum));

	memcpy(copy, datum, VARSIZE_ANY(datum));
	return copy;
}

const char *
pq_getmsgbytes(StringInfo msg, int datalen)
{
	const char *result = &msg->data[msg->cursor];

	msg->cursor += datalen;
	return result;
}

/* No collation is in force. */
const DpCollation *dp_collation = NULL;

int
dp_collation_compare(const char *a, uint32 alen, const char *b, uint32 blen)
{
	abort();
}
