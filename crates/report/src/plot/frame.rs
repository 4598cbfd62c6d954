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
