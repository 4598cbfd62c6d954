//! The page of a study, and its table for the terminal.

use ethermem_pager::{Emulation, Verdict, correlation};
use ethermem_sim::output::TextTable;
use ethermem_sim::report::{ReportInput, TableSection};

use super::replays::{ReadTimes, Simulated};
use super::{Point, Profiled, Study, figures};
use crate::folder::origin;
use crate::remote::pictures::{
    SLOWDOWN, by_waits, coefficient, distinct, interval, percent, swap_place, table as numbers,
    word,
};
use crate::remote::size;
use crate::runner::Runner;

const LIMITS: &str = "Delays are drawn from the completion times of reads, independently of each \
    other: bursts in which many reads are slow together are not kept, and a program that slows \
    down does not ask less of the simulated network. A read of several pages takes one delay. \
    The network's times are those of many copies of this program, not of others. What takes \
    less than this machine needs to serve a page is still added to it.";

/// An interval of the program against itself that is wider than this hides the study's answer.
const LOUD: f64 = 0.05;

pub(super) fn page(study: &Study, seed: u64, runner: &Runner<'_>) -> ReportInput {
    let command = runner.command();
    ReportInput {
        title: format!("Remote memory for {}", study.inputs.program),
        lead: format!(
            "The program holds {} at most and takes {:.3} s with all its memory local. With a part \
             of it remote, on each fabric, behind links of each rate: this is how much longer it \
             would take.",
            size(study.alone.peak_bytes),
            study.alone.local_seconds
        ),
        origin: origin(runner, command.clone(), seed),
        first: vec![at_a_glance(study)],
        figures: figures::of(study, &command),
        last: vec![asked(study), correlations(study), all(study)],
        definitions: Some(format!("{SLOWDOWN} {LIMITS}")),
        notices: notices(study),
        ..ReportInput::default()
    }
}

/// Table for the terminal, with a reader's first questions.
pub(super) fn table(study: &Study) -> TextTable<'static> {
    let row = |point: &Point| {
        let replayed = &point.replayed;
        let slowdown = point.emulation.as_ref().map(|emulation| interval(&emulation.slowdown));
        let verdict = point.emulation.as_ref().map(|emulation| emulation.within_5_percent);
        vec![
            replayed.fabric.clone(),
            replayed.link_gbps.to_string(),
            percent(replayed.local_share),
            slowdown.or_else(|| replayed.reason.clone()).unwrap_or_default(),
            verdict.map_or("–", word).to_owned(),
        ]
    };
    TextTable {
        header: &["fabric", "Gb/s", "local", "slowdown (95 %)", "within 5 %"],
        text_columns: &[0, 3, 4],
        optional_columns: &[],
        rows: study.points.iter().map(row).collect(),
    }
}

/// A row for each fabric and rate, a column for each fraction.
fn at_a_glance(study: &Study) -> TableSection {
    let shares = distinct(study.points.iter().map(|point| point.replayed.local_share));
    let mut rows = Vec::new();
    for (gbps, fabric) in rows_of(study) {
        let at = |share: &f64| {
            let wanted = (gbps, fabric, *share);
            let is_it = |point: &&Point| {
                let replayed = &point.replayed;
                (replayed.link_gbps, replayed.fabric.as_str(), replayed.local_share) == wanted
            };
            study.points.iter().find(is_it)?.emulation.as_ref()
        };
        let slowdowns: Vec<Option<&Emulation>> = shares.iter().map(at).collect();
        let cell = |emulation: &Option<&Emulation>| {
            emulation.map_or_else(|| "not run".to_owned(), |point| interval(&point.slowdown))
        };
        let mut row = vec![fabric.to_owned(), gbps.to_string()];
        row.extend(slowdowns.iter().map(cell));
        row.extend(study.all_local.iter().map(|emulation| interval(&emulation.slowdown)));
        row.push(least_local(&shares, &slowdowns));
        rows.push(row);
    }
    let mut columns = vec!["Fabric".to_owned(), "Gb/s".to_owned()];
    columns.extend(shares.iter().map(|share| format!("{} local", percent(*share))));
    columns.extend(study.all_local.iter().map(|_| "100 % local".to_owned()));
    columns.push("Least local within 5 %".to_owned());
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let all_local = match study.all_local {
        Some(_) => {
            "With all memory local no network is asked, so that column is the same runs for all: \
            how far it is from 1 is the noise of this machine. "
        }
        None => "",
    };
    TableSection {
        id: "at-a-glance".to_owned(),
        title: "Slowdown".to_owned(),
        caption: format!(
            "Mean of the repeats, and its 95 % interval: 1.05 is 5 % longer. {all_local}The last \
            column is the least share below 100 % that was tried from which on every slowdown by \
            waits is at most 1.05 with its interval. Where 1.05 is in that, the clock's interval \
            decides if it has a part of it. Else it is undecided, and the least share that may be \
            enough stands beside."
        ),
        table: numbers(&names, 1, rows),
        notes: reasons(study),
    }
}

