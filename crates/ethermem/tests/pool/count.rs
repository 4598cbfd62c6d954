//! A backend that a program brings: `count:URL` counts the operations of any other pool, and passes
//! them on. This file is the whole backend.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ethermem::backend::{
    Access, Asker, Backend, Direct, End, Ended, Lent, Op, OpId, Opened, Outcome, Progress, Waited,
    WaitedId,
};
use ethermem::{Error, OpenError, Permissions, Pool, ProcessId, Ps, SCHEMES, Scheme, Url, Wait};

use crate::every_pool;

static COUNT: Scheme = Scheme {
    name: "count",
    forms: &["count:URL"],
    about: "another pool, whose operations are counted",
    feature: None,
    parameters: &[],
    more_parameters: None,
    wraps: true,
    open: Some(open),
};

/// Number of operations of all pools in this program; only one test uses `count:`.
static COUNTED: AtomicU64 = AtomicU64::new(0);

fn open(url: &Url<'_>) -> Result<Opened, OpenError> {
    let Opened { backend, facts } = Url::read(url.schemes, url.place)?.open()?;
    Ok(Opened { backend: Box::new(Count(backend)), facts })
}

struct Count(Box<dyn Backend>);

fn count() {
    COUNTED.fetch_add(1, Ordering::Relaxed);
}

impl Backend for Count {
    fn now(&self) -> Ps {
        self.0.now()
    }

    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome> {
        count();
        self.0.begin(id, asker, op)
    }

    fn progress(&mut self, ended: &mut Ended) -> Progress {
        self.0.progress(ended)
    }

    fn waits(&self) -> Option<(usize, Wait)> {
        self.0.waits()
    }

    fn new_process(&mut self, next: ProcessId) -> Result<ProcessId, Error> {
        self.0.new_process(next)
    }

    fn at_once(&mut self, asker: Asker, access: Access<'_>) -> Option<Result<u64, Error>> {
        self.0.at_once(asker, access).inspect(|_| count())
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        self.0.direct().is_some().then_some(self)
    }

    fn tend(&mut self) -> Duration {
        self.0.tend()
    }

    fn end(&mut self, why: End) -> Result<(), Error> {
        self.0.end(why)
    }

    fn extension(&self) -> Option<&dyn Any> {
        self.0.extension()
    }
}

impl Direct for Count {
    fn begin(&mut self, asker: Asker, access: Waited<'_>) -> Option<WaitedId> {
        self.0.direct()?.begin(asker, access).inspect(|_| count())
    }

    fn look(
        &mut self,
        id: WaitedId,
        lent: Lent<'_>,
        ended: &mut Ended,
    ) -> Result<Result<(), Error>, Duration> {
        self.0.direct().expect("it has begun the access").look(id, lent, ended)
    }
}

#[test]
fn a_backend_of_the_program_counts_what_it_passes_on() {
    let schemes: Vec<&Scheme> = SCHEMES.iter().copied().chain([&COUNT]).collect();
    for plain in every_pool() {
        let url = format!("count:{}", plain.url());
        let pool =
            Pool::open_among(&schemes, &url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(pool.url(), url);
        assert_eq!((pool.nodes(), pool.is_simulated()), (plain.nodes(), plain.is_simulated()));
        let before = COUNTED.load(Ordering::Relaxed);
        use_six_times(&pool);
        assert_eq!(COUNTED.load(Ordering::Relaxed) - before, 6, "{url}");
        use_six_times(&plain);
        assert_eq!(pool.events(), plain.events(), "{url}");
        pool.close().unwrap();
    }
}

/// Uses the pool by the path of all operations, the direct path, and accesses that take no time.
fn use_six_times(pool: &Pool) {
    let thread = pool.thread().unwrap();
    let region = thread.alloc(4096, Permissions::READ_WRITE).wait().unwrap();
    region.write(0, b"counted").wait().unwrap();
    let mut read = [0; 7];
    region.read_into(0, &mut read).unwrap();
    assert_eq!(&read, b"counted", "{pool:?}");
    assert_eq!(thread.fetch_add(region.at(8), 5).wait(), Ok(0), "{pool:?}");
    assert_eq!(thread.fetch_add(region.at(8), 0).wait(), Ok(5), "{pool:?}");
    region.free().wait().unwrap();
}

#[test]
fn a_url_within_a_url_is_refused_as_by_itself() {
    let schemes = [&COUNT, SCHEMES[0]];
    let refused = |url| Pool::open_among(&schemes, url).map(drop).unwrap_err().to_string();
    let within = refused("count:local:?memory_bytes=0");
    assert_eq!(within, "parameter `memory_bytes`: `0`: must be 1 to 18446744073709551615");
    assert_eq!(refused("count:udp://a:1"), "scheme `udp`: must be one of count:URL, local:");
}
