//! The table of schemes as a page of the reference and as the text of a help.

use std::fmt::Write as _;

use crate::scheme::{Parameter, Scheme, Unless, Values, size_text};

/// The schemes and their parameters in Markdown: the content of `docs/reference/urls.md`.
#[must_use]
pub fn schemes_markdown(schemes: &[&Scheme]) -> String {
    let mut page = String::from("| URL | opens | feature |\n|---|---|---|\n");
    for scheme in schemes {
        let feature = scheme.feature.map_or("always built".to_owned(), |name| format!("`{name}`"));
        let line = writeln!(page, "| {} | {} | {feature} |", forms(scheme), scheme.about);
        line.expect("a text takes any line");
    }
    for scheme in schemes {
        let head = "| parameter | must be | unless said | meaning |\n|---|---|---|---|\n";
        write!(page, "\n## `{}:`\n\n{head}", scheme.name).expect("a text takes any line");
        for parameter in scheme.parameters {
            let Parameter { name, about, .. } = parameter;
            let (values, unless) = (values(parameter), unless(parameter));
            let line = writeln!(page, "| `{name}` | {values} | {unless} | {about} |");
            line.expect("a text takes any line");
        }
        if let Some(more) = scheme.more_parameters {
            writeln!(page, "\nMore parameters: {more}.").expect("a text takes any line");
        }
    }
    page
}

/// The schemes and the names of their parameters in plain text, for the help of a command.
#[must_use]
pub fn schemes_text(schemes: &[&Scheme]) -> String {
    let mut text = String::from("URLs (docs/reference/urls.md explains the parameters):");
    for scheme in schemes {
        let names: Vec<&str> = scheme.parameters.iter().map(|parameter| parameter.name).collect();
        let names = names.join(", ");
        let line = format!("\n- {}: {}; ?{names}", scheme.forms.join(", "), scheme.about);
        text.push_str(&line);
    }
    text
}

fn forms(scheme: &Scheme) -> String {
    let forms = scheme.forms.iter().map(|form| format!("`{form}`"));
    forms.collect::<Vec<_>>().join(", ")
}

fn values(parameter: &Parameter) -> String {
    match parameter.values {
        Values::Number { unit, least, most } => {
            let most = if most == u64::MAX { "2^64 - 1".to_owned() } else { most.to_string() };
            format!("{least} to {most} {unit}").trim_end().to_owned()
        }
        Values::Size { least, most } => {
            format!("a power of two, {} to {}", size_text(least), size_text(most))
        }
        Values::Text(form) => form.to_owned(),
    }
}

fn unless(parameter: &Parameter) -> String {
    match parameter.unless_said {
        Unless::Number(number) => number.to_string(),
        Unless::Words(words) => words.to_owned(),
    }
}
