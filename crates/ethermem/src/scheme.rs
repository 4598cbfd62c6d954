//! Schemes of URLs: what a row of the table says, and how a URL is read by its row.

use std::ops::RangeInclusive;

use ethermem_pool::Opened;

use crate::open_error::OpenError;

/// A kind of pool, as URLs name it: a row of [`crate::SCHEMES`].
pub struct Scheme {
    /// What stands before the first colon.
    pub name: &'static str,
    /// How its URLs are written, without parameters.
    pub forms: &'static [&'static str],
    /// One line: what it opens.
    pub about: &'static str,
    /// The feature of the crate `ethermem` that builds it; `None` where every build has it.
    pub feature: Option<&'static str>,
    /// What may stand behind the `?`, in the order of the alphabet.
    pub parameters: &'static [Parameter],
    /// Where parameters are described that are not in [`Scheme::parameters`], which the backend
    /// checks by itself; `None` where there are none.
    pub more_parameters: Option<&'static str>,
    /// Whether the whole rest is another URL, parameters included.
    pub wraps: bool,
    /// Opens what a URL of the scheme names; `None` in a build without [`Scheme::feature`].
    pub open: Option<Open>,
}

/// Opens what a URL names.
pub type Open = fn(&Url<'_>) -> Result<Opened, OpenError>;

/// A parameter of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name, with the unit of a number.
    pub name: &'static str,
    /// What it may be.
    pub values: Values,
    /// What it is where the URL does not say: a number, or words for people.
    pub unless_said: Unless,
    /// One line: what it means.
    pub about: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A whole number of the unit, from the least to the most.
    Number {
        /// In what it counts, as people write it.
        unit: &'static str,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A text of this form, which the backend reads.
    Text(&'static str),
}

/// What a parameter is where the URL does not say.
#[derive(Clone, Copy, Debug)]
pub enum Unless {
    /// This number.
    Number(u64),
    /// What the words say.
    Words(&'static str),
}

/// A URL that is read by the row of its scheme.
pub struct Url<'u> {
    /// The rows of all schemes, for URLs within URLs.
    pub schemes: &'u [&'u Scheme],
    /// The row of its own.
    pub scheme: &'u Scheme,
    /// What stands between the scheme and the parameters.
    pub place: &'u str,
    parameters: Vec<(String, String)>,
}

/// The parameters of a URL, as far as the row of its scheme has them.
pub struct Parameters<'u> {
    scheme: &'u Scheme,
    known: Vec<(&'u Parameter, String)>,
    /// The other ones, in their order.
    pub others: Vec<(String, String)>,
}

impl<'u> Url<'u> {
    /// Reads `scheme:place?name=value&...`.
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

    /// Opens what it names.
    ///
    /// # Errors
    /// [`OpenError::NotBuilt`] where this build has not the scheme's feature; else those of its
    /// backend.
    pub fn open(&self) -> Result<Opened, OpenError> {
        match (self.scheme.open, self.scheme.feature) {
            (Some(open), _) => open(self),
            (None, feature) => Err(OpenError::NotBuilt {
                scheme: self.scheme.name,
                feature: feature.unwrap_or(self.scheme.name),
            }),
        }
    }

    /// Its parameters, each of which the row allows.
    ///
    /// # Errors
    /// [`OpenError::UnknownParameter`], [`OpenError::BadParameter`].
    pub fn parameters(&self) -> Result<Parameters<'u>, OpenError> {
        let scheme = self.scheme;
        let mut known = Vec::new();
        let mut others = Vec::new();
        for (name, value) in &self.parameters {
            match scheme.parameters.iter().find(|parameter| parameter.name == name) {
                Some(parameter) => {
                    if let Values::Number { least, most, .. } = parameter.values {
                        number(name, value, least..=most)?;
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
    /// The text that was given for a parameter; of several, the last.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let last = self.known.iter().rev().find(|(parameter, _)| parameter.name == name);
        last.map(|(_, value)| value.as_str())
    }

    /// The number that was given for a parameter, or else the one of its row.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        if let Some(text) = self.text(name) {
            return text.parse().ok();
        }
        let row = self.scheme.parameters.iter().find(|parameter| parameter.name == name)?;
        match row.unless_said {
            Unless::Number(number) => Some(number),
            Unless::Words(_) => None,
        }
    }
}

fn number(name: &str, value: &str, allowed: RangeInclusive<u64>) -> Result<u64, OpenError> {
    let found = value.parse().ok().filter(|number| allowed.contains(number));
    found.ok_or_else(|| OpenError::BadParameter {
        name: name.to_owned(),
        problem: format!("`{value}`: allowed are {} to {}", allowed.start(), allowed.end()),
    })
}
