"""em_xgmii_enc and em_xgmii_dec are inverse on every word that has a block, and refuse the rest."""

import cocotb
from cocotb.triggers import FallingEdge

from flow import bench, simulate, tools

# Control characters of XGMII that are codes in a block: table 49-1.
CODES = {0x07: 0x00, 0x06: 0x06, 0xFE: 0x1E, 0x1C: 0x2D, 0x3C: 0x33}
CODES |= {0x7C: 0x4B, 0xBC: 0x55, 0xDC: 0x66, 0xF7: 0x78}
IDLE, ERROR, START, TERMINATE, SEQUENCE, SIGNAL = 0x07, 0xFE, 0xFB, 0xFD, 0x9C, 0x5C
LANES = 8
ERRORS = (int.from_bytes([ERROR] * LANES, "little"), 0xFF)
TERMINATES = [0x87, 0x99, 0xAA, 0xB4, 0xCC, 0xD2, 0xE1, 0xFF]
HALVES = {"cc": 0x1E, "co": 0x2D, "cs": 0x33, "oc": 0x4B, "oo": 0x55, "os": 0x66}


def test_em_xgmii_pair():
    simulate.cocotb("em_xgmii_pair", __name__)


def word(lanes):
    """The data and control of lanes, each a value and whether it is a character."""
    data = int.from_bytes([value for value, _ in lanes], "little")
    return data, sum(control << lane for lane, (_, control) in enumerate(lanes))


def datum(draws):
    return draws.getrandbits(8), 0


def character(draws):
    return draws.choice(list(CODES)), 1


def half(kind, draws):
    """Four lanes of control characters, of an ordered set, or of a start."""
    if kind == "c":
        return [character(draws) for _ in range(4)]
    first = START if kind == "s" else draws.choice([SEQUENCE, SIGNAL])
    return [(first, 1), *(datum(draws) for _ in range(3))]


def legal(draws):
    """A word of each form that a block has, with its block's header and type."""
    yield [datum(draws) for _ in range(LANES)], 2, None
    yield [(START, 1), *(datum(draws) for _ in range(7))], 1, 0x78
    for lane in range(LANES):
        before = [datum(draws) for _ in range(lane)]
        behind = [character(draws) for _ in range(LANES - 1 - lane)]
        yield [*before, (TERMINATE, 1), *behind], 1, TERMINATES[lane]
    for kinds, block_type in HALVES.items():
        yield [*half(kinds[0], draws), *half(kinds[1], draws)], 1, block_type


IDLES = (int.from_bytes([IDLE] * LANES, "little"), 0xFF)
FIRST = (0xD5555555555555FB, 0x01)


async def through(dut, data, control, within=None):
    """The block of a word, and the word of that block; `within` a frame or behind one."""
    if within is None:
        within = control == 0 or TERMINATE in [
            data >> 8 * lane & 0xFF for lane in range(LANES) if control >> lane & 1
        ]
    for before in [IDLES, FIRST][: 1 + within]:
        dut.data_i.value, dut.control_i.value = before
        await FallingEdge(dut.clk_i)
    dut.data_i.value, dut.control_i.value = data, control
    await FallingEdge(dut.clk_i)
    block = int(dut.hdr_o.value), int(dut.block_o.value)
    await FallingEdge(dut.clk_i)
    return block, (int(dut.data_o.value), int(dut.control_o.value))


async def start(dut):
    dut.other_i.value = dut.data_i.value = dut.control_i.value = 0
    dut.other_hdr_i.value = dut.other_block_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


@cocotb.test()
async def every_form_of_a_word_has_its_block_and_comes_back(dut):
    await start(dut)
    draws = bench.rng()
    for _ in range(100):
        for lanes, header, block_type in legal(draws):
            block, back = await through(dut, *word(lanes))
            assert back == word(lanes)
            assert block[0] == header and block_type in (None, block[1] & 0xFF)


@cocotb.test()
async def blocks_are_those_of_the_standard(dut):
    await start(dut)
    idles, errors = [(IDLE, 1)] * LANES, [(ERROR, 1)] * LANES
    fault = [(SEQUENCE, 1), (0, 0), (0, 0), (2, 0)]
    frame = [(START, 1), *[(0x55, 0)] * 6, (0xD5, 0)]
    end = [(0x11, 0), (0x22, 0), (TERMINATE, 1), *[(IDLE, 1)] * 5]
    for lanes, payload in [
        (idles, 0x1E),
        (errors, 0x3C78F1E3C78F1E1E),
        (fault * 2, 0x0200000002000055),
        (frame, 0xD555555555555578),
        (end, 0x2211AA),
    ]:
        block, _ = await through(dut, *word(lanes))
        assert block == (1, payload)


@cocotb.test()
async def what_has_no_block_becomes_errors(dut):
    await start(dut)
    draws = bench.rng()
    refused = 0
    for _ in range(300):
        for lanes, _, _ in legal(draws):
            # Another character in a lane, or data for one.
            lane = draws.randrange(LANES)
            odd = draws.choice([(START, 1), (TERMINATE, 1), (SEQUENCE, 1), (0x00, 1), (0x12, 0)])
            changed = [*lanes[:lane], odd, *lanes[lane + 1 :]]
            _, back = await through(dut, *word(changed))
            assert back in (word(changed), ERRORS, IDLES), changed
            refused += back == ERRORS
    assert refused > 1000


@cocotb.test()
async def blocks_that_are_not_of_ethernet_become_errors(dut):
    await start(dut)
    dut.other_i.value = 1
    await FallingEdge(dut.clk_i)
    rows = tools.golden_rows("messages.csv")
    blocks = [int(row["blocks"], 16) for row in rows if " " not in row["blocks"]]
    # Wrong sync headers, and a control character that is none.
    blocks += [0x1E << 2, 0x1E << 2 | 3, (0x01 << 8 | 0x1E) << 2 | 1]
    for block in blocks:
        dut.other_hdr_i.value, dut.other_block_i.value = block & 3, block >> 2
        await FallingEdge(dut.clk_i)
        assert (int(dut.data_o.value), int(dut.control_o.value)) == ERRORS


@cocotb.test()
async def what_is_left_of_a_frame_that_was_given_up_is_idles(dut):
    await start(dut)
    draws = bench.rng()
    datum_word = (0x1122334455667788, 0)
    end = word([(TERMINATE, 1), *[(IDLE, 1)] * 7])
    bad = [ERRORS, IDLES, word([(0, 0)] * 3 + [(ERROR, 1)] + [(0, 0)] * 4), FIRST]
    for given_up in bad:
        count = draws.randrange(1, 4)
        words = [FIRST, datum_word, given_up, *[datum_word] * count, end, FIRST, datum_word, end]
        wanted = [FIRST, datum_word, ERRORS, *[IDLES] * count, IDLES, FIRST, datum_word, end]
        found = []
        for data, control in [*words, IDLES]:
            dut.data_i.value, dut.control_i.value = data, control
            await FallingEdge(dut.clk_i)
            found.append((int(dut.data_o.value), int(dut.control_o.value)))
        assert found[1:] == wanted, given_up
