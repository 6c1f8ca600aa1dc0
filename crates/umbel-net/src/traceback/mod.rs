//! IP traceback: where a packet came from, even if its source address is forged.
//!
//! There are three methods. With [`spie`], routers remember the digests of the packets they
//! forward, in pages of Bloom filters, and are queried one after the other. With [`header`],
//! packets carry a small filter in which every router sets its bits; routers store nothing, but a
//! sender who fills the filter with ones defeats it. With [`generalized`], routers also reset bits,
//! so that the sender's initial contents do not matter.
//!
//! In all three the victim starts at its own router and goes upstream from neighbour to neighbour,
//! as long as a router may have forwarded the packet. [`walk`], [`walk_paths`] and [`each_path`]
//! implement this search. A [`store`] keeps the digests of many routers in a folder. [`chance`]
//! computes how often the filters in headers are wrong.
//!
//! ```
//! use umbel_net::topology::Graph;
//! use umbel_net::traceback::{header, walk};
//!
//! let graph = Graph::abilene();
//! let [attacker, victim] = [1, 10];
//! let routers: Vec<_> =
//!     (0..graph.len()).map(|node| header::Router::<8>::new(&graph.address_bytes(node), 1, 5)).collect();
//! let mut filter = header::Filter::EMPTY;
//! graph.path(attacker, victim).iter().for_each(|node| routers[*node].mark(&mut filter));
//!
//! let found = walk(&graph, victim, (), |node, ()| routers[node].may_have_marked(&filter).then_some(()));
//! assert_eq!(found.origins, [attacker]);
//! println!("block {}", graph.address(found.origins[0]));
//! ```

pub mod chance;
pub mod generalized;
pub mod header;
pub mod passage;
pub mod spie;
pub mod store;

use crate::topology::Graph;

/// The result of a [`walk`] upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The routers that may have forwarded the packet, by number.
    pub routers: Vec<usize>,
    /// The routers among them where a branch ends: the packet may have entered the network there.
    pub origins: Vec<usize>,
    /// Whether all branches were followed to their end.
    pub complete: bool,
}

/// Goes upstream from a router as long as neighbours have an answer, and never asks a router the
/// same question twice.
///
/// `query` receives a router and the answer of the router downstream of it (`start` for the
/// victim's router). It returns the state that routers further upstream need, or `None` if the
/// packet did not come through this router.
pub fn walk<S: Clone + PartialEq>(
    graph: &Graph,
    victim: usize,
    start: S,
    mut query: impl FnMut(usize, &S) -> Option<S>,
) -> Trace {
    let mut marks = Marks::new(graph);
    let mut asked: Vec<Vec<S>> = vec![Vec::new(); graph.len()];
    let mut query_once = |node: usize, question: &S| {
        let known = asked.get_mut(node).filter(|known| !known.contains(question))?;
        known.push(question.clone());
        query(node, question)
    };
    let first = query_once(victim, &start);
    // A router, the router downstream of it, and its answer.
    let mut waiting: Vec<_> = first.map(|answer| (victim, victim, answer)).into_iter().collect();
    while let Some((node, downstream, answer)) = waiting.pop() {
        marks.seen[node] = true;
        let before = waiting.len();
        let others = graph.neighbours(node).iter().map(|link| link.to).filter(|to| *to != downstream);
        waiting.extend(others.filter_map(|to| Some((to, node, query_once(to, &answer)?))));
        marks.ends[node] |= waiting.len() == before;
    }
    marks.found(true)
}

/// Goes upstream like [`walk`], but follows every path that visits no router twice, since the state
/// may differ where paths meet.
///
/// The number of paths may be very large, so at most `most` queries are made.
pub fn walk_paths<S>(
    graph: &Graph,
    victim: usize,
    start: S,
    most: usize,
    query: impl FnMut(usize, &S) -> Option<S>,
) -> Trace {
    let mut marks = Marks::new(graph);
    let complete = each_path(graph, victim, start, most, query, |path, has_ended| {
        path.iter().for_each(|hop| marks.seen[hop.node] = true);
        if let Some(last) = path.last() {
            marks.ends[last.node] |= has_ended;
        }
    });
    marks.found(complete)
}

/// A router on a path upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop<S> {
    /// The router.
    pub node: usize,
    /// Its answer, which the routers upstream of it are asked about.
    pub answer: S,
}

/// Calls `each` with every path upstream of a router that visits no router twice and cannot be
/// continued. A path begins with the victim's router. After `most` queries the search is given up;
/// `each` is then called with `false` and the path at hand. Returns whether all paths were found.
///
/// ```
/// use umbel_net::topology::Graph;
/// use umbel_net::traceback::each_path;
///
/// // A square of which three routers have seen the packet.
/// let graph = Graph::parse(b"A B\nB C\nC D\nD A\n")?;
/// let mut paths = Vec::new();
/// each_path(&graph, 2, (), 100, |node, ()| (node != 3).then_some(()), |path, _| {
///     paths.push(path.iter().map(|hop| graph.name(hop.node)).collect::<String>());
/// });
/// assert_eq!(paths, ["CBA"]);
/// # Ok::<(), umbel_net::Error>(())
/// ```
pub fn each_path<S>(
    graph: &Graph,
    victim: usize,
    start: S,
    most: usize,
    mut query: impl FnMut(usize, &S) -> Option<S>,
    mut each: impl FnMut(&[Hop<S>], bool),
) -> bool {
    let Some(answer) = query(victim, &start).filter(|_| victim < graph.len()) else { return true };
    let mut on_path = vec![false; graph.len()];
    on_path[victim] = true;
    let mut path = vec![Hop { node: victim, answer }];
    // For each router of the path, the index of its next link, and whether any link led on.
    let mut links = vec![(0, false)];
    let mut questions = 0;
    while let (Some(Hop { node, answer }), Some((next, led_on))) = (path.last(), links.last_mut()) {
        let node = *node;
        let Some(link) = graph.neighbours(node).get(*next) else {
            if !*led_on {
                each(&path, true);
            }
            on_path[node] = false;
            path.pop();
            links.pop();
            continue;
        };
        *next += 1;
        if on_path[link.to] {
            continue;
        }
        if questions == most {
            each(&path, false);
            return false;
        }
        questions += 1;
        if let Some(answer) = query(link.to, answer) {
            *led_on = true;
            on_path[link.to] = true;
            path.push(Hop { node: link.to, answer });
            links.push((0, false));
        }
    }
    true
}

/// The routers that were found, and those where branches end.
struct Marks {
    seen: Vec<bool>,
    ends: Vec<bool>,
}

impl Marks {
    fn new(graph: &Graph) -> Marks {
        Marks { seen: vec![false; graph.len()], ends: vec![false; graph.len()] }
    }

    fn found(self, complete: bool) -> Trace {
        let numbers = |marks: &[bool]| (0..marks.len()).filter(|node| marks[*node]).collect();
        Trace { routers: numbers(&self.seen), origins: numbers(&self.ends), complete }
    }
}
