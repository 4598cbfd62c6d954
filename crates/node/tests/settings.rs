//! `node.toml`: its keys, their reference page, and refusals.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ethermem_clio::memory::PageSize;
use ethermem_clio::offload::OffloadLimits;
use ethermem_node::{
    KEYS, Key, LogFormat, LogLevel, NodeFile, OFFLOAD_KEYS, OffloadOptions, SettingsError,
    TENANT_KEYS,
};
use ethermem_udp::seal::KeyFile;
use ethermem_wasm::ModuleOptions;
use ethermem_wire::clio::TenantId;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn table(keys: &[Key]) -> String {
    let mut text = "| key | values | default | meaning |\n|---|---|---|---|\n".to_owned();
    for Key { name, values, default, meaning } in keys {
        writeln!(text, "| `{name}` | {values} | {default} | {meaning} |").unwrap();
    }
    text
}

#[test]
fn the_reference_page_lists_every_key_as_it_is() {
    let page = fs::read_to_string(root().join("docs/reference/node.md")).unwrap();
    for keys in [&KEYS[..], &TENANT_KEYS, &OFFLOAD_KEYS] {
        assert!(page.contains(&table(keys)), "docs/reference/node.md lacks:\n{}", table(keys));
    }
}

/// The names that a refusal lists.
fn expected(error: &str) -> Vec<&str> {
    error.split("expected one of ").nth(1).unwrap().split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_key_that_is_documented_is_read_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.toml");
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        NodeFile::read(&path).unwrap_err().to_string()
    };
    let unknown = refused("memory = 1\n\nspeed = 3\n");
    assert!(unknown.contains("node.toml:3: unknown field `speed`"), "{unknown}");
    let mut names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    names.extend(["tenant", "offload"]);
    assert_eq!(expected(&unknown), names);
    let unknown = refused("[[tenant]]\nspeed = 3\n");
    let names: Vec<&str> = TENANT_KEYS.iter().map(|key| key.name).collect();
    assert_eq!(expected(&unknown), names);
    let unknown = refused("[offload.a]\nspeed = 3\n");
    let names: Vec<&str> = OFFLOAD_KEYS.iter().map(|key| key.name).collect();
    assert_eq!(expected(&unknown), names);
    for (text, says) in [
        ("page = \"8KiB\"\n", "must be one of 4KiB, 64KiB, 2MiB, 4MiB"),
        (
            "listen = \"somewhere\"\n",
            "node.toml:1: listen: must be an IP address and a port, such as 127.0.0.1:7400",
        ),
        (
            "ring = \"a:0\"\n",
            "node.toml:1: ring \"a:0\": must be INTERFACE or INTERFACE:PORT, port 1 to 65535",
        ),
        (
            "ring = \"a/02:00:00:00:00:01\"\n",
            "must be INTERFACE or INTERFACE:PORT, port 1 to 65535",
        ),
        (
            "poll_ms = -1\n",
            "node.toml:1: poll_ms: invalid value: integer `-1`: must be a whole number from 0",
        ),
        (
            "memory = \"much\"\n",
            "node.toml:1: memory: invalid value: string \"much\": must be bytes",
        ),
        ("memory = -1\n", "node.toml:1: memory: invalid value: integer `-1`: must be bytes, or"),
        (
            "insecure = 1\n",
            "node.toml:1: insecure: invalid type: integer `1`: must be true or false",
        ),
        (
            "control = 1\n",
            "node.toml:1: control: invalid type: integer `1`: must be a path in quotes",
        ),
        ("log_format = \"xml\"\n", "`text`"),
        ("[[tenant]]\nname = \"a\"\n", "node.toml:1: no `key_file`: must be given"),
    ] {
        let refused = refused(text);
        assert!(refused.contains(says) && !refused.contains('\n'), "{text:?}: {refused}");
    }
}

