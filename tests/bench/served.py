# SPDX-License-Identifier: BSD-2-Clause
"""A rig with a daemon whose state can be read, and with clients in the background. Errors raise Failure with the last lines of the log
of the failed program."""

import json
import os
import socket
import subprocess
import sys
import time

from rig import TOP, Process, Rig


class Failure(Exception):
    pass


def progress(text):
    """Prints the current step on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K%s" % text)
        sys.stderr.flush()


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


class Served(Rig):
    def __init__(self, seed, *options, nic_cpu=None, build=None):
        super().__init__(["--seed", str(seed), *options], nic_cpu=nic_cpu, build=build)
        self.control = os.path.join(self.dir, "control")

    def expect(self, true, process, what):
        if not true:
            raise Failure("%s: %s\n%s" % (process.name, what, "\n".join(process.text().splitlines()[-20:])))

    def wait_until(self, what, true, process, seconds=60):
        end = time.monotonic() + seconds
        while not true():
            self.expect(process.popen.poll() is None and time.monotonic() < end, process, "it is not so that " + what)
            time.sleep(0.02)

    def objects(self):
        """Number of objects in the NIC, by kind."""
        done = subprocess.run(["softcx", "status", "--json"], env=self.env, capture_output=True, text=True, check=True)
        status = json.loads(done.stdout)
        kinds = dict(status["cm"])
        for device in status["devices"]:
            for kind in "pds", "mkeys", "cqs", "qps", "mems":
                kinds[kind] = kinds.get(kind, 0) + device[kind]
        return kinds

    def keys(self, program):
        """KEY:ADDRESS:LENGTH of each memory region of the processes that run @program, as the NIC has them."""
        status = subprocess.run(["softcx", "status", "--objects"], env=self.env, capture_output=True, text=True, check=True).stdout
        keys, mine = [], False
        for line in status.replace(",", "").splitlines():
            words = line.split()
            if line[:1].isalpha():
                mine = words[-1] == program
            elif mine and words[:1] == ["mr"]:
                of = dict(zip(words, words[1:]))
                keys.append("%s:%s:%s" % (of["key"], of.get("iova", of.get("address")), of["length"]))
        return keys

    # ---- clients ----

    def client(self, *command, host=None, cpu=None, nice=0, realtime=False):
        """Starts a client in the background; say() and result() read its output."""
        on = ["--host", host] if host else []
        name = "%s-%d" % (os.path.basename(command[0]), len(self.processes))
        log = os.path.join(self.dir, name + ".log")
        with open(log, "w", encoding="utf-8") as errors:
            popen = subprocess.Popen(
                ["nice", "-n", str(nice), *self.command([*on, *command], cpu, realtime=realtime)], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        process = Process(name, log, popen)
        self.processes.append(process)
        return process

    def say(self, client, line):
        """Sends a line to a program that answers with a line of JSON. Returns the answer."""
        self.tell(client, line)
        return self.answer(client, line)

    def tell(self, client, line):
        """The same without waiting for the answer()."""
        try:
            client.popen.stdin.write(line + "\n")
            client.popen.stdin.flush()
        except OSError:
            pass  # it has no answer either

    def answer(self, client, line):
        answer = client.popen.stdout.readline()
        # one that fails ends, whatever it has printed of the line
        self.expect(answer.endswith("\n"), client, 'no answer to "%s"' % line)
        return json.loads(answer)

    def result(self, client):
        """The last JSON object that the client prints."""
        out = client.popen.communicate()[0]
        lines = [line for line in out.splitlines() if line.startswith("{")]
        self.expect(client.popen.returncode == 0 and lines, client, "exit status %d\n%s" % (client.popen.returncode, out))
        self.processes.remove(client)
        return json.loads(lines[-1])

    # ---- the daemon ----

    def write_config(self, config):
        conf = os.path.join(self.dir, "reddnd.conf")
        with open(conf, "w", encoding="utf-8") as f:
            top = os.path.dirname(self.build) if self.build else TOP
            f.write('listen = "%s:%d";\nprograms = "%s/conf/programs";\n' % (self.ADDRESS, self.PORT, top))
            f.write('control = "%s";\n%s' % (self.control, config))
        return conf

    def start_daemon(self, config, host=None, cpu=None):
        conf = self.write_config(config)
        on = ["--host", host] if host else []
        self.daemon = self.start("reddnd", [*on, "reddnd", "--config", conf], lambda _: self.listens(), cpu=cpu)

    def listens(self):
        """The file of the control socket is there a moment before it takes connections."""
        with socket.socket(socket.AF_UNIX) as control:
            return control.connect_ex(self.control) == 0

    def reload(self, config):
        self.write_config(config)
        self.ctl("reload")

    def kill_daemon(self):
        self.daemon.popen.kill()
        self.daemon.popen.wait()
        self.processes.remove(self.daemon)
        os.unlink(self.control)

    def stop_daemon(self):
        self.daemon.popen.terminate()
        self.expect(self.daemon.popen.wait(60) == 0, self.daemon, "it ends badly")
        self.processes.remove(self.daemon)

    def ctl(self, *words):
        done = subprocess.run(["reddnctl", "--socket", self.control, "--json", *words], env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure("reddnctl %s: %s" % (" ".join(words), done.stderr.strip()))
        return json.loads(done.stdout)

    def memory(self):
        """Memory of the daemon in bytes: {"VmRSS": ..., "RssAnon": ..., "RssShmem": ...}"""
        memory = {}
        with open("/proc/%d/status" % self.daemon.popen.pid, encoding="ascii") as f:
            for line in f:
                if line.startswith(("VmRSS", "Rss")):
                    name, value = line.split(":")
                    memory[name] = int(value.split()[0]) * 1024
        return memory
