//! The results of a sweep as one Parquet file.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::{Estimate, METRICS, Point, Record, Summary, Sweep};
use ethermem_files::{AtomicFile, OutputError, reason, write_column};

/// Writes one row per point, in the order of the points. A row has the varied keys, fabric, seed,
/// the point's identity and every metric. Behind each metric are its mean over the point's seeds
/// and half the width of that mean's 95 % interval. The file is there whole or not at all.
///
/// # Errors
/// [`OutputError`] when it cannot be written.
///
/// # Panics
/// If records or summaries do not belong to the sweep.
pub fn write_rows(
    path: &Path,
    sweep: &Sweep,
    records: &[&Record],
    summaries: &[Summary],
) -> Result<(), OutputError> {
    let failed = |error: ParquetError| OutputError::new(path, reason(error));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("ethermem ", env!("CARGO_PKG_VERSION")).to_owned());
    let file = AtomicFile::create(path)?;
    let schema = schema(sweep).map_err(failed)?;
    let writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()));
    let mut writer = writer.map_err(failed)?;
    write_group(&mut writer, sweep, records, summaries).map_err(failed)?;
    writer.into_inner().map_err(failed)?.commit()
}

fn schema(sweep: &Sweep) -> Result<TypePtr, ParquetError> {
    let column = |name: &str, physical, repetition, logical| {
        let column = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        column.with_logical_type(logical).build().map(Arc::new)
    };
    let text = |name: &str| {
        column(name, Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String))
    };
    let number = |name: &str| column(name, Physical::DOUBLE, Repetition::OPTIONAL, None);
    let mut fields = Vec::new();
    for (at, axis) in sweep.axes.iter().enumerate() {
        let is_number = numbers(&sweep.points, at).is_some();
        fields.push(if is_number { number(axis)? } else { text(axis)? });
    }
    let unsigned = LogicalType::integer(64, false);
    fields.push(text("fabric")?);
    fields.push(column("seed", Physical::INT64, Repetition::REQUIRED, Some(unsigned))?);
    fields.push(text("point")?);
    for metric in METRICS {
        fields.push(number(metric.name)?);
        fields.push(number(&format!("{}_seeds_mean", metric.name))?);
        fields.push(number(&format!("{}_seeds_ci95_half_width", metric.name))?);
    }
    fields.push(text("notices")?);
    Type::group_type_builder("ethermem_sweep").with_fields(fields).build().map(Arc::new)
}

/// The values of an axis, if all are numbers.
fn numbers(points: &[Point], axis: usize) -> Option<Vec<f64>> {
    points.iter().map(|point| point.values[axis].parse().ok()).collect()
}

