//! Draws figures as SVG. Colours are classes of the page's style sheet, so a picture follows the
//! reader's light or dark theme.

mod bars;
mod colours;
mod frame;
mod lines;
mod scale;
mod stacked;

use maud::{Markup, html};

pub(super) use colours::Colours;
use colours::{Paint, marker};
use frame::Canvas;

use super::{Panel, Plot};

/// Width of the page's column in px.
const PAGE_WIDTH: f64 = 1040.0;
/// Width on a phone in px: pictures are redrawn for it, so that their text stays readable.
const NARROW_WIDTH: f64 = 360.0;
const GAP: f64 = 24.0;

/// Legend and pictures of a figure.
pub(super) fn draw(plot: &Plot, title: &str, colours: &Colours) -> Markup {
    html! {
        (legend(plot, colours))
        @match plot {
            Plot::Lines(lines) => { (lines::draw(lines, title, colours)) }
            Plot::Cdf(cdf) => { (lines::draw_cdf(cdf, title, colours)) }
            Plot::GroupedBars(bars) => { (bars::draw(bars, title, colours)) }
            Plot::StackedBars(stacked) => { (stacked::draw(stacked, title, colours)) }
        }
    }
}

/// Names in a figure's legend, each with its appearance.
fn legend(plot: &Plot, colours: &Colours) -> Markup {
    let names = colours::names(plot);
    let filled = matches!(plot, Plot::GroupedBars(_) | Plot::StackedBars(_));
    html! {
        ul class="legend" {
            @for (name, role) in &names {
                li { (swatch(&colours.paint(name, *role), filled)) (name) }
            }
        }
    }
}

fn swatch(paint: &Paint, filled: bool) -> Markup {
    let width = if filled { 12 } else { 26 };
    html! {
        svg class=(paint.class) viewBox={ "0 0 " (width) " 12" } width=(width) height="12"
            aria-hidden="true" {
            @if filled {
                rect class="bar" x="0.5" y="0.5" width="11" height="11" rx="1.5" {}
            } @else {
                path class="line" d="M0 6H26" {}
                (marker(paint, 13.0, 6.0))
            }
        }
    }
}

/// Pictures side by side, `columns` on a wide page and one on a narrow page. Each has a title and
/// is drawn for both widths.
fn grid(columns: usize, heights: (f64, f64), pictures: &[Picture<'_>]) -> Markup {
    let columns = columns.clamp(1, 3);
    let gaps = GAP * (columns - 1) as f64;
    let wide = Canvas {
        width: (PAGE_WIDTH - gaps) / columns as f64,
        height: heights.0,
        class: "plot wide",
    };
    let narrow = Canvas { width: NARROW_WIDTH, height: heights.1, class: "plot narrow" };
    html! {
        div class={ "panels columns" (columns) } {
            @for picture in pictures {
                div class="panel" {
                    @if !picture.title.is_empty() { h4 { (picture.title) } }
                    ((picture.draw)(wide))
                    ((picture.draw)(narrow))
                }
            }
        }
    }
}

/// A picture for each panel, under its title, laid out by [`grid`].
fn panels<T>(
    columns: usize,
    heights: (f64, f64),
    panels: &[Panel<T>],
    draw: impl Fn(&Panel<T>, Canvas) -> Markup,
) -> Markup {
    let draw = &draw;
    let pictures: Vec<Picture<'_>> = panels
        .iter()
        .map(|panel| Picture {
            title: panel.title.clone(),
            draw: Box::new(move |canvas| draw(panel, canvas)),
        })
        .collect();
    grid(columns, heights, &pictures)
}

struct Picture<'a> {
    title: String,
    draw: Box<dyn Fn(Canvas) -> Markup + 'a>,
}

/// Number of pictures of a plot side by side.
fn columns(panels: usize) -> usize {
    match panels {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}
