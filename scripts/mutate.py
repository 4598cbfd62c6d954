"""All mutants of a crate in one build, each behind a condition that the environment controls.

`cargo mutants` names the mutants. It would rebuild for each of them, which takes days for
thousands. Here each mutated expression stands beside the original one, as
`(if on(17) { a <= b } else { a < b })`, and the variable `MUTANT=17` chooses it when a test runs.
"""

import json
import subprocess
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_rust

RUST = tree_sitter.Language(tree_sitter_rust.language())
# Syntax node around a mutant of each kind, which is written several times.
AROUND = {
    "BinaryOperator": ("binary_expression", "compound_assignment_expr"),
    "UnaryOperator": ("unary_expression",),
    "StructField": ("struct_expression",),
    "MatchArm": ("match_arm",),
    "MatchArmGuard": ("match_arm",),
}
# Code that asks which mutant is chosen. With COVER none is, and each reached one is noted once.
SWITCH = """
#[doc(hidden)]
#[allow(warnings, clippy::all)]
pub mod mutant_switch {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    const COVER: u32 = u32::MAX - 1;
    static CHOSEN: AtomicU32 = AtomicU32::new(u32::MAX);
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
    #[cold]
    fn choose() -> u32 {
        let word = std::env::var("MUTANT").unwrap_or_default();
        CHOSEN.store(word.parse().unwrap_or(0), Relaxed);
        CHOSEN.load(Relaxed)
    }
    #[cold]
    fn note(id: u32) {
        if !REACHED[id as usize].swap(true, Relaxed)
            && let Some(name) = std::env::var_os("MUTANT_COVER")
            && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(name)
        {
            let _ = file.write_all(&id.to_le_bytes());
        }
    }
    #[inline]
    pub fn on(id: u32) -> bool {
        let mut chosen = CHOSEN.load(Relaxed);
        if chosen == u32::MAX {
            chosen = choose();
        }
        if chosen == COVER {
            note(id);
        }
        chosen == id
    }
}
"""


@dataclass
class Mutant:
    """A mutant as `cargo mutants` lists it, with a number of our own."""

    id: int
    file: str
    name: str
    genre: str
    replacement: str
    start: int
    end: int
    # Reason why it is not tried, if it is not.
    why: str = ""

    @property
    def crate(self):
        """Return the name of its crate's folder."""
        return self.file.split("/")[1]


@dataclass
class Edit:
    """A syntax node that is written several times, or code that stands before a body."""

    start: int
    end: int
    mutants: list = field(default_factory=list)
    inner: list = field(default_factory=list)


def listed(cargo_mutants, root, files):
    """Return the mutants of the files, in their order."""
    command = [cargo_mutants, "mutants", "--list", "--json", "--no-config"]
    for file in files:
        command += ["--file", file]
    told = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    entries = json.loads(told.stdout)
    entries.sort(key=lambda one: (files.index(one["file"]), *place(one["span"]["start"])))
    texts = {file: (root / file).read_text(encoding="utf-8") for file in files}
    return [
        Mutant(
            number,
            one["file"],
            one["name"],
            one["genre"],
            one["replacement"],
            offset(texts[one["file"]], one["span"]["start"]),
            offset(texts[one["file"]], one["span"]["end"]),
            "another type than the body's" if "impl " in type_of(one) else "",
        )
        for number, one in enumerate(entries, 1)
    ]


def type_of(entry):
    """Return the return type of the function whose value a mutant replaces."""
    return entry["function"]["return_type"] if entry["genre"] == "FnValue" else ""


def place(position):
    """Return a position's line and column."""
    return position["line"], position["column"]


def offset(text, position):
    """Return the byte of a line and a column."""
    line, column = place(position)
    before = text.split("\n")[: line - 1]
    within = text.split("\n")[line - 1][: column - 1]
    return sum(len(one.encode()) + 1 for one in before) + len(within.encode())


def around(tree, mutant):
    """Return the node that is written several times for a mutant, or why it cannot be."""
    node = tree.root_node.descendant_for_byte_range(mutant.start, mutant.end)
    found = None
    while node is not None:
        if node.type in ("const_item", "static_item", "const_block"):
            return None, "a constant"
        if node.type == "function_item":
            if any(
                child.type == "function_modifiers" and b"const" in child.text
                for child in node.children
            ):
                return None, "a const fn"
            if mutant.genre == "FnValue":
                return node, ""
            break
        if found is None and node.type in AROUND.get(mutant.genre, ()):
            found = node
        node = node.parent
    return found, "" if found else "no expression of its own"


