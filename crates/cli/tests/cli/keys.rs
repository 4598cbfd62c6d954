//! A memory node and a pool with keys drawn from what the references allow: the node starts, the
//! pool opens, and what is written is read, whatever a user sets.

use std::fmt::Write as _;

use ethermem::{Parameter, Permissions, Pool, Region, SCHEMES, Segment, Thread, Values};
use proptest::prelude::*;

use crate::node::Running;
use crate::ring::{may, place};
use crate::support::{call, command};

const RW: Permissions = Permissions::READ_WRITE;
/// Bytes of a region of a machine thread.
const BYTES: u64 = 60_000;
/// Sizes of pages, in bytes, and their names.
const PAGES: [(u64, &str); 4] =
    [(4 << 10, "4KiB"), (64 << 10, "64KiB"), (2 << 20, "2MiB"), (4 << 20, "4MiB")];

/// A node's file, and the URL of a pool.
#[derive(Clone, Debug)]
struct Pair {
    /// Lines of `node.toml`; the folder has the file `t.key` of tenant 7.
    node: String,
    /// The port of the loopback on which it is a node of raw Ethernet.
    ring: Option<String>,
    scheme: &'static str,
    parameters: String,
    threads: usize,
}

/// A value of a range: an eighth each are the least and the greatest, the others are spread over
/// orders of magnitude.
fn value(least: u64, most: u64, draw: u64) -> u64 {
    let unit = (draw >> 11) as f64 / (1_u64 << 53) as f64;
    match draw % 8 {
        0 => least,
        1 => most,
        _ => most.min(least + (((most - least) as f64 + 1.0).powf(unit) - 1.0) as u64),
    }
}

/// A value of a parameter of a URL; `None` if it is drawn elsewhere.
fn parameter(parameter: &Parameter, draw: u64) -> Option<String> {
    Some(match parameter.values {
        // No operation fails for a machine that is busy for a while.
        Values::Number { least, most, .. } if parameter.name == "timeout_ms" => {
            value(least.max(2_000), most, draw).to_string()
        }
        Values::Number { least, most, .. } => value(least, most, draw).to_string(),
        Values::Size { least, most } => {
            (1_u64 << value(least.ilog2().into(), most.ilog2().into(), draw)).to_string()
        }
        Values::Text(_) if parameter.name == "via" => "lo".to_owned(),
        Values::Text(_) => return None,
    })
}

/// The lines of a node's file that are drawn, and whether datagrams are encrypted.
fn node_file(draws: [u64; 20]) -> (String, bool) {
    let mut draws = draws.into_iter();
    let mut next = || draws.next().expect("enough of them");
    let (page_bytes, page) = PAGES[next() as usize % PAGES.len()];
    let pages = (4 * BYTES).div_ceil(page_bytes).max(4);
    let memory = page_bytes * value(pages, pages.max((64 << 20) / page_bytes), next());
    let is_sealed = next() % 2 == 0;
    let mut text = format!("memory = {memory}\npage = \"{page}\"\n");
    let mut maybe = |key: &str, draw: u64, value: String| {
        if draw.is_multiple_of(2) {
            let _ = writeln!(text, "{key} = {value}");
        }
    };
    maybe("lease_s", next(), [0, 5, 60, 1_000_000_000][next() as usize % 4].to_string());
    maybe("poll_ms", next(), value(0, i64::MAX as u64, next()).to_string());
    maybe("drain_ms_max", next(), value(0, 600_000, next()).to_string());
    maybe("huge_pages", next(), (next() % 2 == 0).to_string());
    maybe("log_level", next(), ["\"error\"", "\"info\""][next() as usize % 2].to_owned());
    if is_sealed {
        text += "[[tenant]]\nname = \"one\"\nkey_file = \"t.key\"\n";
        let least = pages * page_bytes;
        for (key, least, most) in [
            ("memory_max", least, i64::MAX as u64),
            ("pages_max", pages, i64::MAX as u64),
            ("processes_max", 3, 65_535),
            // A tenant of few requests a second waits, and may wait in vain.
            ("operations_per_s_max", 20_000, i64::MAX as u64),
        ] {
            let draw = next();
            if draw.is_multiple_of(3) {
                let _ = writeln!(text, "{key} = {}", value(least, most, draw >> 2));
            }
        }
    } else {
        text.insert_str(0, "insecure = true\n");
    }
    (text, is_sealed)
}

fn pairs() -> impl Strategy<Value = Pair> {
    let keys = prop::collection::vec((any::<u16>(), any::<u64>()), 0..=4);
    let scheme = prop::sample::select(&["udp", "node", "ring"][..]);
    (any::<[u64; 20]>(), scheme, keys, 1..=2_usize).prop_map(|(draws, scheme, keys, threads)| {
        let (mut node, is_sealed) = node_file(draws);
        let ring = (scheme != "udp" && may()).then(|| place(2));
        let scheme = if scheme == "ring" && ring.is_none() { "udp" } else { scheme };
        if let Some(place) = &ring {
            node.insert_str(0, &format!("ring = \"{place}\"\n"));
        }
        let row = SCHEMES.iter().find(|row| row.name == scheme).expect("a row");
        let mut set = Vec::new();
        for (at, draw) in keys {
            let row = &row.parameters[usize::from(at) % row.parameters.len()];
            if set.iter().any(|(name, _)| *name == row.name) {
                continue;
            }
            set.extend(parameter(row, draw).map(|value| (row.name, value)));
        }
        if let (Some(place), "node") = (&ring, scheme) {
            set.push(("ring", place.clone()));
        }
        if is_sealed {
            set.push(("key", "t.key".to_owned()));
        }
        let parameters = set.iter().map(|(name, value)| format!("{name}={value}"));
        let parameters = parameters.collect::<Vec<_>>().join("&");
        Pair { node, ring, scheme, parameters, threads }
    })
}

