//! Records the commit in the build.

#[path = "../sim/commit/build.rs"]
mod commit;

fn main() {
    commit::tell();
}
