//! Hello from remote memory, on the pool that the first argument names (`local:` by default):
//!
//! ```sh
//! cargo run -p ethermem --example hello -- "sim:edm?nodes=2"
//! ```

use std::error::Error;

use ethermem::{Permissions, Pool};

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "local:".to_owned());
    println!("{}", hello(&url)?);
    Ok(())
}

fn hello(url: &str) -> Result<String, Box<dyn Error>> {
    let pool = Pool::open(url)?;
    let thread = pool.thread()?;
    let region = thread.alloc(4096, Permissions::READ_WRITE).wait()?;
    region.write(0, b"hello").wait()?;
    let before = pool.now();
    let text = String::from_utf8(region.read(0, 5).wait()?)?;
    let time = pool.now() - before;
    pool.close()?;
    Ok(format!("{url}: {text} in {:.2} ns", time.as_ns_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_it_says() {
        let page = include_str!("../docs/examples.md");
        for url in ["sim:edm?nodes=2", "sim:tcp?nodes=2"] {
            let said = hello(url).unwrap();
            assert!(page.contains(&said), "{said}");
        }
        assert!(hello("local:").unwrap().starts_with("local:: hello in "));
    }
}
