//! Figures as data, independent of how they are drawn.

/// A figure of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the figure in the page's address: `slowdown-by-load`. Letters, digits and hyphens.
    pub id: String,
    /// Title: "Mean slowdown by load".
    pub title: String,
    /// How it was measured and what it shows.
    pub caption: String,
    /// Picture to draw.
    pub plot: Plot,
    /// Numbers under the picture; `None` for the picture's own.
    pub table: Option<DataTable>,
    /// Command that repeats the measurement.
    pub command: String,
}

/// Kinds of picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Lines with a marker at each point.
    Lines(LinePlot),
    /// Cumulative distributions as steps: x increases, y is the fraction from 0 to 1. It is drawn
    /// twice, as the fraction that has finished and, on a log scale, as the fraction that has not.
    Cdf(LinePlot),
    /// Grouped bars.
    GroupedBars(BarPlot),
    /// Horizontal bars made of segments.
    StackedBars(StackedPlot),
}

/// Pictures of one kind side by side, on equal axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel<T> {
    /// Title: "Reads". It may be empty if a plot has one panel.
    pub title: String,
    /// Items to draw.
    pub items: Vec<T>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity with its unit: "Latency (ns)".
    pub label: String,
    /// Spacing of the values.
    pub scale: Scale,
    /// First value, unless data lie below it; `None` starts at the data. Bars start here, so the
    /// value must be meaningful: 0, or 1 for a slowdown.
    pub start: Option<f64>,
    /// Decimals of its numbers in tables and labels.
    pub decimals: usize,
}

impl Axis {
    /// An axis for slowdown, from 1.
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

/// Spacing of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal ratios. Values that are not positive are omitted from the picture.
    Log,
    /// Log if the largest value is more than 20 times the smallest.
    Auto,
}

/// Role of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A result.
    #[default]
    Measured,
    /// A reference for results, such as a bound or a published value: grey and dashed.
    Reference,
}

/// Points joined by a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend. A name has one colour in all figures of a page.
    pub name: String,
    /// Role of the series.
    pub role: Role,
    /// Points (x, y), x increasing.
    pub points: Vec<(f64, f64)>,
    /// Intervals of points where they are known: x, and the lower and upper end.
    pub intervals: Vec<(f64, f64, f64)>,
}

/// A horizontal line at a value of the y axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Meaning of the line.
    pub label: String,
    /// Value on the y axis.
    pub value: f64,
}

/// Lines over a number.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Pictures.
    pub panels: Vec<Panel<Series>>,
    /// Reference values for the lines.
    pub marks: Vec<Mark>,
}

/// One bar in each group.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Role of the series.
    pub role: Role,
    /// Value for each category; `None` if there is none.
    pub values: Vec<Option<f64>>,
    /// Interval of each value, lower and upper end; shorter than `values` where none is known.
    pub intervals: Vec<Option<(f64, f64)>>,
}

/// Bars grouped by category.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPlot {
    /// Meaning of the categories: "Application".
    pub category_label: String,
    /// Groups, from left to right.
    pub categories: Vec<String>,
    /// Vertical axis.
    pub y: Axis,
    /// Pictures.
    pub panels: Vec<Panel<BarSeries>>,
    /// Reference values for the bars.
    pub marks: Vec<Mark>,
}

/// A part of a stacked bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Name: "switch PCS".
    pub name: String,
    /// Layer: "PCS". Segments of one layer have one colour, which the legend names.
    pub layer: String,
}

/// One bar of segments.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedBar {
    /// Name: "edm".
    pub name: String,
    /// Length of each segment, 0 or more.
    pub values: Vec<f64>,
}

/// Horizontal bars made of the same segments.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedPlot {
    /// Label of the horizontal axis; it starts at 0 and is linear, so that lengths add up.
    pub x_label: String,
    /// Decimals of its numbers.
    pub decimals: usize,
    /// Segments from left to right.
    pub segments: Vec<Segment>,
    /// Pictures.
    pub panels: Vec<Panel<StackedBar>>,
    /// True if lengths can be compared across panels; if not, each panel has the page's whole
    /// width.
    pub shared_axis: bool,
}

/// Numbers under a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataTable {
    /// Column heads.
    pub columns: Vec<String>,
    /// Rows, with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
    /// Indices from 0 of columns that hold text, not numbers.
    pub text_columns: Vec<usize>,
}
