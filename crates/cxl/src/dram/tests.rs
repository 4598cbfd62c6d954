//! Times by hand from the parameters, and bandwidth by mapping.

use super::*;

fn line(number: u64) -> LineAddress {
    LineAddress::new(number).unwrap()
}

fn dram(mapping: Mapping) -> Dram {
    Dram::new(Geometry { mapping, ..Geometry::published() }, Timing::ddr4_2400()).unwrap()
}

/// An empty bank: tRCD + CL + burst = 14160 + 14160 + 3332 = 31652. Its open row: CL + burst =
/// 17492 after the access. Another row: the PRE may come tRAS after the ACT, at 32000, but the
/// access comes later, so tRP + tRCD + CL + burst = 45812 after it.
#[test]
fn hit_empty_and_conflict_take_what_the_parameters_say() {
    let mut dram = dram(Mapping::RowColumnBank);
    let start = |dram: &mut Dram, now, number| dram.access(Ps(now), line(number), false);
    let (empty, hit) = (start(&mut dram, 0, 0), start(&mut dram, 100_000, 16));
    assert_eq!((empty.data_end, empty.row), (Ps(31_652), RowState::Empty));
    assert_eq!((hit.data_end, hit.row), (Ps(117_492), RowState::Hit));
    // 16 banks of 128 lines are a row of all: line 2048 is in row 1 of bank 0.
    let conflict = start(&mut dram, 200_000, 2048);
    assert_eq!((conflict.data_end, conflict.row), (Ps(245_812), RowState::Conflict));
    let counters = dram.counters();
    assert_eq!((counters.hits, counters.empty, counters.conflicts), (1, 1, 1));
}

/// Neighbours by row-column-bank: groups 0, 1, 2, 3, then the next bank of group 0.
#[test]
fn neighbours_are_in_different_bank_groups() {
    let geometry = Geometry::published();
    let at = |number| geometry.locate(line(number));
    for number in 0..64 {
        let location = at(number);
        assert_eq!(u64::from(location.group), number % 4);
        assert_eq!(u64::from(location.bank), number / 4 % 4);
        assert_eq!((u64::from(location.column), location.row), (number / 16, 0));
    }
    let by_rows = Geometry { mapping: Mapping::RowBankColumn, ..geometry };
    assert_eq!(by_rows.locate(line(127)), Location { column: 127, ..by_rows.locate(line(0)) });
    assert_eq!(by_rows.locate(line(128)).group, 1);
    let odd = Geometry { banks: 3, ..geometry };
    let error = Dram::new(odd, Timing::ddr4_2400()).unwrap_err().to_string();
    assert_eq!(error, "3 banks of a group: must be a power of two");
}

/// Every place is one line's.
#[test]
fn a_mapping_is_one_to_one() {
    for mapping in [Mapping::RowColumnBank, Mapping::RowBankColumn] {
        let geometry = Geometry { channels: 2, mapping, ..Geometry::published() };
        let places: std::collections::HashSet<_> =
            (0..8192).map(|number| geometry.locate(line(number))).collect();
        assert_eq!(places.len(), 8192);
    }
}

/// The time of 1,024 neighbours that are all there at once.
fn stream(mapping: Mapping) -> Ps {
    let mut dram = dram(mapping);
    let ends = (0..1024).map(|number| dram.access(Ps::ZERO, line(number), false).data_end);
    ends.last().unwrap()
}

/// By row-column-bank 16 banks are opened first, four in each tFAW: the last ACT is at 3 * 21000 +
/// 3 * 3332, and its data ends 31652 later. From there the bus is never idle: 1008 bursts of 3332
/// ps, 19.2 GB/s. By row-bank-column neighbours are in one bank group, so they are tCCD_L apart.
#[test]
fn neighbours_stream_at_the_full_rate_by_row_column_bank_alone() {
    assert_eq!(stream(Mapping::RowColumnBank), Ps(3 * 21_000 + 3 * 3_332 + 31_652 + 1_008 * 3_332));
    let slow = stream(Mapping::RowBankColumn);
    assert!(slow > Ps(1_000 * 4_998), "{slow}");
}

/// A READ after a WRITE of the same bank group: WRITE at 14160, data until 14160 + 9996 + 3332 =
/// 27488, then tWTR_L = 7500, CL and burst: 52480.
#[test]
fn a_read_waits_for_written_data() {
    let mut dram = dram(Mapping::RowColumnBank);
    assert_eq!(dram.access(Ps::ZERO, line(0), true).data_end, Ps(27_488));
    assert_eq!(dram.access(Ps::ZERO, line(16), false).data_end, Ps(52_480));
}

/// Four ACTs within tFAW: the fifth waits for 21 ns after the first, whatever its group.
#[test]
fn the_fifth_activation_waits() {
    let mut dram = dram(Mapping::RowColumnBank);
    let ends: Vec<Ps> =
        (0..5).map(|number| dram.access(Ps::ZERO, line(number), false).data_end).collect();
    assert_eq!(ends[3], Ps(31_652 + 3 * 3_332));
    assert_eq!(ends[4], Ps(31_652 + 21_000));
}

/// At 7.8 us all rows are closed and the channel is taken for 350 ns: line 0's row was open, so
/// PRE at 7.8 us, tRP, tRFC, then ACT as of an empty bank.
#[test]
fn a_refresh_closes_all_rows() {
    let mut dram = dram(Mapping::RowColumnBank);
    dram.access(Ps::ZERO, line(0), false);
    let after = dram.access(Ps(7_800_000), line(0), false);
    assert_eq!(after.row, RowState::Empty);
    assert_eq!(after.data_end, Ps(7_800_000 + 14_160 + 350_000 + 31_652));
    assert_eq!(dram.counters().refreshes, 1);
}
