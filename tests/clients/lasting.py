# SPDX-License-Identifier: BSD-2-Clause
"""lasting.py HOSTS OFFLOAD KEY VALUE...: keeps sixteen gets of KEY in flight with asyncio until SIGINT; each rests in between, to leave
the processor to other tests. The value is one of VALUE..., or "absent" while tables are replaced; what is submitted after SIGUSR1 has the
last one. Prints "value VALUE" for each new one, "last" for the first after the signal, and "gets N" in the end."""
import asyncio
import signal
import sys

import reddn.aio


async def main():
    hosts, offload, key = sys.argv[1:4]
    values = [*sys.argv[4:], "absent"]
    seen, gets, stop, last = set(), 0, asyncio.Event(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, last.set)
    async with await reddn.aio.connect(hosts, offload, timeout=100) as connection:

        async def ask():
            nonlocal gets
            while not stop.is_set():
                to_be_last = last.is_set()
                value = (await connection.get(key) or b"absent").decode()
                if value not in (values[-2:-1] if to_be_last else values):
                    sys.exit(f"{value} after {seen}, {'the last' if to_be_last else 'any'} of {values}")
                for what, line in ((value, f"value {value}"), (to_be_last, "last")):
                    if what and what not in seen:
                        seen.add(what)
                        print(line, flush=True)
                gets += 1
                await asyncio.sleep(0.01)

        await asyncio.gather(*(ask() for _ in range(16)))
    print("gets", gets)


asyncio.run(main())
