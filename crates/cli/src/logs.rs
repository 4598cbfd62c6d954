//! Logs of the commands that serve, and their notifications to systemd.

use ethermem_node::LogFormat;
use sd_notify::NotifyState;
use tracing::{Level, warn};

use crate::value::Named;

/// Formats of logs.
pub(crate) const FORMS: [Named<LogFormat>; 2] = [
    ("text", "A line of text for each event", LogFormat::Text),
    ("json", "A line of JSON for each event", LogFormat::Json),
];

/// Writes events of at least this level to the standard error.
pub(crate) fn to_stderr(level: Level, form: LogFormat) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        // A line that cannot be written is dropped. Otherwise `eprintln!` would report it, which
        // panics where the standard error is full or its reader has ended.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match form {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
}

/// Notifies systemd, if it started this process and asked for notification.
pub(crate) fn tell_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "systemd cannot be told");
    }
}
