//! Colour and marker of each name, consistent on the whole page.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::frame::px;
use crate::{Figure, Plot, Role};

/// Colours of the style sheet, `s0` to `s6`, distinguishable with all common kinds of colour
/// blindness.
const SLOTS: usize = 7;
const DASHES: usize = 3;
const MARKERS: usize = 7;

/// Appearance of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paint {
    /// Classes of the style sheet.
    pub(super) class: String,
    /// Marker index. References have none, because they are not measurements.
    marker: Option<usize>,
}

/// Slots by name. Names in one figure never share a slot (up to 21 names).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Colours {
    measured: BTreeMap<String, usize>,
    reference: BTreeMap<String, usize>,
}

impl Colours {
    /// Slots for every name of these figures, in order of appearance.
    pub(crate) fn of(figures: &[Figure]) -> Colours {
        let mut colours = Colours::default();
        for figure in figures {
            let names = names(&figure.plot);
            for (name, role) in &names {
                colours.assign(name, *role, &names);
            }
        }
        colours
    }

    pub(super) fn paint(&self, name: &str, role: Role) -> Paint {
        let slots = match role {
            Role::Measured => &self.measured,
            Role::Reference => &self.reference,
        };
        let slot = slots.get(name).copied().unwrap_or_default();
        let class = match role {
            Role::Measured => format!("s{} d{}", slot % SLOTS, slot / SLOTS % DASHES),
            Role::Reference => format!("ref d{}", 1 + slot % DASHES),
        };
        let marker = (role == Role::Measured).then_some(slot % MARKERS);
        Paint { class, marker }
    }

    fn assign(&mut self, name: &str, role: Role, company: &[(String, Role)]) {
        let slots = match role {
            Role::Measured => &mut self.measured,
            Role::Reference => &mut self.reference,
        };
        if slots.contains_key(name) {
            return;
        }
        let near: Vec<usize> =
            company.iter().filter_map(|(name, _)| slots.get(name).copied()).collect();
        // A slot unused on the whole page, or at least in this figure.
        let slot = (0..SLOTS)
            .find(|slot| !slots.values().any(|taken| taken == slot))
            .or_else(|| (0..SLOTS * DASHES).find(|slot| !near.contains(slot)))
            .unwrap_or_default();
        slots.insert(name.to_owned(), slot);
    }
}

/// Names that the legend of a plot explains, in order of appearance.
pub(super) fn names(plot: &Plot) -> Vec<(String, Role)> {
    let mut names: Vec<(String, Role)> = Vec::new();
    let mut add = |name: &str, role: Role| {
        if !names.iter().any(|(known, known_role)| known == name && *known_role == role) {
            names.push((name.to_owned(), role));
        }
    };
    match plot {
        Plot::Lines(plot) | Plot::Cdf(plot) => {
            for series in plot.panels.iter().flat_map(|panel| &panel.items) {
                add(&series.name, series.role);
            }
        }
        Plot::GroupedBars(plot) => {
            for series in plot.panels.iter().flat_map(|panel| &panel.items) {
                add(&series.name, series.role);
            }
        }
        Plot::StackedBars(plot) => {
            for segment in &plot.segments {
                add(&segment.layer, Role::Measured);
            }
        }
    }
    names
}

/// A marker at a point, which distinguishes series in addition to the colour.
pub(super) fn marker(paint: &Paint, x: f64, y: f64) -> Markup {
    let path = match paint.marker {
        None => return html! {},
        Some(0) => "M-3.6 0A3.6 3.6 0 1 0 3.6 0A3.6 3.6 0 1 0-3.6 0Z",
        Some(1) => "M-3.3-3.3H3.3V3.3H-3.3Z",
        Some(2) => "M0-4.3L4.2 3.2H-4.2Z",
        Some(3) => "M0-4.8L4.4 0L0 4.8L-4.4 0Z",
        Some(4) => "M0 4.3L4.2-3.2H-4.2Z",
        Some(5) => "M-1.4-4.2H1.4V-1.4H4.2V1.4H1.4V4.2H-1.4V1.4H-4.2V-1.4H-1.4Z",
        Some(_) => "M-4.4 0L-2.2-3.8H2.2L4.4 0L2.2 3.8H-2.2Z",
    };
    let place = format!("translate({} {})", px(x), px(y));
    html! { path class="marker" d=(path) transform=(place) {} }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, LinePlot, Panel, Series};

    fn figure(names: &[&str]) -> Figure {
        let items = names
            .iter()
            .map(|name| Series {
                intervals: Vec::new(),
                name: (*name).to_owned(),
                role: Role::Measured,
                points: Vec::new(),
            })
            .collect();
        Figure {
            id: "f".to_owned(),
            title: String::new(),
            caption: String::new(),
            plot: Plot::Lines(LinePlot {
                x: Axis::from_zero("x", 0),
                y: Axis::from_zero("y", 0),
                panels: vec![Panel { title: String::new(), items }],
                marks: Vec::new(),
            }),
            table: None,
            command: String::new(),
        }
    }

    #[test]
    fn a_name_keeps_its_colour_and_names_in_one_figure_never_share_one() {
        let many: Vec<String> = (0..12).map(|index| format!("series {index}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let figures = [figure(&["edm", "raw"]), figure(&["raw", "edm", "new"]), figure(&many)];
        let colours = Colours::of(&figures);
        assert_eq!(colours.paint("edm", Role::Measured).class, "s0 d0");
        assert_eq!(colours.paint("new", Role::Measured).class, "s2 d0");
        let mut classes: Vec<String> =
            many.iter().map(|name| colours.paint(name, Role::Measured).class).collect();
        classes.sort();
        classes.dedup();
        assert_eq!(classes.len(), 12);
    }
}
