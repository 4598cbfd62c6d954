//! Logs of the commands that serve, and what systemd is told of them.

use ethermem_node::LogFormat;
use sd_notify::NotifyState;
use tracing::{Level, warn};

use crate::value::Named;

/// The forms of logs.
pub(crate) const FORMS: [Named<LogFormat>; 2] = [
    ("text", "A line of text for each event", LogFormat::Text),
    ("json", "A line of JSON for each event", LogFormat::Json),
];

/// Writes events of a level and those above it to the standard error.
pub(crate) fn to_stderr(level: Level, form: LogFormat) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        .with_writer(std::io::stderr);
    match form {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
}

/// systemd, where it started us and asked to be told.
pub(crate) fn tell_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "systemd cannot be told");
    }
}
