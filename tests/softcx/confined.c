/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confined - runs a command as a container without privileges would: confined [--kill] COMMAND [ARGUMENT...]
 *
 * ptrace(2), process_vm_readv(2), process_vm_writev(2) and userfaultfd(2) fail with EPERM, or, with --kill,
 * end the process that calls them, in it and in all its descendants.
 */
#include "util/array.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int first = argc > 1 && strcmp(argv[1], "--kill") == 0 ? 2 : 1;
	unsigned verdict = first == 2 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, verdict),
	};
	struct sock_fprog program = {COUNT(filter), filter};

	if (argc <= first) {
		fprintf(stderr, "usage: confined [--kill] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		fprintf(stderr, "confined: no filter: %s\n", strerror(errno));
		return 125;
	}
	execvp(argv[first], argv + first);
	fprintf(stderr, "confined: %s: %s\n", argv[first], strerror(errno));
	return 127;
}
