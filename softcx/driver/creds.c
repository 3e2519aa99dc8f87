/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/internal.h"

#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian 12's headers have it, older ones do not */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

/* <sys/capability.h> is libcap's; the function is the C library's */
int capset(void *header, const void *data);

static atomic_uint generation;

unsigned creds_now(void)
{
	return generation;
}

/* @rc: of a call that commits new credentials if it succeeds. */
static int committed(int rc)
{
	if (rc == 0)
		generation++;
	return rc;
}

/* security/commoncap.c, cap_task_prctl */
static bool prctl_commits(int option, unsigned long arg)
{
	return option == PR_CAPBSET_DROP || option == PR_SET_SECUREBITS || option == PR_SET_KEEPCAPS ||
	       (option == PR_CAP_AMBIENT && arg != PR_CAP_AMBIENT_IS_SET);
}

void creds_after_syscall(long number, const long args[6])
{
	switch (number) {
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setgroups:
	case SYS_capset:
	case SYS_landlock_restrict_self:
		generation++;
		break;
	case SYS_prctl:
		if (prctl_commits((int)args[0], (unsigned long)args[1]))
			generation++;
		break;
	case SYS_unshare:
		if (args[0] & CLONE_NEWUSER)
			generation++;
		break;
	default:
		break;
	}
}

EXPORT int setuid(uid_t uid)
{
	NEXT(setuid);
	return committed(next(uid));
}

EXPORT int seteuid(uid_t uid)
{
	NEXT(seteuid);
	return committed(next(uid));
}

EXPORT int setreuid(uid_t real, uid_t effective)
{
	NEXT(setreuid);
	return committed(next(real, effective));
}

EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	NEXT(setresuid);
	return committed(next(real, effective, saved));
}

EXPORT int setgid(gid_t gid)
{
	NEXT(setgid);
	return committed(next(gid));
}

EXPORT int setegid(gid_t gid)
{
	NEXT(setegid);
	return committed(next(gid));
}

EXPORT int setregid(gid_t real, gid_t effective)
{
	NEXT(setregid);
	return committed(next(real, effective));
}

EXPORT int setresgid(gid_t real, gid_t effective, gid_t saved)
{
	NEXT(setresgid);
	return committed(next(real, effective, saved));
}

EXPORT int setgroups(size_t n, const gid_t *list)
{
	NEXT(setgroups);
	return committed(next(n, list));
}

EXPORT int initgroups(const char *user, gid_t group)
{
	NEXT(initgroups);
	return committed(next(user, group));
}

EXPORT int capset(void *header, const void *data)
{
	NEXT(capset);
	return committed(next(header, data));
}

EXPORT int unshare(int flags)
{
	NEXT(unshare);
	int rc = next(flags);

	return flags & CLONE_NEWUSER ? committed(rc) : rc;
}

EXPORT int prctl(int option, ...)
{
	NEXT(prctl);
	unsigned long a[4];
	va_list ap;
	int rc;

	va_start(ap, option);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	rc = next(option, a[0], a[1], a[2], a[3]);
	return prctl_commits(option, a[0]) ? committed(rc) : rc;
}
