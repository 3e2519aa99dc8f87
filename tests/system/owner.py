# SPDX-License-Identifier: BSD-2-Clause
"""owner.py SOCKET REGION make FILE | take | lock | flood FILE: an application that owns the data of a region in a memfd.

make: hands a memfd with the bytes of FILE over, whose writer's lock it holds. take: gets the file back that another one handed over.
lock: takes the lock of a writer as well. Then prints the path of its descriptor, and waits to be killed. flood: hands a memfd over many
times, by several connections at once, and fails if more are accepted than 8, and 1 in each second that this takes.
"""
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time


def connect(path):
    control = socket.socket(socket.AF_UNIX)
    control.connect(path)
    return control


def send(control, fds, **request):
    socket.send_fds(control, [json.dumps(request).encode() + b"\n"], fds)


def receive(control):
    """The answer, and the descriptors that came with it."""
    line, given = b"", []
    while not line.endswith(b"\n"):
        data, more, _, _ = socket.recv_fds(control, 65536, 4)
        if not data:
            sys.exit("the daemon closed the connection")
        line += data
        given += more
    return json.loads(line), given


def ask(control, fds, **request):
    send(control, fds, **request)
    answer, given = receive(control)
    if not answer["ok"]:
        sys.exit(answer["error"])
    return given


def file_of(region, path):
    fd = os.memfd_create(region)
    with open(path, "rb") as data:
        os.write(fd, data.read())
    return fd


def lock(fd):
    """As writers of tables do."""
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


def flood(path, region, fd):
    connections = [connect(path) for _ in range(4)]
    accepted, began = 0, time.monotonic()
    for _ in range(8):
        for control in connections:
            send(control, [fd], command="hand_over", region=region)
        for control in connections:
            accepted += receive(control)[0]["ok"]
    seconds = time.monotonic() - began
    if accepted > 8 + seconds + 1:
        sys.exit(f"{accepted} of 32 hand-overs in {seconds:.1f} s were accepted")


def main():
    path, region, what = sys.argv[1:4]
    if what == "flood":
        flood(path, region, file_of(region, sys.argv[4]))
        return
    control = connect(path)
    if what == "make":
        fd = file_of(region, sys.argv[4])
        lock(fd)
        ask(control, [fd], command="hand_over", region=region)
    else:
        (fd,) = ask(control, [], command="give_back", region=region)
        if what == "lock":
            lock(fd)
    print(f"/proc/{os.getpid()}/fd/{fd}", flush=True)
    signal.pause()


main()
