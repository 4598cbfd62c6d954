//! Lines over a number, and cumulative distributions.

use maud::{Markup, html};

use super::colours::{Colours, Paint, marker};
use super::frame::{
    Canvas, Frame, marks, picture_name, px, shown_ends, text_width, view_box, whisker, x_axis,
    y_axis,
};
use super::scale::Scale;
use super::{Picture, columns, grid, panels};
use crate::number::fixed;
use crate::{Axis, LinePlot, Panel, Scale as Spacing, Series};

const HEIGHTS_ALONE: (f64, f64) = (400.0, 320.0);
const HEIGHTS: (f64, f64) = (320.0, 300.0);
/// Minimum distance in px between labels at the ends of lines.
const LABEL_HEIGHT: f64 = 15.0;
/// Margin in px for the half of a tick label that extends beyond the right end.
const END_TICK_MARGIN: f64 = 18.0;
/// Fractions that have a marker on a distribution.
const MARKED_SHARES: [f64; 2] = [0.5, 0.99];

pub(super) fn draw(plot: &LinePlot, title: &str, colours: &Colours) -> Markup {
    let chart = Chart { plot, colours, steps: None, x: &plot.x, y: &plot.y };
    let heights = if plot.panels.len() == 1 { HEIGHTS_ALONE } else { HEIGHTS };
    let draw = |panel: &_, canvas| chart.draw(panel, title, canvas);
    panels(columns(plot.panels.len()), heights, &plot.panels, draw)
}

/// Draws each panel twice: the fraction that has finished, and the one that has not, which shows
/// the tail.
pub(super) fn draw_cdf(plot: &LinePlot, title: &str, colours: &Colours) -> Markup {
    let left_axis = Axis::of_data("Share of messages that took longer", Spacing::Log, 5);
    let finished = Chart { plot, colours, steps: Some(Share::Finished), x: &plot.x, y: &plot.y };
    let left = Chart { steps: Some(Share::Left), y: &left_axis, ..finished };
    let left_plot = LinePlot {
        panels: plot
            .panels
            .iter()
            .map(|panel| Panel {
                title: panel.title.clone(),
                items: panel.items.iter().map(still_left).collect(),
            })
            .collect(),
        ..plot.clone()
    };
    let left = Chart { plot: &left_plot, ..left };
    let mut pictures = Vec::new();
    for (panel, left_panel) in plot.panels.iter().zip(&left_plot.panels) {
        for (chart, panel, part) in [(finished, panel, "All"), (left, left_panel, "The slowest")] {
            let named = !panel.title.is_empty();
            let of = if named { format!(": {}", panel.title) } else { String::new() };
            pictures.push(Picture {
                title: format!("{part}{of}"),
                draw: Box::new(move |canvas| chart.draw(panel, title, canvas)),
            });
        }
    }
    grid(2, (340.0, 300.0), &pictures)
}

fn still_left(series: &Series) -> Series {
    let points = series.points.iter().map(|(x, share)| (*x, 1.0 - share)).collect();
    Series { points, ..series.clone() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    Finished,
    Left,
}

#[derive(Clone, Copy)]
struct Chart<'a> {
    plot: &'a LinePlot,
    colours: &'a Colours,
    /// Lines as steps that stay at their height until the next point.
    steps: Option<Share>,
    x: &'a Axis,
    y: &'a Axis,
}

