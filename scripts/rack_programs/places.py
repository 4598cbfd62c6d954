"""Where programs run: on loopback, on two nodes with NICs of a given rate, or in a rack."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
LOOPBACK = "127.0.0.1"
# An agent that starts Open MPI's daemons on the other node, where `ssh` would.
AGENT = """#!/bin/sh
host=$1
shift
case $host in {first}) node={nodes[0]} ;; *) node={nodes[1]} ;; esac
exec ip netns exec $node unshare --uts sh -c "hostname $node; $*"
"""


@dataclass
class Place:
    """Two nodes, which may be one, and how a program is started on each."""

    name: str
    hosts: tuple[str, str] = (LOOPBACK, LOOPBACK)
    prefixes: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    mpi: list[str] = field(default_factory=lambda: ["--oversubscribe", *network("lo")])
    command: list[str] = field(default_factory=list)
    folder: Path = Path()
    started: int = 0

    def words(self, node: int, *words: str) -> list[str]:
        """Return the command that runs `words` on a node."""
        self.started += 1
        rack = [w.format(number=self.started) for w in self.command]
        return [*rack, *self.prefixes[node], *words]

    def reports(self) -> dict[str, int]:
        """Add up the accounts of a rack's runs that have ended, and forget them."""
        total = {"memory_bytes": 0, "kernel_bytes": 0, "faults": 0, "stranded_bytes": 0}
        for path in self.folder.glob("report-*.json"):
            report = json.loads(path.read_text())
            for name in total:
                total[name] += report[name]
            if not report["is_closed"]:
                raise SystemExit(f"{path}: the pool's accounts do not close")
            path.unlink()
        return total


def network(name: str) -> list[str]:
    """Return Open MPI's options that choose a network, and nothing but TCP."""
    words = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
    for layer in ("btl_tcp_if_include", "oob_tcp_if_include"):
        words += ["--mca", layer, name]
    return words


def rack(command: str, folder: Path) -> Place:
    """Return a rack on loopback."""
    config = folder / "rack.toml"
    lines = [f'name = "programs-{os.getpid()}"', "[[node]]", 'name = "a"']
    lines += [f'address = "{LOOPBACK}"', 'nics = ["lo"]', ""]
    config.write_text("\n".join(lines))
    words = [command, "rack", "run", "--config", str(config)]
    words += ["--report", f"{folder}/report-{{number}}.json", "--"]
    return Place("rack", command=words, folder=folder)


def shell(words: str) -> None:
    """Run a command of `ip` or `tc`."""
    subprocess.run(words.split(), check=True, capture_output=True)


@contextmanager
def nodes(nics: int, mbit: int, folder: Path) -> Iterator[list[Place]]:
    """Make two network namespaces with `nics` links of this rate; TCP uses one, MPTCP all."""
    names = [f"rack-{os.getpid()}-{end}" for end in "ab"]
    ends = [f"10.77.0.{number}" for number in (1, 2)]
    try:
        for name in names:
            shell(f"ip netns add {name}")
            shell(f"ip -n {name} link set lo up")
            shell(f"ip -n {name} mptcp limits set subflows 8 add_addr_accepted 8")
        for link in range(nics):
            there = f"peer name n{link} netns {names[1]}"
            shell(f"ip link add n{link} netns {names[0]} type veth {there}")
            for number, name in enumerate(names, 1):
                address = f"10.77.{link}.{number}"
                shell(f"ip -n {name} addr add {address}/24 dev n{link}")
                shell(f"ip -n {name} link set n{link} up")
                rate = f"tbf rate {mbit}mbit burst 128kb latency 10ms"
                shell(f"tc -n {name} qdisc add dev n{link} root {rate}")
                kind = "subflow" if number == 1 else "signal"
                shell(f"ip -n {name} mptcp endpoint add {address} dev n{link} {kind}")
        agent = folder / "agent.sh"
        agent.write_text(AGENT.format(first=ends[0], nodes=names))
        agent.chmod(0o755)
        library = folder / "mptcp.so"
        compiler = ["cc", "-shared", "-fPIC", "-O2", str(HERE / "mptcp.c"), "-o", str(library)]
        subprocess.run(compiler, check=True)
        mpi = ["--mca", "plm_rsh_agent", str(agent), "--host", ":1,".join(ends) + ":1"]
        mpi += network("10.77.0.0/24")
        inside = [["ip", "netns", "exec", name] for name in names]
        loaded = f"LD_PRELOAD={library}"
        yield [
            Place("nic", (ends[0], ends[1]), (inside[0], inside[1]), mpi),
            Place(
                "mptcp",
                (ends[0], ends[1]),
                ([*inside[0], "env", loaded], [*inside[1], "env", loaded]),
                [*mpi, "-x", "LD_PRELOAD"],
            ),
        ]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def mptcp_connections(place: Place) -> int:
    """Return how many connections the second node has accepted by MPTCP."""
    words = [*place.prefixes[1], "cat", "/proc/net/netstat"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    names, values = (line.split() for line in text.splitlines() if line.startswith("MPTcpExt:"))
    return int(dict(zip(names, values, strict=True)).get("MPCapableACKRX", 0))


@contextmanager
def workspace() -> Iterator[Path]:
    """Make a folder in memory for the time of a run."""
    with tempfile.TemporaryDirectory(prefix="rack-programs-", dir="/dev/shm") as name:
        yield Path(name)
