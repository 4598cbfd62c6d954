//! Rules for `rtl/`: one module per file, names of lowRISC's guide, and a test for each module.

use crate::{File, Findings, Tree, tree};

const PREFIX: &str = "em_";

fn hardware(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.under("rtl").filter(|file| file.extension() == "sv")
}

fn stem(file: &File) -> &str {
    file.name().trim_end_matches(".sv")
}

/// The words of a line of code, without its comment.
fn words(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or("");
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect()
}

/// A file holds one module or package, which has the file's name and begins with `em_`.
#[must_use]
pub fn one_module_a_file(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in hardware(tree) {
        let mut declared = Vec::new();
        for (index, line) in file.text().lines().enumerate() {
            if let [kind @ ("module" | "package" | "interface"), name, ..] = words(line)[..] {
                declared.push(name);
                if kind == "interface" {
                    findings.at(&file.path, index + 1, "an interface; use structs and ports");
                }
            }
        }
        if declared != [stem(file)] {
            let message = format!("declares {declared:?}; declare {} and nothing else", stem(file));
            findings.file(&file.path, message);
        }
        if !stem(file).starts_with(PREFIX) {
            findings.file(&file.path, format!("modules begin with {PREFIX}"));
        }
        if !file.text().starts_with("///") {
            findings.at(&file.path, 1, "open with `///`: what the module does and promises");
        }
    }
    findings
}

/// A port's name states its direction: `_i` or `_ni`, `_o`.
#[must_use]
pub fn port_names(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in hardware(tree) {
        for (index, line) in file.text().lines().enumerate() {
            let suffixes: &[&str] = match words(line).first() {
                Some(&"input") => &["_i", "_ni"],
                Some(&"output") => &["_o", "_no"],
                _ => continue,
            };
            let named =
                words(line).iter().any(|word| suffixes.iter().any(|suffix| word.ends_with(suffix)));
            if !named {
                let message = format!("a port without {}", suffixes.join(" or "));
                findings.at(&file.path, index + 1, message);
            }
        }
    }
    findings
}

/// A module has a folder of tests, or is part of a module that has one.
#[must_use]
pub fn modules_are_tested(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let design = || {
        hardware(tree).filter(|file| {
            let folder = tree::folder(&file.path);
            folder != "rtl/formal" && !stem(file).ends_with("_pkg")
        })
    };
    let tested = |name: &str| tree.contains(&format!("rtl/tb/{name}/test_{name}.py"));
    // Follow instances from the tested modules down, until nothing new is reached.
    let mut reached: Vec<&File> = design().filter(|file| tested(stem(file))).collect();
    let mut at = 0;
    while let Some(&parent) = reached.get(at) {
        let used: Vec<&str> = parent.text().lines().flat_map(words).collect();
        for file in design() {
            let known = reached.iter().any(|other| other.path == file.path);
            if !known && used.contains(&stem(file)) {
                reached.push(file);
            }
        }
        at += 1;
    }
    for file in design() {
        if !reached.iter().any(|other| other.path == file.path) {
            let name = stem(file);
            findings.file(&file.path, format!("no rtl/tb/{name}/test_{name}.py reaches it"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_module_another_name_and_a_bare_file_fail() {
        let tree = Tree::from_files([
            ("rtl/a/em_a.sv", "/// A.\nmodule em_a;\nendmodule\n// module em_x\n"),
            ("rtl/a/em_b.sv", "/// B.\nmodule em_b;\nendmodule\nmodule em_c;\nendmodule\n"),
            ("rtl/a/d.sv", "module d;\nendmodule\n"),
            ("rtl/a/em_e.sv", "/// E.\ninterface em_e;\nendinterface\n"),
        ]);
        let places = one_module_a_file(&tree).places();
        assert_eq!(places, ["rtl/a/d.sv", "rtl/a/d.sv:1", "rtl/a/em_b.sv", "rtl/a/em_e.sv:2"]);
    }

    #[test]
    fn a_port_that_does_not_say_its_direction_fails() {
        let text = "/// A.\nmodule em_a (\n  input logic clk_i,\n  input logic rst_ni,\n  input \
                    logic [3:0] data,\n  output logic ready_i,\n  output logic [1:0] valid_o\n);\n";
        let tree = Tree::from_files([("rtl/a/em_a.sv", text)]);
        assert_eq!(port_names(&tree).places(), ["rtl/a/em_a.sv:5", "rtl/a/em_a.sv:6"]);
    }

    #[test]
    fn a_module_that_no_test_reaches_fails() {
        let tree = Tree::from_files([
            ("rtl/a/em_top.sv", "  em_part u_part ();\n"),
            ("rtl/a/em_part.sv", "  em_leaf u_leaf ();\n"),
            ("rtl/a/em_leaf.sv", ""),
            ("rtl/a/em_stray.sv", "  em_top u_top ();\n"),
            ("rtl/formal/em_top_proof.sv", ""),
            ("rtl/pkg/em_pkg.sv", ""),
            ("rtl/tb/em_top/test_em_top.py", ""),
        ]);
        assert_eq!(modules_are_tested(&tree).places(), ["rtl/a/em_stray.sv"]);
    }
}