#[test]
fn what_a_file_says_is_what_the_node_is_and_flags_count_over_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("keys")).unwrap();
    for (name, tenant) in [("a", 3), ("b", 4)] {
        let key = KeyFile::generate(TenantId(tenant)).unwrap();
        key.write(&folder.path().join(format!("keys/{name}.key"))).unwrap();
    }
    let path = folder.path().join("node.toml");
    let text = r#"
memory = "8MiB"
page = "4KiB"
listen = "[::1]:7000"
ring = "eth7:7001"
lease_s = 60
poll_ms = 5
drain_ms_max = 100
huge_pages = false
numa_node = 0
metrics_listen = "127.0.0.1:7001"
log_format = "json"
log_level = "warn"

[[tenant]]
name = "a"
key_file = "keys/a.key"
memory_max = "1MiB"
pages_max = 100
processes_max = 7
operations_per_s_max = 1000

[[tenant]]
name = "b"
key_file = "keys/b.key"
"#;
    fs::write(&path, text).unwrap();
    let file = NodeFile::read(&path).unwrap();
    let settings = file.settings().unwrap();
    let node = &settings.node;
    assert_eq!((node.memory.0, node.page, node.insecure), (8 << 20, PageSize::Kib4, false));
    assert_eq!(node.listen.udp.unwrap().to_string(), "[::1]:7000");
    assert_eq!((node.lease, node.huge_pages), (Some(Duration::from_secs(60)), false));
    assert_eq!(node.numa_node, Some(0));
    assert_eq!(settings.poll_for, Duration::from_millis(5));
    assert_eq!(settings.drain_for, Duration::from_millis(100));
    assert_eq!((settings.log_format, settings.log_level), (LogFormat::Json, LogLevel::Warn));
    assert_eq!(settings.metrics_listen.unwrap().port(), 7001);
    let [a, b] = &node.tenants[..] else { panic!("two tenants") };
    assert_eq!((a.name.as_str(), a.key.tenant), ("a", TenantId(3)));
    let quota = (a.quota.memory_bytes, a.quota.processes, a.quota.requests_per_s);
    assert_eq!(quota, (100 * 4096, 7, 1000));
    assert_eq!(b.quota, ethermem_clio::node::Quota::UNLIMITED);
    let flags = NodeFile { poll_ms: Some(9), ..NodeFile::default() };
    let both = flags.over(file.clone()).settings().unwrap();
    assert_eq!(both.poll_for, Duration::from_millis(9));
    assert_eq!(both.node, settings.node);
    let empty = NodeFile::default().settings();
    assert!(matches!(empty, Err(SettingsError::Memory)), "{empty:?}");
    let long = NodeFile { drain_ms_max: Some(600_001), ..file.clone() };
    let refused = long.settings().unwrap_err().to_string();
    assert_eq!(refused, "drain_ms_max = 600001: must be milliseconds, 0 to 600,000");
    let mut stopped = file.clone();
    stopped.tenant[0].operations_per_s_max = Some(0);
    let refused = stopped.settings().unwrap_err().to_string();
    assert_eq!(refused, "operations_per_s_max = 0: must be at least 1");
    stopped.tenant[0].operations_per_s_max = Some(1);
    assert_eq!(stopped.settings().unwrap().node.tenants[0].quota.requests_per_s, 1);
    let twice = file.clone().over(file);
    let refused = twice.settings().unwrap_err().to_string();
    assert_eq!(refused, "two tenants named \"a\": must have different names");
}

#[test]
fn what_a_file_says_of_modules_is_what_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let key = KeyFile::generate(TenantId(4)).unwrap();
    key.write(&folder.path().join("b.key")).unwrap();
    fs::write(folder.path().join("count.wasm"), b"a module").unwrap();
    let text = r#"
memory = "8MiB"

[[tenant]]
name = "b"
key_file = "b.key"
offload_fuel_max = 5
offload_memory_max = "64KiB"
offloads_max = 2

