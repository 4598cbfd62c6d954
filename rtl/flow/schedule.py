"""A grant scheduler around the replay bench, and the traces that it replays."""

from flow import replay, tools

BENCH = tools.RTL / "tb" / "em_scheduler" / "replay.cpp"
# How much later than the model a scheduler answers, its grants and its refusals; and what it has
# beside the parameters of all. A counter of arrivals long enough for a soak: keys of 64 bits are
# quicker than longer ones.
ANSWERS = {"em_scheduler": (2, 0), "em_size_class_scheduler": (3, 1)}
OTHERS = {"em_scheduler": {"TimeWidth": 36}, "em_size_class_scheduler": {}}
CHUNK_BYTES = 128
# As the traces of golden/sched, in which 4 and 16 ports have slots of two cycles.
SLOT_CYCLES = {2: 1, 4: 2, 8: 1, 16: 2}


def program(ports, top="em_scheduler", **others):
    """The program that replays a trace on a scheduler, built unless it is there."""
    slot = SLOT_CYCLES[ports]
    grant, refusal = ANSWERS[top]
    parameters = {"Ports": ports, "SlotCycles": slot, "ChunkBytes": CHUNK_BYTES}
    parameters |= OTHERS[top] | others
    defines = {"PORTS": ports, "SLOT_CYCLES": slot, "CHUNK_BYTES": CHUNK_BYTES}
    defines |= {"GRANT_CYCLES": grant, "REFUSAL_CYCLES": refusal, "MODEL": f"V{top}"}
    hierarchy = sorted((tools.RTL / "flow" / "build").glob("*.vlt"))
    return replay.program(top, BENCH, parameters, defines, hierarchy)


def replay_file(program, trace):
    """Replays a trace of golden/sched."""
    with trace.open("rb") as stdin:
        return replay.replayed(program, stdin)


def replay_model(program, *wanted):
    """Replays what the Rust model does: ports, policy, cycles and seed."""
    return replay.replay_model(program, "scheduler_trace", wanted)
