//! The parts that the reports of stores have in common: the pair of hosts of a finding, and reports
//! of several stores combined into one.

use crate::report::printable;
use anyhow::Result;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::net::IpAddr;
use umbel_net::attribution::{Listed, Searched, Trust};
use umbel_net::capture::Timestamp;
use umbel_net::network::Prefix;
use umbel_net::rfc3339;

/// What one or several stores report about an excerpt or a document. A store on another machine
/// sends it as JSON.
pub trait StoreReport: Default + DeserializeOwned {
    /// Returns the pairs of the findings.
    fn pairs(&mut self) -> impl Iterator<Item = &mut FoundPair>;

    /// Fails if the numbers in a report from elsewhere are impossible for a query of this length.
    fn check(&self, sought: usize) -> Result<()>;

    /// Adds the report of another store.
    fn merge(&mut self, other: Self);

    /// Returns the numbers of epochs that were searched, and of those that could not be.
    fn epochs(&self) -> (usize, usize);

    /// Returns whether there is a finding.
    fn any(&self) -> bool;

    /// Puts the findings in order, and returns the report as JSON.
    fn to_json(&mut self, sought: usize) -> Result<Value>;

    /// Puts the findings in order, and prints them as a table.
    fn print(&mut self, sought: usize) -> Result<()>;
}

/// The pair of hosts of a finding, and the epoch in which it was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FoundPair {
    /// The store, if several were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    from: Timestamp,
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    to: Timestamp,
    /// The trust in the source, if the local networks are known.
    pub trust: Option<String>,
    /// The name of the epoch's file.
    epoch: Option<String>,
}

impl FoundPair {
    /// Returns the pair of a finding. The networks that were local when it was recorded apply unless
    /// others are given.
    pub fn new<T>(listed: &Listed, searched: &Searched<T>, local: &[Prefix]) -> FoundPair {
        let local = local_networks(searched, local);
        let trust = (!local.is_empty()).then(|| Trust::for_pair(&listed.pair, local).to_string());
        let epoch = searched.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let (source, destination) = (listed.pair.source, listed.pair.destination);
        FoundPair { store: None, source, destination, from: listed.first, to: listed.last, trust, epoch }
    }

    /// Returns the columns before those of the finding itself.
    pub fn columns(&self) -> Vec<String> {
        let host = |host: Option<IpAddr>| host.map_or("unlisted".into(), |host| host.to_string());
        let mut columns: Vec<String> = self.store.iter().map(printable).collect();
        columns.extend([
            host(self.source),
            host(self.destination),
            whole_seconds(self.from, 0),
            whole_seconds(self.to, 999_999_999),
        ]);
        columns
    }

    /// Returns the column for the trust in the source.
    pub fn trust_column(&self) -> String {
        self.trust.as_ref().map_or("?".into(), printable)
    }
}

/// Returns the headings of [`FoundPair::columns`].
pub fn pair_headings(with_store: bool) -> Vec<&'static str> {
    let stores = with_store.then_some("store");
    stores.into_iter().chain(["source", "destination", "from", "to"]).collect()
}

/// Returns the networks that are local: those given, or else those that were recorded.
pub fn local_networks<'a, T>(searched: &'a Searched<T>, local: &'a [Prefix]) -> &'a [Prefix] {
    if local.is_empty() { &searched.local } else { local }
}

/// Formats a time in seconds after adding `nanos`: decimals would suggest more than is known.
pub fn whole_seconds(time: Timestamp, nanos: u64) -> String {
    let text = rfc3339::format(Timestamp::from_nanos(time.nanos().saturating_add(nanos)));
    format!("{}Z", text.split('.').next().unwrap_or_default())
}

fn write_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339::format(*time))
}

fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    rfc3339::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Adds numbers. The sum of none is 0, and not -0 as from `Iterator::sum`.
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

/// Formats an expected number of findings by chance.
pub fn probability(chance: f64) -> String {
    match chance {
        0.0 => "0".into(),
        chance if chance < 1e-3 => format!("{chance:.1e}"),
        chance if chance < 10.0 => format!("{chance:.3}"),
        chance => format!("{chance:.0}"),
    }
}