[offload.count]
file = "count.wasm"
own_space = true
fuel_max = 9
memory_max = "1MiB"
tenants = ["b"]
"#;
    let path = folder.path().join("node.toml");
    fs::write(&path, text).unwrap();
    let file = NodeFile::read(&path).unwrap();
    let node = file.settings().unwrap().node;
    let limits = OffloadLimits { fuel_max: 5, memory_bytes_max: 64 << 10, loaded_max: 2 };
    assert_eq!(node.tenants[0].quota.offload, limits);
    let options = ModuleOptions { fuel_max: 9, memory_bytes_max: 1 << 20, own_space: true };
    let (name, module) = ("count".to_owned(), b"a module".to_vec());
    let tenants = Some(vec![TenantId(4)]);
    assert_eq!(node.offloads, [OffloadOptions { name, module, options, tenants }]);
    for (before, after, says) in [
        (
            "\nfuel_max = 9",
            "\nfuel_max = 0",
            "\"count\": fuel_max = 0: must be units of fuel, 1 to 1,000,000,000,000",
        ),
        (
            "\nfuel_max = 9",
            "\nfuel_max = 1000000000001",
            "\"count\": fuel_max = 1000000000001: must",
        ),
        ("= \"1MiB\"", "= 4294967297", "\"count\": memory_max = 4294967297: must be size up to"),
        ("fuel_max = 5", "fuel_max = 0", "offload_fuel_max = 0: must be units of fuel, 1 to"),
        ("\"64KiB\"", "\"5GiB\"", "offload_memory_max = 5368709120: must be size up to `\"4GiB\"`"),
        ("\"b\"]", "\"c\"]", "offload \"count\": tenant \"c\": must be one of b"),
        ("count.wasm", "none.wasm", "none.wasm: No such file"),
        ("[offload.count]", "[offload.\"a b\"]", "must be 1 to 64 of a-z"),
    ] {
        fs::write(&path, text.replace(before, after)).unwrap();
        let refused = NodeFile::read(&path).unwrap().settings().unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn the_file_of_the_guide_is_one() {
    let guide = fs::read_to_string(root().join("docs/how-to/run-a-memory-node.md")).unwrap();
    let text = guide.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.toml");
    fs::write(&path, text).unwrap();
    let file = NodeFile::read(&path).unwrap();
    assert!(file.memory.is_some() && file.tenant.len() == 2 && file.metrics_listen.is_some());
}

/// Runs systemd's own check, with an existing program in place of ours.
#[test]
fn the_unit_is_one_that_systemd_takes() {
    let unit = fs::read_to_string(root().join("tools/ethermem-node.service")).unwrap();
    let ours = "ExecStart=/usr/local/bin/ethermem node --config /etc/ethermem/node.toml";
    assert!(unit.contains(ours));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ethermem-node.service");
    fs::write(&path, unit.replace(ours, "ExecStart=/bin/true")).unwrap();
    let verified = Command::new("systemd-analyze").arg("verify").arg(&path).output();
    let Ok(verified) = verified else {
        let skipped = "SKIPPED: the unit of systemd: systemd-analyze is not installed";
        let _ = writeln!(std::io::stderr(), "{skipped}");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    let own = said.lines().find(|line| line.contains("ethermem-node.service"));
    assert!(verified.status.success() && own.is_none(), "{said}");
}

/// A killed client's memory is freed, unless the lease is disabled.
#[test]
fn a_process_has_a_lease_unless_it_is_said_to_have_none() {
    let lease = |text: &str| {
        let file = NodeFile::parse(&format!("memory = \"1MiB\"\n{text}"), Path::new("node.toml"));
        file.unwrap().settings().map(|settings| settings.node.lease)
    };
    assert_eq!(lease("").unwrap(), Some(Duration::from_secs(60)));
    assert_eq!(lease("lease_s = 1").unwrap(), Some(Duration::from_secs(1)));
    assert_eq!(lease("lease_s = 0").unwrap(), None);
    let refused = lease("lease_s = 1000000001").unwrap_err().to_string();
    assert_eq!(refused, "lease_s = 1000000001: must be seconds, 0 to 1,000,000,000");
}
