"""Which files make up a module: one module a file, so names say it."""

import functools
import re

from flow import registers
from flow.tools import RTL

PACKAGES = [
    "pkg/em_pkg.sv",
    "pkg/em_bus_pkg.sv",
    "pkg/em_axi_pkg.sv",
    "phy/em_link_pkg.sv",
    "phy/em_xgmii_pkg.sv",
    "sched/em_sched_pkg.sv",
    "host/em_host_pkg.sv",
    "host/em_host_ports_pkg.sv",
    "switch/em_switch_pkg.sv",
    "switch/em_l2_pkg.sv",
    "cxl/em_cxl_pkg.sv",
    "cxl/em_cxl_axi_pkg.sv",
]
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@functools.lru_cache
def files():
    """Every module's file, by name."""
    paths = [*RTL.rglob("*.sv"), *registers.systemverilog()]
    return {path.stem: path for path in paths if not path.stem.endswith("_pkg")}


def packages(text):
    """The packages that a text names and those that they do, each after those that it uses."""
    found = []
    for package in reversed(PACKAGES):
        path = RTL / package
        if path.exists() and re.search(rf"\b{path.stem}\b", text):
            text += COMMENT.sub("", path.read_text(encoding="utf-8"))
            found.insert(0, path)
    return found


def closure(top):
    """The packages and every file that `top` instantiates, itself last."""
    found, texts, known = [], [], files()

    def visit(name):
        text = COMMENT.sub("", known[name].read_text(encoding="utf-8"))
        texts.append(text)
        for other in known:
            if other != name and known[other] not in found and re.search(rf"\b{other}\b", text):
                visit(other)
        if known[name] not in found:
            found.append(known[name])

    visit(top)
    used = {path.stem for path in found}
    kept = [
        path
        for path in registers.systemverilog()
        if path.stem.removesuffix("_pkg") in used - {path.stem}
    ]
    kept_texts = [path.read_text(encoding="utf-8") for path in kept]
    return packages("\n".join(texts + kept_texts)) + kept + found
