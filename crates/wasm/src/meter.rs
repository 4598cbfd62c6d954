//! Metering: an instruction that does much work is replaced by pieces, each of which takes fuel.
//!
//! Fuel is counted by instruction, and checked at loop iterations and at function entries.
//! `memory.copy` and `memory.fill` would move a whole memory for one unit. Each becomes a call of a
//! function that moves one piece per iteration of a loop.

use thiserror::Error;
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{
    BlockType, CodeSection, Function, FunctionSection, Instruction, TypeSection, ValType,
};
use wasmparser::{
    CodeSectionReader, FunctionSectionReader, Operator, Parser, Payload, TypeRef,
    TypeSectionReader, Validator, WasmFeatures,
};

/// Longest module in bytes.
pub const MODULE_BYTES_MAX: usize = 1 << 20;

/// Bytes moved per iteration of the loop, which takes about fifteen units of fuel.
const PIECE_BYTES: i32 = 256;

/// WebAssembly features that are allowed: those that compilers emit by default.
const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .difference(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST);

/// The reason why a module is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MeterError {
    /// The module is too long; its length is in bytes.
    #[error("{0} B: must be 1 to {MODULE_BYTES_MAX}")]
    Length(usize),
    /// The bytes are not a valid module, or use a feature that is not allowed.
    #[error("{0}")]
    Invalid(String),
    /// The module has no function or no memory.
    #[error("must be a module with functions and a memory of its own")]
    Empty,
    /// The module uses an instruction that takes long and that compilers hardly use.
    #[error("{0}: must be any instruction but those of tables and of passive data")]
    Instruction(&'static str),
}

/// Limit of characters in an error text, which may contain names from the module.
const PROBLEM_CHARS_MAX: usize = 300;

/// A library's error text as one line that a terminal and a log can show.
pub(crate) fn one_line(said: &str) -> String {
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = words.chars().flat_map(|char| {
        let escaped = char.is_control().then(|| char.escape_default());
        let plain = (!char.is_control()).then_some(char);
        escaped.into_iter().flatten().chain(plain)
    });
    let mut shown = shown.take(PROBLEM_CHARS_MAX + 1).collect::<String>();
    if shown.chars().count() > PROBLEM_CHARS_MAX {
        shown.pop();
        shown.push_str("...");
    }
    shown
}

/// The module with metering.
pub(crate) fn meter(bytes: &[u8]) -> Result<Vec<u8>, MeterError> {
    if bytes.is_empty() || bytes.len() > MODULE_BYTES_MAX {
        return Err(MeterError::Length(bytes.len()));
    }
    let invalid =
        |error: wasmparser::BinaryReaderError| MeterError::Invalid(one_line(&error.to_string()));
    Validator::new_with_features(FEATURES).validate_all(bytes).map_err(invalid)?;
    let mut meter = Meter::of(bytes).map_err(invalid)?;
    if meter.code == 0 || meter.memories == 0 {
        return Err(MeterError::Empty);
    }
    let mut module = wasm_encoder::Module::new();
    match meter.parse_core_module(&mut module, Parser::new(0), bytes) {
        Ok(()) => Ok(module.finish()),
        Err(reencode::Error::UserError(refused)) => Err(refused),
        Err(error) => Err(MeterError::Invalid(one_line(&error.to_string()))),
    }
}

/// Numbers of numbered items in the module: those of the added functions follow.
#[derive(Default)]
struct Meter {
    types: u32,
    functions: u32,
    code: u32,
    memories: u32,
}

impl Meter {
    fn of(bytes: &[u8]) -> wasmparser::Result<Meter> {
        let mut meter = Meter::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::TypeSection(types) => meter.types += types.count(),
                Payload::ImportSection(imports) => {
                    for import in imports {
                        meter.functions += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::FunctionSection(functions) => meter.functions += functions.count(),
                Payload::MemorySection(memories) => meter.memories += memories.count(),
                Payload::CodeSectionStart { count, .. } => meter.code = count,
                _ => {}
            }
        }
        Ok(meter)
    }

    fn copy(&self) -> u32 {
        self.functions
    }

    fn fill(&self) -> u32 {
        self.functions + 1
    }

    fn grow(&self) -> u32 {
        self.functions + 2
    }
}

impl Reencode for Meter {
    type Error = MeterError;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: TypeSectionReader<'_>,
    ) -> Result<(), reencode::Error<MeterError>> {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([ValType::I32; 3], []);
        types.ty().function([ValType::I32], [ValType::I32]);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), reencode::Error<MeterError>> {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.types).function(self.types).function(self.types + 1);
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), reencode::Error<MeterError>> {
        utils::parse_code_section(self, code, section)?;
        code.function(&copy()).function(&fill()).function(&grow());
        Ok(())
    }

    fn instruction<'a>(
        &mut self,
        operator: Operator<'a>,
    ) -> Result<Instruction<'a>, reencode::Error<MeterError>> {
        let refused = match operator {
            Operator::MemoryCopy { .. } => return Ok(Instruction::Call(self.copy())),
            Operator::MemoryFill { .. } => return Ok(Instruction::Call(self.fill())),
            Operator::MemoryGrow { .. } => return Ok(Instruction::Call(self.grow())),
            Operator::MemoryInit { .. } => "memory.init",
            Operator::TableInit { .. } => "table.init",
            Operator::TableCopy { .. } => "table.copy",
            Operator::TableFill { .. } => "table.fill",
            Operator::TableGrow { .. } => "table.grow",
            other => return utils::instruction(self, other),
        };
        Err(reencode::Error::UserError(MeterError::Instruction(refused)))
    }
}

