"""The C header and the page of the registers say what their description says."""

import subprocess

from flow import registers


def test_the_header_is_that_of_the_description():
    kept = registers.HEADER.read_text(encoding="utf-8")
    assert kept == registers.header(), "make rtl-registers"


def test_the_page_is_that_of_the_description():
    assert registers.PAGE.read_text(encoding="utf-8") == registers.page(), "make rtl-registers"


def test_another_description_makes_another_page(monkeypatch, tmp_path):
    changed = tmp_path / "em_registers.rdl"
    text = registers.SOURCE.read_text(encoding="utf-8")
    changed.write_text(text.replace("start[0:0] = 0", "start[0:0] = 1"), encoding="utf-8")
    monkeypatch.setattr(registers, "SOURCE", changed)
    assert registers.PAGE.read_text(encoding="utf-8") != registers.page()


def test_the_header_is_c(tmp_path):
    unit = tmp_path / "unit.c"
    unit.write_text(
        f'#include "{registers.HEADER}"\n#include <stddef.h>\n'
        'static_assert(offsetof(em_host_top_t, link) == 0x400, "link");\n',
        encoding="utf-8",
    )
    subprocess.run(
        ["cc", "-std=c11", "-Wall", "-Werror", "-c", unit, "-o", "/dev/null"], check=True
    )
