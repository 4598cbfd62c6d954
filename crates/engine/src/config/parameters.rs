//! The parameters that a fabric brings: its keys, their defaults and their checks.

use std::any::{Any, type_name};
use std::fmt::Debug;

use ethermem_files::InputError;

use super::FabricConfig;
use crate::keys::Table;

/// Parameters of one fabric, or of several that share them.
pub trait Parameters: Any + Clone + PartialEq + Debug + Send + Sync {
    /// The name of the table, `[fabric.TABLE]`; empty for a fabric without parameters.
    const TABLE: &'static str;

    /// Reads the keys of the table. `config` has the keys of `[fabric]` and of the tables that all
    /// fabrics share, without the parameters of a fabric.
    ///
    /// # Errors
    /// [`InputError`] with the line and key of an invalid value.
    fn read(table: &Table<'_>, config: &FabricConfig) -> Result<Self, InputError>;

    /// Removes what varies from message to message: the time of a message alone is measured without
    /// it.
    fn quiet(&mut self) {}

    /// Checks the parameters against the whole configuration, as far as their own keys do not
    /// suffice.
    ///
    /// # Errors
    /// The wrong key, and the problem.
    fn check(&self, _config: &FabricConfig) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

/// A fabric without parameters of its own.
impl Parameters for () {
    const TABLE: &'static str = "";

    fn read(_table: &Table<'_>, _config: &FabricConfig) -> Result<(), InputError> {
        Ok(())
    }
}

/// [`Parameters`] of a type that only its fabric knows.
trait Erased: Any + Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn Erased>;
    fn equals(&self, other: &dyn Erased) -> bool;
    fn quiet(&mut self);
    fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, String)>;
    fn table(&self) -> &'static str;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<P: Parameters> Erased for P {
    fn boxed(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        other.as_any().downcast_ref::<P>() == Some(self)
    }

    fn quiet(&mut self) {
        Parameters::quiet(self);
    }

    fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, String)> {
        Parameters::check(self, config)
    }

    fn table(&self) -> &'static str {
        P::TABLE
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// How a registry reads the parameters of a fabric.
#[derive(Clone, Copy)]
pub struct Reader {
    /// The table `[fabric.TABLE]` that it reads.
    pub table: &'static str,
    read: fn(&Table<'_>, &FabricConfig, &mut AllParameters) -> Result<(), InputError>,
}

impl Reader {
    /// The reader of these parameters; `None` where the fabric has none.
    pub const fn of<P: Parameters>() -> Option<Reader> {
        if P::TABLE.is_empty() {
            return None;
        }
        Some(Reader {
            table: P::TABLE,
            read: |table, config, all| {
                all.set(P::read(table, config)?);
                Ok(())
            },
        })
    }

    /// Reads `table`, checks that it has no other keys, and stores the parameters in `all`.
    pub fn read(
        &self,
        table: Table<'_>,
        config: &FabricConfig,
        all: &mut AllParameters,
    ) -> Result<(), InputError> {
        (self.read)(&table, config, all)?;
        table.finish()
    }
}

/// The parameters of all fabrics of a registry, one value of each type.
#[derive(Debug, Default)]
pub struct AllParameters(Vec<Box<dyn Erased>>);

impl AllParameters {
    /// Stores these parameters in place of earlier ones of their type.
    pub fn set<P: Parameters>(&mut self, parameters: P) {
        match self.find_mut() {
            Some(old) => *old = parameters,
            None => self.0.push(Box::new(parameters)),
        }
    }

    fn find<P: Parameters>(&self) -> Option<&P> {
        self.0.iter().find_map(|one| (**one).as_any().downcast_ref())
    }

    fn find_mut<P: Parameters>(&mut self) -> Option<&mut P> {
        self.0.iter_mut().find_map(|one| (**one).as_any_mut().downcast_mut())
    }

    /// The parameters of this type.
    ///
    /// # Panics
    /// If no fabric of the registry has read them.
    #[must_use]
    pub fn of<P: Parameters>(&self) -> &P {
        self.find().unwrap_or_else(|| panic!("no fabric read {}", type_name::<P>()))
    }

    /// The parameters of this type, to change them.
    ///
    /// # Panics
    /// If no fabric of the registry has read them.
    pub fn of_mut<P: Parameters>(&mut self) -> &mut P {
        self.find_mut().unwrap_or_else(|| panic!("no fabric read {}", type_name::<P>()))
    }

    /// Removes what varies from message to message from the parameters of every fabric.
    pub fn quiet(&mut self) {
        self.0.iter_mut().for_each(|one| (**one).quiet());
    }

    /// Checks the parameters of every fabric against the whole configuration.
    ///
    /// # Errors
    /// The first table with a problem, its key, and the problem.
    pub fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, &'static str, String)> {
        self.0.iter().try_for_each(|one| {
            (**one).check(config).map_err(|(key, problem)| ((**one).table(), key, problem))
        })
    }
}

impl Clone for AllParameters {
    fn clone(&self) -> AllParameters {
        AllParameters(self.0.iter().map(|one| (**one).boxed()).collect())
    }
}

impl PartialEq for AllParameters {
    fn eq(&self, other: &AllParameters) -> bool {
        let all_in = |of: &AllParameters, among: &AllParameters| {
            of.0.iter().all(|one| among.0.iter().any(|other| (**one).equals(&**other)))
        };
        all_in(self, other) && all_in(other, self)
    }
}
