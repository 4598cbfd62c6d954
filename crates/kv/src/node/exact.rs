//! Tests of requests at the limits of an answer, of a region and of a table.

use ethermem::{Address, Offload};

use super::faults::{BASE, Memory, REGION, crowded, extend, grow, key, of_key, put};
use super::{KEY_HEAD_BYTES, KEY_IS_APART, KeyValue};
use crate::call::{Answer, Became, Request, What, When, append_part, links, parts};
use crate::layout::HEAP_BYTES_AT;
use crate::link::{Class, Link};
use crate::record::{RECORD_BYTES_MAX, hash_of, word};

const REGION_BYTES: u64 = 1 << 20;

fn scan(operand: u64, tag: u64) -> Request<'static> {
    Request { operand, tag, ..Request::new(What::Scan, BASE) }
}

fn take(class: Class, tag: u64) -> Request<'static> {
    Request { operand: class.number() as u64, tag, ..Request::new(What::Take, BASE) }
}

#[test]
fn a_node_is_told_which_requests_change_nothing() {
    let changes = |what| {
        let mut arguments = Vec::new();
        Request::new(what, BASE).encode(&mut arguments);
        KeyValue::default().changes(&arguments)
    };
    for what in [What::Get, What::Scan] {
        assert!(!changes(what), "{what:?}");
    }
    for what in [
        What::Put,
        What::Link,
        What::Delete,
        What::Take,
        What::Give,
        What::Extend,
        What::Grow,
        What::Move,
        What::Clear,
    ] {
        assert!(changes(what), "{what:?}");
    }
    let many_change = |requests: &[Request<'_>]| {
        let mut arguments = Vec::new();
        many(&parts_of(requests)).encode(&mut arguments);
        KeyValue::default().changes(&arguments)
    };
    let (get, put) = (of_key(What::Get, b"a"), put(b"b", b"1"));
    assert!(!many_change(&[get, get]));
    assert!(many_change(&[get, put, get]));
    assert!(many_change(&[get, of_key(What::Many, b"")]));
    assert!(KeyValue::default().changes(b"no request"));
}

fn parts_of(requests: &[Request<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for request in requests {
        append_part(&mut bytes, |to| request.append(to));
    }
    bytes
}

fn many(parts: &[u8]) -> Request<'_> {
    Request { value: parts, ..Request::new(What::Many, BASE) }
}

/// The answers to a [`What::Many`].
fn answers_of(answered: &[u8]) -> Vec<Vec<u8>> {
    let all = Answer::decode(answered).expect("an answer");
    let each: Vec<Vec<u8>> = parts(all.bytes).map(<[u8]>::to_vec).collect();
    assert_eq!((all.became, all.operand), (Became::Done, each.len() as u64));
    each
}

/// What one message does is what its requests do one after the other, byte for byte, up to where it
/// ends; and where an access fails, the requests before it were done and no other.
#[test]
fn many_requests_are_done_in_order_and_up_to_a_fault() {
    let before = crowded();
    let keys: Vec<Vec<u8>> = (0..14).map(key).collect();
    let requests: Vec<Request<'_>> = keys
        .iter()
        .enumerate()
        .flat_map(|(at, key)| {
            let change = match at % 3 {
                0 => put(key, &[1; 700]),
                1 => of_key(What::Delete, key).when(When::Always),
                _ => put(key, b"new"),
            };
            [change, of_key(What::Get, key)]
        })
        .collect();
    let message = parts_of(&requests);
    let (mut one_by_one, mut after) = (before.clone(), vec![before.bytes.clone()]);
    let expected: Vec<Vec<u8>> = requests
        .iter()
        .map(|request| {
            let answer = one_by_one.run(request).expect("nothing fails");
            after.push(one_by_one.bytes.clone());
            answer
        })
        .collect();
    let mut whole = before.clone();
    let answered = whole.run(&many(&message)).expect("nothing fails");
    assert_eq!(answers_of(&answered), expected);
    assert!(whole.bytes == one_by_one.bytes);
    for fails_at in 0..whole.accesses {
        let mut memory = Memory { accesses: 0, fails_at, ..before.clone() };
        let done = memory.run(&many(&message)).map_or(Vec::new(), |answer| answers_of(&answer));
        assert_eq!(done, expected[..done.len()], "access {fails_at}");
        assert!(memory.bytes == after[done.len()], "access {fails_at}");
    }
}

