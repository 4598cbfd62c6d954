//! Unmodified programs of two racks, whose connections go over all NICs: two network namespaces
//! with four links between them.

#[path = "../../udp/benches/paths/namespace.rs"]
mod namespace;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ethermem_rack::{Config, Report};
use namespace::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LINKS: usize = 4;
const PORT: u16 = 5000;
const SERVER: &str = "10.78.0.2";
const PATIENCE: Duration = Duration::from_secs(20);

/// Rack `a` has the clients, rack `b` the server.
struct Racks {
    names: [String; 2],
    spaces: [Namespace; 2],
    folder: tempfile::TempDir,
}

/// A program that a test has started, and ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A launcher ends its program first.
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn example() -> PathBuf {
    let own = std::env::current_exe().expect("it works");
    own.parent().and_then(Path::parent).expect("it works").join("examples/rack_nics")
}

fn program(words: &[&str]) -> Vec<OsString> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/racks.py");
    let mut all: Vec<OsString> = vec!["python3".into(), path.into()];
    all.extend(words.iter().map(OsString::from));
    all
}

impl Racks {
    /// Two racks; `None`, with a SKIPPED line, where this process may not make namespaces.
    fn new(test: &str) -> Option<Racks> {
        let Some(spaces) = Namespace::new().zip(Namespace::new()) else {
            // The line bypasses the test runner's capture.
            let line = format!("SKIPPED: {test}: network namespaces need root\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            return None;
        };
        let spaces = [spaces.0, spaces.1];
        let own = std::process::id();
        let names = ["a", "b"].map(|rack| format!("{test}-{rack}-{own}"));
        let racks = Racks { names, spaces, folder: tempfile::tempdir().expect("it works") };
        let [client, server] = &racks.spaces;
        racks.spaces.iter().for_each(|it| it.ip("link set lo up"));
        for link in 0..LINKS {
            client.connect(&format!("a{link}"), server, &format!("b{link}"));
            client.ip(&format!("addr add 10.78.{link}.1/24 dev a{link}"));
            server.ip(&format!("addr add 10.78.{link}.2/24 dev b{link}"));
        }
        racks.write("");
        Some(racks)
    }

    fn file(&self, rack: usize) -> PathBuf {
        self.folder.path().join(format!("{rack}.toml"))
    }

    /// Writes the files of both racks; `first` goes into that of rack `a` alone.
    fn write(&self, first: &str) {
        for rack in 0..2 {
            let (own, other) = (rack + 1, 2 - rack);
            let side = ["a", "b"][rack];
            let nics: Vec<String> = (0..LINKS).map(|link| format!("\"{side}{link}\"")).collect();
            let there: Vec<String> =
                (0..LINKS).map(|link| format!("\"10.78.{link}.{other}\"")).collect();
            let text = format!(
                "name = \"{}\"\n{}\n[[node]]\nname = \"n\"\naddress = \"10.78.0.{own}\"\nnics = \
                 [{}]\n[[rack]]\nname = \"{}\"\nprograms = [\"10.78.0.{other}\"]\nnics = [{}]\n",
                self.names[rack],
                if rack == 0 { first } else { "" },
                nics.join(","),
                self.names[1 - rack],
                there.join(","),
            );
            std::fs::write(self.file(rack), text).expect("it works");
        }
    }

    /// Starts a program of a rack's namespace.
    fn start(&self, rack: usize, words: &[OsString]) -> Running {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::piped());
        Running(self.spaces[rack].enter(move || command.spawn()).expect("it works"))
    }

    /// Starts the process of a rack's NICs.
    fn nics(&self, rack: usize, how: &str) -> Running {
        self.start(rack, &[example().into(), how.into(), self.file(rack).into()])
    }

    /// Starts both processes, and waits until all their subflows are used.
    fn connect(&self, how: &str) -> [Running; 2] {
        let mut all = [1, 0].map(|rack| self.nics(rack, how));
        all.iter_mut().for_each(|it| wait_for(it, "is used", 2 * LINKS));
        all
    }

