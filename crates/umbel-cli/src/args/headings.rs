//! The groups of options in `--help` and in the manual. Every command uses the same names.

/// The size, rate, kind and hash of a filter, map, multiset or sketch.
pub const FILTER: &str = "Filter";

/// Options that only some kinds of filters have.
pub const KINDS: &str = "Filter (some kinds only)";

/// Options that only multisets have.
pub const MULTISETS: &str = "Filter (multisets only)";

/// Filters that other programs wrote.
pub const FOREIGN: &str = "Filters of other programs";

/// Which part of a line is the key.
pub const KEYS: &str = "Keys";

/// The object and the scope of a search.
pub const SEARCH: &str = "Search";

/// How input is read.
pub const INPUT: &str = "Input";

/// Where results go, and their form.
pub const OUTPUT: &str = "Output";

/// Key files and passphrases.
pub const SECRETS: &str = "Secrets";

/// The addresses, clients and log of a server.
pub const SERVER: &str = "Server";

/// The stored responses of the proxy.
pub const CACHE: &str = "Cache";

/// The peers of the proxy.
pub const PEERS: &str = "Peers";

/// Connections to servers.
pub const CONNECTION: &str = "Connection";

/// Connections with TLS.
pub const TLS: &str = "TLS (for rediss:// addresses)";

/// The parameters of an experiment.
pub const EXPERIMENT: &str = "Experiment";

/// `--help` itself, which comes last.
pub const OPTIONS: &str = "Options";
