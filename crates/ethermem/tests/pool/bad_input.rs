//! Invalid addresses and lengths, for all operations in any order. Each is refused with the error
//! that a model predicts, no bytes change, and the pool goes on.

use ethermem::{Address, Chase, Error, Permissions, Pool, Region, RmwOperation, Segment, Thread};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::{drawn_pool, has_pages};

/// Length given for a region that is shared or freed.
const REGION_BYTES: u64 = 16;

const NONE: Permissions = Permissions::NONE;
const READ: Permissions = Permissions::READ;
const WRITE: Permissions = Permissions::WRITE;
const RW: Permissions = Permissions::READ_WRITE;

/// Longest access that a pool accepts.
const ACCESS_BYTES_MAX: u64 = 1 << 34;

/// The blocks of every case: length in bytes, whether the calling process allocated it, and the
/// caller's permissions.
const BLOCKS: [(u64, bool, Permissions); 7] = [
    (5000, true, RW),
    (4096, true, READ),
    (100, true, WRITE),
    (64, true, RW),
    (4500, false, NONE),
    (300, false, READ),
    (8192, false, WRITE),
];

/// A place that an operation addresses.
#[derive(Clone, Copy, Debug)]
enum Target {
    In {
        block: usize,
        offset: u64,
    },
    /// An offset before the end of a block, or behind it.
    AtEnd {
        block: usize,
        bytes: i64,
    },
    /// An offset before a block.
    Before {
        block: usize,
        bytes: u64,
    },
    /// A block's offset, but on another memory node.
    Elsewhere {
        block: usize,
        node: u16,
    },
    At(u64),
}

#[derive(Clone, Debug)]
enum Step {
    Read(Target, u64),
    ReadInto(Target, usize),
    /// An access by a region's own offset.
    ReadOf(usize, u64, u64),
    Write(Target, Vec<u8>),
    WriteFrom(Target, Vec<u8>),
    WriteOf(usize, u64, Vec<u8>),
    Gather(Vec<(Target, u64)>),
    Scatter(Vec<(Target, Vec<u8>)>),
    Modify(Target, RmwOperation),
    LockAndUnlock(Target),
    Chase(Target),
    Share(Target, Permissions),
    Free(Target),
}

fn place() -> impl Strategy<Value = Target> {
    let block = || 0..BLOCKS.len();
    prop_oneof![
        3 => (block(), 0..8192_u64).prop_map(|(block, offset)| Target::In { block, offset }),
        3 => (block(), 0..512_u64).prop_map(|(block, word)| Target::In { block, offset: word * 8 }),
        2 => (block(), -32..32_i64).prop_map(|(block, bytes)| Target::AtEnd { block, bytes }),
        2 => (block(), 0..32_u64).prop_map(|(block, bytes)| Target::Before { block, bytes }),
        1 => (block(), 1..4_u16).prop_map(|(block, node)| Target::Elsewhere { block, node }),
        1 => (block(), any::<u16>()).prop_map(|(block, node)| Target::Elsewhere { block, node }),
        1 => (0..32_u64).prop_map(Target::At),
        1 => (0..32_u64).prop_map(|before| Target::At(u64::MAX - before)),
        1 => (0..64_u64).prop_map(|at| Target::At((1 << 48) - 32 + at)),
        1 => any::<u64>().prop_map(Target::At),
    ]
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 1..64_u64,
        4 => 1..6000_u64,
        1 => Just(0_u64),
        // Lengths of the longest single message on every pool, and of several messages.
        1 => Just(1_u64 << 20),
        1 => (1..6_u64, 0..9000_u64).prop_map(|(messages, more)| (messages << 20) + more),
        1 => Just(ACCESS_BYTES_MAX + 1),
        1 => (0..32_u64).prop_map(|less| u64::MAX - less),
    ]
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..64),
        2 => proptest::collection::vec(any::<u8>(), 0..6000),
        // The write is longer than one message.
        1 => (any::<u8>(), 1..5000_usize).prop_map(|(byte, more)| vec![byte; (1 << 20) + more]),
    ]
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![0..9000_u64, (0..32_u64).prop_map(|less| u64::MAX - less)]
}