impl Chart<'_> {
    fn draw(&self, panel: &Panel<Series>, title: &str, canvas: Canvas) -> Markup {
        let labelled = self.steps.is_none()
            && self.plot.panels.len() == 1
            && canvas.class.ends_with("wide")
            && panel.items.len() > 1;
        let widest = panel.items.iter().map(|series| text_width(&series.name)).fold(0.0, f64::max);
        let margin = if labelled { widest + 26.0 } else { END_TICK_MARGIN };
        // All panels have equal axes, so that they can be compared.
        let points = || {
            self.plot.panels.iter().flat_map(|panel| &panel.items).flat_map(|series| &series.points)
        };
        let marked = self.plot.marks.iter().map(|mark| mark.value);
        let series = || self.plot.panels.iter().flat_map(|panel| &panel.items);
        let intervals = series().flat_map(|series| &series.intervals).map(|of| (of.1, of.2));
        let y_values: Vec<f64> = points().map(|point| point.1).chain(marked).collect();
        let y_values = [shown_ends(&y_values, intervals), y_values].concat();
        let y_ticks = (canvas.height / 60.0) as usize;
        let y = Scale::new(self.y, y_values.iter().copied(), y_ticks, true);
        let frame = Frame::new(canvas, &y, margin);
        let x_values = points().map(|point| point.0);
        let ticks = (frame.width() / 75.0) as usize;
        let mut x = Scale::new(self.x, x_values.clone(), ticks, self.steps.is_some());
        if self.steps.is_none() {
            x.tick_at(x_values, self.x.decimals);
        }
        html! {
            svg class=(canvas.class) viewBox=(view_box(canvas)) role="img"
                aria-label=(picture_name(title, &panel.title)) {
                (y_axis(&frame, &y, &self.y.label))
                (x_axis(&frame, &x, &self.x.label, self.steps.is_some()))
                @if self.steps.is_none() { (marks(&frame, &y, &self.plot.marks)) }
                @for series in &panel.items {
                    @let paint = self.colours.paint(&series.name, series.role);
                    (self.series(series, &paint, &frame, &x, &y))
                }
                @if labelled { (self.end_labels(panel, &frame, &x, &y)) }
            }
        }
    }

    fn series(
        &self,
        series: &Series,
        paint: &Paint,
        frame: &Frame,
        x: &Scale,
        y: &Scale,
    ) -> Markup {
        let places: Vec<(f64, f64)> = series
            .points
            .iter()
            .map_while(|point| Some((frame.x(x.place(point.0)?), frame.y(y.place(point.1)?))))
            .collect();
        let path = match self.steps {
            None => joined(&places),
            Some(share) => stepped(&places, frame, share),
        };
        let marked: Vec<usize> = match self.steps {
            None => (0..places.len()).collect(),
            Some(share) => {
                MARKED_SHARES.iter().filter_map(|wanted| at_share(series, share, *wanted)).collect()
            }
        };
        html! {
            g class=(paint.class) {
                path class="line" d=(path) {}
                @for (at, low, high) in &series.intervals {
                    @if let Some(at) = x.place(*at) {
                        (whisker(frame, y, frame.x(at), (*low, *high)))
                    }
                }
                @for index in marked.into_iter().filter(|index| *index < places.len()) {
                    g {
                        title { (self.point_title(series, &series.points[index])) }
                        (marker(paint, places[index].0, places[index].1))
                    }
                }
            }
        }
    }

    fn point_title(&self, series: &Series, point: &(f64, f64)) -> String {
        let x = fixed(point.0, self.x.decimals);
        let y = fixed(point.1, self.y.decimals);
        format!("{}\n{}: {x}\n{}: {y}", series.name, self.x.label, self.y.label)
    }

    /// Names at the ends of their lines, moved apart where lines end close together.
    fn end_labels(&self, panel: &Panel<Series>, frame: &Frame, x: &Scale, y: &Scale) -> Markup {
        let mut ends: Vec<(&Series, f64, f64)> = panel
            .items
            .iter()
            .filter_map(|series| {
                let last = series.points.last()?;
                Some((series, frame.x(x.place(last.0)?), frame.y(y.place(last.1)?)))
            })
            .collect();
        ends.sort_by(|a, b| a.2.total_cmp(&b.2));
        let wanted: Vec<f64> = ends.iter().map(|end| end.2).collect();
        let heights = spread(&wanted, frame.top + 4.0, frame.bottom);
        html! {
            @for ((series, from_x, from_y), label_y) in ends.iter().zip(heights) {
                @let paint = self.colours.paint(&series.name, series.role);
                @let label_x = frame.right + 16.0;
                g class=(paint.class) {
                    path class="leader" d={
                        "M" (px(from_x + 6.0)) " " (px(*from_y))
                        "L" (px(label_x - 3.0)) " " (px(label_y))
                    } {}
                    text class="end-label" x=(px(label_x)) y=(px(label_y + 4.0)) { (series.name) }
                }
            }
        }
    }
}

/// Heights as close to the ascending `wanted` ones as the distance between labels allows.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut heights = wanted.to_vec();
    let mut least = top;
    for height in &mut heights {
        *height = height.max(least);
        least = *height + LABEL_HEIGHT;
    }
    let mut most = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - LABEL_HEIGHT;
    }
    heights
}

fn joined(places: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (index, (x, y)) in places.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        path.push_str(&format!("{command}{} {}", px(*x), px(*y)));
    }
    path
}

fn stepped(places: &[(f64, f64)], frame: &Frame, share: Share) -> String {
    let Some(first) = places.first() else {
        return String::new();
    };
    // Before the first point the finished fraction is 0.
    let (start, end) = match share {
        Share::Finished => (frame.bottom, None),
        Share::Left => (frame.top, Some(frame.bottom)),
    };
    let mut path = match share {
        Share::Finished => format!("M{} {}", px(first.0), px(start)),
        Share::Left => format!("M{} {}H{}", px(frame.left), px(start), px(first.0)),
    };
    for (x, y) in places {
        path.push_str(&format!("H{}V{}", px(*x), px(*y)));
    }
    if let Some(end) = end {
        path.push_str(&format!("V{}", px(end)));
    }
    path
}

/// The first point with at least the wanted fraction finished.
fn at_share(series: &Series, share: Share, wanted: f64) -> Option<usize> {
    series.points.iter().position(|point| match share {
        Share::Finished => point.1 >= wanted,
        Share::Left => point.1 <= 1.0 - wanted + 1e-12,
    })
}
