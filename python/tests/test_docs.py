"""The Python that the documentation shows runs."""

import re

import ethermem

PAGE = "docs/how-to/python.md"


def test_the_examples_of_the_guide_run(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    blocks = re.findall(r"```python\n(.*?)```", (root / PAGE).read_text(), re.DOTALL)
    assert len(blocks) >= 3
    # The same calls, with fewer messages where they do not say how many, and in a folder of ours.
    shown = ethermem.run

    def run(scenario, overrides=None, **more):
        if not isinstance(scenario, dict):
            overrides = {"workload.messages": 500, **(overrides or {})}
        return shown(scenario, overrides, **more)

    monkeypatch.setattr(ethermem, "run", run)
    code = "\n".join(blocks).replace('savefig("', f'savefig("{tmp_path}/')
    exec(compile(code, PAGE, "exec"), {})
    assert (tmp_path / "latency.png").exists()
