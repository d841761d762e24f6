//! Authorities of certificates that the user names.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls_native_certs::load_certs_from_paths;

use super::failure::Failure;
use crate::error::ErrorKind;

/// The authorities in a file in the format PEM.
///
/// # Errors
/// [`ErrorKind::Denied`] if there are none.
pub(crate) fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = load_certs_from_paths(Some(file), None);
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        let reason = format!("no certificate authorities for TLS were found in {}{why}", file.display());
        return Err(Failure::lasting(ErrorKind::Denied, reason));
    }
    Ok(found.certs)
}
