//! The page of a comparison: its folder, and the commands that repeat it.

use std::path::PathBuf;

use ethermem_sim::compare::Repeat;
use ethermem_sim::output::OutputError;
use ethermem_sim::report::ReportInput;
use ethermem_sim::run::{label_of, shell_line};

use super::{Method, Outcome, Request};
use crate::folder::{Folder, origin};
use crate::runner::Runner;

/// A finished page, and the folder that was made for it before the runs.
pub(super) struct Page {
    folder: Folder,
    input: ReportInput,
}

impl Page {
    /// Writes the rows and the page.
    pub(super) fn write(self, outcome: &Outcome) -> Result<PathBuf, OutputError> {
        self.folder.write(outcome, &self.input)
    }
}

impl Request {
    /// Folder of the page, if one was requested.
    pub(super) fn folder(&self) -> Result<Option<Folder>, OutputError> {
        self.out.as_deref().map(Folder::prepare).transpose()
    }

    /// The page from `make`, if there is a folder for it.
    pub(super) fn page(
        &self,
        folder: Option<Folder>,
        scenario: &str,
        seed: u64,
        runner: &Runner<'_>,
        make: impl FnOnce(Repeat<'_>) -> ReportInput,
    ) -> Option<Page> {
        let folder = folder?;
        let label = label_of(scenario);
        let (title, id) = match self.method {
            Method::Steady => (format!("Fabrics compared: {label}"), label),
            Method::Published => {
                (format!("Fabrics compared as published: {label}"), format!("{label}-published"))
            }
        };
        let made = make(&|experiment, id| self.repeat(experiment.as_slice(), id));
        let asked: Vec<&str> = self.experiments.iter().map(String::as_str).collect();
        let origin = origin(runner, self.repeat(&asked, &id), seed);
        Some(Page { folder, input: ReportInput { title, origin, ..made } })
    }

    /// Command that repeats these experiments into a folder with this name.
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
