//! Invariants of every frame, shared by the fuzz target and a property test.

use ethermem_wire::cxl::{FCS_BYTES, Frame, PFC_BYTES, Pause};
use ethermem_wire::frame_check_sequence;

/// Reads `input` as a frame; if `sealed`, its check sequence is corrected first. Nothing may panic,
/// and a parsed frame must be emitted as the octets that it came from, apart from padding. Returns
/// whether a frame was parsed.
pub(crate) fn check(input: &[u8], sealed: bool) -> bool {
    let mut octets = input.to_vec();
    if sealed && let Some(end) = octets.len().checked_sub(FCS_BYTES) {
        let right = frame_check_sequence(&octets[..end]).to_le_bytes();
        octets[end..].copy_from_slice(&right);
    }
    check_pause(&octets);
    let parsed = Frame::parse_with_fcs(&octets);
    let whole = octets.len().saturating_sub(FCS_BYTES);
    if let Ok(frame) = parsed {
        assert_eq!(Frame::parse(&octets[..whole]), Ok(frame));
        let mut written = [0; 128];
        let length = frame.emit(&mut written).expect("frames are short");
        assert_eq!(length, whole, "{frame:?}");
        let fields = frame.packet.octets();
        assert_eq!(written[..fields], octets[..fields], "{frame:?}");
        assert!(written[fields..length].iter().all(|&octet| octet == 0), "{frame:?}");
    }
    parsed.is_ok()
}

fn check_pause(octets: &[u8]) {
    let Ok(Some(pause)) = Pause::parse_with_fcs(octets) else { return };
    assert!(Frame::parse_with_fcs(octets).is_err(), "{pause:?} is also a frame of ours");
    let mut written = [0; PFC_BYTES];
    pause.emit(&mut written).expect("a PFC frame has so many");
    assert_eq!(Pause::parse(&written), Ok(Some(pause)));
}
