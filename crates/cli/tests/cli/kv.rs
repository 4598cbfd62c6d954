//! The process `ethermem kv`: with a real memory node that disappears and returns, with a password,
//! and with TLS.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::node::Running;
use crate::support::{call, command};

/// A long time, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
    metrics: Option<String>,
    /// Output of the server so far.
    log: Arc<Mutex<String>>,
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Server {
        let (server, lines) = Server::started(folder, arguments);
        let to = server.log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                to.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        server
    }

    /// The server, and the lines of its log from now on.
    fn started(folder: &Path, arguments: &[&str]) -> (Server, Lines<BufReader<ChildStderr>>) {
        let mut command = command(folder, &[&["kv"], arguments].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut metrics = None;
        let address = loop {
            let line = lines.next().expect("it starts").unwrap();
            if let Some(at) = line.strip_prefix("metrics on ") {
                metrics = Some(at.to_owned());
            }
            if let Some((_, rest)) = line.split_once(" on ")
                && let Some(address) = rest.strip_suffix(", ready for clients")
            {
                break address.to_owned();
            }
        };
        (Server { child, address, metrics, log: Arc::default() }, lines)
    }

    fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Connection(BufReader::new(stream))
    }

    /// Repeats the request until the reply is this one; returns the time that took.
    fn until(&self, request: &str, expected: &str) -> Duration {
        let began = Instant::now();
        let mut connection = self.connect();
        loop {
            let reply = connection.ask(request);
            if reply.starts_with(expected) {
                return began.elapsed();
            }
            let log = self.log.lock().unwrap();
            assert!(began.elapsed() < PATIENCE, "{request}: {reply}, {log}");
            drop(log);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection(BufReader<TcpStream>);

impl Connection {
    /// The first line of the reply; for a string, its bytes.
    fn ask(&mut self, request: &str) -> String {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes()).unwrap();
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let Some(length) = line.strip_prefix('$').and_then(|length| length.trim().parse().ok())
        else {
            return line.trim_end().to_owned();
        };
        let length: usize = length;
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap().trim_end().to_owned()
    }
}

#[test]
fn a_server_outlives_its_node_and_says_what_it_lost() {
    for index in ["client", "node"] {
        let mut node = Running::start(&["--memory", "64MiB"]);
        let address = node.address().to_owned();
        let url = format!("udp://{address}?timeout_ms=500");
        let arguments = ["--pool", &url, "--listen", "127.0.0.1:0", "--index", index];
        let server = Server::start(Path::new("."), &arguments);
        let mut client = server.connect();
        assert_eq!(client.ask("SET key value"), "+OK");
        assert_eq!(client.ask("GET key"), "value");
        node.kill();
        // No client sends a request, and the server still notices.
        server.until("PING", "-LOADING");
        // Commands no longer wait, and those that need no store succeed.
        for (request, expected) in [("GET key", "-LOADING"), ("SET key v", "-LOADING")] {
            assert!(client.ask(request).starts_with(expected));
        }
        assert_eq!(client.ask("ECHO there"), "there");
        assert!(client.ask("INFO").contains("store:away"), "{index}");
        let again = ["--memory", "64MiB", "--insecure", "--listen", &address];
        let node = Running::start_with(&again);
        let took = server.until("PING", "+PONG");
        println!("{index}: serving again {took:?} after the node does");
        assert_eq!(client.ask("EXISTS key"), ":0", "the store is empty");
        assert_eq!(client.ask("SET key anew"), "+OK");
        assert_eq!(client.ask("GET key"), "anew");
        assert!(client.ask("INFO").contains("stores_lost:1"), "{index}");
        let log = server.log.lock().unwrap().clone();
        assert_eq!(log.matches("EMPTY").count(), 1, "it is said once: {log}");
        drop(node);
    }
}

#[test]
fn a_killed_server_leaves_no_memory_at_the_node() {
    let listen = ["node", "--memory", "64MiB", "--listen", "127.0.0.1:0", "--insecure"];
    let lease = ["--lease-s", "1", "--metrics-listen", "127.0.0.1:0"];
    let node = Running::of(command(Path::new("."), &[&listen[..], &lease].concat()), true);
    let metrics = node.metrics().expect("it was asked for");
    let free_bytes = || {
        let status = ["node", "status", "--metrics-address", metrics, "--format", "json"];
        let told = call(Path::new("."), &status);
        let status: serde_json::Value = serde_json::from_str(&told.out).expect(&told.err);
        status["free_bytes"].as_u64().unwrap()
    };
    let all = free_bytes();
    let url = format!("udp://{}", node.address());
    let server = Server::start(Path::new("."), &["--pool", &url, "--listen", "127.0.0.1:0"]);
    assert_eq!(server.connect().ask("SET key value"), "+OK");
    // The lease is kept alive, with or without requests.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(server.connect().ask("GET key"), "value");
    assert!(free_bytes() < all);
    drop(server);
    let until = Instant::now() + PATIENCE;
    while free_bytes() < all {
        assert!(Instant::now() < until, "{} of {all} B are free", free_bytes());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whoever read the log has ended, as a collector of logs that is started anew has. Before, the
/// first line ended the server, and a wrong password was enough for that.
#[test]
fn a_server_whose_log_nobody_reads_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("kv.password");
    std::fs::write(&password, "horse\n").unwrap();
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600)).unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--password-file", "kv.password"];
    let (server, lines) = Server::started(folder.path(), &arguments);
    drop(lines);
    let mut client = server.connect();
    assert_eq!(client.ask("AUTH horse"), "+OK");
    assert_eq!(client.ask("SET key value"), "+OK");
    assert!(client.ask("AUTH wrong").starts_with("-WRONGPASS"));
    assert!(server.connect().ask("AUTH wrong").starts_with("-WRONGPASS"));
    assert_eq!(client.ask("GET key"), "value");
}

