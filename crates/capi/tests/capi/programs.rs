//! Programs in C and in C++ against the installed library, on `local:` and on a simulated fabric.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

const POOLS: [&str; 2] = ["local:", "sim:edm?nodes=6"];
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-g"];
const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The library as `make install` installs it, under a prefix; made once for all tests. A static is
/// never dropped, so each process removes the folders of those that have ended.
static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
    fs::create_dir_all(&all).unwrap();
    for left in fs::read_dir(&all).unwrap().flatten() {
        if !Path::new("/proc").join(left.file_name()).exists() {
            // Another test may remove it, too.
            let _ = fs::remove_dir_all(left.path());
        }
    }
    let folder = all.join(std::process::id().to_string());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    // Cargo puts the libraries that its tests use beside the tests.
    let test = std::env::current_exe().unwrap();
    let libraries = format!("LIBRARIES={}", test.parent().unwrap().display());
    let prefix = format!("PREFIX={}/usr", folder.display());
    ran(Command::new("make").current_dir(root()).args(["install-built", &libraries, &prefix]));
    folder
});

pub(crate) fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].map(String::from_utf8_lossy);
    assert!(output.status.success(), "{command:?}: {}\n{}{}", output.status, text[0], text[1]);
    output
}

/// pkg-config's flags for the installed library; `None` if there is no pkg-config.
fn flags(options: &[&str]) -> Option<Vec<String>> {
    let path = INSTALLED.join("usr/lib/pkgconfig");
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", path).args(options).arg("ethermem");
    if command.output().is_err() {
        return None;
    }
    let words = String::from_utf8(ran(&mut command).stdout).unwrap();
    Some(words.split_whitespace().map(str::to_owned).collect())
}

pub(crate) fn skip(reason: &str) {
    // The line bypasses the test runner's capture.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}

fn usr(part: &str) -> PathBuf {
    INSTALLED.join("usr").join(part)
}

/// A folder for one program: tests compile one source concurrently.
fn own_folder() -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let folder = INSTALLED.join(MADE.fetch_add(1, Ordering::Relaxed).to_string());
    fs::create_dir(&folder).unwrap();
    folder
}

/// Compiles a program against the installed library, and returns its path.
pub(crate) fn compile(compiler: &[&str], source: &str, more: &[&str]) -> PathBuf {
    let program = own_folder().join("program");
    let library = usr("lib");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(STRICT).args(more).arg(root().join(source));
    command.arg("-o").arg(&program).arg("-I").arg(usr("include")).arg("-L").arg(&library);
    command.arg(format!("-Wl,-rpath,{}", library.display()));
    ran(command.args(["-lethermem", "-pthread"]));
    program
}

pub(crate) const C: [&str; 2] = ["cc", "-std=c11"];
const CXX: [&str; 4] = ["c++", "-std=c++17", "-x", "c++"];

/// Compiles with the sanitizers for addresses, leaks and undefined behaviour, if the compiler has
/// them.
pub(crate) fn sanitized(source: &str) -> Option<PathBuf> {
    let probe = own_folder().join("probe.c");
    fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
    let out = probe.with_extension("out");
    let mut command = Command::new("cc");
    command.args(SANITIZED).arg(&probe).arg("-o").arg(&out);
    let built = command.output().is_ok_and(|output| output.status.success());
    (built && Command::new(&out).status().is_ok_and(|status| status.success()))
        .then(|| compile(&C, source, &SANITIZED))
}

fn on_every_pool(source: &str, more: &[&str]) {
    let program = sanitized(source).unwrap_or_else(|| {
        skip("sanitizers: the C compiler has none that run here; the program runs without");
        compile(&C, source, &[])
    });
    for url in POOLS {
        ran(Command::new(&program).arg(url).args(more));
    }
}

#[test]
fn every_call_does_what_it_says_and_misuse_is_a_status() {
    on_every_pool("crates/capi/tests/c/api.c", &[]);
}

#[test]
fn a_key_value_store_does_what_it_says_by_either_walk() {
    on_every_pool("crates/capi/tests/c/store.c", &[]);
}

