//! The expressions under which an address may be listed: its host and the parents of its host, each
//! with its path and the parents of its path.

use super::Address;

/// The expressions of an address: at most 5 hosts by 6 paths. The address itself comes first.
pub type Expressions = Vec<String>;

/// The maximum number of hosts besides the exact one.
const MAX_PARENT_HOSTS: usize = 4;
/// The number of parts of a host from which parents are made: the last five.
const MAX_HOST_PARTS: usize = 5;
/// The maximum number of paths besides the exact one with and without its query: the root and
/// folders below it.
const MAX_PARENT_PATHS: usize = 4;

impl Address {
    /// Returns the expressions under which this address may be listed.
    ///
    /// The hosts are the host itself and its last five, four, three and two parts; an IP address
    /// has no parents. The paths are the path with its query, the path without it, and its first
    /// four folders from the root.
    ///
    /// ```
    /// use umbel_text::address::Address;
    /// let address = Address::parse(b"http://a.b.c/1/2.html?param=1").unwrap();
    /// assert_eq!(address.expressions(), [
    ///     "a.b.c/1/2.html?param=1", "a.b.c/1/2.html", "a.b.c/", "a.b.c/1/",
    ///     "b.c/1/2.html?param=1", "b.c/1/2.html", "b.c/", "b.c/1/",
    /// ]);
    /// ```
    pub fn expressions(&self) -> Expressions {
        let mut paths = Vec::new();
        if let Some(query) = self.query.as_deref().filter(|query| !query.is_empty()) {
            paths.push(format!("{}?{query}", self.path));
        }
        paths.push(self.path.clone());
        let folders =
            self.path.match_indices('/').take(MAX_PARENT_PATHS).map(|(slash, _)| &self.path[..=slash]);
        paths.extend(folders.filter(|folder| *folder != self.path).map(str::to_owned));
        let combined =
            self.hosts().into_iter().flat_map(|host| paths.iter().map(move |path| format!("{host}{path}")));
        combined.collect()
    }

    fn hosts(&self) -> Vec<&str> {
        let mut hosts = vec![&self.host[..]];
        if self.numeric {
            return hosts;
        }
        let starts: Vec<usize> =
            std::iter::once(0).chain(self.host.match_indices('.').map(|(dot, _)| dot + 1)).collect();
        // Skip the host itself, which is there already, and the last part alone.
        let first = starts.len().saturating_sub(MAX_HOST_PARTS).max(1);
        let last = starts.len().saturating_sub(1).max(first);
        hosts.extend(
            starts[first.min(starts.len())..last.min(starts.len())]
                .iter()
                .take(MAX_PARENT_HOSTS)
                .map(|start| &self.host[*start..]),
        );
        hosts
    }
}
