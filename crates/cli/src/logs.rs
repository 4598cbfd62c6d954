//! Logs of the commands that serve, and what systemd is told of them.

use clap::ValueEnum;
use sd_notify::NotifyState;
use serde::Deserialize;
use tracing::{Level, warn};

/// The forms of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// A line of text for each event
    Text,
    /// A line of JSON for each event
    Json,
}

/// Writes events of a level and those above it to the standard error.
pub(crate) fn to_stderr(level: Level, form: Form) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        .with_writer(std::io::stderr);
    match form {
        Form::Text => subscriber.init(),
        Form::Json => subscriber.json().flatten_event(true).init(),
    }
}

/// systemd, where it started us and asked to be told.
pub(crate) fn tell_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "systemd cannot be told");
    }
}
