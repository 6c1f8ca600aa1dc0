//! The options for hashing keys, of every command that builds a filter.

use super::Secrets;
use crate::args::{headings, number};
use anyhow::{Result, bail};
use clap::Args;
use umbel::Hasher;
use umbel::hash::Strength;

/// The hash of a filter that does not outlive the command: keyed with a random secret, unless a
/// seed is given.
#[derive(Args, Clone, Debug)]
pub struct TransientHashArgs {
    /// Hash with this seed instead of a random secret, so that a run can be repeated; anyone who
    /// knows the seed can craft keys that collide
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    pub seed: Option<u64>,
}

impl TransientHashArgs {
    /// Returns the hash. Without a seed, each call draws another secret.
    pub fn hasher(&self) -> umbel::Result<Hasher> {
        self.seed.map_or_else(Hasher::random, |seed| Ok(Hasher::fast(seed)))
    }
}

/// The seed or secret of a hash.
#[derive(Args, Clone, Debug)]
pub struct HashArgs {
    /// Seed of the fast hash, which is public; only filters with the same seed can be united
    /// [default: 0]
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub secrets: Secrets,

    /// Store the secret of a keyed hash in the filter, which can then be used without the key file
    #[arg(long, help_heading = headings::SECRETS)]
    pub embed_key: bool,
}

impl HashArgs {
    /// Returns the hash of this strength; by default the strength is that of the key file, or else
    /// `fast`.
    pub fn hasher(&self, strength: Option<Strength>) -> Result<Hasher> {
        let secret = self.secrets.single()?;
        let strength = strength.or(secret.as_ref().map(|secret| secret.id().strength));
        let strength = strength.unwrap_or(Strength::Fast);
        self.check_embedding(Some(strength))?;
        if self.seed.is_some() && strength != Strength::Fast {
            bail!("a {strength} hash has a secret instead of a seed: leave out --seed");
        }
        match secret {
            None if strength == Strength::Fast => Ok(Hasher::fast(self.seed.unwrap_or(0))),
            None => bail!(
                "a {strength} hash needs its secret: make one with `umbel key new FILE --hash {strength}`, and give it with --key-file FILE"
            ),
            Some(secret) if secret.id().strength == strength => Ok(secret),
            Some(secret) => {
                bail!("the key file is for a {} hash, not for a {strength} one", secret.id().strength)
            }
        }
    }

    /// Fails early if `--embed-key` is given for a hash whose secret is never embedded.
    pub fn check_embedding(&self, strength: Option<Strength>) -> Result<()> {
        match strength {
            Some(Strength::Keyed) => Ok(()),
            _ if !self.embed_key => Ok(()),
            Some(Strength::Sealed) => {
                bail!("--embed-key is for a keyed hash: a sealed secret is never written to a file")
            }
            _ => bail!("--embed-key is for a keyed hash: this one has no secret"),
        }
    }
}
