"""From rtl/registers: SystemVerilog for every build, the C header, the page of the documentation.

    python -m flow.registers

writes the header and the page. The SystemVerilog is made where a build needs it, in
out/rtl/registers.
"""

import fcntl
import importlib.metadata
import sys
from pathlib import Path

from flow import tools

SOURCE = tools.RTL / "registers" / "em_registers.rdl"
MODULES = ["em_host_registers", "em_switch_registers", "em_port_registers", "em_link_registers"]
TOPS = ["em_host_top", "em_switch_top"]
# em_bus_pkg::FileBits: an address behind the last register is none of another one.
WINDOW_BITS = 11
FOLDER = tools.OUT / "registers"
GENERATORS = [Path(__file__), Path(__file__).with_name("register_bus.py")]
HEADER = tools.RTL / "registers" / "em_registers.h"
PAGE = tools.ROOT / "docs" / "reference" / "registers.md"
PAGE_HEAD = """# Registers

Of `em_host_top` and `em_switch_top`, by AXI4-Lite; [rtl-tops.md](../internals/rtl-tops.md) says how
they are used. This page, `rtl/registers/em_registers.h` and the SystemVerilog come from
`rtl/registers/em_registers.rdl`: `make rtl-registers`.

A register has 64 bits, read and written by 32, the low word first. Reading the low word of one
that counts traffic keeps its high word for the next read, so that both are of one moment. One that
is *written as a whole* takes effect with its high word. Faults stay at 2^32 - 1; traffic wraps
after 2^64.
"""


def compiler():
    """SystemRDL's, with the description read."""
    try:
        from peakrdl_regblock.udps import ALL_UDPS  # noqa: PLC0415
        from systemrdl import RDLCompiler  # noqa: PLC0415
    except ImportError as error:
        raise tools.ToolMissingError("peakrdl-regblock is not installed: make rtl-tools") from error
    rdl = RDLCompiler()
    for udp in ALL_UDPS:
        rdl.register_udp(udp, soft=False)
    rdl.compile_file(str(SOURCE))
    return rdl


def systemverilog():
    """Makes every register file, unless it is there; gives the files, packages first."""
    try:
        version = importlib.metadata.version("peakrdl-regblock")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    stamp = FOLDER / tools.digest([SOURCE, *GENERATORS], version)
    files = [FOLDER / f"{name}{part}.sv" for part in ("_pkg", "") for name in MODULES]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            _export()
            stamp.touch()
    return files


def _export():
    rdl = compiler()
    from peakrdl_regblock import RegblockExporter  # noqa: PLC0415

    from flow.register_bus import RegisterBusCpuif  # noqa: PLC0415

    for name in MODULES:
        RegblockExporter().export(
            rdl.elaborate(name),
            str(FOLDER),
            cpuif_cls=RegisterBusCpuif,
            err_if_bad_addr=True,
            default_reset_activelow=True,
            default_reset_async=True,
            address_width=WINDOW_BITS,
        )


def header():
    """The C header of both tops."""
    rdl = compiler()
    from peakrdl_cheader.exporter import CHeaderExporter  # noqa: PLC0415

    texts = []
    for top in TOPS:
        path = FOLDER / f"{top}.h"
        FOLDER.mkdir(parents=True, exist_ok=True)
        CHeaderExporter().export(rdl.elaborate(top), str(path), reuse_typedefs=False)
        texts.append(path.read_text(encoding="utf-8"))
    return "\n".join(texts)


def page():
    """The page of the documentation."""
    lines = [PAGE_HEAD]
    rdl = compiler()
    for top in TOPS:
        root = rdl.elaborate(top).top
        lines += [f"## {root.inst_name}", "", root.get_property("desc"), ""]
        lines += ["| from | what |", "|---|---|"]
        for block in root.children(unroll=False):
            where = f"0x{block.raw_address_offset:x}"
            if block.is_array:
                where += f" + 0x{block.array_stride:x} p"
                inner = [
                    f"0x{part.raw_address_offset:x} {_link(part)}" for part in block.children()
                ]
                lines.append(f"| {where} | port p: {', '.join(inner)} |")
            else:
                lines.append(f"| {where} | {_link(block)} |")
        lines.append("")
    for name in MODULES:
        root = rdl.elaborate(name).top
        lines += [f"## {root.get_property('name')}", ""]
        lines += ["| at | register | bits | access | reset | what |", "|---|---|---|---|---|---|"]
        for register in root.registers():
            lines += _rows(register)
        lines.append("")
    return "\n".join(lines)


def _link(block):
    name = block.get_property("name")
    return f"[{name.lower()}](#{name.lower().replace(' ', '-')})"


def _rows(register):
    """A row for each field, after one of the register itself if it has several."""
    at = f"0x{register.raw_address_offset:x}"
    what = register.get_property("desc") or ""
    if register.get_property("buffer_writes", default=False):
        what += " Written as a whole."
    fields = list(register.fields())
    rows = []
    for number, field in enumerate(fields):
        bits = f"{field.high}:{field.low}" if field.high != field.low else str(field.low)
        said = f"{what} {field.get_property('desc') or ''}".strip()
        if number:
            said = field.get_property("desc") or ""
        access = {"r": "read", "rw": "read, write"}[field.get_property("sw").name]
        reset = field.get_property("reset")
        reset = "-" if reset is None else f"0x{reset:x}"
        name = f"`{register.inst_name}.{field.inst_name}`"
        rows.append(
            f"| {at if not number else ''} | {name} | {bits} | {access} | {reset} | {said} |"
        )
    return rows


def main():
    """Writes what is kept beside the description."""
    HEADER.write_text(header(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    files = systemverilog()
    print(f"{HEADER}, {PAGE} and {len(files)} files in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
