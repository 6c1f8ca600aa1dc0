//! IP traceback: where a packet came from, even if its source address is forged.
//!
//! There are three methods. With [`spie`], routers remember the digests of the packets they
//! forward, in pages of Bloom filters, and are queried one after the other. With [`header`],
//! packets carry a small filter in which every router sets its bits; routers store nothing, but a
//! sender who fills the filter with ones defeats it. With [`generalized`], routers also reset bits,
//! so that the sender's initial contents do not matter.
//!
//! In all three the victim starts at its own router and goes upstream from neighbour to neighbour,
//! as long as a router may have forwarded the packet. [`walk`] and [`walk_paths`] implement this
//! search. [`chance`] computes how often the filters in headers are wrong.
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
pub mod spie;

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
    mut query: impl FnMut(usize, &S) -> Option<S>,
) -> Trace {
    let mut marks = Marks::new(graph);
    let Some(answer) = query(victim, &start).filter(|_| victim < graph.len()) else {
        return marks.found(true);
    };
    marks.seen[victim] = true;
    let mut on_path = marks.seen.clone();
    // The current path: each of its routers, its answer, the index of its next link, and whether
    // any link led on.
    let mut path = vec![(victim, answer, 0, false)];
    let mut questions = 0;
    while let Some((node, answer, next, led_on)) = path.last_mut() {
        let node = *node;
        let Some(link) = graph.neighbours(node).get(*next) else {
            marks.ends[node] |= !*led_on;
            on_path[node] = false;
            path.pop();
            continue;
        };
        *next += 1;
        if on_path[link.to] {
            continue;
        }
        if questions == most {
            return marks.found(false);
        }
        questions += 1;
        if let Some(answer) = query(link.to, answer) {
            *led_on = true;
            marks.seen[link.to] = true;
            on_path[link.to] = true;
            path.push((link.to, answer, 0, false));
        }
    }
    marks.found(true)
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
