//! Writes what the memory node's translator does, one line an operation, for the equivalence test
//! of the RTL. Standard input has the parameters on one line: `BUCKETS TLB_ENTRIES STEPS SEED`.
//!
//! A line is `OP NODE LINE FRAME FOUND FULL RESULT READS`: 0 translates, 1 maps and 2 unmaps; of a
//! map, found says that the page is mapped already, and full that there is no room. The result is a
//! line of the pool, the reads are those of a translation. Numbers are hexadecimal; a node's octet
//! that is sent first is the lowest.

#[path = "../../edm/tests/support/rng.rs"]
mod rng;

use std::error::Error;
use std::io::{self, BufWriter, Write as _};

use ethermem_cxl::translate::{MapError, Translator, TranslatorConfig};
use ethermem_wire::cxl::{LineAddress, Mac};

use rng::Rng;

/// Lines of a page, as in hardware.
const PAGE_LINES: u64 = 1 << 14;
/// Pages of the pool and of a compute node's memory.
const PAGES: u64 = LineAddress::LINES / PAGE_LINES;

fn number(node: Mac) -> u64 {
    let mut octets = [0; 8];
    octets[..6].copy_from_slice(&node.0);
    u64::from_le_bytes(octets)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let words: Result<Vec<usize>, _> = line.split_whitespace().map(str::parse).collect();
    let [buckets, tlb_entries, steps, seed] = words?[..] else {
        return Err("expected BUCKETS TLB_ENTRIES STEPS SEED".into());
    };
    let config = TranslatorConfig { page_lines: PAGE_LINES, tlb_entries, buckets };
    let mut translator = Translator::new(config)?;
    let mut rng = Rng(seed as u64);
    let mut out = BufWriter::new(io::stdout().lock());
    // Pages of three nodes, a few more than there is room for; most accesses are to few of them.
    let pages = 4 * buckets as u64 / 2;
    let mut mapping = 8;
    for step in 0..steps {
        if step % 400 == 0 {
            mapping = 1 + rng.below(10);
        }
        let node = Mac([2, 0, 0, 0, 0, 0xf0 + rng.below(3) as u8]);
        let few = if rng.below(3) == 0 { pages } else { 12 };
        // Near and far pages, which differ in their highest bits.
        let page = rng.below(few.min(pages)) << (rng.below(2) * 13);
        let at = page * PAGE_LINES + rng.below(PAGE_LINES);
        let frame = rng.next() % PAGES;
        let (op, found, full, result, reads) = match rng.below(20) {
            n if n < mapping => match translator.map(node, page, frame) {
                Ok(()) => (1, false, false, 0, 0),
                Err(MapError::Mapped { .. }) => (1, true, false, 0, 0),
                Err(MapError::Full { .. }) => (1, false, true, 0, 0),
            },
            n if n < 10 => match translator.unmap(node, page) {
                Some(frame) => (2, true, false, frame * PAGE_LINES + at % PAGE_LINES, 0),
                None => (2, false, false, 0, 0),
            },
            _ => {
                let came = translator.translate(node, LineAddress::new(at)?);
                let to = came.line.map_or(0, LineAddress::number);
                (0, came.line.is_some(), false, to, came.table_reads)
            }
        };
        let (found, full) = (u8::from(found), u8::from(full));
        let node = number(node);
        writeln!(out, "{op} {node:x} {at:x} {frame:x} {found} {full} {result:x} {reads:x}")?;
    }
    out.flush()?;
    Ok(())
}