fn step() -> impl Strategy<Value = Step> {
    use RmwOperation::{CompareAndSwap, FetchAndAdd, Swap};
    let block = || 0..BLOCKS.len();
    let atomic = prop_oneof![
        any::<u64>().prop_map(FetchAndAdd),
        any::<u64>().prop_map(Swap),
        any::<u64>().prop_map(|desired| CompareAndSwap { expected: 0, desired }),
        Just(RmwOperation::Or(1)),
    ];
    prop_oneof![
        4 => (place(), length()).prop_map(|(at, bytes)| Step::Read(at, bytes)),
        2 => (place(), 0..5000_usize).prop_map(|(at, bytes)| Step::ReadInto(at, bytes)),
        1 => (block(), offset(), length()).prop_map(|(b, at, bytes)| Step::ReadOf(b, at, bytes)),
        4 => (place(), data()).prop_map(|(at, data)| Step::Write(at, data)),
        2 => (place(), data()).prop_map(|(at, data)| Step::WriteFrom(at, data)),
        1 => (block(), offset(), data()).prop_map(|(b, at, data)| Step::WriteOf(b, at, data)),
        2 => proptest::collection::vec((place(), length()), 0..4).prop_map(Step::Gather),
        2 => proptest::collection::vec((place(), data()), 0..4).prop_map(Step::Scatter),
        4 => (place(), atomic).prop_map(|(at, operation)| Step::Modify(at, operation)),
        2 => place().prop_map(Step::LockAndUnlock),
        2 => place().prop_map(Step::Chase),
        1 => (place(), prop_oneof![Just(READ), Just(RW)]).prop_map(|(at, p)| Step::Share(at, p)),
        1 => place().prop_map(Step::Free),
    ]
}

struct Block {
    region: Region,
    bytes: Vec<u8>,
    /// Permissions of the calling process.
    may: Permissions,
    is_own: bool,
    is_there: bool,
}

impl Block {
    fn start(&self) -> u64 {
        self.region.address().0
    }

    /// Offset of an address in the block, if the calling process may know the block.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start())?;
        let is_seen = self.is_there && self.may != NONE;
        (is_seen && offset < self.bytes.len() as u64).then_some(offset)
    }
}

/// The expected state, which predicts the result of an access.
struct Model {
    blocks: Vec<Block>,
    has_pages: bool,
    memory_nodes: u16,
}

/// Parts of blocks: index, offset and length in bytes.
type Parts = Vec<(usize, usize, usize)>;

impl Model {
    fn new(pool: &Pool, asker: &Thread, other: &Thread) -> Model {
        let mut blocks = Vec::new();
        for (number, &(asked, is_own, may)) in BLOCKS.iter().enumerate() {
            let (by, allowed) = if is_own { (asker, may) } else { (other, RW) };
            let region = by.alloc(asked, allowed).wait().unwrap();
            let whole = if has_pages(pool) { asked.next_multiple_of(4096) } else { asked };
            let mut bytes = vec![0; whole as usize];
            if allowed.allow(WRITE) {
                bytes[..asked as usize].fill(number as u8 + 1);
                region.write(0, &bytes[..asked as usize]).wait().unwrap();
            }
            if !is_own && may != NONE {
                region.share(asker.process(), may).wait().unwrap();
            }
            blocks.push(Block { region, bytes, may, is_own, is_there: true });
        }
        // Addresses of a freed block are still known.
        let gone = &mut blocks[3];
        gone.region.clone().free().wait().unwrap();
        gone.is_there = false;
        let (_, memory_nodes) = pool.nodes();
        Model { blocks, has_pages: has_pages(pool), memory_nodes }
    }

    fn address(&self, place: Target) -> Address {
        let block = |block: usize| &self.blocks[block];
        Address(match place {
            Target::In { block: at, offset } => {
                block(at).start() + offset % block(at).bytes.len() as u64
            }
            Target::AtEnd { block: at, bytes } => {
                (block(at).start() + block(at).bytes.len() as u64).wrapping_add_signed(bytes)
            }
            Target::Before { block: at, bytes } => block(at).start() - bytes,
            Target::Elsewhere { block: at, node } => block(at).start() ^ u64::from(node) << 48,
            Target::At(address) => address,
        })
    }

    fn length(bytes: u64) -> Result<(), Error> {
        let most = ACCESS_BYTES_MAX;
        match bytes {
            0 => Err(Error::Empty { most }),
            bytes if bytes > most => Err(Error::TooLong { bytes, most }),
            _ => Ok(()),
        }
    }

