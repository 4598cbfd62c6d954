//! See the module: what is built here says which commit it is of.

#[path = "../sim/commit/build.rs"]
mod commit;

fn main() {
    commit::tell();
}