    /// Starts the server of rack `b`, and waits until it listens. Otherwise it could begin to right
    /// after the NICs' process found no listener, and the kernel would connect.
    fn serve(&self) -> Running {
        let mut words: Vec<OsString> = vec![example().into(), "run".into(), self.file(1).into()];
        words.extend(program(&["serve", SERVER, &PORT.to_string()]));
        let mut server = self.start(1, &words);
        let listener = format!(":{PORT:04X} 00000000:0000 0A ");
        let sockets = || std::fs::read_to_string("/proc/thread-self/net/tcp").expect("it works");
        while !self.spaces[1].enter(sockets).contains(&listener) {
            assert_eq!(server.0.try_wait().expect("it works"), None, "it listens");
            std::thread::sleep(Duration::from_millis(1));
        }
        server
    }

    /// Runs a case in rack `a`.
    fn run(&self, case: &str, rest: &[&str]) -> Report {
        let config = self.spaces[0].enter(|| Config::read(&self.file(0))).expect("it works");
        let port = PORT.to_string();
        let words = program(&[&[case, SERVER, &port], rest].concat());
        let done = self.spaces[0].enter(|| ethermem_rack::run(&config, &words));
        let (report, status) = done.expect("it works");
        assert!(status.success(), "{case}: {status}: {report:?}");
        report
    }

    fn sent(&self, rack: usize, link: usize) -> u64 {
        let name = format!("{}{link}:", ["a", "b"][rack]);
        let all = self.spaces[rack].enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        let all = all.expect("it works");
        let line = all.lines().find(|line| line.trim_start().starts_with(&name)).expect("it works");
        // Eight counters of what was received come first.
        line.split_whitespace().nth(9).expect("it works").parse().expect("it works")
    }

    fn limit(&self, mbit: u64) {
        for (space, side) in self.spaces.iter().zip(["a", "b"]) {
            for link in 0..LINKS {
                let rate = format!("tbf rate {mbit}mbit burst 128kb latency 10ms");
                space.call("tc", &format!("qdisc replace dev {side}{link} root {rate}"));
            }
        }
    }
}

/// Waits until a program's errors have had `count` lines with `text`; the rest is thrown away.
fn wait_for(running: &mut Running, text: &str, count: usize) {
    let mut lines = BufReader::new(running.0.stderr.take().expect("it works")).lines();
    let mut seen = Vec::new();
    let mut found = 0;
    while found < count {
        let Some(Ok(line)) = lines.next() else { panic!("{count} lines with {text:?}: {seen:?}") };
        found += usize::from(line.contains(text));
        seen.push(line);
    }
    std::thread::spawn(move || lines.for_each(drop));
}

#[test]
fn calls_of_programs_have_the_results_of_kernel_sockets() {
    for how in ["serve", "inside"] {
        let Some(racks) = Racks::new(&format!("calls-{how}")) else { return };
        let _nics = racks.connect(how);
        let _server = racks.serve();
        let report = racks.run("calls", &[]);
        assert!(report.by_nics >= 30, "{report:?}");
        // Two ports without a listener, and attempts before the server listens.
        assert!(report.not_by_nics >= 2, "{report:?}");
        assert_eq!(report.faults, 0, "{report:?}");
        if how == "inside" {
            assert!(report.ends_in_memory > 0 && report.memory_bytes > 1_000_000, "{report:?}");
        }
    }
}

#[test]
fn one_connection_uses_all_nics_both_ways() {
    let Some(racks) = Racks::new("all") else { return };
    racks.limit(200);
    let _nics = racks.connect("serve");
    let _server = racks.serve();
    let bytes = 60_000_000;
    for (rack, case, rest) in [
        (0, "send", vec![bytes.to_string(), seed()]),
        (1, "receive", vec![(bytes >> 20).to_string()]),
    ] {
        let before: Vec<u64> = (0..LINKS).map(|link| racks.sent(rack, link)).collect();
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        assert_eq!(racks.run(case, &rest).by_nics, 1);
        for (link, before) in before.iter().enumerate() {
            let sent = racks.sent(rack, link) - before;
            assert!(sent > bytes / 10, "NIC {link} of rack {rack}: {sent} B of {bytes}");
        }
    }
}

