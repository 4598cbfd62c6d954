//! Schemes of URLs: the rows of their table, and parsing of a URL by its row.

use std::ops::RangeInclusive;

use ethermem_pool::Opened;

use crate::open_error::OpenError;

/// A kind of pool as named in URLs: a row of [`crate::SCHEMES`].
pub struct Scheme {
    /// Text before the URL's first colon.
    pub name: &'static str,
    /// Forms of its URLs, without parameters.
    pub forms: &'static [&'static str],
    /// One line that says what it opens.
    pub about: &'static str,
    /// Feature of the crate `ethermem` that builds it; `None` if every build has it.
    pub feature: Option<&'static str>,
    /// Parameters behind the `?`, in alphabetical order.
    pub parameters: &'static [Parameter],
    /// Where parameters outside of [`Scheme::parameters`] are described, which the backend checks
    /// itself; `None` if there are none.
    pub more_parameters: Option<&'static str>,
    /// True if the rest of the URL is another URL, including its parameters.
    pub wraps: bool,
    /// Function that opens a URL of the scheme; `None` in a build without [`Scheme::feature`].
    pub open: Option<Open>,
}

/// Function that opens a parsed URL.
pub type Open = fn(&Url<'_>) -> Result<Opened, OpenError>;

/// A parameter of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name, with the unit of a number.
    pub name: &'static str,
    /// Values that it may have.
    pub values: Values,
    /// Default value: a number, or words for people.
    pub unless_said: Unless,
    /// One line that says what it means.
    pub about: &'static str,
}

/// Values that a parameter may have.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A whole number of the unit, in a range.
    Number {
        /// Unit, as people write it.
        unit: &'static str,
        /// Smallest value.
        least: u64,
        /// Largest value.
        most: u64,
    },
    /// A number of bytes that is a power of two, in a range: `65536` or `64KiB`.
    Size {
        /// Smallest value.
        least: u64,
        /// Largest value.
        most: u64,
    },
    /// A text of this form, which the backend parses.
    Text(&'static str),
}

/// Default of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Unless {
    /// The default is this number.
    Number(u64),
    /// The words describe the default.
    Words(&'static str),
}

/// A URL, parsed by the row of its scheme.
pub struct Url<'u> {
    /// Rows of all schemes, for URLs within URLs.
    pub schemes: &'u [&'u Scheme],
    /// Row of its own scheme.
    pub scheme: &'u Scheme,
    /// Text between the scheme and the parameters.
    pub place: &'u str,
    parameters: Vec<(String, String)>,
}

/// The parameters of a URL that are in the row of its scheme.
pub struct Parameters<'u> {
    scheme: &'u Scheme,
    known: Vec<(&'u Parameter, String)>,
    /// The other parameters, in the order of the URL.
    pub others: Vec<(String, String)>,
}

impl<'u> Url<'u> {
    /// Parses `scheme:place?name=value&...`.
    ///
    /// # Errors
    /// [`OpenError::NoScheme`], [`OpenError::UnknownScheme`].
    pub fn read(schemes: &'u [&'u Scheme], url: &'u str) -> Result<Url<'u>, OpenError> {
        let allowed = || {
            let forms = schemes.iter().flat_map(|scheme| scheme.forms);
            forms.copied().collect::<Vec<_>>().join(", ")
        };
        let no_scheme = || OpenError::NoScheme { url: url.to_owned(), allowed: allowed() };
        let (name, rest) = url.split_once(':').ok_or_else(no_scheme)?;
        let Some(scheme) = schemes.iter().find(|scheme| scheme.name == name) else {
            let scheme = name.to_owned();
            return Err(OpenError::UnknownScheme { scheme, allowed: allowed() });
        };
        let parted = rest.split_once('?').filter(|_| !scheme.wraps);
        let (place, query) = parted.unwrap_or((rest, ""));
        let parameters = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Ok(Url { schemes, scheme, place, parameters })
    }

