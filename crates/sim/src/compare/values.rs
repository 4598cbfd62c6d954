//! Published values: the results of another program at each point of a comparison.

use std::path::Path;

use ethermem_files::found;

use crate::registry::{self, FABRIC_NAMES};
use crate::scenario::read_text;
use crate::workload::InputError;

/// Mean slowdowns by experiment, point and fabric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedValues {
    fabrics: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    experiment: String,
    point: String,
    values: Vec<f64>,
}

impl PublishedValues {
    /// Reads a table with the columns `experiment`, `point` and one for each fabric. Lines that
    /// start with `#` are comments.
    ///
    /// # Errors
    /// [`InputError`] for a file that cannot be read and a column that is not a fabric. Also for
    /// the first row that lacks a number over 0 in a column.
    pub fn load(file: &Path) -> Result<PublishedValues, InputError> {
        let text = read_text(file)?;
        let is_row = |(_, line): &(u64, &str)| !line.starts_with('#') && !line.trim().is_empty();
        let mut lines = (1_u64..).zip(text.lines()).filter(is_row);
        let head = lines.next().map_or("", |(_, line)| line);
        let Some(names) = head.strip_prefix("experiment,point,") else {
            let problem =
                format!("header {}: must be experiment,point and names of fabrics", found(head));
            return Err(InputError::file(file, problem));
        };
        let fabrics: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
        if let Some(name) = fabrics.iter().find(|name| registry::find(name).is_none()) {
            let names = FABRIC_NAMES.join(", ");
            let problem = format!("column {}: must be one of {names}", found(name));
            return Err(InputError::file(file, problem));
        }
        let rows = lines.map(|(number, line)| {
            Row::read(line, fabrics.len()).ok_or_else(|| {
                let problem = format!(
                    "{}: must be an experiment, a point and {} numbers over 0",
                    found(line),
                    fabrics.len()
                );
                InputError::line(file, number, problem)
            })
        });
        let rows = rows.collect::<Result<Vec<Row>, InputError>>()?;
        Ok(PublishedValues { fabrics, rows })
    }

    /// The value at a point, if there is one.
    #[must_use]
    pub fn at(&self, experiment: &str, point: &str, fabric: &str) -> Option<f64> {
        let column = self.fabrics.iter().position(|name| name == fabric)?;
        let row =
            self.rows.iter().find(|row| row.experiment == experiment && row.point == point)?;
        Some(row.values[column])
    }

    /// True if there are values at a point.
    #[must_use]
    pub fn has(&self, experiment: &str, point: &str) -> bool {
        self.rows.iter().any(|row| row.experiment == experiment && row.point == point)
    }
}

impl Row {
    fn read(line: &str, columns: usize) -> Option<Row> {
        let mut cells = line.split(',').map(str::trim);
        let (experiment, point) = (cells.next()?.to_owned(), cells.next()?.to_owned());
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        let values: Option<Vec<f64>> =
            cells.map(|cell| cell.parse().ok().filter(positive)).collect();
        let values = values.filter(|values| values.len() == columns)?;
        Some(Row { experiment, point, values })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(text: &str) -> Result<PublishedValues, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("v.csv");
        fs::write(&file, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        PublishedValues::load(&file).map_err(|error| error.to_string().replace(&shown, ""))
    }

    #[test]
    fn values_by_point_and_fabric() {
        let values = load("# origin\nexperiment,point,edm,ird\nreads,load=0.2,1.5,2\n").unwrap();
        assert_eq!(values.at("reads", "load=0.2", "ird"), Some(2.0));
        assert_eq!(values.at("reads", "load=0.2", "cxl"), None);
        assert_eq!(values.at("reads", "load=0.4", "edm"), None);
        assert!(values.has("reads", "load=0.2") && !values.has("writes", "load=0.2"));
    }

    #[test]
    fn what_is_no_table_of_values_is_refused_with_its_line() {
        for (text, error) in [
            ("", "v.csv: header : must be experiment,point and names"),
            ("experiment,point,emd\n", "v.csv: column emd: must be one of edm, "),
            ("experiment,point,edm\n\na,b\n", "v.csv:3: a,b: must be "),
            ("experiment,point,edm\na,b,1,2\n", "v.csv:2: a,b,1,2: must be "),
            ("experiment,point,edm\na,b,0\n", "v.csv:2: a,b,0: must be "),
            ("experiment,point,edm\na,b,nan\n", "v.csv:2: a,b,nan: must be "),
        ] {
            let found = load(text).unwrap_err();
            assert!(found.starts_with(error), "{text:?}: {found}");
        }
    }

    #[test]
    fn the_published_figure_is_whole() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let values = PublishedValues::load(&root.join("golden/figure8/published.csv")).unwrap();
        assert_eq!((values.rows.len(), values.fabrics.len()), (18, 7));
        let memcached = values.at("application_load_0.4", "memcached", "cxl");
        assert_eq!(memcached, Some(11.02));
    }
}
