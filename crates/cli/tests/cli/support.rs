//! Calls the built command as a person would.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Result of a call.
pub(crate) struct Called {
    /// Exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

/// A call of the command, in `folder`, with `arguments`.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ethermem"));
    command.current_dir(folder).args(arguments).env_remove("RUST_BACKTRACE");
    command
}

/// Calls it and waits for its end.
pub(crate) fn call(folder: &Path, arguments: &[&str]) -> Called {
    called(&command(folder, arguments).output().expect("the command starts"))
}

/// The result of an ended call.
pub(crate) fn called(output: &Output) -> Called {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    Called {
        code: output.status.code().expect("not ended by a signal"),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}

/// Every command on a page of figures.
pub(crate) fn commands(page: &str) -> Vec<Vec<String>> {
    let codes = page.split("<code>").skip(1).map(|rest| rest.split("</code>").next().unwrap());
    let texts = codes.filter(|code| code.starts_with("ethermem "));
    texts
        .map(|text| shlex::split(&text.replace("&quot;", "\"").replace("&amp;", "&")).unwrap())
        .collect()
}

/// The table of a page's section. Figures are numbered within their page, and coloured by the names
/// on it.
pub(crate) fn numbers_of<'p>(page: &'p str, id: &str) -> &'p str {
    let from = page.find(&format!("<section id=\"{id}\"")).expect("a section of this name");
    let section = &page[from..];
    let section = &section[..section.find("</section>").expect("it ends")];
    &section[section.find("<table").expect("a table")..section.find("</table>").expect("its end")]
}
