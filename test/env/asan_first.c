/*
 * asan_first.c
 *		Starts the address sanitizer before any other library is initialised.
 *
 * A constructor of libgpg-error (which Debian's server links indirectly) calls
 * bindtextdomain(), whose allocation would start the sanitizer, which calls
 * dlerror(), which waits for the lock that bindtextdomain() holds: the server
 * would hang before main().  Linked with -z initfirst and preloaded.
 */
extern void __asan_init(void) __attribute__((weak));

static void __attribute__((constructor)) asan_first(void)
{
	if (__asan_init)
		__asan_init();
}
