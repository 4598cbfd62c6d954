//! Figures as data: what the caller of a report says, free of how it is drawn.

/// A figure of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the figure in the page's address: `slowdown-by-load`. Letters, digits and hyphens.
    pub id: String,
    /// What is shown: "Mean slowdown by load".
    pub title: String,
    /// How it was measured and what to see in it.
    pub caption: String,
    /// The picture.
    pub plot: Plot,
    /// The numbers under it; `None` for those of the picture itself.
    pub table: Option<DataTable>,
    /// The command that repeats it.
    pub command: String,
}

/// Kinds of picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Lines with a marker at each point.
    Lines(LinePlot),
    /// Cumulative distributions as steps: x rising, y the share in 0 to 1. Drawn twice, as the
    /// share that has finished and, on a log scale, as the share that has not.
    Cdf(LinePlot),
    /// Bars in groups.
    GroupedBars(BarPlot),
    /// Lying bars made of segments.
    StackedBars(StackedPlot),
}

/// Pictures of one kind side by side, on the same axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel<T> {
    /// Headline: "Reads". May be empty where a plot has one panel.
    pub title: String,
    /// What is drawn.
    pub items: Vec<T>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it counts, with the unit: "Latency (ns)".
    pub label: String,
    /// How it is spaced.
    pub scale: Scale,
    /// Where it starts, if the data do not lie below; `None`: where the data do. Bars start here,
    /// so that it must mean something: 0, or 1 for a slowdown.
    pub start: Option<f64>,
    /// Decimals of its numbers in tables and labels.
    pub decimals: usize,
}

impl Axis {
    /// Slowdown, from 1.
    #[must_use]
    pub fn slowdown(label: &str) -> Axis {
        Axis { label: label.to_owned(), scale: Scale::Auto, start: Some(1.0), decimals: 3 }
    }

    /// An axis from 0.
    #[must_use]
    pub fn from_zero(label: &str, decimals: usize) -> Axis {
        Axis { label: label.to_owned(), scale: Scale::Linear, start: Some(0.0), decimals }
    }

    /// An axis over the range of the data.
    #[must_use]
    pub fn of_data(label: &str, scale: Scale, decimals: usize) -> Axis {
        Axis { label: label.to_owned(), scale, start: None, decimals }
    }
}

/// How an axis is spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Even steps.
    Linear,
    /// Even ratios. Values that are not positive are left out of the picture.
    Log,
    /// Log where the largest value is more than 20 times the smallest.
    Auto,
}

/// What part a series plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A result.
    #[default]
    Measured,
    /// Something to hold results against, as a bound or a published value: grey and dashed.
    Reference,
}

/// Points joined by a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend. A name has the same colour in all figures of a page.
    pub name: String,
    /// Its part.
    pub role: Role,
    /// Points (x, y), x rising.
    pub points: Vec<(f64, f64)>,
}

/// A line across the picture at a value of the y axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// What it stands for.
    pub label: String,
    /// Where it lies.
    pub value: f64,
}

/// Lines over a number.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The pictures.
    pub panels: Vec<Panel<Series>>,
    /// Values to hold the lines against.
    pub marks: Vec<Mark>,
}

/// One bar in each group.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Its part.
    pub role: Role,
    /// A value for each category; `None` where there is none.
    pub values: Vec<Option<f64>>,
}

/// Bars grouped by category.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPlot {
    /// What the categories are: "Application".
    pub category_label: String,
    /// The groups, from left to right.
    pub categories: Vec<String>,
    /// Up.
    pub y: Axis,
    /// The pictures.
    pub panels: Vec<Panel<BarSeries>>,
    /// Values to hold the bars against.
    pub marks: Vec<Mark>,
}

/// A part of a stacked bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is: "switch PCS".
    pub name: String,
    /// What it belongs to: "PCS". Segments of one layer have one colour, and the legend names it.
    pub layer: String,
}

/// One bar of segments.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedBar {
    /// What the bar stands for: "edm".
    pub name: String,
    /// A length for each segment, 0 or more.
    pub values: Vec<f64>,
}

/// Lying bars made of the same segments.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedPlot {
    /// Along the bars; starts at 0 and is linear, or lengths would not add up.
    pub x_label: String,
    /// Decimals of its numbers.
    pub decimals: usize,
    /// From left to right.
    pub segments: Vec<Segment>,
    /// The pictures.
    pub panels: Vec<Panel<StackedBar>>,
    /// Whether lengths can be compared across panels; if not, each has the page's whole width.
    pub shared_axis: bool,
}

/// Numbers under a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataTable {
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Rows, with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
    /// Columns that hold text, not numbers; counted from 0.
    pub text_columns: Vec<usize>,
}
