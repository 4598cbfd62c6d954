use ethermem_sim::{fabrics, run, scenario::Scenario};
use std::path::Path;
use std::sync::atomic::AtomicBool;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let s = std::fs::read_to_string(&a[1]).unwrap();
    let s = a[3..].iter().fold(s, |s, kv| {
        let (k, v) = kv.split_once('=').unwrap();
        let mut hit = false;
        let mut o: Vec<String> = s
            .lines()
            .map(|l| {
                if l.split('=').next().unwrap().trim() == k && !l.starts_with('#') {
                    hit = true;
                    format!("{k} = {v}")
                } else {
                    l.to_string()
                }
            })
            .collect();
        if !hit {
            let at = o.iter().position(|l| l == "[fabric.edm]").unwrap();
            o.insert(at + 1, format!("{k} = {v}"));
        }
        o.join("\n")
    });
    let sc = Scenario::parse(&s, Path::new(&a[1]), fabrics::FABRIC_NAMES).unwrap();
    for f in a[2].split(',') {
        let i = AtomicBool::new(false);
        let r = run::run(
            &sc,
            run::RunOptions {
                fabric: fabrics::find(f).unwrap(),
                label: f.into(),
                scenario_name: a[1].clone(),
                commit: None,
                interrupt: &i,
                progress: &|_| {},
                messages: None,
                timeline: None,
            },
        );
        match r {
            Err(e) => println!("{f}: {e}"),
            Ok(r) => {
                let k = |n: &str, k: &ethermem_sim::metrics::KindStats| {
                    if k.messages > 0 {
                        println!(
                            "  {n:5} n={} mean {:.4} p50 {:.3} p99 {:.3} p999 {:.2} max {:.1} | ns mean {:.1} p50 {:.1} p99 {:.1}",
                            k.messages,
                            k.slowdown_mean.unwrap(),
                            k.slowdown_p50.unwrap(),
                            k.slowdown_p99.unwrap(),
                            k.slowdown_p999.unwrap(),
                            k.slowdown_max.unwrap(),
                            k.latency_ns_mean.unwrap(),
                            k.latency_ns_p50.unwrap(),
                            k.latency_ns_p99.unwrap()
                        )
                    }
                };
                println!(
                    "{f}: started {} finished {} lost {} events {} wall {:.2}s load {:?} q {:?} ctl {:?} match {:?} good {:.2}",
                    r.messages_started,
                    r.messages_finished,
                    r.messages_lost,
                    r.events,
                    r.wall_s,
                    r.load_measured,
                    r.queue,
                    r.control_overhead,
                    r.matching,
                    r.payload_goodput_gbps_per_node
                );
                k("read", &r.kinds.read);
                k("write", &r.kinds.write);
                k("all", &r.kinds.all);
            }
        }
    }
}
