//! Sets the shared library's name for its users, whatever cargo calls the file.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libethermem.so.0");
}
