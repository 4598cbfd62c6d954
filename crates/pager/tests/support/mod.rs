//! Helpers for the tests of whole programs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An example of this crate, which the test runner built beside this test.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    test.ancestors().nth(2).expect("target/PROFILE/deps").join("examples").join(name)
}

/// Prints why something cannot be tested here, bypassing the test runner's capture of output.
pub(crate) fn skipped(why: &str) {
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
}

/// True if the kernel gives what the pager needs; prints the reason if not.
pub(crate) fn can_page() -> bool {
    let tried = under("all", &["true"]);
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    if said.contains("userfaultfd") {
        skipped(said.trim());
        return false;
    }
    true
}

pub(crate) fn under(local: &str, command: &[&str]) -> Output {
    Command::new(example("limit")).arg(local).args(command).output().expect("the example runs")
}

/// Number of repeats of what fails rarely; `make soak` raises it.
pub(crate) fn rounds() -> u64 {
    let asked = std::env::var("ETHERMEM_TORTURE").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(3)
}

/// Builds a program of `tests/foreign`, or prints why that is impossible here.
pub(crate) fn built(builder: &[&str], source: &str, to: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(source);
    let (program, arguments) = builder.split_first().expect("a compiler");
    let run = Command::new(program).args(arguments).arg("-o").arg(to).arg(source).output();
    let problem = match run {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let line = problem.lines().next().unwrap_or_default();
    skipped(&format!("`{}` does not work: {line}", builder.join(" ")));
    false
}