fn seed() -> String {
    std::env::var("RACKS_SEED").unwrap_or_else(|_| {
        std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_micros().to_string()
    })
}

#[test]
fn no_byte_is_lost_when_links_die_and_return() {
    let Some(racks) = Racks::new("links") else { return };
    racks.limit(100);
    let _nics = racks.connect("serve");
    let _server = racks.serve();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let report = scope.spawn(|| {
            let report = racks.run("send", &["150000000", &seed()]);
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            report
        });
        let mut killed = 0;
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let link = 1 + killed % (LINKS - 1);
            std::thread::sleep(Duration::from_millis(400));
            racks.spaces[1].ip(&format!("link set b{link} down"));
            std::thread::sleep(Duration::from_millis(600));
            racks.spaces[1].ip(&format!("link set b{link} up"));
            killed += 1;
        }
        assert!(killed >= 3, "{killed} times");
        assert_eq!(report.join().unwrap().by_nics, 1);
    });
}

#[test]
fn a_killed_process_resets_its_connections() {
    for rack in [0, 1] {
        let Some(racks) = Racks::new(&format!("killed{rack}")) else { return };
        // The order of the processes is that of their start.
        let mut nics = racks.connect("serve");
        let _server = racks.serve();
        let told = racks.folder.path().join("told");
        std::thread::scope(|scope| {
            let run = scope.spawn(|| racks.run("killed", &[told.to_str().unwrap()]));
            let begun = Instant::now();
            while !told.exists() {
                assert!(begun.elapsed() < PATIENCE && !run.is_finished(), "it is connected");
                std::thread::sleep(Duration::from_millis(20));
            }
            nics[1 - rack].0.kill().unwrap();
            assert_eq!(run.join().unwrap().by_nics, 1);
        });
        // The kernel carries what follows.
        let report = racks.run("names", &[]);
        assert_eq!(report.by_nics, 0, "{report:?}");
    }
}

#[test]
fn without_both_processes_and_their_secret_the_kernel_connects() {
    let Some(racks) = Racks::new("without") else { return };
    let key = racks.folder.path().join("key");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&key).unwrap();
    file.write_all(b"0123456789abcdef").unwrap();
    let _server = racks.serve();
    let by_kernel = |racks: &Racks| {
        let report = racks.run("names", &[]);
        assert!(report.by_nics == 0 && report.not_by_nics > 0, "{report:?}");
    };
    by_kernel(&racks);
    let mut other = racks.nics(1, "serve");
    by_kernel(&racks);
    racks.write(&format!("nics_key_file = {:?}", key.to_str().unwrap()));
    let mut own = racks.nics(0, "serve");
    let lines = BufReader::new(own.0.stderr.take().unwrap()).lines();
    wait_for(&mut other, "it has another key", 1);
    by_kernel(&racks);
    // Each link is tried every 0.1 to 0.4 s, and told twice at most: both ends see the keys.
    std::thread::sleep(Duration::from_millis(1500));
    drop(own);
    let told: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(told.iter().any(|line| line.contains("it has another key")), "{told:?}");
    assert!(told.len() <= 2 * LINKS, "{told:?}");
}

#[test]
fn a_program_that_ignores_sigterm_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rack.toml");
    let name = format!("term-{}", std::process::id());
    let node = "[[node]]\nname = \"n\"\naddress = \"127.0.0.1\"\nnics = [\"lo\"]\n";
    std::fs::write(&file, format!("name = \"{name}\"\n{node}")).unwrap();
    let start = |code: &str| {
        let mut command = Command::new(example());
        command.arg("run").arg(&file).args(["python3", "-uc", code]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        let told = Instant::now();
        (child.wait().unwrap().code(), told.elapsed())
    };
    let polite = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *a: sys.exit(3)); \
                  print('ready'); time.sleep(60)";
    let (code, time) = start(polite);
    assert!(code == Some(3) && time < Duration::from_secs(4), "{code:?} after {time:?}");
    let deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); \
                print('ready'); time.sleep(60)";
    let (code, time) = start(deaf);
    assert!(code == Some(137) && time > Duration::from_secs(4), "{code:?} after {time:?}");
    assert!(time < PATIENCE, "{time:?}");
}