    /// Opens the pool that the URL names.
    ///
    /// # Errors
    /// [`OpenError::NotBuilt`] if this build lacks the scheme's feature; otherwise the errors of
    /// its backend.
    pub fn open(&self) -> Result<Opened, OpenError> {
        match (self.scheme.open, self.scheme.feature) {
            (Some(open), _) => open(self),
            (None, feature) => Err(OpenError::NotBuilt {
                scheme: self.scheme.name,
                feature: feature.unwrap_or(self.scheme.name),
            }),
        }
    }

    /// The URL's parameters, checked against the row.
    ///
    /// # Errors
    /// [`OpenError::UnknownParameter`], [`OpenError::BadParameter`].
    pub fn parameters(&self) -> Result<Parameters<'u>, OpenError> {
        let scheme = self.scheme;
        let mut known = Vec::new();
        let mut others = Vec::new();
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            if let Some((_, first)) = self.parameters[..at].iter().find(|(one, _)| one == name) {
                check(false, name, || format!("`{first}` and `{value}`: must be given once"))?;
            }
            match scheme.parameters.iter().find(|parameter| parameter.name == name) {
                Some(parameter) => {
                    match parameter.values {
                        Values::Number { least, most, .. } => number(name, value, least..=most)?,
                        Values::Size { least, most } => check_size(name, value, least..=most)?,
                        Values::Text(_) => {}
                    }
                    known.push((parameter, value.clone()));
                }
                None if scheme.more_parameters.is_some() => {
                    others.push((name.clone(), value.clone()));
                }
                None => {
                    let names: Vec<&str> = scheme.parameters.iter().map(|p| p.name).collect();
                    let (name, allowed) = (name.clone(), names.join(", "));
                    return Err(OpenError::UnknownParameter { name, allowed });
                }
            }
        }
        Ok(Parameters { scheme, known, others })
    }
}

impl Parameters<'_> {
    /// Text given for a parameter.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let given = self.known.iter().find(|(parameter, _)| parameter.name == name);
        given.map(|(_, value)| value.as_str())
    }

    /// Number given for a parameter, or its default from the row.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        let row = self.scheme.parameters.iter().find(|parameter| parameter.name == name)?;
        if let Some(text) = self.text(name) {
            return match row.values {
                Values::Size { .. } => size(text),
                Values::Number { .. } | Values::Text(_) => text.parse().ok(),
            };
        }
        match row.unless_said {
            Unless::Number(number) => Some(number),
            Unless::Words(_) => None,
        }
    }
}

fn number(name: &str, value: &str, allowed: RangeInclusive<u64>) -> Result<(), OpenError> {
    let is_allowed = value.parse().is_ok_and(|number: u64| allowed.contains(&number));
    let (least, most) = allowed.into_inner();
    check(is_allowed, name, || format!("`{value}`: must be {least} to {most}"))
}

fn check_size(name: &str, value: &str, allowed: RangeInclusive<u64>) -> Result<(), OpenError> {
    let is_allowed = |&bytes: &u64| bytes.is_power_of_two() && allowed.contains(&bytes);
    let is_allowed = size(value).as_ref().is_some_and(is_allowed);
    let (least, most) = (size_text(*allowed.start()), size_text(*allowed.end()));
    check(is_allowed, name, || format!("`{value}`: must be a power of two, {least} to {most}"))
}

fn check(is_allowed: bool, name: &str, problem: impl FnOnce() -> String) -> Result<(), OpenError> {
    if is_allowed {
        return Ok(());
    }
    Err(OpenError::BadParameter { name: name.to_owned(), problem: problem() })
}

/// Units of sizes, the largest first.
const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];

/// Bytes of a size such as `65536` or `64KiB`.
fn size(text: &str) -> Option<u64> {
    let (unit, shift) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    number.checked_mul(1 << shift)
}

/// A size as people write it.
pub(crate) fn size_text(bytes: u64) -> String {
    let fits = |&(_, shift): &(&str, u32)| bytes.is_multiple_of(1 << shift);
    let (unit, shift) = UNITS.into_iter().find(fits).expect("every number is of single bytes");
    format!("{}{unit}", bytes >> shift)
}
