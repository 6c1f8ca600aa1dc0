//! TLS: its options, named as in redis-cli, and its configuration.

use super::server::Server;
use crate::args::headings;
use anyhow::{Context, Result, bail};
use bstr::ByteSlice;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use umbel::internals::secret_file::SecretFile;

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
    /// Returns the configuration of connections to a server. Without TLS it is not used.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is not a certificate or key, and for options with an
    /// address without TLS.
    pub fn config(&self, server: &Server) -> Result<Arc<ClientConfig>> {
        let uses_tls = matches!(server, Server::Tls { .. });
        if !uses_tls && (self.cacert.is_some() || self.cert.is_some() || self.insecure) {
            bail!("--cacert, --cert, --key and --insecure need TLS: write rediss:// instead of redis://");
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match self.insecure {
            true => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
            false if uses_tls => builder.with_root_certificates(self.authorities()?),
            false => builder.with_root_certificates(RootCertStore::empty()),
        };
        Ok(Arc::new(match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let failed = "cannot use the files of --cert and --key";
                let key =
                    PrivateKeyDer::from_pem_slice(&read_pem(key, "PRIVATE KEY-----")?).context(failed)?;
                builder.with_client_auth_cert(certificates(cert)?, key).context(failed)?
            }
            _ => builder.with_no_client_auth(),
        }))
    }

    /// Returns the authorities whose certificates are trusted.
    fn authorities(&self) -> Result<RootCertStore> {
        let mut authorities = RootCertStore::empty();
        match &self.cacert {
            Some(path) => {
                for certificate in certificates(path)? {
                    authorities.add(certificate).with_context(|| {
                        format!("{} is not the certificate of an authority", path.display())
                    })?;
                }
            }
            // Some files of a system may be missing or invalid: those that are not are enough.
            None => {
                authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        Ok(authorities)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = read_pem(path, "CERTIFICATE-----")?;
    CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .with_context(|| format!("cannot use the certificate in {}", path.display()))
}

/// The longest PEM file; more is not read.
const MAX_PEM_BYTES: u64 = 16 << 20;

/// Reads a PEM file that has a section with this label.
fn read_pem(path: &Path, label: &str) -> Result<Vec<u8>> {
    let failed = || format!("cannot read {}", path.display());
    let (mut bytes, file) = (Vec::new(), SecretFile::open(path).with_context(failed)?);
    file.take(MAX_PEM_BYTES).read_to_end(&mut bytes).with_context(failed)?;
    if !bytes.contains_str(label) {
        bail!("{} has no section \"{}\" of PEM", path.display(), label.trim_end_matches('-'));
    }
    Ok(bytes)
}

/// Accepts any certificate, for `--insecure`.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