/// A step of a machine thread: a place, a length, and what is done there.
type Step = (u64, u64, u8);

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![4 => 1..=64_u64, 2 => 1..=4_000_u64, 1 => 1..=BYTES / 2];
    (0..BYTES / 2, bytes, any::<u8>())
}

/// Does the steps on a region of its own, held against a model of it.
fn story(thread: &Thread, steps: &[Step]) -> Result<(), ethermem::Error> {
    let mut region = thread.alloc(BYTES, RW).wait()?;
    let mut model = vec![0_u8; BYTES as usize];
    for (count, &(at, bytes, choice)) in steps.iter().enumerate() {
        let (from, to) = (at as usize, (at + bytes) as usize);
        match choice % 8 {
            0 | 1 => {
                let data: Vec<u8> = (0..bytes).map(|octet| octet as u8 ^ choice).collect();
                region.write(at, &data).wait()?;
                model[from..to].copy_from_slice(&data);
            }
            2 => assert!(region.read(at, bytes).wait()? == model[from..to], "step {count}"),
            3 => {
                let word = at / 8 * 8;
                let place = &mut model[word as usize..][..8];
                let before = u64::from_le_bytes((&*place).try_into().expect("8 B"));
                place.copy_from_slice(&before.wrapping_add(bytes).to_le_bytes());
                assert_eq!(thread.fetch_add(region.at(word), bytes).wait()?, before);
            }
            4 => many(thread, &region, &mut model, (at, bytes, choice))?,
            5 => {
                let word = at / 8 * 8;
                region.write(word, &[0; 8]).wait()?;
                model[word as usize..][..8].fill(0);
                thread.lock(region.at(word)).wait()?;
                thread.unlock_wait(region.at(word))?;
                let held = region.read(word, 8).wait()?;
                model[word as usize..][..8].copy_from_slice(&held);
            }
            6 => thread.fence().wait()?,
            _ => {
                region.free().wait()?;
                region = thread.alloc(BYTES, RW).wait()?;
                model.fill(0);
            }
        }
    }
    assert!(region.read(0, BYTES).wait()? == model, "at the end");
    region.free().wait()
}

/// Writes that are under way at once, then a read of many places.
fn many(
    thread: &Thread,
    region: &Region,
    model: &mut [u8],
    (at, bytes, choice): Step,
) -> Result<(), ethermem::Error> {
    let length = bytes.min(700);
    let places: Vec<u64> = (0..20).map(|nth| (at + nth * 1_000) % (BYTES - 700)).collect();
    let writes = places.iter().map(|&place| {
        let data = vec![place as u8 ^ choice; length as usize];
        model[place as usize..][..data.len()].copy_from_slice(&data);
        region.write(place, &data)
    });
    let writes: Vec<_> = writes.collect();
    thread.release().wait()?;
    for write in writes {
        write.wait()?;
    }
    let segments: Vec<Segment> =
        places.iter().map(|&place| Segment { address: region.at(place), bytes: length }).collect();
    let expected: Vec<u8> = places
        .iter()
        .flat_map(|&place| model[place as usize..][..length as usize].to_vec())
        .collect();
    assert!(thread.gather(&segments).wait()? == expected, "places from {at} on");
    Ok(())
}

/// Starts the node, opens the pool, and does the steps; what refuses the pool's parameters.
fn run(pair: &Pair, steps: &[Step]) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let key = call(path, &["keygen", "--tenant", "7", "--out", "t.key"]);
    assert_eq!(key.code, 0, "{}", key.err);
    let listen = if pair.scheme == "ring" { "" } else { "listen = \"127.0.0.1:0\"\n" };
    let file = format!("{listen}metrics_listen = \"127.0.0.1:0\"\ncontrol = \"c\"\n{}", pair.node);
    std::fs::write(path.join("node.toml"), &file).expect("writable");
    let node = Running::of(command(path, &["node", "--config", "node.toml"]), true);
    let place = match &pair.ring {
        Some(place) if pair.scheme == "ring" => place.clone(),
        _ => node.address().to_owned(),
    };
    let key = path.join("t.key");
    let parameters = pair.parameters.replace("t.key", &key.display().to_string());
    let url = format!("{}://{place}?{parameters}", pair.scheme);
    let pool = Pool::open(&url).map_err(|error| error.to_string())?;
    std::thread::scope(|scope| {
        let thread = |_| {
            let thread = pool.thread().expect("a process");
            scope.spawn(move || story(&thread, steps))
        };
        for thread in (0..pair.threads).map(thread).collect::<Vec<_>>() {
            let done = thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
            assert_eq!(done, Ok(()), "{url} of\n{file}");
        }
    });
    let status =
        call(path, &["node", "status", "--metrics-address", node.metrics().expect("metrics")]);
    assert_eq!(status.code, 0, "{}", status.err);
    drop(pool);
    node.terminate();
    let (code, said) = node.ended();
    assert_eq!(code, Some(0), "{said}");
    Ok(())
}

proptest! {
    #![proptest_config(crate::property::cases(32))]

    #[test]
    fn a_pool_of_any_keys_reads_what_it_wrote(
        pair in pairs(),
        steps in prop::collection::vec(step(), 1..24),
    ) {
        // Parameters that do not fit together are refused by name, which is tested elsewhere.
        if let Err(refused) = run(&pair, &steps) {
            prop_assert!(refused.starts_with("parameter `"), "{refused}");
        }
    }
}
