#!/usr/bin/env python3
"""Convert the repository's pages for a site, and check the site's links.

    mdbook build                        # calls this as a preprocessor: book.toml
    python3 scripts/book.py check DIR   # every link of the site in DIR leads somewhere

The pages are written to be read in the repository, where a link may leave docs/. In the site, a
link to a page leads to its chapter, and a link to any other file leads to the file's address at
the host of the repository. Pages of docs/fabrics are chapters without a line in SUMMARY.md, so
that a fabric is added without one.
"""

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Folder of the book's sources in the repository.
SOURCES = "docs"
FABRICS = "docs/fabrics/README.md"
# Code is kept as it is: only link targets outside of code are rewritten.
LINK = re.compile(r'(?P<code>`+[^`]*`+)|(?P<before>\]\(|^\[[^\]]+\]: |src=")(?P<to>[^)"\s]+)')
# Pages that mdBook generates from all others.
MADE = {"print.html", "404.html", "toc.html"}


def chapters(items):
    """Yield every chapter of a list of items, including nested ones."""
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter is not None:
            yield chapter
            yield from chapters(chapter["sub_items"])


def source(chapter):
    """Return the file of a chapter, relative to the root of the repository."""
    return os.path.normpath(f"{SOURCES}/{chapter['source_path']}")


def add_fabrics(items, root):
    """Put a chapter for each page of a fabric below the chapter of all fabrics."""
    index = next((one for one in chapters(items) if source(one) == FABRICS), None)
    for page in sorted((root / FABRICS).parent.glob("*.md")):
        if index is None or page.name == "README.md":
            continue
        path = f"fabrics/{page.name}"
        # The depth of a chapter in the contents is the length of its number.
        number = [*index["number"], len(index["sub_items"]) + 1]
        chapter = {
            "name": page.stem,
            "content": page.read_text(encoding="utf-8"),
            "number": number,
            "sub_items": [],
            "path": path,
            "source_path": path,
            "parent_names": [*index["parent_names"], index["name"]],
        }
        index["sub_items"].append({"Chapter": chapter})


def site_target(to, chapter, paths, root, host):
    """Return the target of a chapter's link in the site."""
    path, mark, fragment = to.partition("#")
    if urlsplit(to).scheme or not path:
        return to
    file = os.path.normpath(Path(source(chapter)).parent / path)
    here = Path(chapter["path"]).parent
    for page in (file, f"{file}/README.md"):
        if page in paths:
            return os.path.relpath(paths[page], here) + mark + fragment
    if file.startswith(f"{SOURCES}/") and (root / file).is_file() and not file.endswith(".md"):
        return os.path.relpath(os.path.relpath(file, SOURCES), here) + mark + fragment
    if not (root / file).exists():
        return to
    kind = "tree" if (root / file).is_dir() else "blob"
    return f"{host}/{kind}/main/{file}{mark}{fragment}"


def rewrite(chapter, paths, root, host):
    """Rewrite the links of a chapter."""

    def replaced(match):
        if match["code"]:
            return match[0]
        return match["before"] + site_target(match["to"], chapter, paths, root, host)

    lines, fenced = [], False
    for line in chapter["content"].split("\n"):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        lines.append(line if fence or fenced else LINK.sub(replaced, line))
    chapter["content"] = "\n".join(lines)


def preprocess(context, book):
    """Return the book as the site needs it."""
    root = Path(context["root"])
    host = context["config"]["output"]["html"]["git-repository-url"]
    items = book["items"]
    add_fabrics(items, root)
    pages = [chapter for chapter in chapters(items) if chapter.get("source_path")]
    for chapter in pages:
        # A page outside of docs/ gets a place inside of the site.
        chapter["path"] = re.sub(r"^(\.\./)+", "repository/", chapter["path"])
    paths = {source(chapter): chapter["path"] for chapter in pages}
    for chapter in pages:
        rewrite(chapter, paths, root, host)
    return book


class Page(HTMLParser):
    """The anchors of a page, and the targets of its links."""

    def __init__(self, text):
        super().__init__()
        self.marks = set()
        self.targets = []
        self.feed(text)

    def handle_starttag(self, _tag, attributes):
        """Record anchors and link targets."""
        for name, value in attributes:
            if name == "id":
                self.marks.add(value)
            elif name in {"href", "src"} and value:
                self.targets.append(value)


def broken(site):
    """Yield every broken link of a site, with its page."""
    files = {file for file in site.rglob("*.html") if file.name not in MADE}
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in sorted(files)}
    for file, page in pages.items():
        for to in page.targets:
            parts = urlsplit(to)
            if parts.scheme or parts.netloc:
                continue
            there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            is_file = there.is_file() or (there / "index.html").is_file()
            known = pages.get(there)
            is_mark = not parts.fragment or known is None or unquote(parts.fragment) in known.marks
            if not (is_file and is_mark):
                yield f"{file.relative_to(site.resolve())}: {to} leads nowhere"


def check(site):
    """Print the broken links; the exit code says whether there were any."""
    site = Path(site)
    pages = len(list(site.rglob("*.html")))
    found = list(broken(site))
    for line in found:
        print(line, file=sys.stderr)
    print(f"{pages} pages, {len(found)} links that lead nowhere")
    return 1 if found or not pages else 0


def main(arguments):
    """Answer mdBook, or check a site."""
    if arguments[:1] == ["supports"]:
        return 0 if arguments[1:] == ["html"] else 1
    if arguments[:1] == ["check"]:
        return check(*arguments[1:])
    context, book = json.load(sys.stdin)
    json.dump(preprocess(context, book), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