#[test]
fn a_password_is_asked_for_and_its_file_is_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("kv.password"), "correct horse\n").unwrap();
    let mode = |name: &str, mode| {
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("kv.password", 0o644);
    let arguments = ["kv", "--listen", "127.0.0.1:0", "--password-file", "kv.password"];
    let refused = call(folder.path(), &arguments);
    assert_eq!((refused.code, refused.err.lines().count()), (2, 1), "{}", refused.err);
    assert!(refused.err.contains("kv.password: mode 0644"), "{}", refused.err);
    mode("kv.password", 0o600);
    let text = "listen = \"127.0.0.1:0\"\npassword_file = \"kv.password\"\nclients_max = 3\n";
    std::fs::write(path("kv.toml"), text).unwrap();
    let flags = ["--config", "kv.toml", "--metrics-listen", "127.0.0.1:0"];
    let server = Server::start(folder.path(), &flags);
    let mut client = server.connect();
    assert_eq!(client.ask("GET key"), "-NOAUTH Authentication required.");
    assert!(client.ask("AUTH \"wrong horse\"").starts_with("-WRONGPASS"));
    assert_eq!(client.ask("PING"), "-NOAUTH Authentication required.");
    assert_eq!(client.ask("AUTH default \"correct horse\""), "+OK");
    assert_eq!(client.ask("SET key value"), "+OK");
    // Unauthenticated clients keep no other client out, however many there are.
    let strangers: Vec<Connection> = (0..5).map(|_| server.connect()).collect();
    let mut other = server.connect();
    assert!(other.ask("HELLO 2 AUTH default \"correct horse\"").starts_with('*'));
    assert_eq!(client.ask("GET key"), "value");
    drop(strangers);
    // A connection that guesses passwords is closed.
    let mut guesser = server.connect();
    for _ in 0..5 {
        assert!(guesser.ask("AUTH guess").starts_with("-WRONGPASS"));
    }
    assert_eq!(guesser.line(), "");
    let metrics = server.metrics.as_ref().expect("it has metrics");
    let until = Instant::now() + PATIENCE;
    loop {
        let url = format!("http://{metrics}/metrics");
        let text = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
        let seen = ["ethermem_kv_wrong_passwords_total 6", "command=\"SET\"} 1"];
        if seen.iter().all(|line| text.contains(line)) {
            assert!(text.contains("ethermem_kv_store_ready 1"), "{text}");
            break;
        }
        assert!(Instant::now() < until, "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_file_of_settings_is_refused_in_one_line_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("listen = \"127.0.0.1:0\"\n\nlisten_on = 3\n", "kv.toml:3: unknown field `listen_on`"),
        ("index = \"both\"\n", "kv.toml:1: index \"both\": must be one of client, node"),
        ("clients_max = 0\n", "clients_max = 0: must be 1 to 1000000"),
        (
            "clients_max = -1\n",
            "kv.toml:1: clients_max: invalid value: integer `-1`: must be a whole",
        ),
        ("\nlisten = \"here\"\n", "kv.toml:2: listen: must be an IP address and a port, such as"),
        ("pool = 3\n", "kv.toml:1: pool: invalid type: integer `3`: must be text in quotes"),
        ("pool = \"local:?memory_bytes=1\"\n", "--pool local:?memory_bytes=1: no room for"),
        ("tls_cert = \"none.pem\"\n", "--tls-cert and --tls-key must be given together"),
        ("password_file = \"none\"\n", "none: No such file"),
    ] {
        std::fs::write(folder.path().join("kv.toml"), text).unwrap();
        let refused = call(folder.path(), &["kv", "--config", "kv.toml"]);
        assert_eq!((refused.code, refused.err.lines().count()), (2, 1), "{}", refused.err);
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
}

/// A certificate for 127.0.0.1 that is self-signed, or signed by `signer`.
fn certificate(folder: &Path, name: &str, signer: Option<&str>) -> bool {
    let (key, cert) = (format!("{name}.key"), format!("{name}.pem"));
    let mut openssl = Command::new("openssl");
    openssl
        .current_dir(folder)
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", &key, "-out", &cert]);
    if let Some(signer) = signer {
        openssl.args(["-CA", &format!("{signer}.pem"), "-CAkey", &format!("{signer}.key")]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    }
    openssl.output().is_ok_and(|made| made.status.success())
}

fn redis_cli(folder: &Path, server: &Server, arguments: &[&str]) -> Option<(bool, String)> {
    let (host, port) = server.address.rsplit_once(':').unwrap();
    let mut command = Command::new("redis-cli");
    command.current_dir(folder).args(["-h", host, "-p", port]).args(arguments);
    let output = command.output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn redis_cli_speaks_tls_and_who_speaks_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let made = [("server", None), ("ca", None), ("client", Some("ca"))];
    if !made.into_iter().all(|(name, signer)| certificate(folder, name, signer)) {
        eprintln!("SKIPPED: no openssl to make certificates with");
        return;
    }
    let listen = ["--listen", "127.0.0.1:0", "--tls-cert", "server.pem", "--tls-key", "server.key"];
    let server = Server::start(folder, &listen);
    let tls = ["--tls", "--cacert", "server.pem"];
    let Some((_, pong)) = redis_cli(folder, &server, &[&tls[..], &["PING"]].concat()) else {
        eprintln!("SKIPPED: no redis-cli");
        return;
    };
    assert_eq!(pong.trim(), "PONG");
    let long = "x".repeat(100_000);
    let set = [&tls[..], &["SET", "key", &long]].concat();
    assert_eq!(redis_cli(folder, &server, &set).unwrap().1.trim(), "OK");
    let get = [&tls[..], &["GET", "key"]].concat();
    assert_eq!(redis_cli(folder, &server, &get).unwrap().1.trim(), long);
    // A peer without TLS is told so; a silent peer delays no other, and is dropped.
    assert_eq!(server.connect().ask("PING"), "-ERR this port takes TLS alone");
    // More than 512 handshakes are never under way: the oldest gives way.
    let mut silent: Vec<TcpStream> =
        (0..600).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let again = [&tls[..], &["PING"]].concat();
    let began = Instant::now();
    assert_eq!(redis_cli(folder, &server, &again).unwrap().1.trim(), "PONG");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    silent[0].set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(silent[0].read(&mut [0; 8]).unwrap(), 0);
    drop(server);
    let server = Server::start(folder, &[&listen[..], &["--tls-client-ca", "ca.pem"]].concat());
    let (_, refused) = redis_cli(folder, &server, &again).unwrap();
    assert!(!refused.contains("PONG"), "{refused}");
    let mine = [&tls[..], &["--cert", "client.pem", "--key", "client.key", "PING"]].concat();
    assert_eq!(redis_cli(folder, &server, &mine).unwrap().1.trim(), "PONG");
}

#[test]
fn a_certificate_that_cannot_be_used_is_one_line_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    if !["server", "other"].into_iter().all(|name| certificate(folder, name, None)) {
        eprintln!("SKIPPED: no openssl to make certificates with");
        return;
    }
    std::fs::write(folder.join("empty.pem"), "").unwrap();
    std::fs::write(folder.join("long.pem"), vec![b'\n'; (1 << 20) + 1]).unwrap();
    for (cert, key, more, expected) in [
        ("empty.pem", "server.key", None, "--tls-cert empty.pem: no certificate in PEM: must have"),
        ("long.pem", "server.key", None, "long.pem: a longer file: must have at most 1048576 B"),
        ("server.pem", "other.key", None, "--tls-key other.key: the key of another certificate"),
        ("server.pem", "server.key", Some("server.key"), "--tls-client-ca server.key: no cert"),
    ] {
        let listen = ["kv", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
        let ca = more.map_or(vec![], |ca| vec!["--tls-client-ca", ca]);
        let refused = call(folder, &[&listen[..], &ca[..]].concat());
        assert_eq!((refused.code, refused.err.lines().count()), (2, 1), "{}", refused.err);
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
}

#[test]
fn a_certificate_that_has_expired_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let settings = "[ca]\ndefault_ca = d\n[d]\ndatabase = index\nserial = serial\n\
                    new_certs_dir = .\ndefault_md = sha256\npolicy = p\nx509_extensions = x\n\
                    [p]\ncommonName = supplied\n[x]\nsubjectAltName = IP:127.0.0.1\n";
    for (file, text) in [("ca.conf", settings), ("index", ""), ("serial", "01\n")] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let request = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
                   -keyout old.key -out old.csr";
    let sign = "ca -batch -notext -config ca.conf -selfsign -keyfile old.key -in old.csr \
                -out old.pem -startdate 20200101000000Z -enddate 20200201000000Z";
    for words in [request, sign] {
        let mut openssl = Command::new("openssl");
        let made = openssl.current_dir(folder).args(words.split_whitespace()).output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("SKIPPED: no openssl to make certificates with");
            return;
        }
    }
    let listen = ["kv", "--listen", "127.0.0.1:0", "--tls-cert", "old.pem", "--tls-key", "old.key"];
    let mut child = command(folder, &listen).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().expect("it starts").unwrap();
    let _ = child.kill();
    child.wait().unwrap();
    assert!(first.contains("old.pem: the certificate has expired: clients refuse it"), "{first}");
}
