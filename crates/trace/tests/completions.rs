//! Completion times written and read back, by fabric.

#[path = "support/damage.rs"]
mod damage;

use std::fs;

use damage::Damage;
use ethermem_trace::{
    Completion, CompletionTimes, CompletionWriter, FlowKind, check_completion_times,
};
use ethermem_units::{Bytes, Ps};
use proptest::prelude::*;

fn completion(index: u64) -> Completion {
    Completion {
        time: Ps(index * 1_001),
        cluster: index as u16 % 9,
        compute: index as u16 % 144,
        memory: index as u16 % 143,
        kind: FlowKind::ALL[index as usize % 5],
        bytes: Bytes(1 + index),
        completion: Ps(2_000_001 + index),
        alone: Ps(1_999_999),
        prefetched: index.is_multiple_of(6),
    }
}

fn write(path: &std::path::Path, fabrics: &[(&str, u64)]) {
    let mut writer = CompletionWriter::create(path).expect("a file of a test");
    for (fabric, count) in fabrics {
        writer.fabric(fabric).expect("rows are written");
        for index in 0..*count {
            writer.push(completion(index)).expect("rows are written");
        }
    }
    assert!(!path.exists(), "it appears whole");
    writer.finish(&[("seed", "7".to_owned())]).expect("a file of a test");
}

#[test]
fn every_fabric_gets_its_own_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    // More than one row group.
    write(&path, &[("edm", 70_000), ("tcp", 3), ("dctcp", 0)]);
    for (fabric, count) in [("edm", 70_000), ("tcp", 3), ("dctcp", 0)] {
        let times = CompletionTimes::open(&path, Some(fabric)).unwrap();
        assert_eq!(times.fabric(), fabric);
        let found: Vec<Completion> = times.map(Result::unwrap).collect();
        assert!(found.into_iter().eq((0..count).map(completion)), "{fabric}");
    }
    let refused = |fabric| CompletionTimes::open(&path, fabric).err().unwrap().to_string();
    let name = path.display();
    assert_eq!(refused(None), format!("{name}: several fabrics: name one of edm,tcp,dctcp"));
    assert_eq!(refused(Some("x")), format!("{name}: no fabric x: must be edm,tcp,dctcp"));
    let path = folder.path().join("one.parquet");
    write(&path, &[("phost", 1)]);
    assert_eq!(CompletionTimes::open(&path, None).unwrap().fabric(), "phost");
}

#[test]
fn a_page_trace_holds_no_completion_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let writer = ethermem_trace::Writer::create(&path, Bytes(4096)).unwrap();
    let summary = ethermem_trace::Summary {
        local: Bytes(0),
        peak: Bytes(0),
        duration: ethermem_units::Ns(0),
        command: String::new(),
        ended: ethermem_trace::Ended::Exit(0),
        prefetched_accesses: None,
        unrecorded_accesses: 0,
    };
    writer.finish(&summary).unwrap();
    let error = CompletionTimes::open(&path, None).err().unwrap().to_string();
    let expected = "no ethermem.completion_times in its metadata: must be a file of `ethermem \
                    replay --out`";
    assert_eq!(error, format!("{}: {expected}", path.display()));
}

proptest! {
    #[test]
    fn a_damaged_file_does_no_harm(
        damage in Damage::any(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.parquet");
        write(&path, &[("edm", 300)]);
        let bytes = fs::read(&path).unwrap();
        prop_assert_eq!(check_completion_times(&bytes), 300);
        check_completion_times(&damage.done_to(bytes));
    }
}