/// The smallest of these ascending fractions from which on the loss is small enough, as far as the
/// intervals tell.
fn least_local(shares: &[f64], slowdowns: &[Option<&Emulation>]) -> String {
    let least = |allowed: &[Verdict]| {
        let is_small = |emulation: &&Option<&Emulation>| {
            emulation.is_some_and(|emulation| allowed.contains(&emulation.verdict()))
        };
        let small = slowdowns.iter().rev().take_while(is_small).count();
        shares.get(shares.len() - small).copied()
    };
    let surely = least(&[Verdict::Within]);
    match (least(&[Verdict::Within, Verdict::Undecided]), surely) {
        (None, _) => "none".to_owned(),
        (Some(perhaps), Some(surely)) if perhaps == surely => percent(surely),
        (Some(perhaps), Some(surely)) => {
            format!("{}; undecided from {}", percent(surely), percent(perhaps))
        }
        (Some(perhaps), None) => format!("undecided from {}", percent(perhaps)),
    }
}

/// Reasons why points were not run, each once.
fn reasons(study: &Study) -> Vec<String> {
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for point in &study.points {
        let Some(reason) = &point.replayed.reason else { continue };
        let name = point.replayed.name();
        match found.iter_mut().find(|(there, _)| there == reason) {
            Some((_, names)) => names.push(name),
            None => found.push((reason, vec![name])),
        }
    }
    let line =
        |(reason, names): (&str, Vec<String>)| format!("Not run: {}: {reason}", names.join("; "));
    found.into_iter().map(line).collect()
}

fn notices(study: &Study) -> Vec<String> {
    let mut notices = Vec::new();
    if study.inputs.repeats_max < 2 {
        notices.push("One repeat: no interval is known, and a slowdown may be noise.".to_owned());
    }
    let emulations = || study.points.iter().filter_map(|point| point.emulation.as_ref());
    let is_undecided = |emulation: &&Emulation| emulation.within_5_percent == Verdict::Undecided;
    let undecided: Vec<&Emulation> = emulations().filter(is_undecided).collect();
    if !undecided.is_empty() && study.inputs.repeats_max > 1 {
        let by_waits = |verdict: Verdict| {
            let is_so =
                |it: &&&Emulation| it.counted.is_some_and(|by| by.within_5_percent == verdict);
            undecided.iter().filter(is_so).count()
        };
        notices.push(format!(
            "{} of {} slowdowns are undecided by the clock: 1.05 is in their intervals after {} \
             repeats at most. By waits, {} of them are within 5 % and {} above.",
            undecided.len(),
            emulations().count(),
            study.inputs.repeats_max,
            by_waits(Verdict::Within),
            by_waits(Verdict::Above),
        ));
    }
    let noise = study.all_local.as_ref().map(|emulation| &emulation.slowdown);
    if let Some(noise) = noise
        && let (Some(low), Some(high)) = (noise.low, noise.high)
        && high - low > LOUD
    {
        notices.push(format!(
            "Noise: against itself, with all memory local, the program takes {} of its time. What \
             differs by less is not known to differ: ask for more repeats, on a machine that does \
             nothing else.",
            interval(noise)
        ));
    }
    let networks = study.points.iter().filter_map(|point| {
        let network = point.replayed.network.as_ref()?;
        Some((&point.replayed, network))
    });
    for (replayed, network) in networks {
        if network.lost > 0 {
            let (name, lost) = (replayed.name(), network.lost);
            notices.push(format!("{name}: {lost} accesses were lost, and are in no time"));
        }
        // An overload is the reason why a point was not run, and is reported there.
        let told = network.notices.iter().filter(|notice| !notice.starts_with("overload"));
        for notice in told {
            if !notices.contains(notice) {
                notices.push(notice.clone());
            }
        }
    }
    notices
}

