//! Key files of tenants.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ethermem_wire::clio::TenantId;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

use super::keys::{KEY_BYTES, TenantKey};

/// A key with its tenant. The node and the tenant's clients use one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// Tenant of the key.
    pub tenant: TenantId,
    /// The key.
    pub key: TenantKey,
}

/// The reason why a key file cannot be used.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// The file exists, and writing would destroy it.
    #[error("{0}: is there already, and a key that is lost cannot be had again")]
    Exists(PathBuf),
    /// The file's mode lets other users of the machine read the key.
    #[error("{0}: mode {1:04o} lets everybody read the key: must be none for others, as 0600")]
    Open(PathBuf, u32),
    /// The file is not a key file.
    #[error("{0}: {1}")]
    Malformed(PathBuf, String),
    /// The system gave no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(getrandom::Error),
}

/// Largest size of a key file in bytes.
const BYTES_MAX: u64 = 4096;

impl KeyFile {
    /// Generates a key from the system's random numbers.
    ///
    /// # Errors
    /// [`KeyFileError::Random`].
    pub fn generate(tenant: TenantId) -> Result<KeyFile, KeyFileError> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(KeyFileError::Random)?;
        Ok(KeyFile { tenant, key: TenantKey(key) })
    }

    /// Text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let (tenant, key) = (self.tenant.0, hex::encode(self.key.0));
        format!(
            "# A key of an ethermem memory node. Whoever has it is the tenant.\n\
             tenant = {tenant}\nkey_hex = \"{key}\"\n"
        )
    }

    /// Writes a file that only its owner may read. An existing file is kept.
    ///
    /// # Errors
    /// [`KeyFileError`].
    pub fn write(&self, path: &Path) -> Result<(), KeyFileError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists(path.to_owned()),
            _ => KeyFileError::File(path.to_owned(), error),
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let written = file.write_all(self.text().as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|error| {
            // A partial key is removed; a failure of that is not worth another error.
            let _ = std::fs::remove_file(path);
            KeyFileError::File(path.to_owned(), error)
        })
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyFileError`].
    pub fn read(path: &Path) -> Result<KeyFile, KeyFileError> {
        let failed = |error| KeyFileError::File(path.to_owned(), error);
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
        if mode & 0o007 != 0 {
            return Err(KeyFileError::Open(path.to_owned(), mode));
        }
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
        KeyFile::parse(&text).map_err(|what| KeyFileError::Malformed(path.to_owned(), what))
    }

    /// Parses the text. The error never quotes the text, which may be a key.
    fn parse(text: &str) -> Result<KeyFile, String> {
        let what = "it is no key file: must be tenant (0 to 65535) and key_hex (64 digits)";
        let (tenant, key_hex) = fields(text).ok_or_else(|| what.to_owned())?;
        let mut key = [0; KEY_BYTES];
        let decoded = hex::decode_to_slice(&key_hex, &mut key);
        decoded.map_err(|_| format!("key_hex: must be {} hex digits", 2 * KEY_BYTES))?;
        Ok(KeyFile { tenant, key: TenantKey(key) })
    }
}

/// The two fields of the file, which has no other. It is parsed without `serde`, so that a client
/// library stays small.
fn fields(text: &str) -> Option<(TenantId, String)> {
    let table = DeTable::parse(text).ok()?;
    let table = table.get_ref();
    let tenant = match table.get("tenant")?.get_ref() {
        DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix()).ok()?,
        _ => return None,
    };
    let key_hex = table.get("key_hex")?.get_ref().as_str()?.to_owned();
    (table.len() == 2).then_some((TenantId(tenant), key_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file_and_no_file_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenant.key");
        let made = KeyFile::generate(TenantId(7)).unwrap();
        made.write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(KeyFile::read(&path).unwrap(), made);
        let other = KeyFile::generate(TenantId(7)).unwrap();
        assert_ne!(other.key, made.key);
        assert!(matches!(other.write(&path), Err(KeyFileError::Exists(_))));
        assert_eq!(KeyFile::read(&path).unwrap(), made);
        assert!(!format!("{made:?}").contains(&hex::encode(made.key.0)));
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_with_what_is_allowed_and_never_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.key");
        let digits = "ab".repeat(KEY_BYTES);
        for text in [
            String::new(),
            digits.clone(),
            format!("tenant = 70000\nkey_hex = \"{digits}\"\n"),
            format!("tenant = 1\nkey_hex = \"{}\"\n", &digits[2..]),
            format!("tenant = 1\nkey_hex = \"{}\"\n", digits.replace('a', "x")),
            format!("tenant = 1\nkey_hex = \"{digits}\"\nmode = 3\n"),
        ] {
            std::fs::write(&path, &text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let refused = KeyFile::read(&path).unwrap_err().to_string();
            assert!(refused.contains("bad.key") && refused.contains("must be"), "{refused}");
            assert!(!refused.contains("abab") && !refused.contains("xbxb"), "{refused}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
        assert!(matches!(KeyFile::read(&path), Err(KeyFileError::Open(_, 0o604))));
        let missing = KeyFile::read(&folder.path().join("none.key")).unwrap_err();
        assert!(missing.to_string().contains("none.key"));
    }
}
