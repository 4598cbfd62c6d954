//! Parts that all pictures share: edges, axes, grid, marks.

use maud::{Markup, html};

use super::scale::Scale;
use crate::Mark;

/// Mean width in px of a letter in labels, which are 12 px high.
const LETTER_WIDTH: f64 = 6.7;
/// Distance in px from the top edge to the plot, with room for the y axis's name.
const TOP: f64 = 26.0;
/// Distance in px from the plot to the bottom edge, with room for tick labels and the x axis's
/// name.
const BOTTOM: f64 = 42.0;
const TICK_GAP: f64 = 8.0;

/// Size of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Canvas {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) class: &'static str,
}

/// Plot area of a canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// The plot area beside a y axis with these ticks, and with `margin` at the right.
    pub(super) fn new(canvas: Canvas, y: &Scale, margin: f64) -> Frame {
        let widest = y.ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
        Frame {
            left: widest + TICK_GAP,
            right: canvas.width - margin.max(8.0),
            top: TOP,
            bottom: canvas.height - BOTTOM,
        }
    }

    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    /// Position in px of a fraction of the width.
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + share * self.width()
    }

    /// Position in px of a fraction of the height, from the bottom.
    pub(super) fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

/// How far beyond all values an axis goes for the ends of intervals.
const INTERVAL_ROOM: f64 = 1.5;
/// Half the width in px of the bars at the ends of a whisker.
const WHISKER_HALF: f64 = 3.5;

/// Ends of intervals that an axis of these values includes. An interval that says nothing must not
/// make the values unreadable, so ends far beyond all values are left out.
pub(super) fn shown_ends(values: &[f64], of: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    let most = values.iter().copied().fold(0.0, f64::max) * INTERVAL_ROOM;
    let positive = values.iter().copied().filter(|value| *value > 0.0);
    let least = positive.fold(f64::INFINITY, f64::min) / INTERVAL_ROOM;
    of.flat_map(|(low, high)| [low.max(least), high.min(most)]).collect()
}

/// The interval of a value, as a vertical line. An end outside of the plot has no bar.
pub(super) fn whisker(frame: &Frame, y: &Scale, x: f64, (low, high): (f64, f64)) -> Markup {
    let share = |value: f64| y.place(value).unwrap_or(f64::MIN);
    let (low, high) = (share(low), share(high));
    let ends = [low, high].into_iter().filter(|share| (0.0..=1.0).contains(share));
    let bar = |share: f64| {
        let (from, to) = (px(x - WHISKER_HALF), px(x + WHISKER_HALF));
        format!("M{from} {}H{to}", px(frame.y(share)))
    };
    let (bottom, top) = (frame.y(low.clamp(0.0, 1.0)), frame.y(high.clamp(0.0, 1.0)));
    let line = format!("M{} {}V{}", px(x), px(bottom), px(top));
    let bars: String = ends.map(bar).collect();
    html! { path class="whisker" d={ (line) (bars) } {} }
}

/// Grid lines and labels of the y axis, with its name above.
pub(super) fn y_axis(frame: &Frame, scale: &Scale, label: &str) -> Markup {
    let (left, right) = (px(frame.left), px(frame.right));
    html! {
        text class="axis" x="0" y="11" { (label) @if scale.is_log() { ", log scale" } }
        @for tick in &scale.ticks {
            @if let Some(share) = scale.place(tick.value) {
                @let y = frame.y(share);
                path class="grid" d={ "M" (left) " " (px(y)) "H" (right) } {}
                text class="tick end" x=(px(frame.left - TICK_GAP)) y=(px(y + 4.0)) {
                    (tick.label)
                }
            }
        }
    }
}

/// Ticks and labels of the x axis, with its name below. A label that would touch the previous one
/// is omitted; its tick stays.
pub(super) fn x_axis(frame: &Frame, scale: &Scale, label: &str, grid: bool) -> Markup {
    let mut free_from = f64::MIN;
    let mut ticks = Vec::new();
    for tick in &scale.ticks {
        if let Some(share) = scale.place(tick.value) {
            let (x, half) = (frame.x(share), text_width(&tick.label) / 2.0);
            let fits = x - half >= free_from;
            if fits {
                free_from = x + half + TICK_GAP / 2.0;
            }
            ticks.push((px(x), fits.then_some(&tick.label)));
        }
    }
    html! {
        (base_line(frame))
        @for (x, label) in ticks {
            @if grid {
                path class="grid" d={ "M" (x) " " (px(frame.top)) "V" (px(frame.bottom)) } {}
            }
            path class="base" d={ "M" (x) " " (px(frame.bottom)) "v4" } {}
            @if let Some(label) = label {
                text class="tick middle" x=(x) y=(px(frame.bottom + 17.0)) { (label) }
            }
        }
        text class="axis middle" x=(px(frame.x(0.5))) y=(px(frame.bottom + 36.0)) {
            (label) @if scale.is_log() { ", log scale" }
        }
    }
}

pub(super) fn base_line(frame: &Frame) -> Markup {
    let (left, right) = (px(frame.left), px(frame.right));
    html! { path class="base" d={ "M" (left) " " (px(frame.bottom)) "H" (right) } {} }
}

/// Reference values: thin horizontal lines, named at the left end.
pub(super) fn marks(frame: &Frame, scale: &Scale, marks: &[Mark]) -> Markup {
    let height = |mark: &Mark| {
        let share = scale.place(mark.value)?;
        (0.0..=1.0).contains(&share).then(|| frame.y(share))
    };
    html! {
        @for (mark, y) in marks.iter().filter_map(|mark| Some((mark, height(mark)?))) {
            path class="mark" d={ "M" (px(frame.left)) " " (px(y)) "H" (px(frame.right)) } {}
            text class="mark-label" x=(px(frame.left + 6.0)) y=(px(y - 4.0)) { (mark.label) }
        }
    }
}

/// The `viewBox` of a canvas.
pub(super) fn view_box(canvas: Canvas) -> String {
    format!("0 0 {} {}", px(canvas.width), px(canvas.height))
}

/// Accessible name of a picture.
pub(super) fn picture_name(figure: &str, panel: &str) -> String {
    if panel.is_empty() { figure.to_owned() } else { format!("{figure}: {panel}") }
}

/// A coordinate in tenths of a pixel, which hides the last bits of `ln`.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Approximate width of a label in px.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER_WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Scale as Spacing};

    /// An interval of a busy machine, (0 to 15,723,983), must not flatten all values.
    #[test]
    fn an_axis_shows_near_ends_and_leaves_out_far_ones() {
        let ends = shown_ends(&[1.0, 1.2], [(0.9, 1.5), (1e-9, 1.6e7)].into_iter());
        let bounds = [1.0 / 1.5, 1.2 * 1.5];
        assert_eq!(ends, [0.9, 1.5, bounds[0], bounds[1]]);
    }

    #[test]
    fn an_end_outside_of_the_plot_has_no_bar() {
        let axis = Axis::of_data("y", Spacing::Linear, 1);
        let y = Scale::new(&axis, [0.0, 10.0].into_iter(), 5, true);
        let frame = Frame { left: 0.0, right: 100.0, top: 0.0, bottom: 100.0 };
        let path = |interval| whisker(&frame, &y, 50.0, interval).into_string();
        assert!(path((2.0, 4.0)).contains("d=\"M50 80V60M46.5 80H53.5M46.5 60H53.5\""));
        assert!(path((2.0, 40.0)).contains("d=\"M50 80V0M46.5 80H53.5\""));
    }
}