#[test]
fn threads_see_of_each_other_what_they_may() {
    on_every_pool("crates/capi/tests/c/litmus.c", &["threads"]);
}

/// Number of operations on each pool per number of threads; `ETHERMEM_THREAD_OPERATIONS` sets more.
pub(crate) fn storm(url: &str) {
    let told = std::env::var("ETHERMEM_THREAD_OPERATIONS");
    let operations = told.unwrap_or_else(|_| "2000".to_owned());
    let program = compile(&C, "crates/capi/tests/c/threads.c", &[]);
    for threads in ["1", "2", "4", "16"] {
        let said = ran(Command::new(&program).args([url, threads, &operations])).stdout;
        print!("{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn nothing_is_lost_between_machine_threads() {
    POOLS.into_iter().for_each(storm);
}

#[test]
fn the_header_is_cxx_too() {
    for source in ["crates/capi/tests/c/api.c", "crates/capi/tests/c/litmus.c"] {
        let program = compile(&CXX, source, &[]);
        ran(Command::new(program).arg(POOLS[0]));
    }
}

/// Programs find the library by its names, and its version is equal everywhere.
#[test]
fn an_installed_library_is_whole() {
    let version = env!("CARGO_PKG_VERSION");
    let shared = format!("lib/libethermem.so.{version}");
    for part in ["include/ethermem.h", "lib/libethermem.a", "lib/pkgconfig/ethermem.pc", &shared] {
        assert!(usr(part).is_file(), "{part}");
    }
    for link in ["lib/libethermem.so", "lib/libethermem.so.0"] {
        assert_eq!(fs::canonicalize(usr(link)).unwrap(), fs::canonicalize(usr(&shared)).unwrap());
    }
    let Some(found) = flags(&["--modversion"]) else {
        return skip("pkg-config is not installed");
    };
    assert_eq!(found, [version]);
    let program = compile(&C, "crates/capi/tests/c/api.c", &["-DUNUSED"]);
    let said = ran(Command::new(program).arg(POOLS[0])).stdout;
    assert_eq!(String::from_utf8(said).unwrap().trim_end(), version);
}

/// Packages install below DESTDIR, which leaves no trace in the files.
#[test]
fn a_staged_installation_names_the_prefix_alone() {
    let stage = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let libraries = format!("LIBRARIES={}", test.parent().unwrap().display());
    let destination = format!("DESTDIR={}", stage.path().display());
    let words = ["install-built", "PREFIX=/opt/ethermem", &libraries, &destination];
    ran(Command::new("make").current_dir(root()).args(words));
    let file = stage.path().join("opt/ethermem/lib/pkgconfig/ethermem.pc");
    let text = fs::read_to_string(file).unwrap();
    assert!(text.starts_with("prefix=/opt/ethermem\n") && !text.contains('@'), "{text}");
}

/// The example runs when it is linked statically with pkg-config's flags.
#[test]
fn hello_is_said_from_a_static_program() {
    let Some(words) = flags(&["--cflags", "--libs", "--static"]) else {
        return skip("pkg-config is not installed");
    };
    let program = INSTALLED.join("hello-static");
    let mut command = Command::new("cc");
    command.args(["-std=c11"]).args(STRICT).arg(root().join("examples/hello.c"));
    let archive = usr("lib/libethermem.a").display().to_string();
    let words =
        words.into_iter().map(|word| if word == "-lethermem" { archive.clone() } else { word });
    ran(command.arg("-o").arg(&program).args(words));
    let said = ran(Command::new(&program).arg("sim:edm?nodes=2")).stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("sim:edm?nodes=2: hello in "), "{said}");
    let page = fs::read_to_string(root().join("docs/examples.md")).unwrap();
    assert!(page.contains(&said), "{said}");
    let refused = Command::new(&program).arg("sim:emd").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let line = String::from_utf8(refused.stderr).unwrap();
    assert!(line.starts_with("hello: fabric `emd`: must be one of edm, "), "{line}");
}