fn asked(study: &Study) -> TableSection {
    let row = |profiled: &Profiled| {
        let profile = &profiled.profile;
        let undelayed = study.points.iter().find_map(|point| {
            let emulation = point.emulation.as_ref()?;
            (emulation.local_share == profiled.local_share)
                .then_some(emulation.undelayed_seconds.mean)
        });
        let seconds = profile.duration_ns as f64 / 1e9;
        vec![
            percent(profiled.local_share),
            size(profile.local_bytes),
            profile.counts.read_pages.to_string(),
            profile.counts.prefetched_pages.to_string(),
            profile.counts.written_pages.to_string(),
            format!("{:.0}", profile.reads_per_second),
            format!("{:.3}", profile.swap_gbps),
            format!("{seconds:.3}"),
            format!("{:.2}", seconds / study.alone.local_seconds),
            undelayed.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds:.3}")),
        ]
    };
    let columns = [
        "Local",
        "Local memory",
        "Pages waited for",
        "Brought along",
        "Written back",
        "Waits (/s)",
        "Swap (Gb/s)",
        "Trace (s)",
        "Over all local",
        "Without delays (s)",
    ];
    TableSection {
        id: "asked".to_owned(),
        title: "What the program asks of remote memory".to_owned(),
        caption: "From the traces that were replayed. They hold what this machine needed to serve \
            pages; --speed with the number under 'over all local' replays them as if that were \
            nothing, the most that the program could ask for."
            .to_owned(),
        table: numbers(&columns, 1, study.profiles.iter().map(row).collect()),
        notes: Vec::new(),
    }
}

fn correlations(study: &Study) -> TableSection {
    let rows = rows_of(study).into_iter().map(|(gbps, fabric)| {
        let of_row = study.points.iter().filter(|point| {
            (point.replayed.link_gbps, point.replayed.fabric.as_str()) == (gbps, fabric)
        });
        let of_row = of_row.filter_map(|point| point.emulation.as_ref());
        let places: Vec<(f64, f64)> = of_row.chain(&study.all_local).map(swap_place).collect();
        vec![
            fabric.to_owned(),
            gbps.to_string(),
            places.len().to_string(),
            coefficient(correlation(&places)),
        ]
    });
    TableSection {
        id: "correlation".to_owned(),
        title: "Correlation of slowdown with swap bandwidth".to_owned(),
        caption: "Pearson's coefficient over the shares; from three points on.".to_owned(),
        table: numbers(&["Fabric", "Gb/s", "Points", "Coefficient"], 1, rows.collect()),
        notes: Vec::new(),
    }
}

fn all(study: &Study) -> TableSection {
    let columns = [
        "Fabric",
        "Gb/s",
        "Local",
        "Topology",
        "Load",
        "Read p50 (us)",
        "p99 (us)",
        "p99.9 (us)",
        "Fabric's slowdown",
        "Program's slowdown (95 %)",
        "Within 5 %",
        "By waits (95 %)",
        "By waits within 5 %",
        "Repeats",
        "Without delays (s)",
        "With (s)",
        "Swap (Gb/s)",
    ];
    TableSection {
        id: "all-points".to_owned(),
        title: "All points".to_owned(),
        caption: "The simulated network, and what its times cost the program. A fabric's slowdown \
            is the mean of completion times over those of the same accesses alone."
            .to_owned(),
        table: numbers(&columns, 4, study.points.iter().map(point_row).collect()),
        notes: Vec::new(),
    }
}

fn point_row(point: &Point) -> Vec<String> {
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let (replayed, network) = (&point.replayed, point.replayed.network.as_ref());
    let us = |of: fn(&ReadTimes) -> f64| {
        let times = network.and_then(|network| network.read_ns.as_ref());
        number(times.map(|times| of(times) / 1e3), 3)
    };
    let emulation = point.emulation.as_ref();
    let [by_waits, by_waits_within] = by_waits(emulation.and_then(|it| it.counted.as_ref()));
    let of = |of: fn(&Emulation) -> f64| number(emulation.map(of), 3);
    let of_network = |of: fn(&Simulated) -> Option<f64>| number(network.and_then(of), 3);
    vec![
        replayed.fabric.clone(),
        replayed.link_gbps.to_string(),
        percent(replayed.local_share),
        network.map_or_else(|| "–".to_owned(), |network| network.topology.clone()),
        of_network(|network| Some(network.busiest_load)),
        us(|times| times.p50),
        us(|times| times.p99),
        us(|times| times.p999),
        of_network(|network| network.slowdown_mean),
        emulation.map_or_else(|| "not run".to_owned(), |point| interval(&point.slowdown)),
        emulation.map_or("–", |point| word(point.within_5_percent)).to_owned(),
        by_waits,
        by_waits_within,
        emulation.map_or_else(|| "–".to_owned(), |point| point.repeats.to_string()),
        of(|emulation| emulation.undelayed_seconds.mean),
        of(|emulation| emulation.delayed_seconds.mean),
        of(|emulation| emulation.swap_gbps),
    ]
}