class Source:
    """A file with its mutants."""

    def __init__(self, text, mutants):
        self.text = text.encode()
        self.mutants = mutants
        # Position of each mutant in the text that was written last; and by edit.
        self.branches = []
        self.edits = []
        self.functions = []
        tree = tree_sitter.Parser(RUST).parse(self.text)
        self.nodes = {}
        for mutant in mutants:
            self.nodes[mutant.id], why = around(tree, mutant)
            mutant.why = mutant.why or why

    def plan(self):
        """Return the edits of the mutants that are tried, nested like their nodes."""
        edits = {}
        for mutant in self.mutants:
            if mutant.why:
                continue
            node = self.nodes[mutant.id]
            if mutant.genre == "FnValue":
                span = (mutant.start, mutant.start)
            elif mutant.genre.startswith("MatchArm"):
                # The edited node is the guard, or the position where none is.
                pattern = node.child_by_field_name("pattern")
                guard = pattern.child_by_field_name("condition")
                at = guard or pattern
                span = (at.start_byte, at.end_byte) if guard else (at.end_byte, at.end_byte)
            else:
                span = (node.start_byte, node.end_byte)
            # An operator may be a whole guard: then it is within the code made from that.
            is_guard = mutant.genre.startswith("MatchArm")
            edits.setdefault((*span, is_guard), Edit(*span)).mutants.append(mutant)
        top, stack = [], []
        for edit in sorted(
            edits.values(),
            key=lambda one: (
                *(one.start, one.start != one.end, -one.end),
                not one.mutants[0].genre.startswith("MatchArm"),
            ),
        ):
            while stack and stack[-1].end < max(edit.end, edit.start + 1):
                stack.pop()
            (stack[-1].inner if stack else top).append(edit)
            if edit.end > edit.start:
                stack.append(edit)
        return top

    def written(self):
        """Return the file with every mutant in it."""
        self.branches, self.edits = [], []
        out = bytearray()
        self.write(out, 0, len(self.text), self.plan())
        return bytes(out)

    def write(self, out, start, end, edits):
        """Write a part of the text with its edits."""
        for edit in edits:
            out += self.text[start : edit.start]
            began = len(out)
            self.write_edit(out, edit)
            self.edits.append((began, len(out), edit.mutants))
            start = edit.end
        out += self.text[start:end]

    def write_edit(self, out, edit):
        """Write one node in all its forms."""
        first = edit.mutants[0]
        if first.genre == "FnValue":
            for mutant in edit.mutants:
                self.branch(out, f"if {on(mutant)} {{ return ", mutant.replacement.encode(), mutant)
                out += b"; } "
            return
        if first.genre.startswith("MatchArm"):
            self.write_guard(out, edit)
            return
        out += b"("
        for mutant in edit.mutants:
            variant = (
                self.text[edit.start : mutant.start]
                + b" "
                + mutant.replacement.encode()
                + b" "
                + self.text[mutant.end : edit.end]
            )
            self.branch(out, f"if {on(mutant)} {{ ", variant, mutant)
            out += b" } else "
        out += b"{ "
        self.write(out, edit.start, edit.end, edit.inner)
        out += b" })"

    def write_guard(self, out, edit):
        """Write the guard of an arm: unchanged, always true, or never."""
        is_bare = edit.start == edit.end
        out += b" if ((true)" if is_bare else b"(("
        if not is_bare:
            self.write(out, edit.start, edit.end, edit.inner)
            out += b")"
        began = len(out)
        always = [one for one in edit.mutants if one.replacement == "true"]
        never = [one for one in edit.mutants if one.replacement != "true"]
        out += "".join(f" || {on(mutant)}" for mutant in always).encode() + b")"
        out += "".join(f" && !{on(mutant)}" for mutant in never).encode()
        for mutant in edit.mutants:
            self.branches.append((began, len(out), mutant))

    def branch(self, out, before, variant, mutant):
        """Write a node's mutated form."""
        out += before.encode()
        began = len(out)
        out += variant
        self.branches.append((began, len(out), mutant))

    def blame(self, start, end):
        """Return the mutants that cause an error at a place."""
        hit = [one for one in self.branches if one[0] <= start and end <= one[1]]
        if hit:
            return [min(hit, key=lambda one: one[1] - one[0])[2]]
        near = [one for one in self.edits if one[0] <= start and end <= one[1]]
        if near:
            return min(near, key=lambda one: one[1] - one[0])[2]
        within = [one for one in self.edits if start <= one[0] and one[1] <= end]
        return [mutant for one in within for mutant in one[2]]


def on(mutant):
    """Return the condition that a mutant is chosen."""
    return f"crate::mutant_switch::on({mutant.id})"
