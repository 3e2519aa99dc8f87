# SPDX-License-Identifier: BSD-2-Clause
"""Shared by benchmarks of the whole system: a NIC for each benchmark (the device of $SOFTCX_DEVICE, if that is set), servers and clients on it, the CPU time of each, and confidence
intervals. Programs are found on PATH, as "./dev bench" sets it.

    with Rig() as rig:
        rig.table(keys=10000, value_bytes=64)      # rig.keys_file, rig.table_file
        daemon = rig.reddnd('{ name = "get"; program = "hash-get"; region = "t"; }')
        before = daemon.cpu_s()
        result = rig.ask(["reddn", "bench", "--json", "--keys", rig.keys_file, rig.ADDRESS, "get"])

All programs of a rig end with it, even if it is killed. A program that fails ends the benchmark, which prints its output."""

import glob
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Process:
    def __init__(self, name, log, popen):
        self.name, self.log, self.popen = name, log, popen

    def cpu_s(self):
        """CPU time of all its threads; proc(5) has it in nanoseconds only in schedstat."""
        total = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.popen.pid):
            try:
                with open(path, encoding="ascii") as f:
                    total += int(f.read().split()[0])
            except OSError:
                pass  # a thread that ended
        return total / 1e9

    def waits_ms(self):
        """{thread: ms in which it could have run and had no CPU} (the second number of schedstat)"""
        waits = {}
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.popen.pid):
            try:
                with open(path, encoding="ascii") as f:
                    waits[path] = int(f.read().split()[1]) / 1e6
            except OSError:
                pass  # a thread that ended
        return waits

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self):
        self.popen.terminate()
        try:
            self.popen.wait(10)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class Store:
    """A key-value store. @where: its address, as arguments of baseline-client."""

    def __init__(self, way, where, process):
        self.way, self.where, self.process = way, where, process