    /// The parts of blocks that an access touches, or the error that refuses it.
    fn access(&self, address: Address, bytes: u64, needed: Permissions) -> Result<Parts, Error> {
        Model::length(bytes)?;
        let unmapped = Error::Unmapped { address, bytes };
        let end = address.0.checked_add(bytes).ok_or_else(|| unmapped.clone())?;
        let (mut at, mut parts) = (address.0, Vec::new());
        while at < end {
            let found = self
                .blocks
                .iter()
                .enumerate()
                .find_map(|(number, block)| Some((number, block, block.offset_of(at)?)));
            let (number, block, offset) = found.ok_or_else(|| unmapped.clone())?;
            let room = (end - at).min(block.bytes.len() as u64 - offset);
            if at + room < end && !self.has_pages {
                return Err(unmapped);
            }
            if !block.may.allow(needed) {
                return Err(Error::Permission { address, needed });
            }
            parts.push((number, offset as usize, room as usize));
            at += room;
        }
        Ok(parts)
    }

    fn atomic(&self, address: Address) -> Result<(usize, usize), Error> {
        if address.memory() >= self.memory_nodes {
            return Err(Error::Unmapped { address, bytes: 8 });
        }
        if !address.0.is_multiple_of(8) {
            return Err(Error::Misaligned { address });
        }
        let parts = self.access(address, 8, RW)?;
        Ok((parts[0].0, parts[0].1))
    }

    fn word(&mut self, (block, offset): (usize, usize)) -> &mut [u8] {
        &mut self.blocks[block].bytes[offset..offset + 8]
    }

    fn read(&self, address: Address, bytes: u64) -> Result<Vec<u8>, Error> {
        let parts = self.access(address, bytes, READ)?;
        let part = |&(block, from, bytes): &(usize, usize, usize)| {
            self.blocks[block].bytes[from..from + bytes].to_vec()
        };
        Ok(parts.iter().flat_map(part).collect())
    }

    fn write(&mut self, address: Address, data: &[u8]) -> Result<(), Error> {
        let mut rest = data;
        for (block, from, bytes) in self.access(address, data.len() as u64, WRITE)? {
            let (now, others) = rest.split_at(bytes);
            self.blocks[block].bytes[from..from + bytes].copy_from_slice(now);
            rest = others;
        }
        Ok(())
    }

    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, Error> {
        let place = self.atomic(address)?;
        let word = self.word(place);
        let before = u64::from_le_bytes((&*word).try_into().unwrap());
        word.copy_from_slice(&operation.apply(before).to_le_bytes());
        Ok(before)
    }

    /// The error that refuses all parts of an operation before any is done.
    fn lengths(lengths: impl Iterator<Item = u64>) -> Result<(), Error> {
        let mut total: u64 = 0;
        for bytes in lengths {
            Model::length(bytes)?;
            total = total.saturating_add(bytes);
        }
        Model::length(total)
    }

    /// The block that begins at an address, if `asker` allocated it.
    fn owned(&mut self, address: Address) -> Result<&mut Block, Error> {
        let mut blocks = self.blocks.iter_mut();
        let found = blocks.find(|b| b.is_there && b.is_own && b.start() == address.0);
        found.ok_or(Error::Unmapped { address, bytes: REGION_BYTES })
    }
}

/// An operation in flight, with its possible results.
enum Open {
    Bytes(ethermem::Pending<Vec<u8>>, Vec<Result<Vec<u8>, Error>>),
    Done(ethermem::Pending<()>, Vec<Result<(), Error>>),
    Word(ethermem::Pending<u64>, Result<u64, Error>),
}

impl Open {
    fn check(self) -> Result<(), TestCaseError> {
        match self {
            Open::Bytes(pending, expected) => one_of(&pending.wait(), &expected),
            Open::Done(pending, expected) => one_of(&pending.wait(), &expected),
            Open::Word(pending, expected) => one_of(&pending.wait(), &[expected]),
        }
    }
}

fn one_of<T: PartialEq + std::fmt::Debug>(
    found: &Result<T, Error>,
    expected: &[Result<T, Error>],
) -> Result<(), TestCaseError> {
    prop_assert!(expected.contains(found), "{found:?} is none of {expected:?}");
    Ok(())
}

/// Of several places, the error may name any that is refused.
fn all_or_errors<T>(whole: Result<T, Error>, each: Vec<Error>) -> Vec<Result<T, Error>> {
    match whole {
        Ok(whole) if each.is_empty() => vec![Ok(whole)],
        Ok(_) => each.into_iter().map(Err).collect(),
        Err(error) => vec![Err(error)],
    }
}

struct Case<'p> {
    asker: &'p Thread,
    other: &'p Thread,
    model: Model,
    open: Vec<Open>,
}

