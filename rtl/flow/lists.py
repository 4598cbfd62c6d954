"""File lists of the two tops, for the builds of others: plain, FuseSoC, Bender.

    python -m flow.lists

writes `rtl/em_host_top.f` and `rtl/em_switch_top.f` (files in the order in which a compiler needs
them, for `-F`), and `ethermem.core` and `Bender.yml` at the root of the repository. The register
files are made from SystemRDL, in out/rtl/registers, by `make rtl-registers`.
"""

from flow import registers, sources, tools

VERSION = "0.1.0"
CORE = tools.ROOT / "ethermem.core"
BENDER = tools.ROOT / "Bender.yml"


def listed(top):
    """The files of a top in order, by their paths from the root of the repository."""
    return [path.relative_to(tools.ROOT).as_posix() for path in sources.closure(top)]


def both():
    """The files of both tops, each once, in order."""
    return list(dict.fromkeys(path for top in registers.TOPS for path in listed(top)))


def plain(top):
    """A list for `verilator -F` and its kin: paths from the list's own folder."""
    lines = [f"// Files of {top}, in order. Written by `make rtl-lists`."]
    return "\n".join([*lines, *(f"../{path}" for path in listed(top))]) + "\n"


def core():
    """A core of FuseSoC with a target for each top, and one that lints it."""
    lines = [
        "CAPI=2:",
        f"name: ethermem:rtl:ethermem:{VERSION}",
        "description: EDM's host and switch, remote memory in the Ethernet PHY",
        "# Written by `make rtl-lists`; `make rtl-registers` makes the files in out/rtl/registers.",
        "filesets:",
    ]
    for top in registers.TOPS:
        lines += [f"  {top}:", "    files:", *(f"      - {path}" for path in listed(top))]
        lines += ["    file_type: systemVerilogSource"]
    lines += [
        "  waivers:",
        "    files:",
        *(f"      - {path.relative_to(tools.ROOT).as_posix()}" for path in waivers()),
        "    file_type: vlt",
        "targets:",
        f"  default: &{registers.TOPS[0]}",
        f"    filesets: [{registers.TOPS[0]}]",
        f"    toplevel: {registers.TOPS[0]}",
    ]
    for top in registers.TOPS:
        lines += [
            f"  {top.removeprefix('em_').removesuffix('_top')}:",
            f"    filesets: [{top}]",
            f"    toplevel: {top}",
            f"  lint_{top.removeprefix('em_').removesuffix('_top')}:",
            f"    filesets: [waivers, {top}]",
            f"    toplevel: {top}",
            "    flow: lint",
            "    flow_options:",
            "      tool: verilator",
            "      verilator_options: [-Wall]",
        ]
    return "\n".join(lines) + "\n"


def waivers():
    """Verilator's waivers, each with its reason in it."""
    return sorted((tools.RTL / "flow" / "lint").glob("*.vlt"))


def bender():
    """A manifest of Bender."""
    lines = [
        "# Written by `make rtl-lists`; `make rtl-registers` makes the files in out/rtl/registers.",
        "package:",
        "  name: ethermem",
        "  authors: [The ethermem authors]",
        "sources:",
        *(f"  - {path}" for path in both()),
    ]
    return "\n".join(lines) + "\n"


def texts():
    """Every file that is written, with its text."""
    plains = {tools.RTL / f"{top}.f": plain(top) for top in registers.TOPS}
    return {**plains, CORE: core(), BENDER: bender()}


def main():
    """Writes the lists."""
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
        print(f"written: {path.relative_to(tools.ROOT)}")


if __name__ == "__main__":
    main()
