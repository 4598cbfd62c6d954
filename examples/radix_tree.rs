//! A radix tree in remote memory (section 6 of Clio's paper): searched by the client, which reads
//! element by element, and by the memory node, which chases each layer's pointers in one round
//! trip.
//!
//! ```sh
//! cargo run --release -p ethermem --example radix_tree
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use ethermem::{Address, Chase, Permissions, Pool, Thread};

/// A key's octets, the first is that of the root's layer.
const LAYERS: usize = 4;
/// Next sibling's address, octet of the key, first child's address; below the last layer the value.
const ELEMENT_BYTES: u64 = 24;
const SEARCHES: u64 = 50;

/// Keys all over the 32 bits, the same in every run.
fn key(number: u64) -> u32 {
    (number as u32).wrapping_mul(2_654_435_761)
}

fn value(key: u32) -> u64 {
    u64::from(key) * 3 + 1
}

#[derive(Default)]
struct Node {
    children: BTreeMap<u8, Node>,
}

/// Lays out a layer's list and all below it, and gives the list's first address.
fn lay(node: &Node, prefix: u32, depth: usize, base: Address, bytes: &mut Vec<u8>) -> u64 {
    let first = bytes.len();
    bytes.resize(first + node.children.len() * ELEMENT_BYTES as usize, 0);
    for (place, (&octet, child)) in node.children.iter().enumerate() {
        let at = first + place * ELEMENT_BYTES as usize;
        let last = place + 1 == node.children.len();
        let next = if last { 0 } else { base.0 + at as u64 + ELEMENT_BYTES };
        let prefix = prefix << 8 | u32::from(octet);
        let below = match depth + 1 {
            LAYERS => value(prefix),
            depth => lay(child, prefix, depth, base, bytes),
        };
        let element = [next, octet.into(), below].map(u64::to_le_bytes).concat();
        bytes[at..at + ELEMENT_BYTES as usize].copy_from_slice(&element);
    }
    base.0 + first as u64
}

/// Builds the tree in remote memory, and gives its root.
fn build(thread: &Thread, keys: u64) -> Result<Address, Box<dyn Error>> {
    let mut root = Node::default();
    for key in (0..keys).map(key) {
        let octets = key.to_be_bytes().into_iter();
        octets.fold(&mut root, |node, octet| node.children.entry(octet).or_default());
    }
    let room = keys * LAYERS as u64 * ELEMENT_BYTES;
    let region = thread.alloc(room, Permissions::READ_WRITE).wait()?;
    let mut bytes = Vec::new();
    let root = lay(&root, 0, 0, region.address(), &mut bytes);
    region.write(0, &bytes).wait()?;
    Ok(Address(root))
}

/// Reads element by element. Gives the value, and how many elements were read.
fn walk(thread: &Thread, root: Address, key: u32) -> Result<(Option<u64>, u64), Box<dyn Error>> {
    let (mut at, mut reads) = (root.0, 0);
    for octet in key.to_be_bytes() {
        loop {
            if at == 0 {
                return Ok((None, reads));
            }
            let mut element = [0; ELEMENT_BYTES as usize];
            thread.read_into(Address(at), &mut element)?;
            reads += 1;
            let mut words =
                element.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes));
            let mut word =
                || words.next().ok_or("an element has three words")?.map_err(|_| "a word");
            let (next, found, below) = (word()?, word()?, word()?);
            let here = found == u64::from(octet);
            at = if here { below } else { next };
            if here {
                break;
            }
        }
    }
    Ok((Some(at), reads))
}

/// One round trip a layer.
fn chase(thread: &Thread, root: Address, key: u32) -> Result<Option<u64>, Box<dyn Error>> {
    let mut at = root;
    for octet in key.to_be_bytes() {
        let chase = Chase {
            start: at,
            next_offset: 0,
            key_offset: 8,
            value_offset: 16,
            value_bytes: 8,
            elements_max: 256,
            key: u64::from(octet).to_le_bytes().to_vec(),
        };
        let found = thread.offload(Chase::NAME, at, &chase.encode(), &[]).wait()?;
        let Some(found) = Chase::result(&found)? else { return Ok(None) };
        at = Address(u64::from_le_bytes(found.value.as_slice().try_into()?));
    }
    Ok(Some(at.0))
}

fn table(urls: &[&str], sizes: &[u64]) -> Result<String, Box<dyn Error>> {
    let mut table = format!(
        "{:<16}  {:>7}  {:>8}  {:>10}  {:>10}\n",
        "pool", "keys", "elements", "walked, ns", "chased, ns"
    );
    for url in urls {
        for &keys in sizes {
            let pool = Pool::open(url)?;
            let thread = pool.thread()?;
            let root = build(&thread, keys)?;
            let (mut elements, mut walked, mut chased) = (0, 0.0, 0.0);
            for search in 0..SEARCHES {
                let key = key(search * (keys / SEARCHES));
                let before = pool.now();
                let (found, reads) = walk(&thread, root, key)?;
                let between = pool.now();
                let same = chase(&thread, root, key)?;
                chased += (pool.now() - between).as_ns_f64();
                walked += (between - before).as_ns_f64();
                elements += reads;
                if found != Some(value(key)) || same != found {
                    return Err(format!("{key:#x}: walked to {found:?}, chased to {same:?}").into());
                }
            }
            let mean = |sum: f64| sum / SEARCHES as f64;
            let (elements, walked, chased) = (mean(elements as f64), mean(walked), mean(chased));
            writeln!(
                table,
                "{url:<16}  {keys:>7}  {elements:>8.1}  {walked:>10.0}  {chased:>10.0}"
            )?;
        }
    }
    Ok(table)
}

const FABRICS: [&str; 4] =
    ["sim:edm?nodes=2", "sim:cxl?nodes=2", "sim:roce?nodes=2", "sim:tcp?nodes=2"];

fn main() -> Result<(), Box<dyn Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let urls = if urls.is_empty() { &FABRICS } else { urls.as_slice() };
    print!("{}", table(urls, &[100, 1_000, 10_000, 100_000])?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_it_prints() {
        let page = include_str!("../docs/examples.md");
        for line in table(&FABRICS, &[100, 1_000]).unwrap().lines() {
            assert!(page.contains(line), "{line}");
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_not_found() {
        let pool = Pool::open("local:").unwrap();
        let thread = pool.thread().unwrap();
        let root = build(&thread, 100).unwrap();
        for absent in [1, 0xffff_ffff] {
            assert_eq!(walk(&thread, root, absent).unwrap().0, None);
            assert_eq!(chase(&thread, root, absent).unwrap(), None);
        }
    }
}
