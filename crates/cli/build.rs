//! Records the commit in the build; see the module.

#[path = "../sim/commit/build.rs"]
mod commit;

fn main() {
    commit::tell();
}