impl Case<'_> {
    /// Submits operations that may be in flight beside others.
    fn submit(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let (asker, model) = (self.asker, &mut self.model);
        let open = match step {
            Step::Read(at, bytes) => {
                let address = model.address(*at);
                Open::Bytes(asker.read(address, *bytes), vec![model.read(address, *bytes)])
            }
            Step::Write(at, data) => {
                let address = model.address(*at);
                Open::Done(asker.write(address, data), vec![model.write(address, data)])
            }
            Step::ReadOf(block, offset, bytes) => {
                let region = model.blocks[*block].region.by(asker);
                let expected = inside(&region, *offset, *bytes);
                let expected = expected.and_then(|address| model.read(address, *bytes));
                Open::Bytes(region.read(*offset, *bytes), vec![expected])
            }
            Step::WriteOf(block, offset, data) => {
                let region = model.blocks[*block].region.by(asker);
                let expected = inside(&region, *offset, data.len() as u64);
                let expected = expected.and_then(|address| model.write(address, data));
                Open::Done(region.write(*offset, data), vec![expected])
            }
            Step::Modify(at, operation) => {
                let address = model.address(*at);
                let expected = model.modify(address, *operation);
                Open::Word(asker.modify(address, *operation), expected)
            }
            Step::Gather(places) => self.gather(places),
            Step::Scatter(places) => self.scatter(places),
            alone => return self.alone(alone),
        };
        self.open.push(open);
        Ok(())
    }

    fn gather(&self, places: &[(Target, u64)]) -> Open {
        let segment = |&(at, bytes)| Segment { address: self.model.address(at), bytes };
        let segments: Vec<Segment> = places.iter().map(segment).collect();
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for Segment { address, bytes } in &segments {
            match self.model.read(*address, *bytes) {
                Ok(bytes) => all.extend(bytes),
                Err(error) => errors.push(error),
            }
        }
        let lengths = Model::lengths(segments.iter().map(|segment| segment.bytes));
        Open::Bytes(self.asker.gather(&segments), all_or_errors(lengths.map(|()| all), errors))
    }

    fn scatter(&mut self, places: &[(Target, Vec<u8>)]) -> Open {
        let place = |(at, data): &(Target, Vec<u8>)| (self.model.address(*at), data.clone());
        let mut places: Vec<(Address, Vec<u8>)> = places.iter().map(place).collect();
        // The order of two overlapping writes is unspecified.
        let mut ends = Vec::new();
        places.retain(|(address, data)| {
            let (from, to) = (address.0, address.0.saturating_add(data.len() as u64));
            let is_apart = ends.iter().all(|&(start, end)| to <= start || end <= from);
            ends.push((from, to));
            is_apart
        });
        let lengths = Model::lengths(places.iter().map(|(_, data)| data.len() as u64));
        let nowhere =
            |(address, _): &&(Address, Vec<u8>)| address.memory() >= self.model.memory_nodes;
        let mut errors = Vec::new();
        if let Some((address, data)) = places.iter().find(nowhere) {
            // Nothing is sent for this place.
            errors.push(Error::Unmapped { address: *address, bytes: data.len() as u64 });
        } else if lengths.is_ok() {
            for (address, data) in &places {
                errors.extend(self.model.write(*address, data).err());
            }
        }
        let places: Vec<_> = places.iter().map(|(address, data)| (*address, &data[..])).collect();
        Open::Done(self.asker.scatter(&places), all_or_errors(lengths, errors))
    }

    /// Runs operations that are waited for, with nothing of the thread in flight.
    fn alone(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.settle()?;
        let (asker, model) = (self.asker, &mut self.model);
        match step {
            Step::ReadInto(at, bytes) => {
                let (address, mut into) = (model.address(*at), vec![0xEE; *bytes]);
                let before = into.clone();
                let found = asker.read_into(address, &mut into).map(|()| into.clone());
                one_of(&found, &[model.read(address, *bytes as u64)])?;
                prop_assert!(found.is_ok() || into == before, "of a read that is refused");
            }
            Step::WriteFrom(at, data) => {
                let address = model.address(*at);
                one_of(&asker.write_from(address, data), &[model.write(address, data)])?;
            }
            Step::LockAndUnlock(at) => {
                let address = model.address(*at);
                let place = model.atomic(address);
                match place {
                    Ok(place) if *model.word(place) == [0; 8] => {
                        one_of(&asker.lock(address).wait(), &[Ok(())])?;
                        one_of(&asker.unlock_wait(address), &[Ok(())])?;
                    }
                    Ok(_) => {
                        let not_held = Error::NotHeld { address };
                        one_of(&asker.unlock_wait(address), &[Err(not_held)])?;
                    }
                    Err(error) => {
                        one_of(&asker.lock(address).wait(), &[Err(error.clone())])?;
                        one_of(&asker.unlock_wait(address), &[Err(error)])?;
                    }
                }
            }
            Step::Chase(at) => self.chase(*at)?,
            Step::Share(at, permissions) => {
                let address = model.address(*at);
                let expected = model.owned(address).and_then(|block| {
                    let is_allowed = block.may.allow(*permissions);
                    let refused = Error::Permission { address, needed: *permissions };
                    if is_allowed { Ok(()) } else { Err(refused) }
                });
                let region = asker.region(address, REGION_BYTES);
                one_of(&region.share(self.other.process(), *permissions).wait(), &[expected])?;
            }
            Step::Free(at) => self.free(*at)?,
            _ => unreachable!("the others are submitted"),
        }
        Ok(())
    }

    /// Searches one element: its key is read and then its value.
    fn chase(&self, at: Target) -> Result<(), TestCaseError> {
        let start = self.model.address(at);
        let key = [0xAB; 8].to_vec();
        let chase = Chase {
            start,
            next_offset: 8,
            key_offset: 0,
            value_offset: 0,
            value_bytes: 0,
            elements_max: 1,
            key,
        };
        let found = self.asker.offload(Chase::NAME, start, &chase.encode(), &[]).wait();
        let read = self.model.read(start, 8);
        if start.memory() >= self.model.memory_nodes || start == Address::NULL {
            return one_of(&found, &[Err(Error::Unmapped { address: start, bytes: 0 })]);
        }
        match read.and_then(|_| self.model.read(start.add(8), 8)) {
            Ok(_) => {
                let is_end = matches!(found, Ok(_) | Err(Error::Offload { .. }));
                prop_assert!(is_end, "{found:?} of a chase in its memory");
            }
            Err(expected) => {
                let (found, expected) = (found.unwrap_err(), expected);
                let is_so = std::mem::discriminant(&found) == std::mem::discriminant(&expected);
                prop_assert!(is_so, "{found:?} of a chase, and not {expected:?}");
            }
        }
        Ok(())
    }

    fn free(&mut self, at: Target) -> Result<(), TestCaseError> {
        let model = &mut self.model;
        let address = model.address(at);
        let shared = |block: &&mut Block| block.offset_of(address.0) == Some(0) && !block.is_own;
        let share = model.blocks.iter_mut().find(shared);
        let expected = if let Some(share) = share.filter(|_| model.has_pages) {
            // Over a network, a process that is not the owner ends its share by this.
            share.may = NONE;
            Ok(())
        } else {
            model.owned(address).map(|block| block.is_there = false)
        };
        one_of(&self.asker.region(address, REGION_BYTES).free().wait(), &[expected])
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        for open in self.open.drain(..) {
            open.check()?;
        }
        Ok(())
    }

    /// Checks that all readable bytes equal the model's, and that the pool goes on.
    fn end(&mut self) -> Result<(), TestCaseError> {
        self.settle()?;
        for (number, block) in self.model.blocks.iter().enumerate() {
            let owner = if block.is_own { self.asker } else { self.other };
            if !block.is_there || block.is_own && !block.may.allow(READ) {
                continue;
            }
            let found = owner.read(Address(block.start()), block.bytes.len() as u64).wait();
            prop_assert!(found.as_ref() == Ok(&block.bytes), "block {number}");
        }
        let region = self.asker.alloc(64, RW).wait().unwrap();
        region.write(0, &[9; 64]).wait().unwrap();
        prop_assert_eq!(region.read(0, 64).wait(), Ok(vec![9; 64]));
        Ok(())
    }
}

/// Address of a region's offset; outside of the allocated length it is refused.
fn inside(region: &Region, offset: u64, bytes: u64) -> Result<Address, Error> {
    let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= region.bytes());
    let error = Error::Unmapped { address: region.at(offset), bytes };
    if is_inside { Ok(region.at(offset)) } else { Err(error) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn bad_input_is_refused_as_the_model_says_and_changes_nothing(
        steps in proptest::collection::vec(step(), 1..60),
        fabric in 0..6_usize,
    ) {
        let simulated = ["sim:edm?nodes=6", "sim:cxl?nodes=2", "sim:edm?nodes=2"];
        let pool = drawn_pool(&simulated, fabric);
        let (asker, other) = (pool.thread().unwrap(), pool.thread().unwrap());
        let model = Model::new(&pool, &asker, &other);
        let mut case = Case { asker: &asker, other: &other, model, open: Vec::new() };
        for step in &steps {
            case.submit(step)?;
        }
        case.end()?;
        pool.close().unwrap();
    }
}
