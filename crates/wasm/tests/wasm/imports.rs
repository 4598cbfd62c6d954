//! All imports for modules.

/// All imports as fields of a module's text; each function has its import's name.
pub(crate) fn imports() -> String {
    let import = |(name, kind): (&str, &str)| {
        format!("(import \"ethermem\" \"{name}\" (func ${name} {kind}))\n")
    };
    let all = [
        ("arguments_bytes", "(result i32)"),
        ("arguments", "(param i32 i32 i32)"),
        ("result", "(param i32 i32)"),
        ("problem", "(param i32 i32)"),
        ("read", "(param i64 i32 i32) (result i32)"),
        ("write", "(param i64 i32 i32) (result i32)"),
        ("allocate", "(param i64 i32 i32) (result i32)"),
        ("free", "(param i64) (result i32)"),
        ("process", "(result i32)"),
        ("compare_and_swap", "(param i64 i64 i64 i32) (result i32)"),
        ("fetch_add", "(param i64 i64 i32) (result i32)"),
        ("swap", "(param i64 i64 i32) (result i32)"),
        ("fetch_and", "(param i64 i64 i32) (result i32)"),
        ("fetch_or", "(param i64 i64 i32) (result i32)"),
        ("fetch_xor", "(param i64 i64 i32) (result i32)"),
    ];
    all.into_iter().map(import).collect()
}
