//! The latency budget of a page in a disaggregated datacenter: six components, as in the study of
//! requirements (OSDI 2016, section 3.3 and Table 4).

use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use serde::Serialize;

/// Parameters of the components. [`Parameters::published`] has the study's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Time of the operating system for one end of a round trip.
    pub os: Ps,
    /// Time to copy data between memory and network interface, at one end.
    pub copy: Ps,
    /// Copy time with a network interface integrated with the CPU.
    pub copy_integrated: Ps,
    /// Time through a switch.
    pub switch: Ps,
    /// Propagation time per metre.
    pub propagation_per_m: Ps,
    /// Length of a link between racks in metres.
    pub inter_rack_m: f64,
    /// Length of a link within a rack in metres.
    pub intra_rack_m: f64,
    /// Size of the fetched page.
    pub page: Bytes,
    /// Rate of access links.
    pub link: BitsPerSecond,
}

/// Technology of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technology {
    /// The usual case: an operating system and copies.
    Baseline,
    /// RDMA: no operating system on the way.
    Rdma,
    /// RDMA with a network interface integrated with the CPU.
    RdmaNic,
}

/// Location of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// The ends are in two racks.
    InterRack,
    /// The ends are in one rack.
    IntraRack,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Technology of the ends.
    pub technology: Technology,
    /// Location of the ends.
    pub distance: Distance,
    /// Components in the order of the table.
    pub components: Vec<Component>,
    /// Sum of the components in ns.
    pub total_ns: f64,
    /// Fraction of the total that software at the ends takes.
    pub software_share: f64,
}

/// One of the six components.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Component {
    /// Name in the study.
    pub name: &'static str,
    /// Number of passes in a round trip.
    pub passes: u32,
    /// Time of one pass in ns.
    pub each_ns: f64,
    /// Time of all passes in ns.
    pub total_ns: f64,
}

/// Every technology, in the order of the table.
const TECHNOLOGIES: [(Technology, &str); 3] = [
    (Technology::Baseline, "baseline"),
    (Technology::Rdma, "RDMA"),
    (Technology::RdmaNic, "RDMA + NIC"),
];
const DISTANCES: [(Distance, &str); 2] =
    [(Distance::InterRack, "inter-rack"), (Distance::IntraRack, "intra-rack")];
/// Number of software components, which come first.
const SOFTWARE: usize = 2;

impl Parameters {
    /// The study's parameters: 40 Gb/s, pages of 4 KiB.
    ///
    /// # Panics
    /// Never: 40 Gb/s is an Ethernet rate.
    #[must_use]
    pub fn published() -> Parameters {
        Parameters {
            os: Ps::from_ns(950),
            copy: Ps::from_ns(1_000),
            copy_integrated: Ps::from_ns(500),
            switch: Ps::from_ns(240),
            propagation_per_m: Ps::from_ns(5),
            inter_rack_m: 40.0,
            intra_rack_m: 4.0,
            page: Bytes(4_096),
            link: BitsPerSecond::from_gbps(40).expect("an Ethernet rate"),
        }
    }

