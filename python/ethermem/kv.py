"""A key-value store in remote memory, on any pool.

    with ethermem.Pool.open("sim:edm?nodes=4") as pool:
        client = kv.Store.create(pool).wait().client()
        client.put(b"key", b"value").wait()
        print(client.read(b"key").wait())

A `Client` does one operation at a time; each is atomic, and sees what all before it did.
"""

from ._native import Client, Store

__all__ = ["Client", "Store"]
