//! Many clients, according to the pool's time: tasks in virtual time, threads in real time.

use std::future::Future;

use ethermem::Pool;

/// Runs the code of each client to its end, all concurrently.
pub(crate) fn run_clients<F, C>(pool: &Pool, clients: u32, code: F)
where
    F: Fn(u32) -> C + Sync,
    C: Future<Output = ()> + 'static,
{
    if pool.is_simulated() {
        let tasks = pool.tasks();
        for client in 0..clients {
            tasks.spawn(code(client));
        }
        tasks.run();
    } else if clients == 1 {
        pool.run(code(0));
    } else {
        std::thread::scope(|scope| {
            for client in 0..clients {
                let code = &code;
                scope.spawn(move || pool.run(code(client)));
            }
        });
    }
}