fn write_group(
    writer: &mut SerializedFileWriter<AtomicFile>,
    sweep: &Sweep,
    records: &[&Record],
    summaries: &[Summary],
) -> Result<(), ParquetError> {
    let points = &sweep.points;
    let mut group = writer.next_row_group()?;
    let texts = |text: &dyn Fn(&Point) -> String| -> Vec<ByteArray> {
        points.iter().map(|point| ByteArray::from(text(point).into_bytes())).collect()
    };
    for axis in 0..sweep.axes.len() {
        if let Some(values) = numbers(points, axis) {
            let present = vec![1; values.len()];
            write_column::<DoubleType>(&mut group, &values, Some(&present))?;
        } else {
            let values = texts(&|point| point.shown(axis).to_owned());
            write_column::<ByteArrayType>(&mut group, &values, None)?;
        }
    }
    let seeds: Vec<i64> = points.iter().map(|p| p.scenario.run.seed.cast_signed()).collect();
    write_column::<ByteArrayType>(&mut group, &texts(&|p| p.fabric.name.to_owned()), None)?;
    write_column::<Int64Type>(&mut group, &seeds, None)?;
    write_column::<ByteArrayType>(&mut group, &texts(&|p| p.identity.to_string()), None)?;
    for metric in 0..METRICS.len() {
        let of_group = |part: fn(Estimate) -> Option<f64>| {
            let estimates = points.iter().map(|point| summaries[point.group].estimate(metric));
            estimates.map(|estimate| estimate.and_then(part)).collect::<Vec<_>>()
        };
        let own: Vec<Option<f64>> = records.iter().map(|record| record.value(metric)).collect();
        for values in [own, of_group(|e| Some(e.mean)), of_group(|e| e.ci95_half_width)] {
            let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let values: Vec<f64> = values.into_iter().flatten().collect();
            write_column::<DoubleType>(&mut group, &values, Some(&present))?;
        }
    }
    let notices: Vec<ByteArray> =
        records.iter().map(|record| ByteArray::from(record.notices.join("\n").as_str())).collect();
    write_column::<ByteArrayType>(&mut group, &notices, None)?;
    group.close().map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::atomic::AtomicBool;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::*;
    use crate::sweep::{Metric, Session};

    #[test]
    fn what_is_written_comes_back_in_its_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("base.toml"), "[fabric]\nnodes = 8\n[workload]\nmessages = 100\n").unwrap();
        let text = "scenario = 'base.toml'\nfabrics = ['ideal', 'edm']\nseeds = [3, 9]\n\
                    [vary]\nworkload.load = [0.2]\nfabric.edm.policy = ['srpt', 'fcfs']\n";
        fs::write(path("w.toml"), text).unwrap();
        let session = Session::open(&path("w.toml"), &[], &path("r.parquet")).unwrap();
        let sweep = session.sweep();
        let run = |point: &Point| sweep.task(point).unwrap().run(&AtomicBool::new(false)).unwrap();
        let records: Vec<Record> = sweep.points.iter().map(run).collect();
        records.iter().for_each(|record| session.add(record.clone()).unwrap());
        assert!(session.missing().is_empty());
        session.write().unwrap();

        let reader = SerializedFileReader::new(File::open(path("r.parquet")).unwrap()).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 8);
        let number = |value: Option<f64>| value.map_or(Field::Null, Field::Double);
        for (at, (row, record)) in rows.iter().zip(&records).enumerate() {
            let columns: Vec<(&String, &Field)> = row.get_column_iter().collect();
            let of = |name: &str| columns.iter().find(|(n, _)| *n == name).unwrap().1.clone();
            assert_eq!(columns.len(), 5 + 3 * METRICS.len() + 1);
            assert_eq!(of("workload.load"), Field::Double(0.2));
            let policy = if at < 4 { "srpt" } else { "fcfs" };
            assert_eq!(of("fabric.edm.policy"), Field::Str(policy.to_owned()));
            let fabric = if at % 4 < 2 { "ideal" } else { "edm" };
            assert_eq!(of("fabric"), Field::Str(fabric.to_owned()));
            assert_eq!(of("seed"), Field::ULong([3, 9][at % 2]));
            assert_eq!(of("point"), Field::Str(record.point.clone()));
            // The other seed of the place is the neighbour.
            let other = &records[at ^ 1];
            for (metric, Metric { name, .. }) in METRICS.iter().enumerate() {
                let pair = record.value(metric).zip(other.value(metric));
                assert_eq!(of(name), number(record.value(metric)), "{name}");
                let mean = of(&format!("{name}_seeds_mean"));
                assert_eq!(mean, number(pair.map(|(a, b)| f64::midpoint(a, b))), "{name}");
                // Student's t with one degree of freedom at 0.975, times the standard error |a - b|
                // / 2.
                let half_width = of(&format!("{name}_seeds_ci95_half_width"));
                match (half_width, pair) {
                    (Field::Double(half), Some((a, b))) => {
                        let expected = 12.7062 * (a - b).abs() / 2.0;
                        assert!((half - expected).abs() <= 1e-5 * expected, "{name}: {half}");
                    }
                    (half_width, pair) => assert!(half_width == Field::Null && pair.is_none()),
                }
            }
        }
        let queue = METRICS.iter().position(|metric| metric.name == "queue_egress_blocks_max");
        assert_eq!(records[0].value(queue.unwrap()), None, "the ideal has no queue");
    }
}
