//! Horizontal bars made of segments.

use maud::{Markup, html};

use super::colours::Colours;
use super::frame::{Canvas, Frame, base_line, picture_name, px, text_width, view_box, x_axis};
use super::panels;
use super::scale::Scale;
use crate::number::{fixed, trimmed};
use crate::{Axis, Panel, Role, StackedBar, StackedPlot};

const BAR_HEIGHT: f64 = 26.0;
const ROW_HEIGHT: f64 = 40.0;
/// Gap in px between segments that are wide enough for it.
const SEGMENT_GAP: f64 = 0.8;
const TOP: f64 = 4.0;
const BOTTOM: f64 = 42.0;

pub(super) fn draw(plot: &StackedPlot, title: &str, colours: &Colours) -> Markup {
    let rows = plot.panels.iter().map(|panel| panel.items.len()).max().unwrap_or_default();
    let height = TOP + ROW_HEIGHT * rows.max(1) as f64 + BOTTOM;
    let draw = |panel: &_, canvas| panel_svg(plot, panel, title, colours, canvas);
    panels(1, (height, height), &plot.panels, draw)
}

fn panel_svg(
    plot: &StackedPlot,
    panel: &Panel<StackedBar>,
    title: &str,
    colours: &Colours,
    canvas: Canvas,
) -> Markup {
    let panels = if plot.shared_axis { &plot.panels[..] } else { std::slice::from_ref(panel) };
    let totals: Vec<f64> = panels.iter().flat_map(|panel| &panel.items).map(total).collect();
    let longest = totals.iter().copied().fold(0.0, f64::max);
    let names = panel.items.iter().map(|bar| text_width(&bar.name)).fold(0.0, f64::max);
    let frame = Frame {
        left: names + 12.0,
        right: canvas.width - text_width(&fixed(longest, plot.decimals)) - 14.0,
        top: TOP,
        bottom: TOP + ROW_HEIGHT * panel.items.len() as f64,
    };
    let axis = Axis::from_zero(&plot.x_label, plot.decimals);
    let ticks = (frame.width() / 90.0) as usize;
    let x = Scale::new(&axis, totals.iter().copied(), ticks, false);
    let bars = Bars { plot, colours, frame, x: &x };
    let canvas = Canvas { height: frame.bottom + BOTTOM, ..canvas };
    html! {
        svg class=(canvas.class) viewBox=(view_box(canvas)) role="img"
            aria-label=(picture_name(title, &panel.title)) {
            (x_axis(&frame, &x, &plot.x_label, true))
            @for (index, bar) in panel.items.iter().enumerate() {
                @let row = frame.top + ROW_HEIGHT * index as f64;
                (bars.bar(bar, row + (ROW_HEIGHT - BAR_HEIGHT) / 2.0))
            }
            (base_line(&frame))
        }
    }
}

struct Bars<'a> {
    plot: &'a StackedPlot,
    colours: &'a Colours,
    frame: Frame,
    x: &'a Scale,
}

impl Bars<'_> {
    fn bar(&self, bar: &StackedBar, top: f64) -> Markup {
        let mut start = 0.0;
        let spans: Vec<(usize, f64, f64)> = bar
            .values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let span = (index, start, start + value);
                start += value;
                span
            })
            .filter(|(_, from, to)| to > from)
            .collect();
        let text_y = px(top + BAR_HEIGHT / 2.0 + 4.0);
        html! {
            text class="row end" x=(px(self.frame.left - 8.0)) y=(text_y) { (bar.name) }
            @for (index, from, to) in &spans {
                (self.segment(bar, *index, (*from, *to), top))
            }
            text class="total" x=(px(self.px(start) + 7.0)) y=(text_y) {
                (fixed(start, self.plot.decimals))
            }
        }
    }

    fn segment(&self, bar: &StackedBar, index: usize, (from, to): (f64, f64), top: f64) -> Markup {
        let Some(segment) = self.plot.segments.get(index) else {
            return html! {};
        };
        let paint = self.colours.paint(&segment.layer, Role::Measured);
        let (left, right) = (self.px(from), self.px(to));
        let width = (right - left - SEGMENT_GAP).max(SEGMENT_GAP);
        let number = trimmed(to - from, self.plot.decimals);
        html! {
            g class=(paint.class) {
                title {
                    (bar.name) ", " (segment.name) "\n" (self.plot.x_label) ": " (number)
                }
                rect class="segment" x=(px(left)) y=(px(top)) width=(px(width))
                    height=(px(BAR_HEIGHT)) {}
                @if text_width(&number) + 4.0 < right - left {
                    text class="inside middle" x=(px((left + right) / 2.0))
                        y=(px(top + BAR_HEIGHT / 2.0 + 4.0)) { (number) }
                }
            }
        }
    }

    fn px(&self, value: f64) -> f64 {
        self.frame.x(self.x.place(value).unwrap_or_default())
    }
}

fn total(bar: &StackedBar) -> f64 {
    bar.values.iter().sum()
}
