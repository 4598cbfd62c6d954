"""em_scheduler around its replay bench, and the traces that it replays."""

from flow import replay, tools

TOP = "em_scheduler"
BENCH = tools.RTL / "tb" / TOP / "replay.cpp"
CHUNK_BYTES = 128
# As the traces of golden/sched, in which 4 and 16 ports have slots of two cycles.
SLOT_CYCLES = {2: 1, 4: 2, 8: 1, 16: 2}


def program(ports):
    """The program that replays a trace, built unless it is there."""
    slot = SLOT_CYCLES[ports]
    # The counter of arrivals: long enough for a soak, and keys of 64 bits are quicker than longer.
    parameters = {"Ports": ports, "SlotCycles": slot, "ChunkBytes": CHUNK_BYTES, "TimeWidth": 36}
    defines = {"PORTS": ports, "SLOT_CYCLES": slot, "CHUNK_BYTES": CHUNK_BYTES}
    hierarchy = sorted((tools.RTL / "flow" / "build").glob("*.vlt"))
    return replay.program(TOP, BENCH, parameters, defines, hierarchy)


def replay_file(program, trace):
    """Replays a trace of golden/sched."""
    with trace.open("rb") as stdin:
        return replay.replayed(program, stdin)


def replay_model(program, *wanted):
    """Replays what the Rust model does: ports, policy, cycles and seed."""
    return replay.replay_model(program, "scheduler_trace", wanted)
