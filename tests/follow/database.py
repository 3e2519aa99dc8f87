# SPDX-License-Identifier: BSD-2-Clause
"""The distribution's PostgreSQL, and followers of its tables."""
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.parse

from source import LIMIT, Follower, start, until

PROGRAMS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
USER = {"user": "postgres"} if os.geteuid() == 0 else {}  # the server refuses root
END = "the answer has ended"


class Session:
    """Of psql: statements as calls. An error is what it prints."""

    def __init__(self, host):
        self.process = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-h", host, "-U", "postgres", "postgres"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __call__(self, *statements):
        self.process.stdin.write("".join(s + ";\n" for s in statements) + f"\\echo {END}\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()) not in (END + "\n", ""):
            lines.append(line[:-1])
        if not line:
            raise OSError("the server has gone")
        return lines

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Postgres:
    def __init__(self):
        self.path = tempfile.mkdtemp(dir="/tmp")
        if USER:
            shutil.chown(self.path, USER["user"])
        subprocess.run([PROGRAMS + "/initdb", "-D", self.path + "/data", "-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"],
                       stdout=subprocess.DEVNULL, check=True, **USER)
        self.run()

    def run(self, level="logical"):
        self.process = start(PROGRAMS + "/postgres", "-D", self.path + "/data", "-h", "", "-k", self.path, "-c", f"wal_level={level}", "-c", "fsync=off",
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **USER)
        until(lambda: subprocess.run([PROGRAMS + "/pg_isready", "-q", "-h", self.path], check=False).returncode == 0, "the server does not answer")

    def stop(self, number=signal.SIGQUIT):
        """At once, by default: it recovers from its WAL."""
        self.process.send_signal(number)
        self.process.wait(LIMIT)

    def end(self):
        self.stop()
        shutil.rmtree(self.path, ignore_errors=True)

    def url(self, table, key="k", value="v", more=""):
        words = urllib.parse.urlencode({"host": self.path, "table": table, "key": key, "value": value}, quote_via=urllib.parse.quote)
        return f"postgresql://postgres@/postgres?{words}{more}"

    def follow(self, table, *options, **more):
        return Follower(self.url(table, **more), *options)
