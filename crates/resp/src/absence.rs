//! Reasons why there is no store: the memory node does not respond, or its memory is lost.

/// The reason for the absence of the store, in order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Absence {
    /// The memory node does not respond. Keys may still exist when it responds again.
    Away,
    /// All keys are lost, and there is no new store yet.
    Gone,
}

impl Absence {
    /// The absence that an error of the pool implies; `None` for an error that does not concern the
    /// store.
    pub(crate) fn of(error: &ethermem::Error) -> Option<Absence> {
        match error {
            error if error.is_uncertain() => Some(Absence::Away),
            ethermem::Error::Restarted { .. } | ethermem::Error::ProcessEnded { .. } => {
                Some(Absence::Gone)
            }
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Absence::Away => "away",
            Absence::Gone => "gone",
        }
    }

    /// The error text for clients, with the prefix that clients know from a server that is loading.
    pub(crate) fn text(self) -> String {
        let why = match self {
            Absence::Away => "the memory node does not answer",
            Absence::Gone => "all keys are gone with the memory node's old life",
        };
        format!("LOADING there is no store: {why}; nothing was done")
    }
}

#[cfg(test)]
mod tests {
    use ethermem::Error;

    use super::*;

    #[test]
    fn an_error_says_whether_there_is_a_store() {
        assert_eq!(Absence::of(&Error::Lost), Some(Absence::Away));
        assert_eq!(Absence::of(&Error::Full { bytes: 1, free: 0 }), None);
        assert_eq!(Absence::of(&Error::Empty { most: 1 }), None);
        assert!(Absence::Away < Absence::Gone);
    }

    #[test]
    fn clients_and_operators_are_told_why_there_is_none() {
        for (absence, name, why) in [
            (Absence::Away, "away", "the memory node does not answer"),
            (Absence::Gone, "gone", "all keys are gone with the memory node's old life"),
        ] {
            assert_eq!(absence.name(), name);
            let text = format!("LOADING there is no store: {why}; nothing was done");
            assert_eq!(absence.text(), text);
        }
    }
}