def tcp_ready(port):
    def listens(_):
        with open("/proc/net/tcp", encoding="ascii") as f:
            return any(line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A" for line in f.readlines()[1:])

    return listens


class Rig:
    ADDRESS = "127.0.0.1"
    PORT = 7471  # of reddnd

    def __init__(self, nic_options=(), nic_cpu=None, nic_realtime=False, build=None):
        """@build: the folder of another build of this project, whose programs run instead of those of this one"""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
        self.dir = tempfile.mkdtemp(prefix="reddn-bench.")
        self.shm = tempfile.mkdtemp(prefix="reddn-bench.", dir="/dev/shm")
        self.build = build
        self.env = dict(os.environ, SOFTCX_DIR=os.path.join(self.shm, "nic"))
        if build:
            folders = [os.path.join(build, d) for d in ("reddnd", "libclient", "libclient/mc", "tools", "softcx", "softcx/nic", "softcx/driver", "tests/bench")]
            self.env.update(PATH=":".join([*folders, os.environ["PATH"]]), LD_LIBRARY_PATH=":".join(folders))
        os.mkdir(self.env["SOFTCX_DIR"])
        self.processes = []
        self.keys_file = os.path.join(self.dir, "keys.tsv")
        self.table_file = os.path.join(self.shm, "table")
        try:
            self.nic = self.start("nic", ["softcx", "nic", *nic_options], cpu=nic_cpu, ready=self.nic_answers, on_nic=False, realtime=nic_realtime)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for process in reversed(self.processes):
            process.end()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.shm, ignore_errors=True)

    def nic_answers(self, _):
        return subprocess.run(["softcx", "status"], env=self.env, capture_output=True).returncode == 0

    def command(self, command, cpu=None, on_nic=True, realtime=False):
        command = [str(word) for word in command]
        if on_nic:
            command = ["softcx", "run"] + command
        if realtime:
            command = ["chrt", "--fifo", "1"] + command
        # The program ends even if this benchmark is killed.
        return ["setpriv", "--pdeathsig", "TERM"] + (["taskset", "-c", str(cpu)] if cpu is not None else []) + command

    def start(self, name, command, ready, cpu=None, on_nic=True, realtime=False):
        """Starts a program in the background and waits until ready(process) is true, or its log has the text @ready."""
        log = os.path.join(self.dir, name + ".log")
        with open(log, "w", encoding="utf-8") as out:
            popen = subprocess.Popen(self.command(command, cpu, on_nic, realtime), env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        process = Process(name, log, popen)
        self.processes.append(process)
        self.wait(process, ready if callable(ready) else lambda _: ready in process.text())
        return process

    @staticmethod
    def wait(process, ready):
        """Until ready(process) is true, to a few milliseconds."""
        end = time.monotonic() + 300  # other work may keep the machine busy
        while not ready(process):
            if process.popen.poll() is not None or time.monotonic() > end:
                sys.exit("%s is not ready:\n%s" % (process.name, process.text()))
            time.sleep(0.002)

    def stop(self, process):
        process.end()
        self.processes.remove(process)

    def table(self, keys, value_bytes, seed=1, key_bytes=12):
        """Makes keys_file, lines of key, tab and value, and table_file with them."""
        rng = random.Random(seed)
        with open(self.keys_file, "w", encoding="ascii") as f:
            for i in range(keys):
                # no value begins with a digit: memcached could increment it, and readers would take more care of it
                f.write("key-%0*d\tv%0*x\n" % (key_bytes - 4, i, value_bytes - 1, rng.getrandbits(4 * (value_bytes - 1))))
        # absent keys have 24 bytes
        self.run(["reddn-table", "create", "--quiet", "--capacity", keys, "--max-key", 24, "--max-value", max(value_bytes, 64), "--heap", keys * (value_bytes + 512), self.table_file])
        self.run(["reddn-table", "load", "--quiet", self.table_file, self.keys_file])

    def run(self, command):
        done = subprocess.run([str(word) for word in command], env=self.env, capture_output=True, text=True)
        if done.returncode:
            sys.exit("%s: %s" % (command[0], done.stderr.strip()))

    def reddnd(self, *offloads, cpu=None, regions=None, addresses=(ADDRESS,)):
        """Starts the daemon with region "t", or with @regions, and these offloads in the syntax of reddnd.conf(5). It serves on the devices
        that the addresses belong to."""
        conf = os.path.join(self.dir, "reddnd.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write('%slisten = [ %s ];\n' % ('device = "all";\n' if len(addresses) > 1 else "", ", ".join('"%s:%d"' % (a, self.PORT) for a in addresses)))
            f.write('programs = "%s";\n' % os.path.join(TOP, "conf", "programs"))
            f.write("regions = ( %s );\n" % (regions or '{ name = "t"; kind = "table"; path = "%s"; }' % self.table_file))
            f.write("offloads = ( %s );\n" % ", ".join(offloads))
        return self.start("reddnd", ["reddnd", "--config", conf], lambda process: process.text().count("listening on") == len(addresses), cpu)

    def stores(self, *names, cpu=None):
        """Starts memcached and Redis with the keys of keys_file, unless their package is missing. memcached, and Redis with I/O threads, have a thread for each processor."""
        threads, socket, redis_socket = 1 if cpu is not None else os.cpu_count(), os.path.join(self.dir, "memcached"), os.path.join(self.dir, "redis")
        user, root = (["-u", name] if os.geteuid() == 0 else [] for name in ("nobody", "root"))  # only root may make a socket in this directory
        redis = ["redis-server", "--save", "", "--appendonly", "no"]
        programs = {
            "memcached": ("memcached", ["memcached", *user, "-U", "0", "-t", threads, "-l", self.ADDRESS, "-p", 21211], tcp_ready(21211), [self.ADDRESS, 21211]),
            "memcached, Unix socket": ("memcached", ["memcached", *root, "-t", threads, "-s", socket], lambda _: os.path.exists(socket), [socket, 21211]),
            "redis": ("redis-server", [*redis, "--bind", self.ADDRESS, "--port", 26379], tcp_ready(26379), [self.ADDRESS, 26379]),
            "redis, Unix socket": ("redis-server", [*redis, "--port", 0, "--unixsocket", redis_socket], lambda _: os.path.exists(redis_socket), [redis_socket, 26379]),
            "redis, I/O threads": ("redis-server", [*redis, "--bind", self.ADDRESS, "--port", 26380, "--io-threads", threads, "--io-threads-do-reads", "yes"], tcp_ready(26380), [self.ADDRESS, 26380]),
        }
        missing = packages(*(programs[name][0] for name in names))
        stores = []
        for name in names:
            package, command, ready, where = programs[name]
            if package in missing:
                print("%s is not installed and left out" % package, file=sys.stderr)
                continue
            process = self.start(re.sub("[^A-Za-z]+", "-", name), command, ready, cpu, on_nic=False)
            stores.append(Store(name, [package.split("-")[0], *where], process))
            with open(self.keys_file, encoding="ascii") as f:
                count = sum(1 for _ in f)
            self.ask(["baseline-client", "--json", "--set", "--in-order", "--keys", self.keys_file, "--count", count, *stores[-1].where], on_nic=False)
        return stores

    def output(self, command, cpu=None, on_nic=True, realtime=False):
        """Runs a program that must succeed. Returns its output."""
        done = subprocess.run(self.command(command, cpu, on_nic, realtime), env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            sys.exit("%s: exit status %d: %s%s" % (" ".join(map(str, command)), done.returncode, done.stdout, done.stderr))
        return done.stdout

    def ask(self, *words, **more):
        """The same for a client that prints a JSON object."""
        return json.loads(self.output(*words, **more))


def interval(values, seed=1, resamples=2000):
    """Median of @values and the bounds of its 95 % confidence interval, by bootstrap."""
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(resamples))
    return statistics.median(values), medians[int(resamples * 0.025)], medians[int(resamples * 0.975)]


def may_be_realtime():
    """True if programs may get a real-time priority."""
    return subprocess.run(["chrt", "--fifo", "1", "true"], capture_output=True).returncode == 0


def packages(*names):
    """Installs Debian packages of a single benchmark if possible. Returns the missing ones."""
    missing = [n for n in names if subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", n], capture_output=True, text=True).stdout != "installed"]
    if missing and os.geteuid() == 0:
        print("installing " + " ".join(missing), file=sys.stderr)
        if subprocess.run([os.path.join(TOP, "dev"), "setup", *missing], stdout=sys.stderr).returncode == 0:
            return []
    return missing
