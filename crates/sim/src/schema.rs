//! JSON Schemas of scenarios and results, for editors and for programs that check files.
//!
//! The schema of a scenario is made from the keys that the parser requests, and the schema of a
//! result from its types. A schema accepts everything that the parser accepts. Some rules between
//! two keys cannot be expressed, so the program may refuse a file that the schema accepts.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::keys::Key;
use crate::metrics::RunResult;
use crate::registry::FABRIC_NAMES;
use crate::scenario::Scenario;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of a scenario: the valid content of TOML's `[fabric]`, `[workload]`, `[background]`
/// and `[run]`.
///
/// # Panics
/// Never: every key has a default.
#[must_use]
pub fn scenario() -> Value {
    let mut root = table("A scenario of ethermem: docs/reference/scenario.md explains each key.");
    for key in Scenario::keys(FABRIC_NAMES) {
        let mut at = &mut root;
        let mut names = key.name.split('.').peekable();
        while let Some(name) = names.next() {
            let properties = at["properties"].as_object_mut().expect("a table has properties");
            let is_last = names.peek().is_none();
            let entry = properties.entry(name);
            at = entry.or_insert_with(|| if is_last { value(&key) } else { table("") });
        }
    }
    let points = json!({
        "type": "object",
        "description": "Points of `ethermem compare`: docs/how-to/compare-fabrics.md",
    });
    root["properties"]["compare"] = points;
    let mut schema = json!({ "$schema": DIALECT, "title": "scenario" });
    let fields = schema.as_object_mut().expect("an object");
    fields.extend(root.as_object().expect("a table").clone());
    schema
}

/// The schema of what `ethermem sim` prints as JSON, and `ethermem compare` as a list.
///
/// # Panics
/// Never: the schema of a type is an object.
#[must_use]
pub fn results() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<RunResult>().to_value();
    let fields = schema.as_object_mut().expect("an object");
    let mut definitions = fields.remove("$defs").unwrap_or_else(|| json!({}));
    fields.remove("$schema");
    fields.remove("title");
    let one = json!({ "$ref": "#/$defs/RunResult" });
    definitions["RunResult"] = schema;
    json!({
        "$schema": DIALECT,
        "title": "results",
        "description": "One run, or a list of runs: docs/reference/output.md explains each key.",
        "anyOf": [one, { "type": "array", "items": one }],
        "$defs": definitions,
    })
}

/// A table without keys.
fn table(description: &str) -> Value {
    let mut table = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    if !description.is_empty() {
        table["description"] = description.into();
    }
    table
}

/// The schema of a key's value.
fn value(key: &Key) -> Value {
    let text = format!("Default: {}. Must be: {}.", key.default, key.allowed);
    let mut schema = kind(&key.allowed, key.is_whole);
    schema.insert("description".to_owned(), text.into());
    Value::Object(schema)
}

/// Parses the text by which errors and the reference describe the valid values.
fn kind(allowed: &str, is_whole: bool) -> Map<String, Value> {
    let parts: Vec<&str> = allowed.split(", ").collect();
    let names: Option<Vec<Value>> = parts.iter().map(|part| name(part)).collect();
    let numbers: Option<Vec<Value>> = parts.iter().map(|part| number(part)).collect();
    let schema = match (allowed, names, numbers) {
        ("true, false", ..) => json!({ "type": "boolean" }),
        ("a file" | "a name of the file", ..) => json!({ "type": "string" }),
        (_, Some(choices), _) | (_, _, Some(choices)) => json!({ "enum": choices }),
        _ => match allowed.split_once(", ").and_then(|(first, rest)| Some((one(first)?, rest))) {
            Some((one, rest)) => json!({ "anyOf": [{ "const": one }, kind(rest, is_whole)] }),
            None => range(allowed, is_whole),
        },
    };
    schema.as_object().expect("an object").clone()
}

/// The schema of `over 0 to 1`, `4 to 65536` and similar ranges. A bound that is not a number, as
/// in `0 to nodes - 1`, is left out.
fn range(allowed: &str, is_whole: bool) -> Value {
    let mut schema = json!({ "type": if is_whole { "integer" } else { "number" } });
    let Some((least, most)) = allowed.split_once(" to ") else {
        return schema;
    };
    let (before, least) = least.rsplit_once(' ').unwrap_or(("", least));
    if let Some(least) = number(least) {
        let bound = if before.ends_with("over") { "exclusiveMinimum" } else { "minimum" };
        schema[bound] = least;
    }
    let (bound, most) = match most.strip_prefix("under ") {
        Some(most) => ("exclusiveMaximum", most),
        None => ("maximum", most),
    };
    if let Some(most) = number(most) {
        schema[bound] = most;
    }
    schema
}