#[test]
fn many_requests_end_behind_a_value_that_is_apart_and_before_one_that_needs_memory() {
    let mut memory = crowded();
    let (apart, here) = (key(3), key(4));
    let requests = [of_key(What::Get, &here), of_key(What::Get, &apart), put(&apart, b"later")];
    let answered = memory.run(&many(&parts_of(&requests))).expect("nothing fails");
    assert_eq!(answers_of(&answered).len(), 2);
    assert_eq!(Answer::decode(&answers_of(&answered)[1]).unwrap().became, Became::Elsewhere);

    let class = Class::holding(REGION_BYTES / 2);
    memory.run(&take(class, 1024)).expect("nothing fails");
    for class in (1..=Class::holding(20_000).number() as u64).filter_map(Class::new) {
        while Answer::decode(&memory.run(&take(class, 1024)).unwrap()).unwrap().became
            == Became::Done
        {}
    }
    let full = memory.clone();
    let value = vec![9; 8_000];
    let needs = put(&here, &value);
    for (requests, answers) in [(vec![of_key(What::Get, &here), needs], 1), (vec![needs], 1)] {
        let answered = memory.run(&many(&parts_of(&requests))).expect("nothing fails");
        assert_eq!(answers_of(&answered).len(), answers);
        assert!(memory.bytes == full.bytes, "nothing was changed");
    }
    assert!(memory.run(&many(&[])).is_ok_and(|answer| answers_of(&answer).is_empty()));
    for wrong in [
        of_key(What::Scan, b""),
        of_key(What::Many, b""),
        Request { shard: Address(0), ..of_key(What::Get, b"k") },
    ] {
        assert!(memory.run(&many(&parts_of(&[wrong]))).is_err(), "{wrong:?}");
    }
}

/// A block that was taken for a copy is free again where the record itself found none.
#[test]
fn a_request_that_needs_memory_changes_nothing() {
    let memory = crowded();
    for at in 0..14 {
        let (mut memory, key) = (memory.clone(), key(at));
        // All that is left is short blocks, for copies of short records.
        let long = Class::holding(4_000).number() as u64;
        for class in (long..=Class::holding(1 << 20).number() as u64).rev() {
            let class = Class::new(class).expect("a class");
            while Answer::decode(&memory.run(&take(class, 1024)).unwrap()).unwrap().became
                == Became::Done
            {}
        }
        let before = memory.bytes.clone();
        let answered = memory.run(&put(&key, &[7; 5_000])).expect("nothing fails");
        assert_eq!(Answer::decode(&answered).unwrap().became, Became::NeedsRegion);
        assert!(memory.bytes == before, "key {at}");
    }
}

#[test]
fn what_is_left_of_a_region_is_free_to_its_last_byte() {
    for taken in [16, 112, 272, 1000, 4096, 100_000] {
        let mut memory = Memory::new();
        let first = memory.take(taken);
        memory.ask(&extend(REGION_BYTES, REGION + REGION_BYTES, 4096));
        let mut free = memory.free_blocks();
        free.sort_by_key(|link| link.at(0));
        let mut at = first.at(0).add(first.bytes());
        for link in free {
            assert_eq!(link.at(0), at, "after {taken} B");
            at = at.add(link.bytes());
        }
        assert_eq!(at, Address(REGION + REGION_BYTES), "after {taken} B");
        assert_eq!(memory.word(HEAP_BYTES_AT), REGION_BYTES + 4096);
    }
}

/// Another client has added a region since this one was told that one is needed.
#[test]
fn a_region_that_is_no_longer_needed_is_refused_and_changes_nothing() {
    let mut memory = Memory::new();
    memory.ask(&extend(REGION_BYTES, REGION + REGION_BYTES, 4096));
    let before = memory.clone();
    for heap in [0, REGION_BYTES, REGION_BYTES + 4095, u64::MAX] {
        let refused = memory.run(&extend(heap, REGION + 2 * REGION_BYTES, 4096));
        let refused = refused.expect("nothing fails");
        assert_eq!(Answer::decode(&refused).expect("an answer").became, Became::Refused);
        assert!(memory.bytes == before.bytes, "{heap}");
    }
}

#[test]
fn a_region_is_given_out_to_its_last_byte_and_then_another_is_asked_for() {
    let mut memory = Memory::new();
    let class = Class::holding(4096);
    let taken = memory.ask(&take(class, 1024));
    let blocks = links(Answer::decode(&taken).expect("an answer").bytes).count() as u64;
    assert_eq!(blocks * class.bytes(), REGION_BYTES);
    let refused = memory.run(&take(class, 1)).expect("nothing fails");
    let answer = Answer::decode(&refused).expect("an answer");
    assert_eq!((answer.became, answer.operand), (Became::NeedsRegion, REGION_BYTES));
}

