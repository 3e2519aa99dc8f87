# SPDX-License-Identifier: BSD-2-Clause
"""For benchmarks in Python: an emulated NIC of one's own, and the daemon and clients on it.

    with Rig(seed=1) as rig:
        rig.table("users", {"alice": "wonder"})
        rig.start_daemon('regions = (...); offloads = (...);')
        client = rig.start("reddn", "get", ...)

Everything that was started ends with the rig. Programs are found on PATH, as "./dev bench" sets it. What fails raises Failure, with
the last lines of the log of what failed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
ADDRESS = "127.0.0.1"
PORT = 7471


class Failure(Exception):
    pass


def progress(text):
    """What is being done, for somebody at a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K%s" % text)
        sys.stderr.flush()


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


class Rig:
    def __init__(self, *options, seed=1):
        self.dir = tempfile.mkdtemp(prefix="reddn-bench-")
        self.env = dict(os.environ, SOFTCX_DIR=self.path("nic"))
        self.children = []
        self.daemon_pid = None
        os.mkdir(self.path("nic"))
        try:
            self.nic = self.spawn("nic", ["softcx", "nic", "--seed", str(seed), *options])
            self.wait_until("the NIC runs", lambda: self.softcx("status", check=False) is not None, self.nic)
        except BaseException:
            self.end()
            raise

    def path(self, name):
        return os.path.join(self.dir, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.end()

    def end(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdin:
                child.stdin.close()
            if child.stdout:
                child.stdout.close()
        self.children = []
        shutil.rmtree(self.dir, ignore_errors=True)
        progress("")

    # ---- programs ----

    def spawn(self, log, command, **how):
        """In the background, standard error to a log."""
        with open(self.path(log + ".log"), "a", encoding="utf-8") as errors:
            child = subprocess.Popen(command, env=self.env, stderr=errors, **{"stdin": subprocess.DEVNULL, "stdout": errors, **how})
        child.log = log
        self.children.append(child)
        return child

    def start(self, program, *words, host=None, **how):
        """A program on the NIC, in the background; on one of the hosts that the options of the NIC name."""
        on = ["--host", host] if host else []
        return self.spawn(os.path.basename(program), ["softcx", "run", *on, program, *map(str, words)], **how)

    def run(self, program, *words, **how):
        """The same to its end; what it says on standard output."""
        return self.result(self.start(program, *words, stdout=subprocess.PIPE, text=True, **how))

    def result(self, child):
        """What a program says, which was started with stdout=PIPE, text=True."""
        out = child.communicate()[0]
        self.expect(child.returncode == 0, child, "exit status %d" % child.returncode)
        self.children.remove(child)
        return out

    def talk(self, program, *words):
        """A program on the NIC that is told what to do: see say()."""
        return self.start(program, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, child, line):
        """Gives a line to a program that answers each with a line of JSON; what it answers."""
        try:
            child.stdin.write(line + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except OSError:
            answer = ""
        self.expect(answer, child, 'no answer to "%s"' % line)
        return json.loads(answer)

    def expect(self, true, child, what):
        if true:
            return
        child.kill()
        with open(self.path(child.log + ".log"), encoding="utf-8", errors="replace") as f:
            last = f.read().splitlines()[-20:]
        raise Failure("%s: %s\n%s" % (child.log, what, "\n".join(last)))

    def wait_until(self, what, true, child, seconds=30):
        end = time.monotonic() + seconds
        while not true():
            self.expect(child.poll() is None and time.monotonic() < end, child, "it is not so that " + what)
            time.sleep(0.02)

    # ---- the NIC ----

    def softcx(self, *words, check=True):
        done = subprocess.run(["softcx", *words], env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            if check:
                raise Failure("softcx %s: %s" % (" ".join(words), done.stderr.strip()))
            return None
        return done.stdout

    def objects(self):
        """How many there are in the NIC, by kind."""
        status = json.loads(self.softcx("status", "--json"))
        kinds = dict(status["cm"], files=status["files"])
        for device in status["devices"]:
            for kind in "pds", "mkeys", "uars", "cqs", "qps", "srqs", "mems":
                kinds[kind] = kinds.get(kind, 0) + device[kind]
        return kinds

    # ---- the daemon ----

    def table(self, name, records, *options):
        """Makes a table in a file; its path."""
        path = self.path(name)
        words = ["--capacity", str(max(100, len(records))), *options]
        subprocess.run(["reddn-table", "create", "--quiet", *words, path], check=True, stdout=subprocess.DEVNULL)
        text = "".join("%s\t%s\n" % r for r in records.items())
        subprocess.run(["reddn-table", "load", "--quiet", path], input=text, text=True, check=True)
        return path

    def start_daemon(self, config, host=None):
        with open(self.path("conf"), "w", encoding="utf-8") as f:
            f.write('listen = "%s:%d";\nprograms = "%s/conf/programs";\ncontrol = "%s";\n' % (ADDRESS, PORT, TOP, self.path("control")))
            f.write(config)
        self.daemon = self.start("reddnd", "--config", self.path("conf"), host=host)
        self.wait_until("reddnd listens", lambda: os.path.exists(self.path("control")) and self.objects()["listeners"] > 0, self.daemon)
        self.daemon_pid = self.daemon.pid  # softcx run becomes what it runs

    def stop_daemon(self):
        self.daemon.terminate()
        self.expect(self.daemon.wait(60) == 0, self.daemon, "it ends badly")
        self.children.remove(self.daemon)

    def ctl(self, *words):
        done = subprocess.run(["reddnctl", "--socket", self.path("control"), "--json", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure("reddnctl %s: %s" % (" ".join(words), done.stderr.strip()))
        return json.loads(done.stdout)

    def memory(self):
        """Of the daemon, in bytes: {"VmRSS": ..., "RssAnon": ..., "RssShmem": ...}"""
        kib = {}
        with open("/proc/%d/status" % self.daemon_pid, encoding="ascii") as f:
            for line in f:
                if line.startswith(("VmRSS", "Rss")):
                    name, value = line.split(":")
                    kib[name] = int(value.split()[0]) * 1024
        return kib

    def cpu_s(self):
        """CPU time of the daemon so far."""
        with open("/proc/%d/schedstat" % self.daemon_pid, encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9
