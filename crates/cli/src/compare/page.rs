//! The page of a comparison: its folder, and the commands that repeat it.

use ethermem_sim::compare::Repeat;
use ethermem_sim::report::ReportInput;
use ethermem_sim::run::{label_of, shell_line};
use serde::Serialize;

use super::{Arguments, Method};
use crate::failure::Failure;
use crate::folder::{Folder, origin};
use crate::output::{Format, print};

/// A page that is asked for, its folder made before the runs.
pub(super) struct Page<'a> {
    arguments: &'a Arguments,
    folder: Folder,
}

impl<'a> Page<'a> {
    /// `None` where none is asked for.
    pub(super) fn prepare(arguments: &'a Arguments) -> Result<Option<Page<'a>>, Failure> {
        let Some(path) = &arguments.out else { return Ok(None) };
        Ok(Some(Page { arguments, folder: Folder::prepare(path)? }))
    }

    /// Writes `rows` and the page that `make` makes of them; JSON alone on the standard output
    /// stays alone.
    pub(super) fn write<T: Serialize + ?Sized>(
        self,
        scenario: &str,
        seed: u64,
        rows: &T,
        make: impl FnOnce(Repeat<'_>) -> ReportInput,
    ) -> Result<(), Failure> {
        let Page { arguments, folder } = self;
        let label = label_of(scenario);
        let (title, id) = match arguments.method {
            Method::Steady => (format!("Fabrics compared: {label}"), label),
            Method::Published => {
                (format!("Fabrics compared as published: {label}"), format!("{label}-published"))
            }
        };
        let made = make(&|experiment, id| arguments.repeat(experiment.as_slice(), id));
        let asked: Vec<&str> = arguments.experiments.iter().map(String::as_str).collect();
        let page =
            ReportInput { title, origin: origin(arguments.repeat(&asked, &id), seed), ..made };
        let path = folder.write(rows, &page)?;
        if arguments.format == Format::Json {
            return Ok(());
        }
        print(&format!("wrote {}\n", path.display()))
    }
}

impl Arguments {
    /// Repeats these experiments into a folder of this name.
    fn repeat(&self, experiments: &[&str], id: &str) -> String {
        let mut words = vec!["compare".to_owned()];
        words.extend(self.selection.words());
        if !self.fabrics.is_empty() {
            let names: Vec<&str> = self.fabrics.iter().map(|fabric| fabric.name).collect();
            words.extend(["--fabrics".to_owned(), names.join(",")]);
        }
        if self.method == Method::Published {
            words.extend(["--method", "published"].map(str::to_owned));
        }
        words.extend(experiments.iter().flat_map(|name| ["--experiment", name]).map(str::to_owned));
        words.extend(["--out".to_owned(), format!("out/{id}")]);
        shell_line(words.iter().map(String::as_str))
    }
}