/// A key of `bytes` bytes in the first of two buckets.
fn long_key(number: u64, bytes: usize) -> Vec<u8> {
    let keys = (0_u64..).map(|at| {
        let mut key = vec![b'x'; bytes];
        key[..16].copy_from_slice(&[number, at].map(u64::to_le_bytes).concat());
        key
    });
    keys.into_iter().find(|key| hash_of(key, 0) & 1 == 0).expect("every second key is there")
}

/// The keys of an answer: true if the key itself is there, false for a link to it.
fn keys_of(answer: &Answer<'_>) -> Vec<bool> {
    let (mut rest, mut are_here) = (answer.bytes, Vec::new());
    while !rest.is_empty() {
        let length = word(rest, 8);
        let is_here = length & KEY_IS_APART == 0;
        rest = &rest[KEY_HEAD_BYTES + if is_here { length as usize } else { 8 }..];
        are_here.push(is_here);
    }
    are_here
}

#[test]
fn a_scan_stops_when_an_answer_is_full_and_not_before() {
    let each = RECORD_BYTES_MAX as usize / 2 - KEY_HEAD_BYTES;
    let mut memory = Memory::new();
    for (number, here) in [(0, vec![true]), (1, vec![true; 2]), (2, vec![true, true, false])] {
        memory.ask(&put(&long_key(number, each), b"v"));
        let answered = memory.ask(&scan(0, 2));
        let answer = Answer::decode(&answered).expect("an answer");
        assert_eq!(keys_of(&answer), here, "{number}");
        // The second bucket is visited as long as the answer has room.
        assert_eq!(answer.operand == 0, number == 0, "{number}");
    }
}

#[test]
fn a_scan_goes_through_each_bucket_once_while_they_are_moved_too() {
    let mut memory = crowded();
    let steps = |memory: &mut Memory| {
        let (mut cursor, mut steps, mut met) = (0, 0, 0);
        loop {
            let answered = memory.ask(&scan(cursor, 1));
            let answer = Answer::decode(&answered).expect("an answer");
            (cursor, steps) = (answer.operand, steps + 1);
            met += keys_of(&answer).len();
            if cursor == 0 {
                return (steps, met);
            }
        }
    };
    assert_eq!(steps(&mut memory), (2, 12));
    memory.ask(&grow(2));
    assert_eq!(steps(&mut memory), (2, 12));
    memory.ask(&Request { operand: 1, ..Request::new(What::Move, BASE) });
    assert_eq!(steps(&mut memory), (2, 12));
    memory.ask(&Request { operand: 1, ..Request::new(What::Move, BASE) });
    assert_eq!(steps(&mut memory), (4, 12));
}

/// An error at the first bucket is returned. After one at a later bucket, the scan continues from
/// there.
#[test]
fn a_scan_that_fails_gives_no_cursor_that_was_given_before() {
    let calm = crowded();
    for (from, others) in [(0, vec![0, 1]), (1, vec![0])] {
        let (mut cursors, mut refused, mut at) = (Vec::new(), 0, 0);
        loop {
            let mut memory = calm.clone();
            (memory.accesses, memory.fails_at) = (0, at);
            match memory.run(&scan(from, 100)) {
                Ok(answered) => cursors.push(Answer::decode(&answered).expect("one").operand),
                Err(_) => refused += 1,
            }
            if memory.accesses <= at {
                break;
            }
            at += 1;
        }
        cursors.sort_unstable();
        cursors.dedup();
        assert_eq!(cursors, others, "from {from}");
        assert!(refused > 0, "from {from}");
    }
}

#[test]
fn long_values_that_are_cleared_or_deleted_are_free() {
    for clears in [true, false] {
        let mut memory = Memory::new();
        let before = memory.take(20_008);
        let place = crate::record::Apart { link: before, bytes: 20_000 }.to_bytes();
        let name = key(1);
        let link = Request { value: &place, ..of_key(What::Link, &name) };
        memory.ask(&link.when(crate::call::When::Always));
        let request = match clears {
            true => Request { tag: 100, ..Request::new(What::Clear, BASE) },
            false => of_key(What::Delete, &name).when(crate::call::When::Always),
        };
        memory.ask(&request);
        let is_it = |link: &Link| link.at(0) == before.at(0);
        assert!(memory.free_blocks().iter().any(is_it), "cleared: {clears}");
    }
}
