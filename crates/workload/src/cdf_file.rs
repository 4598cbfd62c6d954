//! Size distributions from files, and the built-in ones.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::lines::{Lines, exact_fields, fields};
use super::sizes::SizeDistribution;
use super::{InputError, found};

macro_rules! built_in {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../workloads/", $name, ".csv")))),*]
    };
}

/// The built-in distributions by name: the application workloads of EDM's evaluation (section
/// 4.3.2), and the one on which packet transports are compared.
const BUILT_IN: [(&str, &str); 6] =
    built_in!["hadoop", "spark", "sparksql", "graphlab", "memcached", "web-search"];

/// Maximum number of points of a distribution: a larger file is not a summary of sizes.
const POINTS_MAX: usize = 100_000;

/// The names of the built-in distributions.
#[must_use]
pub fn built_in_names() -> [&'static str; BUILT_IN.len()] {
    BUILT_IN.map(|(name, _)| name)
}

/// The built-in distribution `name`, which may also be written as a file of this repository:
/// `memcached`, `memcached.csv`, `workloads/memcached.csv`.
#[must_use]
pub fn built_in(name: &str) -> Option<SizeDistribution> {
    let short = name.strip_prefix("workloads/").unwrap_or(name);
    let short = short.strip_suffix(".csv").unwrap_or(short);
    let (name, text) = BUILT_IN.into_iter().find(|(name, _)| *name == short)?;
    let sizes = read(text.as_bytes(), Path::new(name), None);
    Some(sizes.expect("a test reads every built-in distribution"))
}

/// Reads a distribution from a file with the columns `size_bytes,cumulative_probability`. A column
/// `application` may precede them; then only the rows of `application` are read.
///
/// # Errors
/// [`InputError`] with the line of a row that cannot be used. It is also an error if the
/// application is missing from the file or from the call.
pub fn read_size_cdf(
    path: &Path,
    application: Option<&str>,
) -> Result<SizeDistribution, InputError> {
    let file = File::open(path).map_err(|error| InputError::io(path, "be opened", &error))?;
    read(BufReader::new(file), path, application)
}

/// Reads as [`read_size_cdf`] does, from any reader; errors name it by `file`.
fn read(
    reader: impl BufRead,
    file: &Path,
    application: Option<&str>,
) -> Result<SizeDistribution, InputError> {
    let mut lines = Lines::new(reader, file);
    if !lines.advance()? {
        return Err(InputError::file(file, format!("empty: the first row is {PLAIN_HEADER}")));
    }
    let header = lines.row()?;
    let columns: Vec<&str> = fields(header).collect();
    let by_application = match columns.join(",").as_str() {
        PLAIN_HEADER => false,
        APPLICATION_HEADER => true,
        _ => {
            let header = found(header);
            return Err(lines.error(format!(
                "header {header}: must be {PLAIN_HEADER} or {APPLICATION_HEADER}"
            )));
        }
    };
    if by_application { read_one_of(lines, application) } else { read_plain(lines, application) }
}

const PLAIN_HEADER: &str = "size_bytes,cumulative_probability";
const APPLICATION_HEADER: &str = "application,size_bytes,cumulative_probability";

fn read_plain<R: BufRead>(
    mut lines: Lines<R>,
    application: Option<&str>,
) -> Result<SizeDistribution, InputError> {
    if let Some(application) = application {
        let application = found(application);
        let problem = format!("no column application to look {application} up in");
        return Err(lines.error(problem));
    }
    let mut points = Points::default();
    while lines.advance()? {
        let row = lines.row()?;
        let names = ["size_bytes", "cumulative_probability"];
        let [size, probability] = exact_fields(row, &names).map_err(|e| lines.error(e))?;
        points.push(&lines, size, probability)?;
    }
    points.finish(lines.file())
}

fn read_one_of<R: BufRead>(
    mut lines: Lines<R>,
    application: Option<&str>,
) -> Result<SizeDistribution, InputError> {
    let mut points = Points::default();
    let mut applications: Vec<String> = Vec::new();
    while lines.advance()? {
        let row = lines.row()?;
        let names = ["application", "size_bytes", "cumulative_probability"];
        let [name, size, probability] = exact_fields(row, &names).map_err(|e| lines.error(e))?;
        if applications.last().is_none_or(|last| last != name) && applications.len() < POINTS_MAX {
            applications.push(name.to_owned());
        }
        if application == Some(name) {
            points.push(&lines, size, probability)?;
        }
    }
    if !points.points.is_empty() {
        return points.finish(lines.file());
    }
    let allowed = applications.join(", ");
    let problem = match application {
        Some(application) => {
            format!("no application {}: must be one of {allowed}", found(application))
        }
        None => format!("sizes of several applications: choose one of {allowed}"),
    };
    Err(InputError::file(lines.file(), problem))
}

