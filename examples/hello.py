"""Hello from remote memory, on the pool that the first argument names (`local:` by default)."""

import sys

import ethermem


def main() -> int:
    """Write and read a word, and say how long reading took."""
    url = sys.argv[1] if len(sys.argv) > 1 else "local:"
    try:
        with ethermem.Pool.open(url) as pool:
            region = pool.thread().alloc(4096).wait()
            region.write(0, b"hello").wait()
            before_ps = pool.now_ps()
            text = region.read(0, 5).wait().decode()
            print(f"{url}: {text} in {(pool.now_ps() - before_ps) / 1000:.2f} ns")
    except ethermem.InputError as error:
        print(f"hello: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
