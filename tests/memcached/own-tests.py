#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""memcached's own tests end as without the library: some of them, from the source package of the memcached that is installed, if apt can
have it. If not, conformance.py stands for them."""
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor

import stock
from stock import check, ok

# of the original sources by version; another version needs a line, and a look at the names of its tests
SUMS = {
    "1.6.18": "35872bd25f8d29d7cc2072d23e74344530891bfd0aa4f4f64184a8ae7291164b",
    "1.6.38": "074076ab3e889e16e763c6a3e5cadacc6696979dbb8c473bbf871d498b19b1a0",
}
POOL = "pool/main/m/memcached/memcached_%s.orig.tar.xz"
# not issue_42, which starts memcached with -o no_modern
TESTS = "64bit bogus-commands cas evictions flags getandtouch getset incrdecr line-lengths multiversioning noreply slabs-reassign2 stats-conns stats-detail touch".split()
JOBS = 4
AGAIN = 3


def skip(why):
    print(f"{why}; conformance.py stands for them")
    sys.exit(77)


def download(version, path):
    """The source package, from the mirror of Debian that apt uses."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT) $(CREATED_BY)"], capture_output=True, text=True, check=False)
    mirrors = sorted({line.split()[0] for line in targets.stdout.splitlines() if line.endswith(" main Packages") and "security" not in line})
    for mirror in mirrors:
        command = ["/usr/lib/apt/apt-helper", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", "download-file", mirror.rstrip("/") + "/" + POOL % version, path, "SHA256:" + SUMS[version]]
        try:
            if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0:
                break
        except (OSError, subprocess.TimeoutExpired):
            pass
    if not os.path.exists(path):
        skip("no mirror of apt has the sources of memcached")
    with open(path, "rb") as f:
        check(hashlib.sha256(f.read()).hexdigest() == SUMS[version], "the sources are others")


def script(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def prepare(top, environment):
    """The programs that the tests expect beside them. Each memcached has a file of its own; Debian's has no relaxed_privileges."""
    script(os.path.join(top, "timedrun"), 'shift\nexec "$@"\n')
    for name in ("memcached", "memcached-debug"):
        script(os.path.join(top, name), f'{environment} exec "{stock.PATH}" $(echo "$*" | sed "s/-o relaxed_privileges//g")\n')


def run(top, name):
    """The lines of its results, without what they measured."""
    done = subprocess.run(["perl", "-I", "t/lib", f"t/{name}.t"], cwd=top, capture_output=True, text=True, timeout=3 * stock.LIMIT, check=False)
    results = [line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("ok", "not ok", "1.."))]
    return done.returncode, results, done.stdout + done.stderr


def main():
    version = subprocess.run([stock.PATH, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    if version not in SUMS:
        skip(f"the tests of memcached {version} are not known here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        archive = os.path.join(work, "memcached.tar.xz")
        download(version, archive)
        tops = []
        for way, environment in (("without", ""), ("with", f'LD_PRELOAD="{os.environ["LIBREDDN_MEMCACHED"]}" REDDN_CACHE_FILE="{work}/$$.cache"')):
            with tarfile.open(archive) as tar:
                tar.extractall(os.path.join(work, way))
            tops.append(os.path.join(work, way, f"memcached-{version}"))
            prepare(tops[-1], environment)
        names = [name for name in TESTS if os.path.exists(os.path.join(tops[0], "t", name + ".t"))]
        with ThreadPoolExecutor(JOBS) as pool:
            ends = [list(pool.map(lambda name, top=top: run(top, name), names)) for top in tops]
        checks = 0
        for name, without, with_ in zip(names, *ends):
            for _ in range(AGAIN):  # some of them measure time
                if without[:2] != with_[:2]:
                    print(f"once more: {name}: without the library {without}, with it {with_}")
                    without, with_ = (run(top, name) for top in tops)
            check(without[:2] == with_[:2], f"{name}: without the library {without}, with it {with_}")
            checks += len(without[1])
        check(checks > 500, f"only {checks} results of {names}")
        ok(f"{checks} results of {len(names)} test files of memcached {version} are as without the library")


main()