    /// Every column: each technology between racks and within one.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        let pairs = TECHNOLOGIES.into_iter().flat_map(|(technology, _)| {
            DISTANCES.into_iter().map(move |(distance, _)| (technology, distance))
        });
        pairs.map(|(technology, distance)| self.column(technology, distance)).collect()
    }

    /// One column.
    #[must_use]
    pub fn column(&self, technology: Technology, distance: Distance) -> Column {
        let propagation = |metres: f64| self.propagation_per_m.as_ns_f64() * metres;
        let ends = if technology == Technology::Baseline { 2 } else { 0 };
        let copy = match technology {
            Technology::RdmaNic => self.copy_integrated,
            Technology::Baseline | Technology::Rdma => self.copy,
        };
        // Leaf, spine, leaf in each direction, or one leaf; links to the spine, and to the ends.
        let (switches, long_links) = match distance {
            Distance::InterRack => (6, 4),
            Distance::IntraRack => (2, 0),
        };
        let transmission = self.page.0 as f64 * 8.0 / self.link.as_gbps_f64();
        let components = [
            ("OS", ends, self.os.as_ns_f64()),
            ("data copy", 2, copy.as_ns_f64()),
            ("switching", switches, self.switch.as_ns_f64()),
            ("propagation, inter-rack", long_links, propagation(self.inter_rack_m)),
            ("propagation, intra-rack", 4, propagation(self.intra_rack_m)),
            ("transmission", 1, transmission),
        ];
        let components: Vec<Component> = components
            .into_iter()
            .map(|(name, passes, each_ns)| Component {
                name,
                passes,
                each_ns,
                total_ns: f64::from(passes) * each_ns,
            })
            .collect();
        let sum = |parts: &[Component]| parts.iter().map(|part| part.total_ns).sum::<f64>();
        let total_ns = sum(&components);
        let software = sum(&components[..SOFTWARE]);
        let software_share = if total_ns > 0.0 { software / total_ns } else { 0.0 };
        Column { technology, distance, components, total_ns, software_share }
    }
}

/// The columns of each distance side by side; each cell is passes x one pass, in us.
#[must_use]
pub fn table(columns: &[Column], style: TableStyle) -> String {
    let tables = DISTANCES.map(|(distance, name)| {
        let columns: Vec<&Column> = columns.iter().filter(|it| it.distance == distance).collect();
        table_of(name, &columns, style)
    });
    tables.join("\n")
}

fn table_of(distance: &str, columns: &[&Column], style: TableStyle) -> String {
    let mut header = vec![distance];
    header.extend(columns.iter().map(|column| column.technology.name()));
    let cell = |part: &Component| match part.passes {
        0 => "-".to_owned(),
        passes => format!("{passes} x {:.2}", part.each_ns / 1e3),
    };
    let row = |at: usize| {
        let cells = columns.iter().map(|column| cell(&column.components[at]));
        std::iter::once(columns[0].components[at].name.to_owned()).chain(cells).collect()
    };
    let mut rows: Vec<Vec<String>> = (0..columns[0].components.len()).map(row).collect();
    let last = |name: &str, value: fn(&Column) -> String| {
        std::iter::once(name.to_owned()).chain(columns.iter().map(|it| value(it))).collect()
    };
    rows.push(last("total", |column| format!("{:.2}", column.total_ns / 1e3)));
    rows.push(last("software", |column| format!("{:.0} %", column.software_share * 100.0)));
    TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows }.render(style)
}

/// A row for each component of each column, separated by commas.
#[must_use]
pub fn csv(columns: &[Column]) -> String {
    let mut text = "technology,distance,component,passes,each_ns,total_ns\n".to_owned();
    for column in columns {
        let place = format!("{},{}", column.technology.name(), column.distance.name());
        for part in &column.components {
            let Component { name, passes, each_ns, total_ns } = part;
            let name = name.replace(", ", " ");
            text.push_str(&format!("{place},{name},{passes},{each_ns},{total_ns}\n"));
        }
        text.push_str(&format!("{place},total,,,{}\n", column.total_ns));
    }
    text
}

impl Technology {
    fn name(self) -> &'static str {
        TECHNOLOGIES[self as usize].1
    }
}

