/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger-stores.c - preloaded into a daemon: kills it at its n-th store into the ledger. The memory of the
 * ledger is read-only for it. Each store faults, is counted, and is repeated with the memory writable and the
 * processor's trap flag set, which raises SIGTRAP right after it. An instruction that repeats itself counts
 * as one store.
 *
 * File $LEDGER_STORES is a struct control, which a test fills in and reads at any time.
 */
#include "reddnd/ledger/format.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

struct control {
	uint64_t at;     /* kill at this store, from 1; 0: never. Cleared when it is done */
	uint64_t after;  /* 1: after the store, 0: before it */
	uint64_t stores; /* counted */
};

enum { TRAP_FLAG = 0x100 };

static struct control *control;
static uint8_t *ledger;
static size_t ledger_size;
static uintptr_t code; /* of the daemon */
static size_t code_size;
static struct sigaction before; /* of SIGSEGV */
static __thread greg_t stepped; /* the instruction that stores */
static __thread int dies;       /* after it */

static void die(void)
{
	control->at = 0;
	kill(getpid(), SIGKILL);
}

static int is_ledger(const uint8_t *at)
{
	return ledger && at >= ledger && at < ledger + ledger_size;
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else
		signal(SIGSEGV, SIG_DFL);
}

/* The first object is the program. */
static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		code = (uintptr_t)(info->dlpi_addr + p->p_vaddr);
		code_size = p->p_memsz;
	}
	return 1;
}

/* The kernel stores events there, at once; the emulated one in steps, by code of this process that is not
 * the daemon's */
static int is_the_kernels(const uint8_t *at, uintptr_t by)
{
	size_t offset = (size_t)(at - ledger);

	return offset >= offsetof(struct ledger_head, event) &&
	       offset < offsetof(struct ledger_head, event) + LEDGER_EVENT &&
	       (by < code || by >= code + code_size);
}

static void count(const uint8_t *at, uintptr_t by)
{
	uint64_t n;

	dies = 0;
	if (is_the_kernels(at, by))
		return;
	n = __atomic_add_fetch(&control->stores, 1, __ATOMIC_RELAXED);
	if (!control->at || n < control->at)
		return;
	if (!control->after)
		die();
	dies = 1;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (!is_ledger(info->si_addr)) {
		pass_on(sig, info, context);
		return;
	}
	count(info->si_addr, (uintptr_t)reg[REG_RIP]);
	stepped = reg[REG_RIP];
	mprotect(ledger, ledger_size, PROT_READ | PROT_WRITE);
	reg[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	if (reg[REG_RIP] == stepped)
		return;
	mprotect(ledger, ledger_size, PROT_READ);
	reg[REG_EFL] &= ~TRAP_FLAG;
	if (dies)
		die();
}

static int is_ledger_file(int fd)
{
	char path[64], name[PATH_MAX] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name) - 1) > 0 && strncmp(name, "/memfd:reddnd-ledger", 20) == 0;
}

static int take_control(void)
{
	const char *path = getenv("LEDGER_STORES");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	if (fd < 0)
		return 0;
	dl_iterate_phdr(find_code, NULL);
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return control != MAP_FAILED && sigaction(SIGSEGV, &fault, &before) == 0 &&
	       sigaction(SIGTRAP, &trap, NULL) == 0;
}

void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *(*real)(void *, size_t, int, int, int, off_t) =
		(void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	int ours = !ledger && fd >= 0 && prot & PROT_WRITE && is_ledger_file(fd) && take_control();
	void *at = real(addr, size, ours ? PROT_READ : prot, flags, fd, offset);

	if (ours && at != MAP_FAILED) {
		ledger_size = size;
		ledger = at;
	}
	return at;
}

/* A thread that blocks them would die of its first store */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	int (*real)(int, const sigset_t *, sigset_t *) =
		(int (*)(int, const sigset_t *, sigset_t *))dlsym(RTLD_NEXT, "pthread_sigmask");
	sigset_t open;

	if (!set)
		return real(how, set, old);
	open = *set;
	if (how != SIG_UNBLOCK) {
		sigdelset(&open, SIGSEGV);
		sigdelset(&open, SIGTRAP);
	}
	return real(how, &open, old);
}
