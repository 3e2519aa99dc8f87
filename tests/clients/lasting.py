# SPDX-License-Identifier: BSD-2-Clause
"""lasting.py HOSTS OFFLOAD KEY VALUE...: keeps sixteen gets of KEY in flight with asyncio until SIGINT. The value is one of VALUE..., and
never an earlier one than before. Prints "value VALUE" for each new one, and "gets N" in the end."""
import asyncio
import signal
import sys

import reddn.aio


async def main():
    hosts, offload, key = sys.argv[1:4]
    values = [value.encode() for value in sys.argv[4:]]
    seen, gets, stop = -1, 0, asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    async with await reddn.aio.connect(hosts, offload, timeout=100) as connection:

        async def ask():
            nonlocal seen, gets
            while not stop.is_set():
                before = seen
                now = values.index(await connection.get(key))
                if now < before:
                    sys.exit(f"{values[now]} after {values[before]}")
                if now > seen:
                    seen = now
                    print("value", values[now].decode(), flush=True)
                gets += 1

        await asyncio.gather(*(ask() for _ in range(16)))
    print("gets", gets)


asyncio.run(main())
