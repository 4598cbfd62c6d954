//! The operators' socket: listing and ending processes, and hostile peers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ethermem_clio::transport::Completed;
use ethermem_node::{
    AskError, Control, ControlAnswer, ControlQuestion, NodeOptions, ProcessStatus, ask, start,
};
use ethermem_udp::{ClientOptions, Driver, NodePlace};
use ethermem_units::Bytes;
use ethermem_wire::clio::{Permissions, ProcessId, Request, TenantId};

/// A node that serves, and its operators' socket.
struct Bench {
    folder: tempfile::TempDir,
    address: std::net::SocketAddr,
    control: Option<Control>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (to, started)) = (Arc::clone(&stop), std::sync::mpsc::channel());
        let thread = std::thread::spawn(move || {
            let lease = Some(Duration::from_secs(60));
            let options = NodeOptions { lease, ..NodeOptions::in_clear(Bytes(16 << 20)) };
            let mut server = start(&options).unwrap().server;
            to.send((server.address().unwrap(), server.operator())).unwrap();
            server.run(Duration::from_millis(1), &stopped).unwrap();
        });
        let (address, operator) = started.recv().unwrap();
        let names = vec![(0, "all".to_owned())];
        let control = Control::start(operator, names, &folder.path().join("control")).unwrap();
        Bench { folder, address, control: Some(control), stop, thread: Some(thread) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    fn processes(&self) -> Vec<ProcessStatus> {
        match ask(&self.path(), ControlQuestion::Processes {}).unwrap() {
            ControlAnswer::Processes(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn end(&self, tenant: u16, process: u32) -> bool {
        match ask(&self.path(), ControlQuestion::End { tenant, process }).unwrap() {
            ControlAnswer::Ended(lived) => lived,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the node panicked");
    }
}

/// A client with a process and `bytes` of memory, which then stays silent.
fn client(bench: &Bench, bytes: u64) -> (Driver, ProcessId) {
    let mut driver = Driver::connect(&ClientOptions {
        node: NodePlace::Udp(bench.address),
        tenant: TenantId(0),
        key: None,
        datagram_bytes_max: None,
        window: 16,
        incast_window: Bytes(1 << 20),
        give_up_after: Duration::from_secs(2),
    })
    .unwrap();
    let Completed::Created(process) = run(&mut driver, ProcessId(0), Request::CreateProcess) else {
        panic!("a process")
    };
    let permissions = Permissions::READ_WRITE;
    run(&mut driver, process, Request::Allocate { bytes, at: 0, permissions });
    (driver, process)
}

fn run(driver: &mut Driver, process: ProcessId, request: Request<'static>) -> Completed {
    outcome(driver, process, request).unwrap()
}

fn outcome(
    driver: &mut Driver,
    process: ProcessId,
    request: Request<'static>,
) -> Result<Completed, ethermem_clio::transport::OperationError> {
    let id = driver.client().submit(process, request);
    driver.send().unwrap();
    loop {
        driver.turn().unwrap();
        while let Some(event) = driver.client().poll_event() {
            if event.operation == id {
                return event.outcome;
            }
        }
    }
}

#[test]
fn processes_are_listed_and_ended() {
    let bench = Bench::new();
    assert_eq!(bench.processes(), []);
    let (mut one, first) = client(&bench, 1 << 20);
    let (mut other, second) = client(&bench, 3 << 20);
    let found = bench.processes();
    let seen: Vec<_> = found
        .iter()
        .map(|found| (found.tenant, found.tenant_name.as_str(), found.process, found.memory_bytes))
        .collect();
    assert_eq!(seen, [(0, "all", first.0, 1 << 20), (0, "all", second.0, 3 << 20)]);
    for found in &found {
        let (unheard, left) = (found.unheard_s.unwrap(), found.lease_left_s.unwrap());
        assert!(unheard <= found.age_s && (unheard + left - 60.0).abs() < 1e-6, "{found:?}");
        assert_eq!(found.state, "lives");
    }
    assert!(bench.end(0, first.0));
    assert!(!bench.end(0, first.0), "it is dead already");
    assert!(!bench.end(7, second.0), "another tenant's of this number is another");
    let refused = outcome(&mut one, first, Request::KeepAlive).unwrap_err();
    assert!(refused.to_string().to_lowercase().contains("process"), "{refused}");
    while bench.processes().len() > 1 {}
    let left = bench.processes();
    assert_eq!((left[0].process, left[0].memory_bytes), (second.0, 3 << 20));
    // All memory of the ended process is available to another.
    let permissions = Permissions::READ_WRITE;
    run(&mut other, second, Request::Allocate { bytes: 13 << 20, at: 0, permissions });
}

#[test]
fn the_socket_is_the_users_alone_and_gone_in_the_end() {
    let mut bench = Bench::new();
    let found = fs::symlink_metadata(bench.path()).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    bench.control = None;
    assert!(!bench.path().exists());
    assert!(ask(&bench.path(), ControlQuestion::Processes {}).is_err());
}

#[test]
fn a_path_is_taken_from_a_dead_node_and_from_nothing_else() {
    let bench = Bench::new();
    let again = |path: &Path| {
        let server = start(&NodeOptions::in_clear(Bytes(1 << 20))).unwrap().server;
        Control::start(server.operator(), Vec::new(), path)
    };
    let lives = again(&bench.path()).err().unwrap();
    assert!(lives.ends_with("control: another node has it"), "{lives}");
    assert_eq!(bench.processes(), [], "the other node still answers");
    let file = bench.folder.path().join("a-file");
    fs::write(&file, "mine").unwrap();
    assert!(again(&file).err().unwrap().contains("a file that is no socket has this name"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let long = bench.folder.path().join("x".repeat(108));
    assert!(again(&long).err().unwrap().contains("must have 1 to 107"));
    let left = bench.folder.path().join("left");
    drop(UnixListener::bind(&left).unwrap());
    let taken = again(&left).unwrap();
    // Another socket that has taken the name is not removed.
    fs::remove_file(&left).unwrap();
    let other = UnixListener::bind(&left).unwrap();
    drop(taken);
    assert!(left.exists());
    drop(other);
}

/// Peers that are silent, send half a question, or read no answer, and more of them than the node
/// keeps. Meanwhile an operator and a client of the node are answered.
#[test]
fn a_thousand_hostile_peers_keep_no_operator_waiting() {
    let bench = Bench::new();
    let (mut client, process) = client(&bench, 1 << 20);
    let began = Instant::now();
    let mut peers = Vec::new();
    for number in 0..1_000_u32 {
        let mut peer = UnixStream::connect(bench.path()).unwrap();
        // The node may have ended the connection already.
        let _ = match number % 3 {
            0 => Ok(()),
            1 => peer.write_all(b"{\"processes\":"),
            _ => peer.write_all(b"{\"processes\":{}}\n"),
        };
        peers.push(peer);
        if number % 100 == 0 {
            assert_eq!(bench.processes()[0].process, process.0);
            run(&mut client, process, Request::KeepAlive);
        }
    }
    assert_eq!(bench.processes().len(), 1, "nothing was ended");
    // Sequentially, each of them would have had two seconds.
    assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
    drop(peers);
    assert!(bench.end(0, process.0));
}

/// Each way of missing an answer has a distinct error.
#[test]
fn a_node_that_does_not_answer_is_told_from_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let asked = || ask(&path, ControlQuestion::Processes {});
    assert!(matches!(asked(), Err(AskError::Missing)));
    let listener = UnixListener::bind(&path).unwrap();
    let silent = std::thread::spawn({
        let path = path.clone();
        move || ask(&path, ControlQuestion::Processes {})
    });
    let (silent_end, _) = listener.accept().unwrap();
    assert!(matches!(silent.join().unwrap(), Err(AskError::Silent)));
    drop(silent_end);
    for (says, expected) in [("", "Ended"), ("{\"proc", "Ended"), ("{}\n", "Malformed")] {
        std::thread::scope(|scope| {
            let asks = scope.spawn(asked);
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 64];
            assert!(stream.read(&mut question).unwrap() > 0);
            stream.write_all(says.as_bytes()).unwrap();
            drop(stream);
            let error = asks.join().unwrap().unwrap_err();
            assert!(format!("{error:?}").starts_with(expected), "{says:?}: {error:?}");
            assert!(!error.to_string().contains('\n'));
        });
    }
    drop(listener);
    assert!(matches!(asked(), Err(AskError::Dead)));
    fs::write(folder.path().join("file"), "").unwrap();
    let file = ask(&folder.path().join("file"), ControlQuestion::Processes {});
    assert!(matches!(file, Err(AskError::Dead)), "{file:?}");
}

/// A node whose thread does not reach a question, and one that ends meanwhile.
#[test]
fn an_error_says_that_the_process_was_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let mut server = start(&NodeOptions::in_clear(Bytes(1 << 20))).unwrap().server;
    let control = Control::start(server.operator(), Vec::new(), &path).unwrap();
    let end = || ask(&path, ControlQuestion::End { tenant: 0, process: 1 }).unwrap();
    let ControlAnswer::Refused(late) = end() else { panic!("nothing ran") };
    assert_eq!(late, "the node does not answer in time");
    // The question that was given up is not answered when the node continues.
    server.run(Duration::ZERO, &AtomicBool::new(true)).unwrap();
    drop(server);
    let ControlAnswer::Refused(ended) = end() else { panic!("nothing runs") };
    assert_eq!(ended, "the node has ended");
    drop(control);
}
