"""The links of the site: rewritten by the preprocessor, and checked in mdBook's output."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import book

HOST = "https://host/project"


def chapter(path, content="", /, **more):
    """Return a chapter in mdBook's format."""
    made = {"name": path, "content": content, "number": [1], "sub_items": [], "parent_names": []}
    return {"Chapter": {**made, "path": path, "source_path": path} | more}


class Preprocessor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("README.md", "docs/guide/a.md", "docs/p.svg", "crates/x/lib.rs"):
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("")

    def site(self, *chapters):
        """Return the chapters of the site, by their sources."""
        config = {"output": {"html": {"git-repository-url": HOST}}}
        context = {"root": str(self.root), "config": config}
        items = [*chapters, "Separator"]
        made = book.preprocess(context, {"items": items})
        return {one["source_path"]: one for one in book.chapters(made["items"])}

    def test_a_link_leads_to_a_chapter_a_file_of_the_site_or_the_repository(self):
        text = (
            "[up](../../ARCHITECTURE.md#idea) ![p](../p.svg) [code](../../crates/x/lib.rs)\n"
            "[folder](../../crates) [out](https://a/b.md) [here](#part) `[code](x.md)`\n"
            "```\n[code](../../crates/x/lib.rs)\n```\n[gone](gone.md)\n"
        )
        (self.root / "ARCHITECTURE.md").write_text("")
        made = self.site(
            chapter("guide/a.md", text),
            chapter("../ARCHITECTURE.md", "[a](docs/guide/a.md)"),
        )
        self.assertEqual(
            made["guide/a.md"]["content"],
            "[up](../repository/ARCHITECTURE.md#idea) ![p](../p.svg)"
            f" [code]({HOST}/blob/main/crates/x/lib.rs)\n"
            f"[folder]({HOST}/tree/main/crates) [out](https://a/b.md) [here](#part)"
            " `[code](x.md)`\n```\n[code](../../crates/x/lib.rs)\n```\n[gone](gone.md)\n",
        )
        self.assertEqual(made["../ARCHITECTURE.md"]["content"], "[a](../guide/a.md)")
        self.assertEqual(made["../ARCHITECTURE.md"]["path"], "repository/ARCHITECTURE.md")

    def test_every_page_of_a_fabric_is_a_chapter(self):
        folder = self.root / "docs/fabrics"
        folder.mkdir()
        for name in ("README", "homa", "cxl"):
            (folder / f"{name}.md").write_text(f"[{name}](README.md)")
        made = self.site(chapter("fabrics/README.md", number=[4], path="fabrics/index.md"))
        below = [one["Chapter"] for one in made["fabrics/README.md"]["sub_items"]]
        self.assertEqual([one["name"] for one in below], ["cxl", "homa"])
        self.assertEqual([one["number"] for one in below], [[4, 1], [4, 2]])
        self.assertEqual(below[0]["content"], "[cxl](index.md)")


class Check(unittest.TestCase):
    def test_a_link_that_leads_nowhere_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder)
            (site / "b.html").write_text('<h1 id="part">x</h1><img src="p.svg">')
            (site / "p.svg").write_text("")
            text = '<a href="b.html#part"></a> <a href="https://host/x">x</a> <a href="b.html">'
            (site / "a.html").write_text(text)
            self.assertEqual(list(book.broken(site)), [])
            (site / "a.html").write_text(text + '<a href="b.html#no"></a><a href="c.html">')
            self.assertEqual(len(list(book.broken(site))), 2)
            shown, lines = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(lines):
                self.assertEqual(book.check(site), 1)
            self.assertIn("2 links", shown.getvalue())
            self.assertIn("a.html: b.html#no leads nowhere", lines.getvalue())

    def test_a_site_without_pages_is_no_site(self):
        shown = contextlib.redirect_stdout(io.StringIO())
        with tempfile.TemporaryDirectory() as folder, shown:
            self.assertEqual(book.check(folder), 1)


if __name__ == "__main__":
    unittest.main()
