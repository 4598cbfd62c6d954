//! Bars in groups.

use maud::{Markup, html};

use super::colours::Colours;
use super::frame::{
    Canvas, Frame, base_line, marks, picture_name, px, shown_ends, text_width, view_box, whisker,
    y_axis,
};
use super::scale::Scale;
use super::{columns, panels};
use crate::number::fixed;
use crate::{BarPlot, BarSeries, Panel};

/// A panel with more bars than this uses the whole width of the page.
const BARS_MAX_BESIDE: usize = 12;
/// Fraction of a group's width that its bars use.
const GROUP_SHARE: f64 = 0.78;
/// Slope in radians of category names that are wider than their group.
const SLANT: f64 = 0.6;
/// Distance in px between the names of two categories.
const NAME_GAP: f64 = 6.0;
/// Size of a bar's number relative to other labels.
const SMALL: f64 = 0.85;

pub(super) fn draw(plot: &BarPlot, title: &str, colours: &Colours) -> Markup {
    let series = plot.panels.iter().map(|panel| panel.items.len()).max().unwrap_or_default();
    let beside = series * plot.categories.len() <= BARS_MAX_BESIDE;
    let columns = if beside { columns(plot.panels.len()) } else { 1 };
    let draw = |panel: &_, canvas| panel_svg(plot, panel, title, colours, canvas);
    panels(columns, (300.0, 300.0), &plot.panels, draw)
}

fn panel_svg(
    plot: &BarPlot,
    panel: &Panel<BarSeries>,
    title: &str,
    colours: &Colours,
    canvas: Canvas,
) -> Markup {
    // Each panel has its own scale: a mean and a tail do not share one.
    let values = panel.items.iter().flat_map(|series| series.values.iter().flatten().copied());
    let marked = plot.marks.iter().map(|mark| mark.value);
    let values: Vec<f64> = values.chain(marked).collect();
    let intervals =
        panel.items.iter().flat_map(|series| series.intervals.iter().flatten().copied());
    let values = [shown_ends(&values, intervals), values].concat();
    let y = Scale::new(&plot.y, values.iter().copied(), (canvas.height / 60.0) as usize, true);
    let mut frame = Frame::new(canvas, &y, 8.0);
    let group = frame.width() / plot.categories.len().max(1) as f64;
    let widest = plot.categories.iter().map(|name| text_width(name)).fold(0.0, f64::max);
    let slanted = widest + NAME_GAP > group;
    if slanted {
        frame.bottom -= widest * SLANT.sin();
    }
    let bars =
        Bars { plot, frame, y, group, bar: group * GROUP_SHARE / panel.items.len().max(1) as f64 };
    html! {
        svg class=(canvas.class) viewBox=(view_box(canvas)) role="img"
            aria-label=(picture_name(title, &panel.title)) {
            (y_axis(&bars.frame, &bars.y, &plot.y.label))
            @for (index, series) in panel.items.iter().enumerate() {
                g class=(colours.paint(&series.name, series.role).class) {
                    (bars.series(index, series))
                }
            }
            (base_line(&bars.frame))
            (marks(&bars.frame, &bars.y, &plot.marks))
            (bars.categories(slanted))
            text class="axis middle" x=(px(bars.frame.x(0.5))) y=(px(canvas.height - 6.0)) {
                (plot.category_label)
            }
        }
    }
}

struct Bars<'a> {
    plot: &'a BarPlot,
    frame: Frame,
    y: Scale,
    /// Width of a category in px.
    group: f64,
    /// Width of a bar in px.
    bar: f64,
}

impl Bars<'_> {
    fn series(&self, index: usize, series: &BarSeries) -> Markup {
        let margin = self.group * (1.0 - GROUP_SHARE) / 2.0;
        let values = series.values.iter().zip(&self.plot.categories).enumerate();
        html! {
            @for (group, (value, category)) in values {
                @if let Some(value) = *value {
                    @let left = self.frame.left + self.group * group as f64 + margin
                        + self.bar * index as f64;
                    (self.bar(series, category, value, left))
                    @if let Some(interval) = series.intervals.get(group).copied().flatten() {
                        (whisker(&self.frame, &self.y, left + self.bar / 2.0, interval))
                    }
                }
            }
        }
    }

    fn bar(&self, series: &BarSeries, category: &str, value: f64, left: f64) -> Markup {
        // A value outside of a log axis is a bar of height 0.
        let top = self.frame.y(self.y.place(value).unwrap_or_default());
        let number = fixed(value, self.plot.y.decimals);
        // Only two decimals fit above a bar; the table has all.
        let short = fixed(value, self.plot.y.decimals.min(2));
        html! {
            g {
                title { (series.name) ", " (category) "\n" (self.plot.y.label) ": " (number) }
                rect class="bar" x=(px(left + 0.5)) y=(px(top)) width=(px(self.bar - 1.0))
                    height=(px((self.frame.bottom - top).max(0.0))) {}
                // A whisker would cross the number.
                @if series.intervals.is_empty() && text_width(&short) * SMALL < self.bar + 4.0 {
                    text class="value middle" x=(px(left + self.bar / 2.0)) y=(px(top - 4.0)) {
                        (short)
                    }
                }
            }
        }
    }

    fn categories(&self, slanted: bool) -> Markup {
        let places = (0..self.plot.categories.len())
            .map(|index| self.frame.left + self.group * (index as f64 + 0.5));
        html! {
            @for (category, x) in self.plot.categories.iter().zip(places) {
                @if slanted {
                    @let (x, y) = (px(x + 4.0), px(self.frame.bottom + 12.0));
                    @let degrees = px(-SLANT.to_degrees());
                    text class="tick end"
                        transform={ "translate(" (x) " " (y) ") rotate(" (degrees) ")" } {
                        (category)
                    }
                } @else {
                    text class="tick middle" x=(px(x)) y=(px(self.frame.bottom + 17.0)) {
                        (category)
                    }
                }
            }
        }
    }
}
