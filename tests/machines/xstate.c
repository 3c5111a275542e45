/* For User-mode Linux on a processor with AMX. Its ptrace(PTRACE_SETREGSET) writes the 2,696 bytes
 * of registers that it knows, and the kernel accepts nothing but all of them: 11,008 bytes with AMX.
 * This function, preloaded, writes the registers that UML knows over those that are there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

static long (*next_ptrace)(int, pid_t, void *, void *);
/* UML calls from stacks of 16 KiB, and from one thread. */
static char registers[65536];

__attribute__((constructor)) static void find_ptrace(void)
{
	next_ptrace = dlsym(RTLD_NEXT, "ptrace");
}

static long set_known_registers(pid_t pid, const struct iovec *known)
{
	struct iovec all = { registers, sizeof registers };

	if (next_ptrace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &all) < 0)
		return -1;
	memcpy(registers, known->iov_base, known->iov_len);
	return next_ptrace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	va_start(rest, request);
	pid_t pid = va_arg(rest, pid_t);
	void *address = va_arg(rest, void *);
	void *data = va_arg(rest, void *);
	va_end(rest);
	if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE)
		return set_known_registers(pid, data);
	return next_ptrace(request, pid, address, data);
}
