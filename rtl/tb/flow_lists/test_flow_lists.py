"""The file lists for others are those of the modules, and compilers take them."""

import pytest

from flow import lists, registers, tools


def test_the_lists_are_those_of_the_modules():
    for path, text in lists.texts().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: make rtl-lists"


@pytest.mark.parametrize("top", registers.TOPS)
def test_a_compiler_takes_a_list_from_any_folder(top, tmp_path):
    registers.systemverilog()
    words = ["verilator", "--lint-only", "-Wall", "--top-module", top]
    words += [*lists.waivers(), "-F", tools.RTL / f"{top}.f"]
    tools.run(words, tmp_path, "verilator.log")


def test_a_list_without_its_first_package_is_refused(tmp_path):
    files = [tools.ROOT / path for path in lists.listed("em_host_top")]
    words = ["verilator", "--lint-only", "-Wall", "--top-module", "em_host_top"]
    with pytest.raises(AssertionError):
        tools.run([*words, *lists.waivers(), *files[1:]], tmp_path, "verilator.log")


@pytest.mark.parametrize("top", registers.TOPS)
def test_fusesoc_hands_a_tool_the_same_files(top, tmp_path):
    registers.systemverilog()
    target = f"lint_{top.removeprefix('em_').removesuffix('_top')}"
    words = ["fusesoc", "--cores-root", tools.ROOT, "run", f"--target={target}", "--setup"]
    tools.run([*words, "ethermem:rtl:ethermem"], tmp_path, "fusesoc.log")
    (script,) = tmp_path.rglob("*.vc")
    handed = [line.split("/", 2)[2] for line in script.read_text().split("\n") if ".sv" in line]
    assert handed == lists.listed(top)