/// Rates with their fabrics, in order of appearance.
fn rows_of(study: &Study) -> Vec<(u64, &str)> {
    let replayed = study.points.iter().map(|point| &point.replayed);
    distinct(replayed.map(|replayed| (replayed.link_gbps, replayed.fabric.as_str())))
}

#[cfg(test)]
mod tests {
    use ethermem_pager::{Counted, Estimate};
    use ethermem_sim::report::Plot;

    use super::super::kept::Inputs;
    use super::super::replays::{ReadTimes, Replayed, Simulated};
    use super::super::{Alone, Point, Study};
    use super::{Emulation, least_local, page, table};
    use crate::remote::grid_page::samples::{counted, emulation};
    use crate::runner::samples::runner;

    fn point(fabric: &str, share: f64, slowdown: Option<f64>) -> Point {
        let read_ns = ReadTimes { p50: 1500.0, p90: 2e3, p99: 9e3, p999: 1e4, max: 2e4 };
        let network = Simulated {
            topology: "leaf-spine".to_owned(),
            busiest_load: 0.25 / share,
            mean_load: 0.1,
            accesses: 1_000,
            lost: 0,
            slowdown_mean: Some(1.5),
            read_ns: Some(read_ns),
            notices: Vec::new(),
        };
        let reason = slowdown.is_none().then(|| "over capacity".to_owned());
        let replayed = Replayed {
            fabric: fabric.to_owned(),
            link_gbps: 40,
            local_share: share,
            reason,
            network: Some(network),
            completions: None,
        };
        let half = Some(0.01);
        let emulated = |mean: f64| emulation("named", share, mean, half, 1.0 - share);
        Point { replayed, emulation: slowdown.map(emulated) }
    }

    fn study() -> Study {
        let inputs = Inputs {
            program: "./query".to_owned(),
            prefetch: true,
            repeats: 3,
            repeats_max: 12,
            replay: String::new(),
            version: String::new(),
            commit: None,
        };
        let points = vec![
            point("edm", 0.1, Some(1.2)),
            point("tcp", 0.1, None),
            point("edm", 0.5, Some(1.1)),
            point("tcp", 0.5, Some(1.3)),
        ];
        let all_local = Some(emulation("all memory local", 1.0, 1.0, Some(0.02), 0.0));
        let alone = Alone { peak_bytes: 1 << 30, local_seconds: 2.0 };
        Study { inputs, alone, profiles: Vec::new(), points, all_local }
    }

    #[test]
    fn every_point_is_told_and_one_that_was_not_run_with_its_reason() {
        let told = study();
        let page = page(&told, 1, &runner());
        let glance = &page.first[0];
        assert_eq!(
            glance.table.columns,
            ["Fabric", "Gb/s", "10 % local", "50 % local", "100 % local", "Least local within 5 %"]
        );
        let edm = "1.200 (1.190 to 1.210) | 1.100 (1.090 to 1.110) | 1.000 (0.980 to 1.020)";
        assert_eq!(glance.table.rows[0].join(" | "), format!("edm | 40 | {edm} | none"));
        assert_eq!(glance.table.rows[1][2], "not run");
        let without = super::page(&Study { all_local: None, ..study() }, 1, &runner());
        for (glance, has) in [(glance, true), (&without.first[0], false)] {
            assert_eq!(glance.table.columns.iter().any(|name| name == "100 % local"), has);
            assert_eq!(glance.caption.contains("With all memory local"), has);
        }
        assert_eq!(glance.notes, ["Not run: tcp at 40 Gb/s, 10 % local: over capacity"]);
        assert_eq!(page.last[2].table.rows.len(), 4);
        assert_eq!(table(&told).rows[1][3], "over capacity");
        assert!(page.notices.is_empty(), "{:?}", page.notices);
    }

