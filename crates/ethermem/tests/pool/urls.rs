//! Tests of URLs.

use std::path::Path;

use ethermem::{OpenError, Parameter, Pool, SCHEMES, Unless, Values};

fn refused(url: &str) -> String {
    match Pool::open(url) {
        Err(error) => error.to_string(),
        Ok(pool) => panic!("{pool:?} was opened"),
    }
}

#[test]
fn good_names_open() {
    for url in [
        "local:",
        "local:?memory_bytes=4096",
        "sim:edm",
        "sim:edm?nodes=2",
        "sim:edm?nodes=144&link_gbps=100&load=0.6",
        "sim:edm?nodes=16&chunk_bytes=128&policy=fcfs&seed=7",
        "sim:edm?fabric.nodes=4&fabric.edm.chunk_bytes=512",
        "sim:cxl?nodes=8&memory_nodes=1&memory_access_ns=0",
        "sim:dctcp?nodes=16&load=0.2&size_cdf=",
    ] {
        let pool = Pool::open(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(pool.url(), url);
    }
}

#[test]
fn a_bad_name_is_refused_with_what_is_wrong() {
    for (url, part) in [
        ("", "``: must be one of local:, sim:FABRIC"),
        ("memory", "`memory`: must be"),
        ("rdma://host:1", "scheme `rdma`: must be"),
        ("udp:", "`udp:`: must be udp://HOST:PORT"),
        ("udp://", "`udp://`: must be udp://HOST:PORT"),
        ("udp://host", "`udp://host`: must be"),
        ("udp://:7400", "`udp://:7400`: must be"),
        ("udp://host:0", "port 1 to 65535"),
        ("udp://fd77::1:7410", "`udp://fd77::1:7410`: must be udp://HOST:PORT or udp://[IPV6]"),
        ("node://fd77::1:7410", "`node://fd77::1:7410`: must be node://HOST:PORT"),
        ("udp://[fd77::1:7410", "`udp://[fd77::1:7410`: must be"),
        ("udp://[host]:7410", "`udp://[host]:7410`: must be"),
        ("udp://host:70000", "port 1 to 65535"),
        ("udp://127.0.0.1:7400?windw=1", "parameter `windw`: must be one of cache_bytes"),
        ("udp://127.0.0.1:7400?key=/none/a.key", "parameter `key`: /none/a.key: "),
        ("udp://127.0.0.1:7400?window=0", "parameter `window`: `0`: must be 1 to 65535"),
        ("udp://127.0.0.1:7400?timeout_ms=5000", "`5000`: must be 10 to 4500"),
        ("udp://127.0.0.1:7400?datagram_bytes=9", "`9`: must be 256 to 65507"),
        ("udp://127.0.0.1:7400?poll_us=-1", "parameter `poll_us`: `-1`"),
        ("udp://127.0.0.1:7400?ring=lo", "parameter `ring`: must be one of cache_bytes"),
        ("node:", "`node:`: must be node://HOST:PORT"),
        ("node://eth0", "`node://eth0`: must be node://HOST:PORT or node://[IPV6]:PORT"),
        ("node://127.0.0.1:7400?ring=", "parameter `ring`: ``: must be INTERFACE[:PORT]"),
        ("node://127.0.0.1:7400?ring=lo:0", "parameter `ring`: `lo:0`: must be INTERFACE"),
        ("node://127.0.0.1:7400?rings=lo", "must be one of cache_bytes, datagram_bytes"),
        ("node://127.0.0.1:7400?rings=lo", "poll_us, ring, tenant"),
        ("ring:lo", "`ring:lo`: must be ring://INTERFACE[:PORT] or ring://"),
        ("ring://", "`ring://`: must be"),
        ("ring://lo:0", "port 1 to 65535"),
        ("ring://lo/02:00", "`ring://lo/02:00`: must be"),
        ("ring://lo/ff:ff:ff:ff:ff:ff", "must be ring://INTERFACE"),
        ("ring://lo?speed=1", "parameter `speed`: must be one of cache_bytes"),
        ("ring://no-such-one", "ring://no-such-one: interface `no-such-one`: there is none of"),
        ("LOCAL:", "scheme `LOCAL`"),
        ("local:here", "`local:` has no place, and `here` was given"),
        ("local:?nodes=2", "parameter `nodes`: must be one of memory_bytes"),
        ("local:?memory_bytes=0", "parameter `memory_bytes`: `0`: must be 1 to"),
        ("local:?memory_bytes=lots", "`lots`"),
        ("sim:", "fabric ``: must be one of edm, raw-ethernet"),
        ("sim:rocket", "fabric `rocket`: must be one of edm"),
        ("sim:edm?node=2", "parameter `node`: must be "),
        ("sim:edm?nodes=1", "fabric.nodes"),
        ("sim:edm?nodes=two", "fabric.nodes"),
        ("sim:edm?kind=roce", "parameter `kind`: `roce`: the place says `edm`"),
        ("sim:homa?fabric.kind=edm", "parameter `fabric.kind`: `edm`: the place says `homa`"),
        ("sim:edm?nodes=8&memory_nodes=8", "parameter `memory_nodes`: 8: must be 1 to 7"),
        ("sim:edm?nodes=8&memory_nodes=0", "parameter `memory_nodes`: `0`"),
        ("sim:edm?load=1.5", "workload.load"),
        ("sim:edm?link_gbps=3", "fabric.link_gbps"),
        ("sim:edm?nodes=2\n&x=1", "parameter"),
    ] {
        check_refused(url, part);
    }
}

#[test]
fn a_cache_that_cannot_be_is_refused_with_what_it_must_be() {
    for (url, part) in [
        ("udp://127.0.0.1:7400?cache_bytes=0", "`cache_bytes`: `0`: must be a power of two, 4KiB"),
        ("udp://127.0.0.1:7400?cache_bytes=3MiB", "`3MiB`: must be a power of two, 4KiB to 1GiB"),
        ("udp://127.0.0.1:7400?cache_bytes=2GiB", "`2GiB`: must be a power of two, 4KiB to 1GiB"),
        (
            "udp://127.0.0.1:7400?cache_bytes=64 MB",
            "`cache_bytes`: `64 MB`: must be a power of two",
        ),
        ("udp://127.0.0.1:7400?cache_bytes=", "`cache_bytes`: ``: must be a power of two"),
        ("ring://lo?cache_bytes=-1", "`cache_bytes`: `-1`: must be a power of two"),
        ("node://127.0.0.1:7400?cache_bytes=18446744073709551616KiB", "must be a power of two"),
        ("udp://127.0.0.1:7400?line_bytes=64", "`line_bytes`: must stand beside `cache_bytes`"),
        (
            "udp://127.0.0.1:7400?cache_bytes=64KiB&line_bytes=32",
            "`line_bytes`: `32`: must be a power of two, 64 to 4KiB",
        ),
        ("udp://127.0.0.1:7400?cache_bytes=64KiB&line_bytes=96", "`96`: must be a power of two"),
        (
            "udp://127.0.0.1:7400?cache_bytes=8KiB&line_bytes=4KiB",
            "`line_bytes`: `4096`: must be at most 2048, a quarter of the cache",
        ),
        ("udp://127.0.0.1:7400?cache=64KiB", "`cache`: must be one of cache_bytes, datagram_bytes"),
        ("local:?cache_bytes=64KiB", "parameter `cache_bytes`: must be one of memory_bytes"),
        ("sim:cxl-ethernet?cache_bytes=100", "cache_bytes = 100: must be 0, or a power of two"),
        (
            "sim:cxl-ethernet?cache_bytes=64MiB",
            "must be 0, or a power of two from 256 to 1073741824",
        ),
        ("sim:edm?cache_bytes=64", "parameter `cache_bytes`: must be "),
    ] {
        check_refused(url, part);
    }
}

/// Opening the URL fails with one line that has this part.
fn check_refused(url: &str, part: &str) {
    let said = refused(url);
    assert!(said.contains(part), "{url}: {said}");
    assert!(!said.contains('\n'), "{url}: {said}");
}

#[test]
fn parameters_are_named_as_short_as_they_may_be() {
    let Err(OpenError::UnknownParameter { allowed, .. }) = Pool::open("sim:edm?x=1") else {
        panic!("x is no parameter");
    };
    let allowed: Vec<&str> = allowed.split(", ").collect();
    for name in ["nodes", "link_gbps", "chunk_bytes", "load", "seed", "memory_nodes"] {
        assert!(allowed.contains(&name), "{name} in {allowed:?}");
    }
    assert!(!allowed.contains(&"fabric.nodes"));
}

/// The part of the reference that is made from the table. `UPDATE_GOLDEN=1` rewrites it.
#[test]
fn the_page_of_urls_is_the_table() {
    const FROM: &str = "<!-- made from crates/ethermem/src/table.rs -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/urls.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, table) = page.split_once(FROM).expect("the page says where the table begins");
    let made = ethermem::schemes_markdown(&SCHEMES);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{head}{FROM}\n{made}")).unwrap();
    } else {
        assert_eq!(table.trim_start(), made, "run the test with UPDATE_GOLDEN=1 to write it");
    }
}

#[test]
fn every_row_has_its_feature_and_its_parameters_in_order() {
    for scheme in SCHEMES {
        assert!(scheme.open.is_some(), "{}: this build has all features", scheme.name);
        let names: Vec<&str> = scheme.parameters.iter().map(|parameter| parameter.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for Parameter { name, values, unless_said, .. } in scheme.parameters {
            if let (
                Values::Number { least, most, .. } | Values::Size { least, most },
                Unless::Number(number),
            ) = (values, unless_said)
            {
                assert!((least..=most).contains(&number), "{name}");
            }
        }
    }
}
