//! A file of `golden/wire`, compared or rewritten.

use std::path::Path;

pub(crate) fn compare(name: &str, vectors: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/wire").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, vectors).expect("golden/wire is writable");
    }
    let golden = std::fs::read_to_string(&path).expect("golden/wire is there");
    for (number, (golden, now)) in golden.lines().zip(vectors.lines()).enumerate() {
        assert_eq!(golden, now, "{name}, line {}", number + 1);
    }
    assert_eq!(golden.len(), vectors.len(), "{name} is longer or shorter");
}
