"""The Python code in the documentation runs."""

import re

import ethermem

PAGE = "docs/how-to/python.md"


def test_the_examples_of_the_guide_run(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    blocks = re.findall(r"```python\n(.*?)```", (root / PAGE).read_text(), re.DOTALL)
    assert len(blocks) >= 3
    # The calls are unchanged, except for fewer messages by default and a folder of the test.
    shown = ethermem.run

    def run(scenario, overrides=None, **more):
        if not isinstance(scenario, dict):
            overrides = {"workload.messages": 500, **(overrides or {})}
        return shown(scenario, overrides, **more)

    monkeypatch.setattr(ethermem, "run", run)
    code = "\n".join(blocks).replace('savefig("', f'savefig("{tmp_path}/')
    exec(compile(code, PAGE, "exec"), {})
    assert (tmp_path / "latency.png").exists()
