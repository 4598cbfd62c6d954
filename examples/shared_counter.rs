//! A counter in remote memory that many nodes add to: under a lock, and by an atomic.
//!
//! ```sh
//! cargo run --release -p ethermem --example shared_counter -- "sim:edm?nodes=128"
//! ```

use std::cell::RefCell;
use std::error::Error;
use std::fmt::Write;
use std::rc::Rc;

use ethermem::{Error as Refused, Permissions, Pool, Region, Thread};

const ROUNDS: u64 = 50;

/// How a client adds one.
#[derive(Clone, Copy)]
enum How {
    /// Takes the lock, reads, writes, and gives the lock back.
    Lock,
    FetchAdd,
}

async fn add(how: How, thread: &Thread, lock: &Region, counter: &Region) -> Result<(), Refused> {
    match how {
        How::Lock => {
            thread.lock(lock.address()).await?;
            let mut count = counter.by(thread).read(0, 8).await?;
            let next = count.iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet)) + 1;
            count.copy_from_slice(&next.to_le_bytes());
            counter.by(thread).write(0, &count).detach();
            // Unlocking waits for the write.
            thread.unlock(lock.address()).await
        }
        How::FetchAdd => thread.fetch_add(counter.address(), 1).await.map(drop),
    }
}

/// So many clients, each on a node of its own where there are as many. Gives ns an addition.
fn count(url: &str, clients: u16, how: How) -> Result<f64, Box<dyn Error>> {
    let pool = Pool::open(url)?;
    let owner = pool.thread()?;
    let lock = owner.alloc(8, Permissions::READ_WRITE).wait()?;
    let counter = owner.alloc(8, Permissions::READ_WRITE).wait()?;
    let (computes, _) = pool.nodes();
    let (before, tasks) = (pool.now(), pool.tasks());
    let failed = Rc::new(RefCell::new(None));
    for client in 0..clients {
        let thread = owner.fork_on(client % computes)?;
        let (lock, counter, failed) = (lock.clone(), counter.clone(), failed.clone());
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                if let Err(error) = add(how, &thread, &lock, &counter).await {
                    failed.replace(Some(error));
                    return;
                }
            }
        });
    }
    tasks.run();
    let time = pool.now() - before;
    if let Some(error) = failed.take() {
        return Err(error.into());
    }
    let additions = u64::from(clients) * ROUNDS;
    let found = owner.fetch_add(counter.address(), 0).wait()?;
    if found != additions {
        return Err(format!("{additions} additions made {found}").into());
    }
    pool.close()?;
    Ok(time.as_ns_f64() / additions as f64)
}

fn table(url: &str, clients: &[u16]) -> Result<String, Box<dyn Error>> {
    let mut table = format!("{url}, {ROUNDS} additions a client\n");
    writeln!(
        table,
        "{:>7}  {:>16}  {:>22}",
        "clients", "under a lock, ns", "by a fetch-and-add, ns"
    )?;
    for &clients in clients {
        let (lock, atomic) = (count(url, clients, How::Lock)?, count(url, clients, How::FetchAdd)?);
        writeln!(table, "{clients:>7}  {lock:>16.1}  {atomic:>22.1}")?;
    }
    Ok(table)
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "sim:edm?nodes=128".to_owned());
    print!("{}", table(&url, &[1, 4, 16, 64])?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_it_prints() {
        let printed = table("sim:edm?nodes=128", &[1, 4, 16, 64]).unwrap();
        assert!(include_str!("../docs/examples.md").contains(&printed), "{printed}");
    }

    #[test]
    fn nothing_is_lost_on_this_machine_either() {
        assert!(count("local:", 8, How::Lock).unwrap() > 0.0);
    }
}
