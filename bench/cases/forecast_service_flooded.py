# about: the same server, asked again as soon as it has answered: it is not idle
# verdict: device-bound | host-bound | dispatch-bound | copy-bound | -
# forbid: *
# allow: numpy_argument, host_sync, implicit_transfers
import asyncio
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np

REQUESTS = int(300 * float(sys.argv[1] if len(sys.argv) > 1 else 1))


@jax.jit
def forecast(pressure):
    return jnp.cumsum(jnp.tanh(pressure @ pressure.T), axis=0).mean(axis=1)


async def answer(reader, writer):
    while size := await reader.read(4):
        pressure = np.frombuffer(await reader.readexactly(int.from_bytes(size, "big")), np.float32).reshape(512, 512)
        writer.write(np.asarray(forecast(pressure)).tobytes())
        await writer.drain()


def ask(port, done):
    import socket

    with socket.create_connection(("127.0.0.1", port)) as connection:
        station = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32).tobytes()
        for _ in range(REQUESTS):
            connection.sendall(len(station).to_bytes(4, "big") + station)
            connection.recv(4096)
    done()


async def serve():
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    threading.Thread(target=ask, args=(port, lambda: loop.call_soon_threadsafe(over.set)), daemon=True).start()
    await over.wait()
    server.close()


asyncio.run(serve())
