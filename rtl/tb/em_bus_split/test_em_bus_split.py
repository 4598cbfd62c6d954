"""em_bus_split: one window has the access, and its answer is the answer."""

import cocotb
from cocotb.triggers import Timer

from flow import bench, registerbus, simulate

WINDOWS, WINDOW_BITS = 3, 6
REQUEST_BITS, RESPONSE_BITS = 87, 34


def test_em_bus_split():
    simulate.cocotb("em_bus_split", __name__, {"Windows": WINDOWS, "WindowBits": WINDOW_BITS})


@cocotb.test()
async def each_window_has_its_own(dut):
    draws = bench.rng()
    for _ in range(300):
        address = draws.randrange((WINDOWS + 2) << WINDOW_BITS)
        asked = registerbus.Request(
            bool(draws.getrandbits(1)), bool(draws.getrandbits(1)), address, draws.getrandbits(32)
        )
        answers = [registerbus.response(draws.getrandbits(32)) for _ in range(WINDOWS)]
        dut.request_i.value = asked.bits()
        dut.response_i.value = sum(
            answer << RESPONSE_BITS * at for at, answer in enumerate(answers)
        )
        await Timer(1, unit="ns")
        window, inner = divmod(address, 1 << WINDOW_BITS)
        shown = int(dut.request_o.value)
        for at in range(WINDOWS):
            part = registerbus.request(shown >> REQUEST_BITS * at & (1 << REQUEST_BITS) - 1)
            assert part.valid == (asked.valid and at == window)
            assert (part.address, part.write, part.data) == (inner, asked.write, asked.data)
        nothing = registerbus.response(0, done=False, error=True)
        expected = answers[window] if window < WINDOWS else nothing
        assert int(dut.response_o.value) == expected
