//! Tests: the meaning of each response of a memory node for the operation.

use super::*;

const SEGMENT: Segment = Segment { address: Address(4096), bytes: 24 };
const PROCESS: ProcessId = ProcessId(7);

fn running(work: Work) -> Running {
    Running::of_one(OpId::new(0), PROCESS, work, Tries::first(0))
}

fn refused(status: ClioStatus, detail: u64) -> OperationError {
    OperationError::Refused { status, detail, at: 0 }
}

fn means(work: Work, error: OperationError) -> Error {
    let mut running = running(work);
    assert!(!running.take("node", SEGMENT, Err(error)));
    assert_eq!(running.open, 0);
    running.outcome().expect_err("it was refused")
}

#[test]
fn what_may_not_be_done_is_said_with_what_it_takes() {
    let address = SEGMENT.address;
    let other = Segment { address: Address(8192), bytes: 8 };
    for (work, at, needed) in [
        (Work::Read, address, Permissions::READ),
        (Work::Write, address, Permissions::WRITE),
        (Work::Modify, address, Permissions::READ_WRITE),
        (Work::Share(other, Permissions::READ), Address(8192), Permissions::READ),
        (Work::Offload("o".to_owned()), Address(77), Permissions::READ_WRITE),
    ] {
        let error = means(work, refused(ClioStatus::Permission, 77));
        assert_eq!(error, Error::Permission { address: at, needed });
    }
    let error = means(Work::Free(other), refused(ClioStatus::Unmapped, 0));
    assert_eq!(error, Error::Unmapped { address: other.address, bytes: 8 });
    let error = means(Work::Write, refused(ClioStatus::Unmapped, 0));
    assert_eq!(error, Error::Unmapped { address, bytes: 24 });
    let error = means(Work::Modify, refused(ClioStatus::Misaligned, 0));
    assert_eq!(error, Error::Misaligned { address });
}

#[test]
fn what_there_is_no_room_process_or_operation_for_is_said() {
    for status in [ClioStatus::Full, ClioStatus::Quota] {
        let error = means(Work::Alloc(99), refused(status, 5));
        assert_eq!(error, Error::Full { bytes: 99, free: 5 });
        assert!(matches!(means(Work::Write, refused(status, 5)), Error::Refused { .. }));
    }
    let processes = "the tenant may have no more processes at once; 0 are left";
    assert_eq!(problem(ClioStatus::Quota, 0), processes);
    let ended = means(Work::Read, refused(ClioStatus::NoSuchProcess, 7));
    assert_eq!(ended, Error::ProcessEnded { node: "node".to_owned() });
    let other = means(Work::Read, refused(ClioStatus::NoSuchProcess, 8));
    assert!(matches!(&other, Error::Refused { problem, .. } if problem == "it has no process 8"));
    let none = means(Work::Offload("o".to_owned()), refused(ClioStatus::NoSuchOffload, 0));
    assert!(matches!(&none, Error::NoSuchOffload { name, .. } if name == "o"));
    assert_eq!(means(Work::Read, OperationError::Lost), Error::Lost);
    let long = means(Work::Offload("o".to_owned()), OperationError::Length(70_000));
    assert_eq!(long, Error::TooLong { bytes: 70_000, most: OFFLOAD_BYTES_MAX });
    assert!(matches!(means(Work::Read, OperationError::Length(1)), Error::Refused { .. }));
}

#[test]
fn the_first_error_counts_and_a_lock_that_is_held_is_none() {
    let mut two = Running { open: 2, ..running(Work::Write) };
    two.take("node", SEGMENT, Err(refused(ClioStatus::Misaligned, 0)));
    two.take("node", SEGMENT, Err(refused(ClioStatus::Unmapped, 0)));
    two.fail(Error::Lost);
    assert_eq!(two.open, 0);
    assert_eq!(two.outcome(), Err(Error::Misaligned { address: SEGMENT.address }));
    let mut lock = running(Work::Lock { word: Address(8), holder: 3 });
    assert!(lock.take("node", SEGMENT, Err(refused(ClioStatus::Held, 0))));
    assert_eq!(lock.lock(), Some((Address(8), 3)));
    let (_, touched) = lock.again();
    assert_eq!((lock.open, touched), (1, Segment { address: Address(8), bytes: 8 }));
    assert!(!lock.take("node", touched, Ok(Completed::OwnerDied)));
    assert_eq!(lock.outcome(), Err(Error::OwnerDied { address: Address(8) }));
    assert_eq!(running(Work::Read).lock(), None);
}

#[test]
fn what_an_operation_at_the_node_gave_is_told_by_its_first_byte() {
    let gives = |bytes: &[u8]| {
        let mut running = running(Work::Offload("o".to_owned()));
        running.take("node", NOWHERE, Ok(Completed::Bytes(bytes.to_vec())));
        running.outcome()
    };
    assert_eq!(gives(&[ENDED_RESULT, 5, 6]), Ok(Reply::Bytes(vec![5, 6])));
    let failed = [&[ENDED_FAILED][..], b"why"].concat();
    let error = Error::Offload { name: "o".to_owned(), problem: "why".to_owned() };
    assert_eq!(gives(&failed), Err(error));
    let stopped = [&[ENDED_STOPPED, Stop::Fuel as u8][..], b"where"].concat();
    let (name, problem) = ("o".to_owned(), "where".to_owned());
    assert_eq!(gives(&stopped), Err(Error::OffloadStopped { name, why: Stop::Fuel, problem }));
    for nonsense in [&[][..], &[9], &[ENDED_STOPPED], &[ENDED_STOPPED, 99]] {
        assert!(matches!(gives(nonsense), Err(Error::Refused { .. })), "{nonsense:?}");
    }
    let mut read = running(Work::Read);
    read.take("node", SEGMENT, Ok(Completed::Bytes(vec![ENDED_RESULT])));
    assert_eq!(read.outcome(), Ok(Reply::Bytes(vec![ENDED_RESULT])), "a read's bytes are its own");
}

#[test]
fn a_read_is_tried_again_while_its_node_answers_others() {
    let mut tries = Tries::first(10);
    assert!(!tries.read_again(10), "nothing was heard since");
    assert!(tries.read_again(11));
    assert!(!tries.read_again(11));
    assert!(tries.read_again(12) && tries.read_again(13));
    assert!(!tries.read_again(14), "four times at most");
    assert_eq!(tries.count, 4);
    let segments: Segments = smallvec![SEGMENT, SEGMENT];
    assert!(running(Work::Read).read_again(1, SEGMENT).is_some());
    let gather = running(Work::Gather(segments)).read_again(1, SEGMENT);
    assert!(matches!(gather, Some(Ask::Gather(segments)) if segments.len() == 2));
    for work in [Work::Write, Work::Modify, Work::Alloc(1), Work::Offload(String::new())] {
        assert!(running(work).read_again(1, SEGMENT).is_none());
    }
}

#[test]
fn a_read_of_one_place_is_one_request_if_it_fits() {
    let read = |bytes| {
        let op = Op::Read(smallvec![Segment { address: Address(8), bytes }]);
        Running::read(OpId::new(0), PROCESS, &op, Tries::first(0)).is_some()
    };
    assert!(read(1) && read(REQUEST_BYTES_MAX));
    assert!(!read(REQUEST_BYTES_MAX + 1));
    let two = Op::Read(smallvec![SEGMENT, SEGMENT]);
    assert!(Running::read(OpId::new(0), PROCESS, &two, Tries::first(0)).is_none());
    assert!(Running::read(OpId::new(0), PROCESS, &Op::Fence, Tries::first(0)).is_none());
}
