//! The points at which a rival is not behind.

use super::{ByMethod, Compared, Place};
use crate::metrics::RunResult;
use crate::registry;

/// The numbers in which a rival is not behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Lead {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the point.
    pub point: String,
    /// The rival.
    pub fabric: String,
    /// The messages compared: the same messages, or as many as fill an equal share of its own
    /// blocks.
    pub messages: &'static str,
    /// The results of the rival and of the scenario's own fabric, in the order of
    /// [`LEAD_MEASURES`]; `None` where the rival is behind.
    pub numbers: [Option<(f64, f64)>; LEAD_MEASURES.len()],
}

/// Ratio up to which means and 99th percentiles count as equal: tables show three decimals.
const TIE: f64 = 1.0005;

/// The quantities in which fabrics are compared.
pub const LEAD_MEASURES: [&str; 4] =
    ["mean slowdown", "p99 slowdown", "mean latency ns", "p99 latency ns"];
const DECIMALS: [usize; LEAD_MEASURES.len()] = [3, 3, 1, 1];

fn measures(run: &RunResult) -> [Option<f64>; LEAD_MEASURES.len()] {
    let all = run.shown_all();
    [all.slowdown_mean, all.slowdown_p99, all.latency_ns_mean, all.latency_ns_p99]
}

const SAME: &str = "same";

/// True if the fabric is neither the baseline nor a bound.
fn is_rival(place: &Place, baseline: &str) -> bool {
    let is_bound = registry::find(&place.fabric).is_some_and(|fabric| fabric.is_bound);
    place.fabric != baseline && !is_bound
}

/// The points at which a rival ties with `baseline` in a quantity, or is ahead of it. Rows on the
/// same messages come first.
#[must_use]
pub fn leads(rows: &[Compared], baseline: &str) -> Vec<Lead> {
    let mut leads = Vec::new();
    for rival in rows.iter().filter(|row| is_rival(&row.place, baseline)) {
        let own =
            rows.iter().find(|row| row.place.fabric == baseline && row.place.is_with(&rival.place));
        let Some(own) = own else { continue };
        let own = measures(&own.same_messages);
        let same = Some((SAME, &rival.same_messages));
        for (messages, run) in
            same.into_iter().chain(rival.own_blocks.as_ref().map(|run| ("own blocks", run)))
        {
            let mut numbers = [None; LEAD_MEASURES.len()];
            for (number, pair) in numbers.iter_mut().zip(measures(run).into_iter().zip(own)) {
                *number = pair.0.zip(pair.1).filter(|(rival, own)| *rival <= own * TIE);
            }
            if numbers.iter().any(Option::is_some) {
                leads.push(Lead {
                    experiment: rival.place.experiment.clone(),
                    point: rival.place.point.clone(),
                    fabric: rival.place.fabric.clone(),
                    messages,
                    numbers,
                });
            }
        }
    }
    // Rows on the same messages are more meaningful.
    leads.sort_by_key(|lead| lead.messages != SAME);
    leads
}

/// The table of leads: header and rows; each number of the rival is shown with the baseline's.
#[must_use]
pub fn leads_rows(leads: &[Lead]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut head = vec!["experiment", "point", "fabric", "messages"];
    head.extend(LEAD_MEASURES);
    let row = |lead: &Lead| {
        let text = [&lead.experiment, &lead.point, &lead.fabric].map(String::clone);
        let numbers = lead.numbers.iter().zip(DECIMALS).map(|(numbers, decimals)| {
            let shown =
                |(rival, own): &(f64, f64)| format!("{rival:.decimals$} / {own:.decimals$}");
            numbers.as_ref().map_or_else(|| "-".to_owned(), shown)
        });
        text.into_iter().chain([lead.messages.to_owned()]).chain(numbers).collect()
    };
    (head, leads.iter().map(row).collect())
}

/// The points at which the mean slowdown of a rival is no higher than the one of `baseline`, by a
/// published method: the rival's row and the baseline's.
#[must_use]
pub fn method_leads<'r>(rows: &'r [ByMethod], baseline: &str) -> Vec<(&'r ByMethod, &'r ByMethod)> {
    let mut leads = Vec::new();
    for rival in rows.iter().filter(|row| is_rival(&row.place, baseline)) {
        let own =
            rows.iter().find(|row| row.place.fabric == baseline && row.place.is_with(&rival.place));
        let ahead = |own: &&ByMethod| Some(rival.slowdown_mean? <= own.slowdown_mean? * TIE);
        if let Some(own) = own.filter(|own| ahead(own) == Some(true)) {
            leads.push((rival, own));
        }
    }
    leads
}

/// The table of [`method_leads`]: header and rows; each number of the rival is shown with the
/// baseline's.
#[must_use]
pub fn method_leads_rows(
    leads: &[(&ByMethod, &ByMethod)],
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let head = vec!["experiment", "point", "fabric", "slowdown", "published"];
    let both = |numbers: Option<(f64, f64)>, decimals: usize| {
        let shown = |(rival, own): (f64, f64)| format!("{rival:.decimals$} / {own:.decimals$}");
        numbers.map_or_else(|| "-".to_owned(), shown)
    };
    let row = |(rival, own): &(&ByMethod, &ByMethod)| {
        let mut cells = rival.place.cells();
        cells.push(both(rival.slowdown_mean.zip(own.slowdown_mean), DECIMALS[0]));
        cells.push(both(rival.place.published.zip(own.place.published), 2));
        cells
    };
    (head, leads.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Counted;
    use crate::compare::rows::tests::{row, rows, run};

    #[test]
    fn every_number_in_which_a_rival_is_not_behind_is_said() {
        let leads = leads(&rows(), "edm");
        let (head, cells) = leads_rows(&leads);
        assert_eq!(head.len(), 8);
        assert_eq!(cells[0][2..4], ["cxl", "same"]);
        assert_eq!(cells[0][4..], ["-", "-", "300.0 / 400.0", "300.0 / 400.0"]);
        assert_eq!(cells[1][2..5], ["dctcp", "own blocks", "1.500 / 2.000"]);
        assert_eq!(cells.len(), 2);
        let tie = [rows()[0].clone(), row("cxl", 2.0, run(400, 200), None)];
        assert_eq!(
            super::leads(&tie, "edm")[0].numbers,
            [Some((2.0, 2.0)), Some((2.0, 2.0)), Some((400.0, 400.0)), Some((400.0, 400.0))]
        );
    }

    #[test]
    fn a_bound_is_no_rival() {
        let rows = [rows()[0].clone(), row("ideal", 2.0, run(200, 200), None)];
        assert_eq!(leads(&rows, "edm"), []);
        assert_eq!(leads(&[rows[0].clone(), row("cxl", 2.0, run(200, 200), None)], "edm").len(), 1);
    }

    #[test]
    fn by_a_published_method_the_mean_alone_decides() {
        let row = |fabric: &str, published, slowdown| {
            let counted = Counted { slowdown_mean: slowdown, ..Counted::default() };
            ByMethod::of(row(fabric, published, run(1, 1), None).place, &[counted])
        };
        let rows = [
            row("edm", 1.5, Some(1.4)),
            row("cxl", 1.2, Some(1.4001)),
            row("ird", 1.1, Some(1.41)),
            row("pfc", 1.1, None),
            row("ideal", 1.0, Some(1.0)),
        ];
        let leads = method_leads(&rows, "edm");
        let (head, cells) = method_leads_rows(&leads);
        assert_eq!((cells.len(), head.len()), (1, cells[0].len()));
        assert_eq!(cells[0][2..], ["cxl", "1.400 / 1.400", "1.20 / 1.50"]);
    }
}