    #[test]
    fn the_least_share_is_the_last_before_one_that_costs_too_much() {
        let of = |mean: f64| emulation("named", 0.5, mean, Some(0.01), 1.0);
        let (small, large, unclear) = (of(1.04), of(1.07), of(1.05));
        let shares = [0.1, 0.25, 0.5];
        let least = |points: [Option<&Emulation>; 3]| least_local(&shares, &points);
        assert_eq!(least([Some(&small), Some(&large), Some(&small)]), "50 %");
        assert_eq!(least([Some(&large), Some(&small), Some(&small)]), "25 %");
        assert_eq!(least([Some(&small); 3]), "10 %");
        assert_eq!(least([Some(&small), Some(&small), None]), "none", "it was not run");
        let undecided = [Some(&unclear), Some(&small), Some(&small)];
        assert_eq!(least(undecided), "25 %; undecided from 10 %");
        assert_eq!(least([Some(&large), Some(&small), Some(&unclear)]), "undecided from 25 %");
        assert_eq!(least([Some(&small), Some(&large), Some(&large)]), "none");
        let by_waits = |mean: f64| Emulation { counted: counted(mean), ..of(1.05) };
        let (cheap, dear) = (by_waits(1.02), by_waits(1.08));
        assert_eq!(least([Some(&dear), Some(&cheap), Some(&cheap)]), "25 %", "waits decide");
        // The clock of a machine on which others ran.
        let loud = Emulation { counted: counted(1.02), ..of(1.8) };
        assert_eq!(least([Some(&loud), Some(&small), Some(&small)]), "10 %");
        let wide = Estimate { mean: 1.05, low: Some(1.0), high: Some(1.1) };
        let unsure = counted(1.05).map(|it| Counted {
            slowdown: wide,
            within_5_percent: wide.verdict(1.05),
            ..it
        });
        let by_clock = |mean: f64| Emulation { counted: unsure, ..of(mean) };
        let (agrees, differs) = (by_clock(1.02), by_clock(1.8));
        assert_eq!(least([Some(&agrees), Some(&small), Some(&small)]), "10 %");
        assert_eq!(
            least([Some(&differs), Some(&small), Some(&small)]),
            "25 %; undecided from 10 %"
        );
    }

    #[test]
    fn figures_end_with_all_memory_local() {
        let page = page(&study(), 1, &runner());
        let ids: Vec<&str> = page.figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, ["by-share", "read-p50", "read-p99", "load", "swap"], "one rate alone");
        let Plot::Lines(shares) = &page.figures[0].plot else { panic!("lines") };
        let [edm, tcp] = &shares.panels[0].items[..] else { panic!("two fabrics") };
        assert_eq!(edm.points, [(10.0, 1.2), (50.0, 1.1), (100.0, 1.0)]);
        assert_eq!(tcp.points, [(50.0, 1.3), (100.0, 1.0)]);
        let Plot::Lines(times) = &page.figures[2].plot else { panic!("lines") };
        assert_eq!(times.panels[0].items[1].points, [(10.0, 9.0), (50.0, 9.0)]);
        let Plot::Lines(load) = &page.figures[3].plot else { panic!("lines") };
        assert_eq!(load.panels[0].items[0].points, [(10.0, 2.5), (50.0, 0.5)]);
        // Three points on a line: 0.9, 0.5 and 0 Gb/s; tcp has two.
        assert_eq!(page.last[1].table.rows[1][2..], ["2", "–"]);
    }

    #[test]
    fn what_the_clock_does_not_decide_waits_may() {
        let mut study = study();
        for (point, by_waits) in study.points.iter_mut().zip([1.2, 1.0, 1.05, 1.02]) {
            let undecided = emulation("named", 0.5, 1.05, Some(0.01), 1.0);
            point.emulation = Some(Emulation { counted: counted(by_waits), ..undecided });
        }
        let page = page(&study, 1, &runner());
        assert_eq!(
            page.notices,
            ["4 of 4 slowdowns are undecided by the clock: 1.05 is in their intervals after 12 \
                 repeats at most. By waits, 3 of them are within 5 % and 1 above."]
        );
        assert!(page.last[2].table.rows[0].iter().any(|cell| cell == "1.200 (1.200 to 1.200)"));
    }

    #[test]
    fn noise_and_a_single_repeat_are_told() {
        let mut study = study();
        (study.inputs.repeats, study.inputs.repeats_max) = (1, 1);
        study.all_local = Some(emulation("all memory local", 1.0, 1.0, Some(0.1), 0.0));
        let notices = page(&study, 1, &runner()).notices;
        assert!(notices[0].starts_with("One repeat"), "{notices:?}");
        assert!(notices[1].contains("1.000 (0.900 to 1.100)"), "{notices:?}");
    }
}
