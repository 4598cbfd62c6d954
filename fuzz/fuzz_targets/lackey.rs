//! Any bytes as the text of valgrind's lackey: pieces of any length say the same, and a line
//! without an end is not kept.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((piece, text)) = bytes.split_first() {
        ethermem_lines::lackey::check(text, usize::from(*piece));
    }
});
