//! The records of a Chakra execution trace: a varint length, then a protobuf message.
//!
//! Fields and numbers are those of `et_def.proto` of Chakra, schema 0.0.4, as ASTRA-sim reads it.
//! Fields that change nothing here, such as names of tensors, are skipped.

use std::path::Path;

use ethermem_files::InputError;
use prost::Message as _;
use prost::encoding::decode_varint;

/// An attribute; other values than these are skipped.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 28, 29")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(message, tag = "28")]
    BoolList(BoolList),
    #[prost(string, tag = "29")]
    Text(String),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

impl Value {
    /// The value, if it is not negative.
    fn unsigned(&self) -> Option<u64> {
        match *self {
            Value::Uint32(value) | Value::Fixed32(value) => Some(value.into()),
            Value::Uint64(value) | Value::Fixed64(value) => Some(value),
            Value::Int32(value) | Value::Sint32(value) | Value::Sfixed32(value) => {
                value.try_into().ok()
            }
            Value::Int64(value) | Value::Sint64(value) | Value::Sfixed64(value) => {
                value.try_into().ok()
            }
            Value::BoolList(_) | Value::Text(_) => None,
        }
    }
}

/// A node of the trace's graph.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub(super) attr: Vec<Attribute>,
}

impl Node {
    /// The value of an attribute, if it is there.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.attr.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// The value of an attribute, if it is there and not negative.
    pub(super) fn unsigned(&self, name: &str) -> Option<u64> {
        self.value(name)?.unsigned()
    }
}

/// The nodes of a file's bytes, each with the offset of its record. The first record, which is
/// metadata, is skipped.
///
/// # Errors
/// [`InputError`] that names the offset of a record that is cut off or is no node.
pub(super) fn nodes(file: &Path, bytes: &[u8]) -> Result<Vec<(u64, Node)>, InputError> {
    let mut rest = bytes;
    let mut nodes = Vec::new();
    let mut is_first = true;
    while !rest.is_empty() {
        let offset = (bytes.len() - rest.len()) as u64;
        let length = decode_varint(&mut rest)
            .map_err(|_| at(file, offset, "no length of a record: must be a varint"))?;
        let whole = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
        let Some((record, behind)) = whole else {
            let left = rest.len();
            let problem = format!("a record of {length} B: must fit the {left} B that are left");
            return Err(at(file, offset, &problem));
        };
        rest = behind;
        if std::mem::take(&mut is_first) {
            continue;
        }
        let node = Node::decode(record)
            .map_err(|error| at(file, offset, &format!("no node of a trace: {error}")))?;
        nodes.push((offset, node));
    }
    if is_first {
        return Err(InputError::file(file, "empty: must be a Chakra execution trace"));
    }
    Ok(nodes)
}

/// An error about the record at an offset.
pub(super) fn at(file: &Path, offset: u64, problem: &str) -> InputError {
    InputError::file(file, format!("byte {offset}: {problem}"))
}
