//! The page around the figures.

use ethermem_engine::metrics::RunResult;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::number::{fixed, optional};
use super::plot::{Colours, draw};
use super::table::{folded, of_figure, scrolling};
use super::{DataTable, Figure, Origin, ReportInput, ReportedRun, TableSection, run_name};

const STYLE: &str = include_str!("style.css");

pub(super) fn render(input: &ReportInput) -> String {
    let colours = Colours::of(&input.figures);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (input.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(input))
                main {
                    @for section in &input.first { (table_section(section, &scrolling)) }
                    (runs(&input.runs))
                    @for (index, figure) in input.figures.iter().enumerate() {
                        (figure_section(index + 1, figure, &colours))
                    }
                    @for section in &input.last { (table_section(section, &folded)) }
                }
                (footer(input.definitions.as_deref()))
            }
        }
    };
    page.into_string()
}

fn header(input: &ReportInput) -> Markup {
    html! {
        header {
            h1 { (input.title) }
            p class="lead" { (input.lead) }
            (origin(&input.origin))
            @if !input.notices.is_empty() {
                section class="notices" aria-label="Notices" {
                    h2 { "To know before reading" }
                    ul { @for notice in &input.notices { li { (notice) } } }
                }
            }
            @if input.figures.len() > 1 {
                nav aria-label="Figures" {
                    ol {
                        @for figure in &input.figures {
                            li { a href={ "#" (figure.id) } { (figure.title) } }
                        }
                        @for section in &input.last {
                            li { a href={ "#" (section.id) } { (section.title) } }
                        }
                    }
                }
            }
        }
    }
}

fn origin(origin: &Origin) -> Markup {
    html! {
        dl class="origin" {
            div class="all" { dt { "Repeat it all" } dd { code { (origin.command) } } }
            div { dt { "Seed" } dd { (origin.seed) } }
            div { dt { "Commit" } dd { (origin.commit.as_deref().unwrap_or("not known")) } }
            div { dt { "Machine" } dd { (origin.machine) } }
            @for (name, version) in &origin.versions {
                div { dt { (name) } dd { (version) } }
            }
        }
    }
}

fn table_section(section: &TableSection, show: &dyn Fn(&DataTable) -> Markup) -> Markup {
    html! {
        section id=(section.id) class="numbers" {
            h2 { (section.title) }
            p { (section.caption) }
            @if !section.table.rows.is_empty() { (show(&section.table)) }
            @if !section.notes.is_empty() {
                ul class="notes" { @for note in &section.notes { li { (note) } } }
            }
        }
    }
}

fn runs(runs: &[ReportedRun]) -> Markup {
    let name = |run: &ReportedRun| {
        run_name(run.place(), run.result.load_requested, runs.iter().map(ReportedRun::place))
    };
    let notices: Vec<(&ReportedRun, &String)> = runs
        .iter()
        .flat_map(|run| run.result.notices.iter().map(move |text| (run, text)))
        .collect();
    html! {
        @if !runs.is_empty() {
            section id="runs" {
                h2 { "Runs" }
                (scrolling(&runs_table(runs)))
                @if !notices.is_empty() {
                    ul class="notes" {
                        @for (run, notice) in &notices {
                            li { b { (name(run)) } ": " (notice) }
                        }
                    }
                }
            }
        }
    }
}

fn runs_table(runs: &[ReportedRun]) -> DataTable {
    let columns = [
        "Workload",
        "Fabric",
        "Messages",
        "Lost",
        "Load (measured)",
        "Gb/s/node",
        "Mean slowdown",
        "Reads",
        "Writes",
        "p99 slowdown",
        "Mean latency (ns)",
        "p99 latency (ns)",
    ];
    let rows = runs.iter().map(|reported| {
        let run = &reported.result;
        let [all, read, write] =
            [&run.kinds.all, &run.kinds.read, &run.kinds.write].map(|kind| run.shown(kind));
        vec![
            reported.workload.clone(),
            reported.fabric.clone(),
            fixed(run.messages_started as f64, 0),
            fixed(run.messages_lost as f64, 0),
            load(run),
            fixed(run.payload_goodput_gbps_per_node, 2),
            optional(all.slowdown_mean, 3),
            optional(read.slowdown_mean, 3),
            optional(write.slowdown_mean, 3),
            optional(all.slowdown_p99, 3),
            optional(all.latency_ns_mean, 1),
            optional(all.latency_ns_p99, 1),
        ]
    });
    DataTable {
        columns: columns.map(str::to_owned).into(),
        rows: rows.collect(),
        text_columns: vec![0, 1],
    }
}

/// The offered load of the scenario and, in brackets, the mean load of the links over the whole
/// run.
fn load(run: &RunResult) -> String {
    let measured = run.load_measured.map(|load| format!("({})", fixed(load, 2)));
    let asked = run.load_requested.map(|load| fixed(load, 2));
    [asked, measured].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn figure_section(number: usize, figure: &Figure, colours: &Colours) -> Markup {
    html! {
        section id=(figure.id) class="figure" {
            h2 { span class="number" { (number) } (figure.title) }
            p { (figure.caption) }
            figure { (draw(&figure.plot, &figure.title, colours)) }
            (folded(&of_figure(figure)))
            p class="command" { span { "Repeat it" } code { (figure.command) } }
        }
    }
}

const RUN_TO_THE_END: &str = "A message's slowdown is its time from arrival to end over the time \
    that the same message takes alone in the same fabric. All messages run to their end; those \
    that never ended are counted as lost. The measured load is a mean over the whole run, its \
    drain included, which a few long messages make long. Percentiles are of nearest rank, at most \
    0.01 % above the exact value. A cell or a point is blank where the load is not sustained: \
    more arrives than ends, and latencies grow with the length of the run.";

fn footer(definitions: Option<&str>) -> Markup {
    html! { footer { p { (definitions.unwrap_or(RUN_TO_THE_END)) } } }
}
