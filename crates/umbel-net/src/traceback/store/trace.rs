//! The search for the path of a packet in a store.

use super::{Contents, Page, Store, Unread, load};
use crate::Result;
use crate::capture::Timestamp;
use crate::topology::Graph;
use crate::traceback::each_path;
use crate::traceback::spie::Transform;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use umbel::Digest;

/// The largest number of questions, which limits the time that a network with many false positives
/// takes.
const MAX_QUESTIONS: usize = 200_000;

/// The largest number of paths that are returned.
const MAX_PATHS: usize = 10_000;

/// The largest number of packets that one packet may have been upstream of a router.
const MAX_FORMS: usize = 64;

/// The paths that a packet may have taken.
#[derive(Debug, Default)]
pub struct StoreTrace {
    /// The paths from the victim's router upstream, the longest first. Every path that visits no
    /// router twice is one of its own.
    pub paths: Vec<Vec<PathHop>>,
    /// The number of different questions to routers.
    pub questions: usize,
    /// The expected number of these questions that are answered with yes by chance, at most.
    pub expected: f64,
    /// Routers that were asked and have recorded nothing at these times.
    pub silent: Vec<usize>,
    /// Whether all paths were found. If not, there are too many of them.
    pub is_complete: bool,
    /// The pages that could not be read. The answer does not cover them.
    pub unread: Vec<Unread>,
}

/// A router on the path of a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct PathHop {
    /// The router.
    pub router: usize,
    /// The transformations of the packet in this router, in order and without repetition.
    pub transforms: Vec<Transform>,
    /// The probability that the router answers with yes by chance; 0 if it has changed the packet,
    /// because changes are recorded exactly.
    pub chance: f64,
}

impl StoreTrace {
    /// Returns the routers where a path ends: the packet may have entered the network there.
    pub fn origins(&self) -> Vec<usize> {
        let mut origins: Vec<usize> =
            self.paths.iter().filter_map(|path| path.last()).map(|hop| hop.router).collect();
        origins.sort_unstable();
        origins.dedup();
        origins
    }

    /// Returns the routers on any path.
    pub fn routers(&self) -> Vec<usize> {
        let mut routers: Vec<usize> = self.paths.iter().flatten().map(|hop| hop.router).collect();
        routers.sort_unstable();
        routers.dedup();
        routers
    }
}

/// The answer of a router: the packets that came in, and how it has changed them.
#[derive(Clone, Debug)]
struct Answer {
    /// The digests of the packets, in order.
    forms: Vec<Digest>,
    transforms: Vec<Transform>,
    chance: f64,
}

impl Store {
    /// Traces a packet upstream from a router of a network, whose names are those of the routers in
    /// the store. Only pages of these times are searched, and all of them are verified, even those
    /// of routers that are not asked.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn trace(
        &self,
        graph: &Graph,
        victim: usize,
        packet: Digest,
        times: RangeInclusive<Timestamp>,
    ) -> Result<StoreTrace> {
        let Contents { pages, unread } = self.contents()?;
        let mut search =
            Search { times, paths: HashMap::new(), pages: HashMap::new(), answers: HashMap::new(), unread };
        for (path, about) in pages.into_iter().filter(|(_, about)| about.overlaps(&search.times)) {
            search.paths.entry(about.router).or_default().push(path);
        }
        let mut paths = Vec::new();
        let mut is_cut = false;
        let start = Answer { forms: vec![packet], transforms: Vec::new(), chance: 0.0 };
        let query = |node: usize, answer: &Answer| search.ask(node, graph.name(node), &answer.forms);
        let is_complete = each_path(graph, victim, start, MAX_QUESTIONS, query, |path, _| {
            is_cut |= paths.len() == MAX_PATHS;
            if paths.len() < MAX_PATHS {
                let hop = |hop: &crate::traceback::Hop<Answer>| PathHop {
                    router: hop.node,
                    transforms: hop.answer.transforms.clone(),
                    chance: hop.answer.chance,
                };
                paths.push(path.iter().map(hop).collect::<Vec<_>>());
            }
        });
        paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
        Ok(StoreTrace { paths, is_complete: is_complete && !is_cut, ..search.finish() })
    }
}

/// A search in the pages of some time.
struct Search {
    times: RangeInclusive<Timestamp>,
    /// The files of each router that were not loaded yet.
    paths: HashMap<String, Vec<PathBuf>>,
    pages: HashMap<usize, Vec<Page>>,
    /// The answers so far: a router is never asked the same question twice.
    answers: HashMap<(usize, Vec<Digest>), (Option<Answer>, f64)>,
    unread: Vec<Unread>,
}

impl Search {
    /// Returns the packets that came into a router, if one of these may have come out of it.
    fn ask(&mut self, node: usize, name: &str, forms: &[Digest]) -> Option<Answer> {
        let question = (node, forms.to_vec());
        if let Some((answer, _)) = self.answers.get(&question) {
            return answer.clone();
        }
        let Search { times, paths, pages, unread, .. } = self;
        let pages = pages.entry(node).or_insert_with(|| {
            let paths = paths.remove(name).unwrap_or_default();
            let read = |path: PathBuf| load(&path).map_err(|error| unread.push(Unread { path, error })).ok();
            paths.into_iter().filter_map(read).collect()
        });
        let mut answer = Answer { forms: Vec::new(), transforms: Vec::new(), chance: 0.0 };
        // The probability that no page contains any of the packets by chance.
        let no: f64 = pages.iter().map(|page| (1.0 - page.rate()).powi(forms.len() as i32)).product();
        for form in forms {
            for page in &*pages {
                for (before, how) in page.before(*form, times) {
                    answer.forms.push(before);
                    answer.transforms.push(how);
                }
                if page.contains(*form) {
                    answer.forms.push(*form);
                }
            }
        }
        answer.forms.sort_unstable();
        answer.forms.dedup();
        answer.forms.truncate(MAX_FORMS);
        answer.transforms.sort_unstable();
        answer.transforms.dedup();
        answer.chance = if answer.transforms.is_empty() { 1.0 - no } else { 0.0 };
        let answer = (!answer.forms.is_empty()).then_some(answer);
        self.answers.insert(question, (answer.clone(), 1.0 - no));
        answer
    }

    /// Verifies the pages that no question has touched, and returns all but the paths.
    fn finish(self) -> StoreTrace {
        let Search { paths, pages, answers, mut unread, .. } = self;
        for path in paths.into_values().flatten() {
            if let Err(error) = load(&path) {
                unread.push(Unread { path, error });
            }
        }
        unread.sort_by(|one, other| one.path.cmp(&other.path));
        let mut silent: Vec<usize> =
            pages.iter().filter(|(_, pages)| pages.is_empty()).map(|(node, _)| *node).collect();
        silent.sort_unstable();
        let expected = answers.values().fold(0.0, |sum, (_, chance)| sum + chance);
        StoreTrace { questions: answers.len(), expected, silent, unread, ..StoreTrace::default() }
    }
}
