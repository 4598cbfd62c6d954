"""The register bus: em_bus_pkg's request and response as numbers, and accesses of a bench."""

from dataclasses import dataclass

from cocotb.triggers import FallingEdge, RisingEdge

MASK32 = (1 << 32) - 1


@dataclass(frozen=True)
class Request:
    """An access."""

    valid: bool
    write: bool
    address: int
    data: int
    enable: int = MASK32

    def bits(self):
        """As request_t."""
        head = self.valid << 1 | self.write
        return ((head << 21 | self.address) << 32 | self.data) << 32 | self.enable


def request(bits):
    """Of request_t."""
    return Request(
        bool(bits >> 86 & 1),
        bool(bits >> 85 & 1),
        bits >> 64 & (1 << 21) - 1,
        bits >> 32 & MASK32,
        bits & MASK32,
    )


def response(data, done=True, error=False):
    """As response_t."""
    return (done << 1 | error) << 32 | data


async def access(dut, clock, wanted):
    """One access of a module with `bus_i` and `bus_o`; whether there is a register, its word."""
    dut.bus_i.value = wanted.bits()
    await RisingEdge(clock)
    answer = int(dut.bus_o.value)
    await FallingEdge(clock)
    dut.bus_i.value = 0
    return not answer >> 32 & 1, answer & MASK32


async def read(dut, clock, address):
    """The word of a register that is there."""
    there, word = await access(dut, clock, Request(True, False, address, 0))
    assert there, f"nothing at {address:#x}"
    return word


async def write(dut, clock, address, data):
    """Writes a word of a register that is there."""
    there, _ = await access(dut, clock, Request(True, True, address, data))
    assert there, f"nothing at {address:#x}"


async def read64(dut, clock, address):
    """Both words of a register, the low one first, which keeps the other."""
    low = await read(dut, clock, address)
    return low | await read(dut, clock, address + 4) << 32


async def write64(dut, clock, address, data):
    """Both words of a register; it changes with the high one."""
    await write(dut, clock, address, data & MASK32)
    await write(dut, clock, address + 4, data >> 32)