const TO: u32 = 0;
/// The source of a copy, or the value of a fill.
const FROM: u32 = 1;
const LEFT: u32 = 2;
const PIECE: u32 = 3;

fn function(locals: u32, body: &[Instruction<'_>]) -> Function {
    let mut function = Function::new([(locals, ValType::I32)]);
    body.iter().for_each(|instruction| {
        function.instruction(instruction);
    });
    function.instruction(&Instruction::End);
    function
}

/// `piece = min(left, PIECE_BYTES)`; leaves the enclosing block if nothing is left.
fn next_piece() -> [Instruction<'static>; 9] {
    [
        Instruction::LocalGet(LEFT),
        Instruction::I32Eqz,
        Instruction::BrIf(1),
        Instruction::LocalGet(LEFT),
        Instruction::I32Const(PIECE_BYTES),
        Instruction::LocalGet(LEFT),
        Instruction::I32Const(PIECE_BYTES),
        Instruction::I32LtU,
        Instruction::Select,
    ]
}

/// Adds the piece to a local, or subtracts it.
fn moved(local: u32, by: Instruction<'static>) -> [Instruction<'static>; 4] {
    [Instruction::LocalGet(local), Instruction::LocalGet(PIECE), by, Instruction::LocalSet(local)]
}

/// Pushes whether the rest, from the position in a local on, is within the memory.
fn fits(local: u32) -> [Instruction<'static>; 10] {
    [
        Instruction::LocalGet(local),
        Instruction::I64ExtendI32U,
        Instruction::LocalGet(LEFT),
        Instruction::I64ExtendI32U,
        Instruction::I64Add,
        Instruction::MemorySize(0),
        Instruction::I64ExtendI32U,
        Instruction::I64Const(16),
        Instruction::I64Shl,
        Instruction::I64LeU,
    ]
}

/// Does all of a short range at once, or traps as it should; then leaves the enclosing block.
fn at_once(places: &[u32], whole: Instruction<'static>) -> Vec<Instruction<'static>> {
    let mut body = vec![Instruction::LocalGet(LEFT), Instruction::I32Const(PIECE_BYTES)];
    body.push(Instruction::I32GtU);
    for &place in places {
        body.extend(fits(place));
        body.push(Instruction::I32And);
    }
    body.extend([Instruction::I32Eqz, Instruction::If(BlockType::Empty)]);
    body.extend([TO, FROM, LEFT].map(Instruction::LocalGet));
    body.extend([whole, Instruction::Br(1), Instruction::End]);
    body
}

/// `memory.fill` by pieces.
fn fill() -> Function {
    let mut body = vec![Instruction::Block(BlockType::Empty)];
    body.extend(at_once(&[TO], Instruction::MemoryFill(0)));
    body.push(Instruction::Loop(BlockType::Empty));
    body.extend(next_piece());
    body.push(Instruction::LocalSet(PIECE));
    body.extend([TO, FROM, PIECE].map(Instruction::LocalGet));
    body.push(Instruction::MemoryFill(0));
    body.extend(moved(TO, Instruction::I32Add));
    body.extend(moved(LEFT, Instruction::I32Sub));
    body.extend([Instruction::Br(0), Instruction::End, Instruction::End]);
    function(1, &body)
}

const COPY: Instruction<'static> = Instruction::MemoryCopy { src_mem: 0, dst_mem: 0 };

/// A loop of `memory.copy`, from the first piece or from the last.
fn copy_loop(from_last: bool) -> Vec<Instruction<'static>> {
    let mut body = vec![Instruction::Loop(BlockType::Empty)];
    body.extend(next_piece());
    body.push(Instruction::LocalSet(PIECE));
    for place in [TO, FROM] {
        body.push(Instruction::LocalGet(place));
        if from_last {
            body.extend([LEFT, PIECE].map(Instruction::LocalGet));
            body.extend([Instruction::I32Sub, Instruction::I32Add]);
        }
    }
    body.extend([Instruction::LocalGet(PIECE), COPY]);
    if !from_last {
        body.extend(moved(TO, Instruction::I32Add));
        body.extend(moved(FROM, Instruction::I32Add));
    }
    body.extend(moved(LEFT, Instruction::I32Sub));
    body.extend([Instruction::Br(0), Instruction::End]);
    body
}

/// `memory.copy` by pieces. It starts from the last if it moves upwards, since the ranges may
/// overlap.
fn copy() -> Function {
    let mut body = vec![Instruction::Block(BlockType::Empty)];
    body.extend(at_once(&[TO, FROM], COPY));
    body.push(Instruction::Block(BlockType::Empty));
    body.extend([TO, FROM].map(Instruction::LocalGet));
    body.extend([Instruction::I32GtU, Instruction::BrIf(0)]);
    body.push(Instruction::Block(BlockType::Empty));
    body.extend(copy_loop(false));
    body.extend([Instruction::End, Instruction::Br(1), Instruction::End]);
    body.extend(copy_loop(true));
    body.push(Instruction::End);
    function(1, &body)
}

/// `memory.grow`, which does not call the system to grow by zero pages.
fn grow() -> Function {
    function(
        0,
        &[
            Instruction::LocalGet(0),
            Instruction::I32Eqz,
            Instruction::If(BlockType::Result(ValType::I32)),
            Instruction::MemorySize(0),
            Instruction::Else,
            Instruction::LocalGet(0),
            Instruction::MemoryGrow(0),
            Instruction::End,
        ],
    )
}
