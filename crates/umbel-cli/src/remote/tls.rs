//! Options for connections with TLS, named as in redis-cli.

use super::Address;
use crate::args::headings;
use anyhow::{Context, Result, bail};
use bstr::ByteSlice;
use redis::{ClientTlsConfig, ConnectionAddr, TlsCertificates};
use std::fs;
use std::path::{Path, PathBuf};

/// The options for TLS.
#[derive(clap::Args)]
pub struct TlsArgs {
    /// Trust the certificate authority in FILE (PEM) instead of those of the system
    #[arg(long, value_name = "FILE", help_heading = headings::TLS)]
    cacert: Option<PathBuf>,

    /// Present the certificate in FILE (PEM) to the server
    #[arg(long, value_name = "FILE", requires = "key", help_heading = headings::TLS)]
    cert: Option<PathBuf>,

    /// Private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = headings::TLS)]
    key: Option<PathBuf>,

    /// Accept any certificate: the connection is encrypted, but the server is not authenticated
    #[arg(long, conflicts_with = "cacert", help_heading = headings::TLS)]
    insecure: bool,
}

impl TlsArgs {
    /// Returns the address with these options in it.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is not a certificate or key, and for options with an
    /// address without TLS.
    pub fn apply(&self, address: &Address) -> Result<Address> {
        let mut address = address.clone();
        let has_files = self.cacert.is_some() || self.cert.is_some();
        let ConnectionAddr::TcpTls { insecure, .. } = &mut address.server else {
            if has_files || self.insecure {
                bail!("--cacert, --cert, --key and --insecure need TLS: write rediss:// instead of redis://");
            }
            return Ok(address);
        };
        *insecure = self.insecure;
        if has_files {
            let client = redis::Client::build_with_tls(address.server, self.certificates()?)
                .context("cannot use the files of --cacert, --cert and --key")?;
            address.server = client.get_connection_info().addr().clone();
        }
        Ok(address)
    }

    fn certificates(&self) -> Result<TlsCertificates> {
        let root_cert = self.cacert.as_deref().map(|path| read_pem(path, "CERTIFICATE-----")).transpose()?;
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: read_pem(cert, "CERTIFICATE-----")?,
                client_key: read_pem(key, "PRIVATE KEY-----")?,
            }),
            _ => None,
        };
        Ok(TlsCertificates { client_tls, root_cert })
    }
}

/// Reads a PEM file that has a section with this label.
fn read_pem(path: &Path, label: &str) -> Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !bytes.contains_str(label) {
        bail!("{} has no section \"{}\" of PEM", path.display(), label.trim_end_matches('-'));
    }
    Ok(bytes)
}
