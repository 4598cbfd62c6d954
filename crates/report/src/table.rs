//! The table under a figure.

use maud::{Markup, html};

use super::number::{fixed, optional};
use super::{BarPlot, DataTable, Figure, LinePlot, Panel, Plot, StackedPlot};

/// Longer tables are collapsed on the screen, but printed in full.
const ROWS_MAX_OPEN: usize = 12;
/// Fractions of the messages in a distribution's table.
const SHARES: [(&str, f64); 6] =
    [("10 %", 0.1), ("50 %", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999), ("all", 1.0)];

/// The table of a figure: the caller's, or that of its picture.
pub(super) fn of_figure(figure: &Figure) -> DataTable {
    figure.table.clone().unwrap_or_else(|| match &figure.plot {
        Plot::Lines(plot) => of_lines(plot),
        Plot::Cdf(plot) => of_cdf(plot),
        Plot::GroupedBars(plot) => of_bars(plot),
        Plot::StackedBars(plot) => of_stacked(plot),
    })
}

/// A collapsible table, open if it is short.
pub(super) fn folded(table: &DataTable) -> Markup {
    html! {
        details open[table.rows.len() <= ROWS_MAX_OPEN] {
            summary { "The numbers" }
            (scrolling(table))
        }
    }
}

/// A table with its own scroll bar on a narrow page.
pub(super) fn scrolling(table: &DataTable) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead {
                    tr {
                        @for (column, name) in table.columns.iter().enumerate() {
                            th scope="col" class=[table.is_text(column).then_some("text")] {
                                (name)
                            }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                td class=[table.is_text(column).then_some("text")] {
                                    (cell)
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl DataTable {
    fn is_text(&self, column: usize) -> bool {
        self.text_columns.contains(&column)
    }
}

fn of_lines(plot: &LinePlot) -> DataTable {
    let names = distinct(&plot.panels, |series| &series.name);
    let (mut columns, text_columns) = lead(&plot.panels, &plot.x.label, 0);
    columns.extend(names.iter().copied().cloned());
    let mut rows = Vec::new();
    for panel in &plot.panels {
        let mut places: Vec<f64> =
            panel.items.iter().flat_map(|series| &series.points).map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        for place in places {
            let mut row = panel_cell(&plot.panels, panel);
            row.push(fixed(place, plot.x.decimals));
            row.extend(names.iter().map(|name| {
                let series = panel.items.iter().find(|series| series.name == **name);
                let point = series.and_then(|series| {
                    series.points.iter().find(|point| point.0.total_cmp(&place).is_eq())
                });
                optional(point.map(|point| point.1), plot.y.decimals)
            }));
            rows.push(row);
        }
    }
    DataTable { columns, rows, text_columns }
}

fn of_cdf(plot: &LinePlot) -> DataTable {
    let (mut columns, text_columns) = lead(&plot.panels, &format!("{} of", plot.x.label), 1);
    columns.extend(SHARES.iter().map(|(name, _)| (*name).to_owned()));
    let mut rows = Vec::new();
    for panel in &plot.panels {
        for series in &panel.items {
            let mut row = panel_cell(&plot.panels, panel);
            row.push(series.name.clone());
            row.extend(SHARES.iter().map(|(_, share)| {
                let point = series.points.iter().find(|point| point.1 >= *share);
                optional(point.map(|point| point.0), plot.x.decimals)
            }));
            rows.push(row);
        }
    }
    DataTable { columns, rows, text_columns }
}

fn of_bars(plot: &BarPlot) -> DataTable {
    let names = distinct(&plot.panels, |series| &series.name);
    let (mut columns, text_columns) = lead(&plot.panels, &plot.category_label, 1);
    columns.extend(names.iter().copied().cloned());
    let mut rows = Vec::new();
    for panel in &plot.panels {
        for (index, category) in plot.categories.iter().enumerate() {
            let mut row = panel_cell(&plot.panels, panel);
            row.push(category.clone());
            row.extend(names.iter().map(|name| {
                let series = panel.items.iter().find(|series| series.name == **name);
                let value = series.and_then(|series| series.values.get(index).copied().flatten());
                optional(value, plot.y.decimals)
            }));
            rows.push(row);
        }
    }
    DataTable { columns, rows, text_columns }
}

/// A row per segment, a column per bar, and the sum at the end.
fn of_stacked(plot: &StackedPlot) -> DataTable {
    let several = plot.panels.len() > 1;
    let bars: Vec<_> = plot
        .panels
        .iter()
        .flat_map(|panel| panel.items.iter().map(move |bar| (panel, bar)))
        .collect();
    let mut columns = vec![plot.x_label.clone()];
    columns.extend(bars.iter().map(|(panel, bar)| {
        if several { format!("{}, {}", bar.name, panel.title) } else { bar.name.clone() }
    }));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (index, segment) in plot.segments.iter().enumerate() {
        let mut row = vec![segment.name.clone()];
        let value = |values: &[f64]| optional(values.get(index).copied(), plot.decimals);
        row.extend(bars.iter().map(|(_, bar)| value(&bar.values)));
        rows.push(row);
    }
    let mut sum = vec!["Sum".to_owned()];
    sum.extend(bars.iter().map(|(_, bar)| fixed(bar.values.iter().sum(), plot.decimals)));
    rows.push(sum);
    DataTable { columns, rows, text_columns: vec![0] }
}

/// Heads of the columns before the numbers, and the indices of text columns.
fn lead<T>(panels: &[Panel<T>], label: &str, label_is_text: usize) -> (Vec<String>, Vec<usize>) {
    let mut columns = Vec::new();
    if panels.len() > 1 {
        columns.push(String::new());
    }
    columns.push(label.to_owned());
    let text = columns.len() - 1 + label_is_text;
    (columns, (0..text).collect())
}

fn panel_cell<T>(panels: &[Panel<T>], panel: &Panel<T>) -> Vec<String> {
    if panels.len() > 1 { vec![panel.title.clone()] } else { Vec::new() }
}

/// Distinct names of all panels in order of appearance.
fn distinct<'a, T>(panels: &'a [Panel<T>], name: impl Fn(&'a T) -> &'a String) -> Vec<&'a String> {
    let mut names = Vec::new();
    for item in panels.iter().flat_map(|panel| &panel.items) {
        let name = name(item);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
