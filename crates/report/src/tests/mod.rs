mod sample;

use std::fs;

use proptest::prelude::*;

use super::number::fixed;
use super::*;

fn page(input: &ReportInput) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = write_report(&folder.path().join("out").join("report"), input).unwrap();
    assert!(path.ends_with("out/report/index.html"));
    fs::read_to_string(path).unwrap()
}

/// Text of an element, as a reader would copy it.
fn text(html: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    entities.iter().fold(html.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}

#[test]
fn every_figure_has_its_title_numbers_and_command() {
    let input = sample::input();
    let page = page(&input);
    let sections: Vec<&str> = page.split("<section id=").skip(2).collect();
    assert_eq!(sections.len(), input.figures.len());
    for (figure, section) in input.figures.iter().zip(sections) {
        assert!(section.starts_with(&format!("\"{}\"", figure.id)), "{}", figure.id);
        assert!(section.contains(&figure.title) && section.contains(&figure.caption));
        assert!(section.contains("<svg") && section.contains("<table>"), "{}", figure.id);
        let command = format!("<code>{}</code>", figure.command);
        assert!(section.contains(&command), "{}: {command}", figure.id);
        assert!(page.contains(&format!("href=\"#{}\"", figure.id)));
    }
}

#[test]
fn the_numbers_of_a_figure_are_in_its_table() {
    let input = sample::input();
    let page = page(&input);
    let mut checked = 0;
    for figure in &input.figures {
        let (values, decimals): (Vec<f64>, usize) = match &figure.plot {
            Plot::Lines(plot) => {
                let series = plot.panels.iter().flat_map(|panel| &panel.items);
                let points = series.flat_map(|series| &series.points);
                (points.map(|point| point.1).collect(), plot.y.decimals)
            }
            Plot::GroupedBars(plot) => {
                let series = plot.panels.iter().flat_map(|panel| &panel.items);
                let values = series.flat_map(|series| series.values.iter().flatten().copied());
                (values.collect(), plot.y.decimals)
            }
            Plot::StackedBars(plot) => {
                let bars = plot.panels.iter().flat_map(|panel| &panel.items);
                let sums = bars.map(|bar| bar.values.iter().sum());
                (sums.collect(), plot.decimals)
            }
            Plot::Cdf(_) => continue,
        };
        for value in values {
            let cell = format!("<td>{}</td>", fixed(value, decimals));
            assert!(page.contains(&cell), "{}: {cell}", figure.id);
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked} values");
}

#[test]
fn a_distribution_quotes_the_percentiles_of_its_runs() {
    let input = sample::input();
    let page = page(&input);
    for run in &input.runs {
        let all = &run.result.kinds.all;
        let cells: Vec<String> = [all.latency_ns_p99, all.latency_ns_p999, all.latency_ns_max]
            .map(|latency_ns| format!("<td>{}</td>", fixed(latency_ns.unwrap(), 1)))
            .into();
        assert!(page.contains(&cells.concat()), "{}: {cells:?}", run.fabric);
    }
}

#[test]
fn a_callers_table_takes_the_place_of_the_pictures() {
    let mut input = sample::input();
    input.figures.truncate(1);
    input.figures[0].table = Some(DataTable {
        columns: vec!["what".to_owned(), "value".to_owned()],
        rows: vec![vec!["answer".to_owned(), "42.125".to_owned()]],
        text_columns: vec![0],
    });
    let page = page(&input);
    assert!(page.contains("<td class=\"text\">answer</td><td>42.125</td>"));
    assert_eq!(page.matches("<table>").count(), 2, "the runs' and the figure's");
}

#[test]
fn the_page_says_where_its_numbers_come_from() {
    let mut input = sample::input();
    input.notices.push("huge pages were not to be had".to_owned());
    input.runs[0].result.notices.push("the policy fell back".to_owned());
    let page = page(&input);
    for said in [
        "<code>make run</code>",
        "0123456789ab",
        "x86_64, 2 cores",
        "<dt>ethermem</dt><dd>0.1.0</dd>",
        "huge pages were not to be had",
        "<b>64 B on edm srpt</b>: the policy fell back",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_notice_names_the_load_where_one_fabric_has_several() {
    let mut input = sample::input();
    let mut run = input.runs[0].clone();
    run.result.notices.push("the policy fell back".to_owned());
    input.runs = [0.8, 0.9]
        .map(|load| {
            let mut run = run.clone();
            run.result.load_requested = Some(load);
            run
        })
        .to_vec();
    let page = page(&input);
    for load in ["0.8", "0.9"] {
        let said = format!("<b>64 B on edm srpt at load {load}</b>: the policy fell back");
        assert!(page.contains(&said), "{said}");
    }
}

#[test]
fn what_the_caller_says_is_text_and_never_markup() {
    let evil = "<script>alert(1)</script> & \"quoted\" 'x'";
    let mut input = sample::input();
    input.title = evil.to_owned();
    input.lead = evil.to_owned();
    input.notices = vec![evil.to_owned()];
    input.origin.command = evil.to_owned();
    input.origin.versions = vec![(evil.to_owned(), evil.to_owned())];
    input.runs[0].workload = evil.to_owned();
    input.runs[0].fabric = evil.to_owned();
    for figure in &mut input.figures {
        figure.id = evil.to_owned();
        figure.title = evil.to_owned();
        figure.command = evil.to_owned();
        match &mut figure.plot {
            Plot::Lines(plot) | Plot::Cdf(plot) => {
                plot.x.label = evil.to_owned();
                plot.y.label = evil.to_owned();
                plot.panels[0].title = evil.to_owned();
                plot.panels[0].items[0].name = evil.to_owned();
                plot.marks = vec![Mark { label: evil.to_owned(), value: 1.0 }];
            }
            Plot::GroupedBars(plot) => {
                plot.category_label = evil.to_owned();
                plot.categories[0] = evil.to_owned();
                plot.panels[0].items[0].name = evil.to_owned();
            }
            Plot::StackedBars(plot) => {
                plot.x_label = evil.to_owned();
                plot.segments[0].name = evil.to_owned();
                plot.segments[0].layer = evil.to_owned();
                plot.panels[0].items[0].name = evil.to_owned();
            }
        }
    }
    let page = page(&input);
    assert!(!page.contains("<script") && !page.contains("id=\"<"));
    assert!(text(&page).contains(evil));
}

#[test]
fn the_page_needs_no_other_file_and_no_script() {
    let page = page(&sample::input());
    for outside in ["http:", "https:", "url(", "@import", "<script", "<link", "<img", " src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    for (open, close) in [("<svg", "</svg>"), ("<g", "</g>"), ("<path", "</path>")] {
        assert_eq!(
            page.matches(&format!("{open} ")).count() + page.matches(&format!("{open}>")).count(),
            page.matches(close).count(),
            "{open}"
        );
    }
}

#[test]
fn the_same_input_makes_the_same_bytes_whatever_the_real_time() {
    let mut later = sample::input();
    for run in &mut later.runs {
        run.result.wall_s += 1.0;
    }
    assert!(page(&sample::input()) == page(&later));
}

#[test]
fn an_empty_report_is_a_page() {
    let page = page(&ReportInput::default());
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named_and_an_old_page_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let line = write_report(&file.join("report"), &ReportInput::default()).unwrap_err().to_string();
    assert!(line.starts_with("cannot write ") && line.contains("file/report"), "{line}");
    assert_eq!(line.lines().count(), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..1e6_f64,
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300]),
    ]
}

proptest! {
    #![proptest_config(crate::property::cases(64))]

    #[test]
    fn any_numbers_can_be_drawn(
        points in prop::collection::vec((any_value(), any_value()), 0..8),
        scale in prop::sample::select(vec![Scale::Linear, Scale::Log, Scale::Auto]),
        start in prop::option::of(-1.0..2.0_f64),
    ) {
        let axis = || Axis { start, ..Axis::of_data("a", scale, 2) };
        let values = points.iter().map(|point| point.1);
        let lines = LinePlot {
            x: axis(),
            y: axis(),
            panels: vec![Panel {
                title: String::new(),
                items: vec![
                    Series {
                        name: "a".to_owned(),
                        role: Role::Measured,
                        intervals: points.iter().map(|(x, y)| (*x, y / 1e6, y * 1e6)).collect(),
                        points: points.clone(),
                    },
                    Series {
                        name: "b".to_owned(),
                        role: Role::Reference,
                        intervals: Vec::new(),
                        points: Vec::new(),
                    },
                ],
            }],
            marks: Vec::new(),
        };
        let bars = BarPlot {
            category_label: "c".to_owned(),
            categories: values.clone().map(|value| value.to_string()).collect(),
            y: axis(),
            panels: vec![Panel {
                title: String::new(),
                items: vec![BarSeries {
                    intervals: values.clone().map(|y| Some((y / 2.0, y * 1e6))).collect(),
                    name: "a".to_owned(),
                    role: Role::Measured,
                    values: values.clone().map(Some).collect(),
                }],
            }],
            marks: Vec::new(),
        };
        let stacked = StackedPlot {
            x_label: "x".to_owned(),
            decimals: 1,
            segments: values
                .clone()
                .map(|_| Segment { name: "s".to_owned(), layer: "l".to_owned() })
                .collect(),
            panels: vec![Panel {
                title: String::new(),
                items: vec![StackedBar { name: "a".to_owned(), values: values.collect() }],
            }],
            shared_axis: true,
        };
        for plot in [
            Plot::Lines(lines.clone()),
            Plot::Cdf(lines),
            Plot::GroupedBars(bars),
            Plot::StackedBars(stacked),
        ] {
            let colours = plot::Colours::default();
            let svg = plot::draw(&plot, "t", &colours).into_string();
            for attribute in svg.split('"').skip(1).step_by(2) {
                prop_assert!(
                    !attribute.contains("NaN") && !attribute.contains("inf"),
                    "{attribute}"
                );
            }
        }
    }
}
