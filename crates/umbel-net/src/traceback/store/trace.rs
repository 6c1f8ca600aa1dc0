//! The search for the path of a packet in a store.

use super::{Contents, Page, Store, Unread, load};
use crate::Result;
use crate::capture::Timestamp;
use crate::topology::Graph;
use crate::traceback::spie::Transform;
use crate::traceback::{Hop, each_path};
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
    /// router twice is one of its own. Only an ICMP message may have come back: its path goes on with
    /// that of the packet that it quotes.
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
    /// The digests of packets that an ICMP message of this router quotes.
    quoted: Vec<Digest>,
    transforms: Vec<Transform>,
    chance: f64,
}

impl Answer {
    fn new(forms: Vec<Digest>) -> Answer {
        Answer { forms, quoted: Vec::new(), transforms: Vec::new(), chance: 0.0 }
    }
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
        let mut files = HashMap::<String, Vec<PathBuf>>::new();
        for (path, about) in pages.into_iter().filter(|(_, about)| about.overlaps(&times)) {
            files.entry(about.router).or_default().push(path);
        }
        let (loaded, answers) = (HashMap::new(), HashMap::new());
        let mut search = Search { graph, times, files, loaded, answers, is_complete: true, unread };
        let mut paths = search.paths(victim, packet);
        search.follow_quotations(&mut paths);
        let mut paths: Vec<Vec<PathHop>> =
            paths.iter().map(|path| path.iter().map(PathHop::from_hop).collect()).collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
        Ok(StoreTrace { paths, ..search.finish() })
    }
}

impl PathHop {
    fn from_hop(hop: &Hop<Answer>) -> PathHop {
        let Answer { transforms, chance, .. } = &hop.answer;
        PathHop { router: hop.node, transforms: transforms.clone(), chance: *chance }
    }
}

/// A search in the pages of some time.
struct Search<'g> {
    graph: &'g Graph,
    times: RangeInclusive<Timestamp>,
    /// The files of each router that were not loaded yet.
    files: HashMap<String, Vec<PathBuf>>,
    loaded: HashMap<usize, Vec<Page>>,
    /// The answers so far, and their probability by chance: a router is never asked the same
    /// question twice.
    answers: HashMap<(usize, Vec<Digest>), (Option<Answer>, f64)>,
    is_complete: bool,
    unread: Vec<Unread>,
}

type Path = Vec<Hop<Answer>>;

impl Search<'_> {
    /// Returns the paths of a packet upstream from a router.
    fn paths(&mut self, router: usize, packet: Digest) -> Vec<Path> {
        let mut paths = Vec::new();
        let (graph, start) = (self.graph, Answer::new(vec![packet]));
        let query = |node: usize, answer: &Answer| self.ask(node, &answer.forms);
        let all_found = each_path(graph, router, start, MAX_QUESTIONS, query, |path, has_ended| {
            // The router at which the search was cut off is not an origin.
            if has_ended && paths.len() <= MAX_PATHS {
                paths.push(path.to_vec());
            }
        });
        self.is_complete &= all_found && paths.len() <= MAX_PATHS;
        paths.truncate(MAX_PATHS);
        paths
    }

    /// Replaces each path that ends with an ICMP message by the paths of the packets that it quotes,
    /// which may have come from the direction in which the message went.
    fn follow_quotations(&mut self, paths: &mut Vec<Path>) {
        let (quoting, mut all): (Vec<Path>, Vec<Path>) = std::mem::take(paths)
            .into_iter()
            .partition(|path| path.last().is_some_and(|hop| !hop.answer.quoted.is_empty()));
        for path in quoting {
            let Some(Hop { node, answer }) = path.last() else { continue };
            let before = answer.quoted.iter().flat_map(|packet| self.paths(*node, *packet));
            let mut continued: Vec<Path> =
                before.map(|before| path.iter().chain(before.iter().skip(1)).cloned().collect()).collect();
            if continued.is_empty() {
                continued.push(path);
            }
            all.append(&mut continued);
        }
        *paths = all;
    }

    /// Returns the packets that came into a router, if one of these may have come out of it.
    fn ask(&mut self, node: usize, forms: &[Digest]) -> Option<Answer> {
        let question = (node, forms.to_vec());
        if let Some((answer, _)) = self.answers.get(&question) {
            return answer.clone();
        }
        let Search { graph, times, files, loaded, unread, .. } = self;
        let pages = loaded.entry(node).or_insert_with(|| {
            let paths = files.remove(graph.name(node)).unwrap_or_default();
            let read = |path: PathBuf| load(&path).map_err(|error| unread.push(Unread { path, error })).ok();
            paths.into_iter().filter_map(read).collect()
        });
        let mut answer = Answer::new(Vec::new());
        // The probability that no page contains any of the packets by chance.
        let none: f64 = pages.iter().map(|page| (1.0 - page.rate()).powi(forms.len() as i32)).product();
        for form in forms {
            for page in &*pages {
                for (before, how) in page.before(*form, times) {
                    let forms = if how == Transform::Quoted { &mut answer.quoted } else { &mut answer.forms };
                    forms.push(before);
                    answer.transforms.push(how);
                }
                if page.contains(*form) {
                    answer.forms.push(*form);
                }
            }
        }
        for forms in [&mut answer.forms, &mut answer.quoted] {
            forms.sort_unstable();
            forms.dedup();
            self.is_complete &= forms.len() <= MAX_FORMS;
            forms.truncate(MAX_FORMS);
        }
        answer.transforms.sort_unstable();
        answer.transforms.dedup();
        answer.chance = if answer.transforms.is_empty() { 1.0 - none } else { 0.0 };
        let answer = Some(answer).filter(|answer| !answer.forms.is_empty() || !answer.quoted.is_empty());
        self.answers.insert(question, (answer.clone(), 1.0 - none));
        answer
    }

    /// Verifies the pages that no question has touched, and returns all but the paths.
    fn finish(self) -> StoreTrace {
        let Search { files, loaded, answers, is_complete, mut unread, .. } = self;
        for path in files.into_values().flatten() {
            if let Err(error) = load(&path) {
                unread.push(Unread { path, error });
            }
        }
        unread.sort_by(|one, other| one.path.cmp(&other.path));
        let mut silent: Vec<usize> =
            loaded.iter().filter(|(_, pages)| pages.is_empty()).map(|(node, _)| *node).collect();
        silent.sort_unstable();
        let expected = answers.values().fold(0.0, |sum, (_, chance)| sum + chance);
        let questions = answers.len();
        StoreTrace { questions, expected, silent, is_complete, unread, ..StoreTrace::default() }
    }
}