impl Distance {
    fn name(self) -> &'static str {
        DISTANCES[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total_us(technology: Technology, distance: Distance) -> f64 {
        Parameters::published().column(technology, distance).total_ns / 1e3
    }

    /// Section 3.3 gives every total, to two decimals.
    #[test]
    fn the_totals_are_the_published_ones() {
        let published = [
            (Technology::Rdma, Distance::InterRack, 5.14),
            (Technology::Rdma, Distance::IntraRack, 3.38),
            (Technology::RdmaNic, Distance::InterRack, 4.14),
            (Technology::RdmaNic, Distance::IntraRack, 2.38),
        ];
        for (technology, distance, expected) in published {
            let total = total_us(technology, distance);
            assert_eq!(format!("{total:.2}"), format!("{expected:.2}"), "{technology:?}");
        }
        // The baseline's network part is 3.14 and 1.38; its software part is 3.9, 55 % and 73 % of
        // the total.
        let inter = Parameters::published().column(Technology::Baseline, Distance::InterRack);
        let intra = Parameters::published().column(Technology::Baseline, Distance::IntraRack);
        for (column, network, share) in [(inter, "3.14", 55.0), (intra, "1.38", 73.0)] {
            let of = |parts: &[Component]| parts.iter().map(|part| part.total_ns).sum::<f64>();
            let software = of(&column.components[..SOFTWARE]) / 1e3;
            assert_eq!(software, 3.9);
            assert_eq!(format!("{:.2}", column.total_ns / 1e3 - software), network);
            assert_eq!((column.software_share * 100.0).floor(), share);
        }
    }

    #[test]
    fn the_cells_are_the_published_ones() {
        let columns = Parameters::published().columns();
        assert_eq!(columns.len(), 6);
        let text = table(&columns, TableStyle::Plain);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let tables: Vec<&str> = text.split("\n\n").collect();
        let cells = |table: usize, at: usize| -> Vec<&str> {
            let line = tables[table].lines().nth(at).expect("a row");
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            cells.skip(1).collect()
        };
        for table in 0..2 {
            assert_eq!(cells(table, 0), ["baseline", "RDMA", "RDMA + NIC"]);
            assert_eq!(cells(table, 1), ["2 x 0.95", "-", "-"]);
            assert_eq!(cells(table, 2), ["2 x 1.00", "2 x 1.00", "2 x 0.50"]);
            assert_eq!(cells(table, 5), ["4 x 0.02"; 3]);
            assert_eq!(cells(table, 6), ["1 x 0.82"; 3]);
        }
        assert_eq!((cells(0, 3)[0], cells(1, 3)[0]), ("6 x 0.24", "2 x 0.24"));
        assert_eq!((cells(0, 4)[0], cells(1, 4)[0]), ("4 x 0.20", "-"));
        assert_eq!(cells(0, 7), ["7.04", "5.14", "4.14"]);
        assert_eq!(cells(1, 7), ["5.28", "3.38", "2.38"]);
    }

    #[test]
    fn faster_links_take_half_a_microsecond_less() {
        let link = BitsPerSecond::from_gbps(100).unwrap();
        let fast = Parameters { link, ..Parameters::published() };
        let total = fast.column(Technology::RdmaNic, Distance::InterRack).total_ns;
        // Table 4's caption: 0.5 us less than 4.14. Section 3.3 has 3.59, which is not the sum of
        // its parts.
        assert_eq!(format!("{:.2}", total / 1e3), "3.65");
    }

    #[test]
    fn every_parameter_matters() {
        let published = Parameters::published();
        let zero = [
            Parameters { os: Ps::ZERO, ..published },
            Parameters { copy: Ps::ZERO, ..published },
            Parameters { copy_integrated: Ps::ZERO, ..published },
            Parameters { switch: Ps::ZERO, ..published },
            Parameters { propagation_per_m: Ps::ZERO, ..published },
            Parameters { inter_rack_m: 0.0, ..published },
            Parameters { intra_rack_m: 0.0, ..published },
            Parameters { page: Bytes(0), ..published },
        ];
        for parameters in zero {
            assert_ne!(parameters.columns(), published.columns(), "{parameters:?}");
        }
    }

    #[test]
    fn rows_for_spreadsheets_sum_up() {
        let text = csv(&Parameters::published().columns());
        assert_eq!(text.lines().count(), 1 + 6 * 7);
        assert!(text.contains("RDMA + NIC,intra-rack,switching,2,240,480\n"), "{text}");
        for line in text.lines() {
            assert_eq!(line.split(',').count(), 6, "{line}");
        }
    }
}