/// A single value beside a range, as `"auto"` and 0 are.
fn one(part: &str) -> Option<Value> {
    name(part).or_else(|| number(part))
}

fn name(part: &str) -> Option<Value> {
    let name = part.strip_prefix('"')?.strip_suffix('"')?;
    Some(name.into())
}

/// Parses a number; a whole one stays whole.
fn number(part: &str) -> Option<Value> {
    let whole = part.parse::<u64>().ok().map(Value::from);
    whole.or_else(|| part.parse::<f64>().ok().map(Value::from))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(schema: &Value, key: &str) -> Value {
        key.split('.').fold(schema.clone(), |at, name| at["properties"][name].clone())
    }

    #[test]
    fn what_a_key_may_be_is_read_from_what_errors_say() {
        let cases = [
            ("2 to 512", true, json!({ "type": "integer", "minimum": 2, "maximum": 512 })),
            (
                "0.001 to 1000",
                false,
                json!({ "type": "number", "minimum": 0.001, "maximum": 1000 }),
            ),
            (
                "over 0 to 1",
                false,
                json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
            ),
            (
                "0 to under 1",
                false,
                json!({ "type": "number", "minimum": 0, "exclusiveMaximum": 1 }),
            ),
            ("0 to nodes - 1", true, json!({ "type": "integer", "minimum": 0 })),
            (
                "a power of two, 4 to 65536",
                false,
                json!({ "type": "number", "minimum": 4, "maximum": 65536 }),
            ),
            ("68, 256", false, json!({ "enum": [68, 256] })),
            ("\"fair\", \"strict\"", false, json!({ "enum": ["fair", "strict"] })),
            (
                "\"auto\", 1 to 9",
                true,
                json!({ "anyOf": [
                    { "const": "auto" },
                    { "type": "integer", "minimum": 1, "maximum": 9 },
                ] }),
            ),
            (
                "0, powers of two from 8 to 64",
                false,
                json!({ "anyOf": [
                    { "const": 0 },
                    { "type": "number", "minimum": 8, "maximum": 64 },
                ] }),
            ),
            ("true, false", false, json!({ "type": "boolean" })),
            ("a file", false, json!({ "type": "string" })),
        ];
        for (allowed, is_whole, expected) in cases {
            assert_eq!(Value::Object(kind(allowed, is_whole)), expected, "{allowed}");
        }
    }

    #[test]
    fn every_key_has_a_place_and_a_rule() {
        let schema = scenario();
        let keys = Scenario::keys(FABRIC_NAMES);
        assert!(keys.len() > 100, "{} keys", keys.len());
        for key in keys {
            let rule = of(&schema, &key.name);
            let has_rule = ["enum", "type", "anyOf"].iter().any(|part| rule.get(part).is_some());
            assert!(has_rule, "{}: {rule}", key.name);
        }
        assert_eq!(
            of(&schema, "fabric.kind")["enum"].as_array().unwrap().len(),
            FABRIC_NAMES.len()
        );
        assert_eq!(of(&schema, "fabric.nodes")["type"], "integer");
    }

    /// The schema's bounds of a range equal the parser's.
    #[test]
    fn the_parser_refuses_what_is_beyond_a_bound() {
        let schema = scenario();
        let mut tried = 0;
        for key in Scenario::keys(FABRIC_NAMES) {
            let rule = of(&schema, &key.name);
            let beyond = [
                rule["minimum"].as_f64().map(|least| least - 1.0),
                rule["maximum"].as_f64().map(|most| most * 2.0 + 1.0),
                rule["exclusiveMinimum"].as_f64(),
                rule["exclusiveMaximum"].as_f64(),
                (rule["type"] == "integer").then_some(1.5),
            ];
            // TOML's greatest integer is the greatest seed.
            for number in beyond.into_iter().flatten().filter(|number| *number < 1e18) {
                let text = format!("{} = {number}\n", key.name);
                let refused = Scenario::parse(&text, Path::new("s.toml"), FABRIC_NAMES);
                assert!(refused.is_err(), "{text}");
                tried += 1;
            }
        }
        assert!(tried > 200, "{tried} values");
    }

    /// True if `rule` accepts `value`. These are the parts of JSON Schema that rules of keys have.
    fn accepts(rule: &Value, value: &Value) -> bool {
        let fields = rule.as_object().unwrap();
        fields.iter().all(|(part, of)| match part.as_str() {
            "description" => true,
            "anyOf" => of.as_array().unwrap().iter().any(|rule| accepts(rule, value)),
            "enum" => of.as_array().unwrap().contains(value),
            "const" => of == value,
            "type" => match of.as_str().unwrap() {
                "boolean" => value.is_boolean(),
                "string" => value.is_string(),
                "integer" => value.is_u64() || value.is_i64(),
                "number" => value.is_number(),
                other => panic!("{other}"),
            },
            "minimum" => !value.is_number() || order(value, of).is_ge(),
            "maximum" => !value.is_number() || order(value, of).is_le(),
            "exclusiveMinimum" => !value.is_number() || order(value, of).is_gt(),
            "exclusiveMaximum" => !value.is_number() || order(value, of).is_lt(),
            other => panic!("{other}"),
        })
    }

    fn order(one: &Value, other: &Value) -> std::cmp::Ordering {
        match (one.as_u64(), other.as_u64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one.as_f64().unwrap().total_cmp(&other.as_f64().unwrap()),
        }
    }

    /// The ends of a range in the words of errors, and whether each is allowed itself; `None` for
    /// an end that depends on other keys.
    fn ends(part: &str) -> Option<[(Option<Value>, bool); 2]> {
        let (least, most) = part.split_once(" to ")?;
        let is_over = least.starts_with("over ");
        let is_under = most.starts_with("under ");
        let least = least.rsplit(' ').next().and_then(number);
        Some([(least, !is_over), (number(most.trim_start_matches("under ")), !is_under)])
    }

    /// A little less and a little more than a bound.
    fn beside(bound: &Value, is_whole: bool) -> [Value; 2] {
        match (bound.as_u64(), is_whole) {
            (Some(bound), true) => {
                let bound = i128::from(bound);
                [bound - 1, bound + 1].map(|n| serde_json::from_str(&n.to_string()).unwrap())
            }
            _ => {
                let bound = bound.as_f64().unwrap();
                let little = (bound.abs() * 1e-9).max(1e-9);
                [(bound - little).into(), (bound + little).into()]
            }
        }
    }

    /// The schema and the words of errors say the same of every key, at the ends of each range.
    #[test]
    fn the_schema_allows_what_the_program_does_and_no_more() {
        let schema = scenario();
        let [mut defaults, mut inside, mut outside, mut parsed] = [0; 4];
        for key in Scenario::keys(FABRIC_NAMES) {
            let rule = of(&schema, &key.name);
            let check = |value: &Value, is_allowed: bool| {
                let (name, allowed) = (&key.name, &key.allowed);
                assert_eq!(accepts(&rule, value), is_allowed, "{name} = {value}: {allowed}");
            };
            // A default in words follows from other keys.
            if let Ok(default) = serde_json::from_str::<Value>(&key.default) {
                check(&default, true);
                defaults += 1;
            }
            let mut tried = Vec::new();
            for part in key.allowed.split(", ") {
                if let Ok(value) = serde_json::from_str::<Value>(part) {
                    check(&value, true);
                    tried.push(value);
                    inside += 1;
                }
                let Some([least, most]) = ends(part) else { continue };
                for (side, (bound, is_allowed)) in [least, most].into_iter().enumerate() {
                    let Some(bound) = bound else { continue };
                    check(&bound, is_allowed);
                    inside += 1;
                    let beyond = &beside(&bound, key.is_whole)[side];
                    // JSON has no whole number over the greatest seed.
                    if bound.as_u64() != Some(u64::MAX) {
                        check(beyond, false);
                        outside += 1;
                    }
                    tried.extend([bound, beyond.clone()]);
                }
            }
            // What the program accepts by itself, the schema does, too.
            for value in tried {
                let text = format!("{} = {value}\n", key.name);
                if Scenario::parse(&text, Path::new("s.toml"), FABRIC_NAMES).is_ok() {
                    check(&value, true);
                    parsed += 1;
                }
            }
        }
        let counts = [defaults, inside, outside, parsed];
        assert!(counts.iter().zip([150, 300, 200, 300]).all(|(n, least)| *n > least), "{counts:?}");
    }

    #[test]
    fn a_result_has_its_keys_and_no_others() {
        let schema = results();
        let run = &schema["$defs"]["RunResult"];
        assert_eq!(run["additionalProperties"], false);
        let required = run["required"].as_array().unwrap();
        assert!(required.contains(&"wall_s".into()) && !required.contains(&"ways".into()));
        assert!(run["properties"].get("ways").is_none());
        let kinds = schema["$defs"]["Kinds"]["required"].as_array().unwrap();
        assert!(!kinds.contains(&"rmw".into()), "{kinds:?}");
    }
}
