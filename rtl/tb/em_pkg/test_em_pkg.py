"""em_pkg holds what crates/wire holds: every constant, every field of every format, bit for bit."""

from flow import sources, tools

CHECK = "em_pkg_check"


def statements():
    """A line of SystemVerilog for each row of the tables."""
    for row in tools.golden_rows("constants.csv"):
        name, value = row["name"], int(row["value"], 16)
        yield f'if (longint\'(em_pkg::{name}) != {value}) bad("{name}");'
    ends = {}
    for row in tools.golden_rows("layout.csv"):
        kind, field = row["format"], row["field"]
        first, bits = int(row["first_bit"]), int(row["bits"])
        mask = ((1 << bits) - 1) << first
        yield f"{kind} = '0; {kind}.{field} = '1;"
        yield f"if (64'({kind}) != 64'h{mask:x}) bad(\"{kind}.{field}\");"
        ends[kind] = first + bits
    for kind, end in ends.items():
        yield f'if ($bits({kind}) != {end}) bad("{kind}");'


def module():
    """A module that says what differs, and how much it compared."""
    formats = dict.fromkeys(row["format"] for row in tools.golden_rows("layout.csv"))
    lines = [f"module {CHECK};", "int unsigned wrong = 0;"]
    lines += [f"em_pkg::{kind}_t {kind};" for kind in formats]
    lines += ['task automatic bad(string name); $display("differs: %s", name); wrong++;']
    lines += ["endtask", "initial begin", *statements()]
    lines += ['$display("checked, %0d differ", wrong);', "$finish;", "end", "endmodule"]
    return "\n".join(lines) + "\n"


def verdict(package, folder):
    """What the check prints about a package."""
    folder.mkdir(parents=True, exist_ok=True)
    check = folder / f"{CHECK}.sv"
    check.write_text(module(), encoding="utf-8")
    command = ["verilator", "--binary", "-Wno-fatal", "-Wno-lint", "-CFLAGS", "-std=c++20"]
    command += ["-MAKEFLAGS", tools.make_flags(), "--top", CHECK, "--Mdir", "build", package, check]
    tools.run(command, folder, "build.log")
    return tools.run([folder / "build" / f"V{CHECK}"], folder, "run.log")


def test_the_package_holds_what_the_wire_crate_holds():
    said = verdict(tools.RTL / sources.PACKAGES[0], tools.OUT / "run" / CHECK)
    assert "checked, 0 differ" in said, said


def test_the_check_sees_a_wrong_constant_a_moved_field_and_a_wider_format(tmp_path):
    text = (tools.RTL / sources.PACKAGES[0]).read_text(encoding="utf-8")
    swapped = "logic [31:0] address_low;\n    logic last;"
    assert "OpSwap = 4'd10" in text and swapped in text and "logic [14:0] reserved;" in text
    text = text.replace("OpSwap = 4'd10", "OpSwap = 4'd14")
    text = text.replace(swapped, "logic last;\n    logic [31:0] address_low;")
    text = text.replace("logic [14:0] reserved;", "logic [15:0] reserved;")
    wrong = tmp_path / "em_pkg.sv"
    wrong.write_text(text, encoding="utf-8")
    said = verdict(wrong, tmp_path / "check")
    for name in ("OpSwap", "wreq_ms.last", "wreq_ms.address_low", "status.reserved", "status\n"):
        assert f"differs: {name}" in said, said