/// The points read so far, with the line of each.
#[derive(Default)]
struct Points {
    points: Vec<(u64, f64)>,
    lines: Vec<u64>,
}

impl Points {
    fn push<R: BufRead>(
        &mut self,
        lines: &Lines<R>,
        size: &str,
        probability: &str,
    ) -> Result<(), InputError> {
        if self.points.len() == POINTS_MAX {
            return Err(lines.error(format!("more than {POINTS_MAX} points")));
        }
        let fail = |name: &str, value: &str, allowed: &str| {
            lines.error(format!("{name} = {}: must be {allowed}", found(value)))
        };
        let point = (
            size.parse().map_err(|_| fail("size_bytes", size, "a whole number"))?,
            probability
                .parse()
                .map_err(|_| fail("cumulative_probability", probability, "0 to 1"))?,
        );
        self.points.push(point);
        self.lines.push(lines.line());
        Ok(())
    }

    fn finish(self, file: &Path) -> Result<SizeDistribution, InputError> {
        SizeDistribution::from_points(&self.points).map_err(|error| {
            match self.lines.get(error.index) {
                Some(&line) => InputError::line(file, line, error.problem),
                None => InputError::file(file, "no point: must be at least one"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use ethermem_units::Bytes;

    use super::*;

    fn error(text: &str, application: Option<&str>) -> String {
        read(text.as_bytes(), Path::new("s.csv"), application).expect_err(text).to_string()
    }

    #[test]
    fn every_built_in_distribution_is_read() {
        // The means are computed by hand: every step's probability times the middle of its sizes.
        let means = [
            ("hadoop", 108_770.15),
            ("spark", 106_288.15),
            ("sparksql", 109_354.2),
            ("graphlab", 120_450.15),
            ("memcached", 145_708.15),
            ("web-search", 1_665_831.225),
        ];
        assert_eq!(built_in_names(), means.map(|(name, _)| name));
        for (name, mean) in means {
            let sizes = built_in(name).expect(name);
            assert!((sizes.mean_bytes() - mean).abs() < 1e-6, "{name} {}", sizes.mean_bytes());
            assert_eq!(built_in(&format!("workloads/{name}.csv")), Some(sizes));
        }
        assert_eq!(built_in("../workloads/hadoop.csv"), None);
    }

    #[test]
    fn one_application_is_taken_of_a_table_of_several() {
        let table = "application,size_bytes,cumulative_probability\na,8,1\nb,9,0.5\nb,10,1.0\n";
        let sizes = read(table.as_bytes(), Path::new("s.csv"), Some("b")).expect("b");
        assert_eq!((sizes.quantile(0.5), sizes.quantile(1.0)), (Bytes(9), Bytes(10)));
        assert_eq!(error(table, Some("c")), "s.csv: no application c: must be one of a, b");
        assert_eq!(error(table, None), "s.csv: sizes of several applications: choose one of a, b");
    }

    #[test]
    fn an_error_names_the_line() {
        let cases = [
            ("", "s.csv: empty: the first row is size_bytes,cumulative_probability"),
            ("size_bytes,cumulative_probability\n", "s.csv: no point: must be at least one"),
            (
                "size,p\n",
                "s.csv:1: header size,p: must be size_bytes,cumulative_probability or \
                 application,size_bytes,cumulative_probability",
            ),
            (
                "size_bytes,cumulative_probability\n8\n",
                "s.csv:2: 8: 1 fields: must be 2, size_bytes,cumulative_probability",
            ),
            (
                "size_bytes,cumulative_probability\n-8,1\n",
                "s.csv:2: size_bytes = -8: must be a whole number",
            ),
            (
                "size_bytes,cumulative_probability\n8,x\n",
                "s.csv:2: cumulative_probability = x: must be 0 to 1",
            ),
            (
                "# sizes\nsize_bytes,cumulative_probability\n8,0.5\n4,1\n",
                "s.csv:4: size_bytes = 4 after 8: must not be smaller",
            ),
            (
                "size_bytes,cumulative_probability\n8,0.5\n",
                "s.csv:2: the last probability is 0.5: must be 1",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text, None), expected);
        }
        let plain = "size_bytes,cumulative_probability\n8,1\n";
        assert_eq!(error(plain, Some("a")), "s.csv:1: no column application to look a up in");
    }
}
