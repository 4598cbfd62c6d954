"""A C++ compile: g++ on a generated file of many instances of templates."""

import re
import subprocess
from functools import partial
from pathlib import Path

from ..app import App, AppError, Debian, Outcome, Run, digest, made_once, run_batch, run_plain

CHAINS = {"small": 4}
LINKS = 24
PRIME = 1_000_003
OPTIONS = ["-std=c++17", "-O1", "-S"]

HEAD = f"""\
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>
template <unsigned Chain, unsigned Link> struct Step {{
  static constexpr unsigned long value =
      (Step<Chain, Link - 1>::value * 31 + Chain * 7 + Link) % {PRIME};
  static void add(std::map<std::string, std::vector<unsigned long>> &all) {{
    std::tuple<unsigned long, int, Step> each{{value, int(Link), {{}}}};
    all[std::to_string(Chain)].push_back(std::get<0>(each));
    Step<Chain, Link - 1>::add(all);
  }}
}};
template <unsigned Chain> struct Step<Chain, 0> {{
  static constexpr unsigned long value = Chain;
  static void add(std::map<std::string, std::vector<unsigned long>> &all) {{
    auto &mine = all[std::to_string(Chain)];
    std::sort(mine.begin(), mine.end(), [](auto a, auto b) {{ return a > b + Chain * 0; }});
  }}
}};
int main() {{
  std::map<std::string, std::vector<unsigned long>> all;
"""
TAIL = """\
  unsigned long sum = 0;
  for (const auto &[name, values] : all)
    for (unsigned long value : values)
      sum = (sum * 31 + value) % 1000000007;
  std::printf("%lu\\n", sum);
}
"""


def source(chains: int) -> str:
    """Give the file to compile."""
    calls = (f"  Step<{chain}, {LINKS}>::add(all);\n" for chain in range(chains))
    return HEAD + "".join(calls) + TAIL


def printed_by(chains: int) -> str:
    """Give what the compiled program must print."""
    total = 0
    for chain in sorted(range(chains), key=str):
        value, values = chain, []
        for link in range(1, LINKS + 1):
            value = (value * 31 + chain * 7 + link) % PRIME
            values.append(value)
        for value in sorted(values, reverse=True):
            total = (total * 31 + value) % 1_000_000_007
    return str(total)


def _compile_plain(unit: Path, output: Path) -> None:
    run_plain(["g++", *OPTIONS, str(unit), "-o", str(output)])


def _run(run: Run) -> Outcome:
    chains = CHAINS[run.size]
    # The file's name is in what the compiler writes.
    unit, assembly = run.scratch / "unit.cpp", run.scratch / "unit.s"
    unit.write_text(source(chains), encoding="ascii")
    version = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, check=True).stdout
    name = digest([unit.read_bytes(), version, *map(str.encode, OPTIONS)])
    plain = made_once(f"gxx-{name}.s", partial(_compile_plain, unit))
    _, measured_s, resident = run_batch(run, ["g++", *OPTIONS, unit, "-o", assembly])
    if assembly.read_bytes() != plain.read_bytes():
        raise AppError("the assembly is not the one that the compiler writes when not limited")
    program = run.scratch / "program"
    run_plain(["g++", str(assembly), "-o", str(program)])
    answer = subprocess.run([program], capture_output=True, check=True, text=True).stdout.strip()
    if not re.fullmatch(r"\d+", answer) or answer != printed_by(chains):
        raise AppError(f"the compiled program printed {answer!r}, not {printed_by(chains)}")
    return Outcome(answer, measured_s, resident)


PACKAGE = Debian("g++", "GPL-3.0-or-later", "g++")
GXX = [App("gxx", "compiles a file of many templates", PACKAGE, _run)]
