//! Numbers at places as pictures: lines if the points are values of one key, bars if they are
//! names.

use super::Place;
use crate::registry;
use crate::report::{
    Axis, BarPlot, BarSeries, DataTable, LinePlot, Panel, Plot, Role, Scale, Series,
};

/// A number at a place, if there is one.
pub(super) type At<'r> = (&'r Place, Option<f64>);

/// The role of a fabric in a picture.
pub(super) fn role(fabric: &str) -> Role {
    match registry::find(fabric) {
        Some(fabric) if fabric.is_bound => Role::Reference,
        _ => Role::Measured,
    }
}

/// The distinct values in the order of their first occurrence.
pub(super) fn distinct<'a>(values: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// All fabrics together, with a panel for each quantity.
pub(super) fn together(panels: &[(&str, Vec<At<'_>>)], y: Axis) -> Plot {
    let lines = |(title, numbers): &(&str, Vec<At<'_>>)| Panel {
        title: (*title).to_owned(),
        items: distinct(numbers.iter().map(|(place, _)| &place.fabric))
            .into_iter()
            .map(|fabric| Line::new(fabric, role(fabric), numbers, fabric))
            .collect(),
    };
    plot(panels.iter().map(lines).collect(), y)
}

/// Each fabric in a panel of its own, with its own scale and its published values.
pub(super) fn beside_published(numbers: &[At<'_>], y: Axis) -> Plot {
    const PUBLISHED: &str = "published";
    let published: Vec<At<'_>> =
        numbers.iter().map(|(place, _)| (*place, place.published)).collect();
    let known = published.iter().filter(|(_, value)| value.is_some());
    let panel = |fabric: &String| Panel {
        title: fabric.clone(),
        items: vec![
            Line::new(fabric, role(fabric), numbers, fabric),
            Line::new(PUBLISHED, Role::Reference, &published, fabric),
        ],
    };
    let fabrics = distinct(known.map(|(place, _)| &place.fabric));
    bars(fabrics.into_iter().map(panel).collect(), y)
}

/// A table with these text columns, as pages show it.
pub(super) fn data_table(
    (head, rows): (Vec<&'static str>, Vec<Vec<String>>),
    text_columns: &[usize],
) -> DataTable {
    DataTable {
        columns: head.into_iter().map(str::to_owned).collect(),
        rows,
        text_columns: text_columns.to_vec(),
    }
}

/// The numbers of one name.
struct Line {
    name: String,
    role: Role,
    points: Vec<(String, Option<f64>)>,
}

impl Line {
    fn new(name: &str, role: Role, numbers: &[At<'_>], fabric: &str) -> Line {
        let of = numbers.iter().filter(|(place, _)| place.fabric == fabric);
        let points = of.map(|(place, value)| (place.point.clone(), *value)).collect();
        Line { name: name.to_owned(), role, points }
    }
}

fn plot(panels: Vec<Panel<Line>>, y: Axis) -> Plot {
    let Some(x) = axis_of(&points_of(&panels)) else { return bars(panels, y) };
    let panels = panels.into_iter().map(|panel| panel_of(panel, Line::series)).collect();
    Plot::Lines(LinePlot { x, y, panels, marks: Vec::new() })
}

fn bars(panels: Vec<Panel<Line>>, y: Axis) -> Plot {
    let points = points_of(&panels);
    let of_key = axis_of(&points).map(|axis| axis.label);
    let name = |point: &String| match (&of_key, point.split_once('=')) {
        (Some(_), Some((_, value))) => value.to_owned(),
        _ => point.clone(),
    };
    Plot::GroupedBars(BarPlot {
        categories: points.iter().map(name).collect(),
        category_label: of_key.unwrap_or_default(),
        y: of_bars(y),
        panels: panels
            .into_iter()
            .map(|panel| panel_of(panel, |line| line.bars(&points)))
            .collect(),
        marks: Vec::new(),
    })
}

fn points_of(panels: &[Panel<Line>]) -> Vec<String> {
    let points = panels.iter().flat_map(|panel| &panel.items).flat_map(|line| &line.points);
    distinct(points.map(|(point, _)| point)).into_iter().cloned().collect()
}

fn panel_of<T>(panel: Panel<Line>, item: impl Fn(Line) -> T) -> Panel<T> {
    Panel { title: panel.title, items: panel.items.into_iter().map(item).collect() }
}

impl Line {
    fn series(self) -> Series {
        let point = |(point, value): &(String, Option<f64>)| Some((value_of(point)?.1, (*value)?));
        let mut points: Vec<(f64, f64)> = self.points.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Series { name: self.name, role: self.role, points, intervals: Vec::new() }
    }

    fn bars(self, points: &[String]) -> BarSeries {
        let value = |name: &String| self.points.iter().find(|(point, _)| point == name)?.1;
        let values = points.iter().map(value).collect();
        BarSeries { intervals: Vec::new(), name: self.name, role: self.role, values }
    }
}

/// The axis for bars, which start where a length has a meaning.
pub(super) fn of_bars(y: Axis) -> Axis {
    if y.start.is_some() { y } else { Axis::from_zero(&y.label, y.decimals) }
}

/// The axis of points that are all named KEY=NUMBER with one key.
fn axis_of(points: &[String]) -> Option<Axis> {
    let values: Vec<(&str, f64)> =
        points.iter().map(|point| value_of(point)).collect::<Option<_>>()?;
    let (key, _) = *values.first().filter(|_| values.len() > 1)?;
    let decimals = |point: &String| point.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let most = points.iter().map(decimals).max().unwrap_or_default();
    let one_key = values.iter().all(|(other, _)| *other == key);
    one_key.then(|| Axis::of_data(&spoken(key), Scale::Linear, most))
}

fn value_of(point: &str) -> Option<(&str, f64)> {
    let (key, value) = point.split_once('=')?;
    Some((key, value.parse().ok().filter(|value: &f64| value.is_finite())?))
}

/// A scenario's name, as it is shown to readers.
pub(super) fn spoken(name: &str) -> String {
    let mut spoken = name.replace('_', " ");
    if let Some(first) = spoken.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    spoken
}

/// Axis of times in ns: a ratio scale for lines, from 0 for bars.
pub(super) fn ns_axis() -> Axis {
    Axis::of_data("Latency (ns)", Scale::Log, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(points: &[&str]) -> Vec<Place> {
        let place = |point: &&str| {
            ["edm", "ideal"].map(|fabric| Place {
                experiment: "e".to_owned(),
                point: (*point).to_owned(),
                fabric: fabric.to_owned(),
                published: (fabric == "edm").then_some(2.0),
                why: String::new(),
            })
        };
        points.iter().flat_map(place).collect()
    }

    fn numbers(places: &[Place]) -> Vec<At<'_>> {
        places.iter().zip(1..).map(|(place, at)| (place, Some(f64::from(at)))).collect()
    }

    #[test]
    fn values_of_a_key_are_an_axis_and_names_are_not() {
        let places = places(&["load=0.25", "load=0.5"]);
        let plot = together(&[("Mean", numbers(&places))], Axis::slowdown("s"));
        let Plot::Lines(lines) = plot else { panic!("{plot:?}") };
        assert_eq!((lines.x.label.as_str(), lines.x.decimals), ("Load", 2));
        let items = &lines.panels[0].items;
        assert_eq!(items[0].points, [(0.25, 1.0), (0.5, 3.0)]);
        assert_eq!((items[0].role, items[1].role), (Role::Measured, Role::Reference));
        for points in
            [&["hadoop", "spark"][..], &["load=1", "x=2"], &["load=1"], &["load=inf", "load=1"]]
        {
            let places = self::places(points);
            let plot = together(&[("Mean", numbers(&places))], Axis::slowdown("s"));
            let Plot::GroupedBars(bars) = plot else { panic!("{plot:?}") };
            assert_eq!(bars.categories, points);
            assert_eq!(bars.panels[0].items[1].values[0], Some(2.0));
        }
    }

    #[test]
    fn a_fabric_has_its_published_values_beside_it() {
        let places = places(&["load=0.25", "load=0.5"]);
        let plot = beside_published(&numbers(&places), Axis::slowdown("s"));
        let Plot::GroupedBars(bars) = plot else { panic!("{plot:?}") };
        let titles: Vec<&str> = bars.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["edm"], "nothing was published of the other");
        assert_eq!((bars.category_label.as_str(), &bars.categories[0][..]), ("Load", "0.25"));
        let published = &bars.panels[0].items[1];
        assert_eq!((published.name.as_str(), published.role), ("published", Role::Reference));
        assert_eq!(published.values, [Some(2.0), Some(2.0)]);
        assert_eq!(bars.panels[0].items[0].values, [Some(1.0), Some(3.0)]);
    }
}
