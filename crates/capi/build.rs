//! Names the shared library as its users load it, whatever cargo calls the file.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libethermem.so.0");
}
