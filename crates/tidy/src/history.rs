//! Rules for the history: a blob, once committed, is in every clone for ever.

use std::path::Path;

use crate::Findings;
use crate::layout::BLOB_BYTES_MAX;
use crate::tree::git;

/// No commit up to `HEAD` has added a file larger than [`BLOB_BYTES_MAX`].
#[must_use]
pub fn large_blobs(root: &Path) -> Findings {
    large_blobs_over(root, BLOB_BYTES_MAX)
}

fn large_blobs_over(root: &Path, size_bytes_max: u64) -> Findings {
    if git(root, &["rev-parse", "--is-shallow-repository"]).as_deref() != Some("false\n") {
        return Findings::skip("blobs in the history: not a full git clone");
    }
    let limit = format!("--filter=blob:limit={}", size_bytes_max + 1);
    let listed = ["rev-list", "--objects", &limit, "--filter-print-omitted", "HEAD"];
    let Some(listed) = git(root, &listed) else {
        return Findings::skip("blobs in the history: git rev-list failed");
    };
    let large: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix('~')).collect();
    let mut findings = Findings::default();
    if large.is_empty() {
        return findings;
    }
    let named = git(root, &["rev-list", "--objects", "HEAD"]).unwrap_or_default();
    for blob in large {
        let path = named.lines().find_map(|line| line.strip_prefix(blob)).unwrap_or(blob);
        findings
            .file(path.trim(), format!("blob {blob} in the history is over {size_bytes_max} B"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository whose second commit deletes what its first one added.
    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let name =
                ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=no"];
            assert!(git(folder.path(), &[&name, arguments].concat()).is_some(), "{arguments:?}");
        };
        run(&["init", "--quiet"]);
        std::fs::write(folder.path().join("big.bin"), [7; 2000]).unwrap();
        std::fs::write(folder.path().join("small.bin"), [7; 1000]).unwrap();
        run(&["add", "."]);
        run(&["commit", "--quiet", "--message", "add"]);
        run(&["rm", "--quiet", "big.bin"]);
        run(&["commit", "--quiet", "--message", "remove"]);
        folder
    }

    #[test]
    fn a_large_blob_fails_after_it_was_deleted() {
        let folder = repository();
        assert_eq!(large_blobs_over(folder.path(), 1000).places(), ["big.bin"]);
        assert_eq!(large_blobs_over(folder.path(), 2000), Findings::default());
    }

    #[test]
    fn a_folder_without_history_is_skipped_aloud() {
        let folder = tempfile::tempdir().unwrap();
        assert!(large_blobs(folder.path()).skipped.is_some());
    }
}
