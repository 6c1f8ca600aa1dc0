//! Examples of filters on the nodes of a network: the way to a document, and the way a packet came.

use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Answer, Row, Step, and};
use umbel_net::routing::{Attenuated, Document, FilterShape};
use umbel_net::topology::Graph;
use umbel_net::traceback::spie::false_branches;
use umbel_net::traceback::walk;

/// The four documents of Rhea and Kubiatowicz 2002.
const A: [usize; 3] = [0, 3, 7];
const B: [usize; 3] = [1, 3, 8];
const C: [usize; 3] = [2, 5, 7];
const D: [usize; 3] = [1, 6, 8];

const SHAPE: FilterShape = FilterShape { bits: 9, hashes: 3, depth: 3 };

/// A link with a filter for each distance, drawn and as the library has it.
struct Linked {
    name: &'static str,
    levels: [Cells; 3],
    filter: Attenuated,
}

impl Linked {
    /// Creates the filters of the documents at one, two and three hops.
    fn new(
        name: &'static str,
        labels: [&'static str; 3],
        documents: [&[(&str, [usize; 3])]; 3],
    ) -> Result<Linked> {
        let mut link = Linked {
            name,
            levels: labels.map(|label| Cells::new(label, 9)),
            filter: Attenuated::new(SHAPE)?,
        };
        for (level, documents) in (1..).zip(documents) {
            for (document, positions) in documents {
                link.insert(level, document, positions);
            }
        }
        Ok(link)
    }

    fn insert(&mut self, level: u32, document: &str, positions: &[usize; 3]) -> Row {
        self.filter.insert(level, &of_positions(positions));
        self.levels[level as usize - 1].set(document, positions)
    }

    fn rows(&self) -> Vec<Row> {
        self.levels.iter().map(Cells::row).collect()
    }

    /// Asks every level for a document, and sums up 2^-level over those that say yes.
    fn query(&self, document: &str, positions: &[usize; 3]) -> Step {
        let asked: Vec<Step> = self.levels.iter().map(|level| level.query(document, positions)).collect();
        let yes: Vec<String> = (1..)
            .zip(&asked)
            .filter(|(_, step)| step.answer.as_ref().is_some_and(Answer::is_yes))
            .map(|(level, _): (u32, _)| level.to_string())
            .collect();
        let potential = self.filter.potential(&of_positions(positions));
        let says = match yes.len() {
            0 => format!("the link to {} says no on every level", self.name),
            1 => format!(
                "the link to {} says yes on level {}: its potential is {potential}",
                self.name, yes[0]
            ),
            _ => {
                let powers: Vec<String> = yes.iter().map(|level| format!("2^-{level}")).collect();
                format!(
                    "the link to {} says yes on the levels {}: its potential is {} = {potential}",
                    self.name,
                    and(&yes),
                    powers.join(" + ")
                )
            }
        };
        // The lowest level that says yes decides; if none does, the first one shows why.
        let decisive = asked.iter().position(|step| step.answer.as_ref().is_some_and(Answer::is_yes));
        let answer = asked[decisive.unwrap_or(0)].answer.clone();
        Step { says, rows: asked.into_iter().flat_map(|step| step.rows).collect(), answer }
    }
}

fn of_positions(positions: &[usize; 3]) -> Document {
    Document::from_positions(&positions.map(|position| position as u32))
}

pub fn routing() -> Result<Vec<Step>> {
    let p = Linked::new(
        "P",
        ["P, level 1", "P, level 2", "P, level 3"],
        [&[("b", B)], &[("a", A), ("c", C)], &[("a", A), ("d", D)]],
    )?;
    let mut q = Linked::new(
        "Q",
        ["Q, level 1", "Q, level 2", "Q, level 3"],
        [&[("d", D)], &[("b", B)], &[("c", C)]],
    )?;
    let ask = |document: &str, positions: &[usize; 3], then: &str| {
        let (one, other) = (p.query(document, positions), q.query(document, positions));
        let says = format!("Search {document} at {}: {}; {}. {then}", and(positions), one.says, other.says);
        let is_yes = one.answer.as_ref().is_some_and(Answer::is_yes);
        let answer = if is_yes { one.answer } else { other.answer };
        Step { says, rows: [one.rows, other.rows].concat(), answer }
    };
    let mut steps = vec![
        Step::new(
            "A node has a filter of nine bits for each link and distance. Level 1 of the link to P \
             holds the documents of P, level 2 those one hop behind it, level 3 those two hops behind. \
             Level 2 is the union of a and c. The documents are those of the source, the network is \
             ours.",
            p.rows(),
        ),
        Step::new("The levels of the link to Q, the other neighbour.", q.rows()),
        ask("a", &A, "The query goes to P."),
        ask("d", &D, "Q is nearer, so the query goes to Q."),
        ask(
            "x",
            &[2, 3, 7],
            "Nobody has x: a false positive by a and c. After three hops in vain, a slower lookup takes over.",
        ),
    ];
    let e = [0, 4, 8];
    let row = q.insert(1, "e", &e);
    let changed = row.cells.iter().zip(row.before.iter().flatten()).enumerate();
    let flipped: Vec<usize> =
        changed.filter(|(_, (cell, before))| cell.value != **before).map(|(position, _)| position).collect();
    steps.push(Step::new(
        format!(
            "Q gets the document e, at {}, and sends only the bits that change: {}. The node passes \
             them on, and its other neighbours set them one level deeper.",
            and(&e),
            and(&flipped)
        ),
        vec![row],
    ));
    Ok(steps)
}

const ROUTERS: [&str; 5] = ["V", "A", "B", "C", "D"];
const ROUTER_LABELS: [&str; 5] = ["router V", "router A", "router B", "router C", "router D"];

/// Routers that remember packets. Each has hash functions of its own.
struct Routers {
    pages: [Cells; 5],
}

impl Routers {
    /// Forwards a packet through routers, each with the positions of the packet there.
    fn forward(&mut self, packet: &str, path: &[(usize, [usize; 2])]) -> Vec<Row> {
        path.iter().map(|(router, positions)| self.pages[*router].set(packet, positions)).collect()
    }

    fn ask(&self, routers: &[usize], positions: &[[usize; 2]; 5], then: &str) -> Step {
        let (mut parts, mut rows, mut answer) = (Vec::new(), Vec::new(), None);
        for router in routers {
            let step = self.pages[*router].query("p", &positions[*router]);
            let name = ROUTERS[*router];
            parts.push(match &step.answer {
                Some(Answer::FalsePositive(packets)) => {
                    format!("{name} says yes, a false positive by {}", and(packets))
                }
                Some(answer) if answer.is_yes() => format!("{name} says yes"),
                _ => format!("{name} says no"),
            });
            rows.extend(step.rows);
            answer = step.answer;
        }
        let names: Vec<&str> = routers.iter().map(|router| ROUTERS[*router]).collect();
        Step { says: format!("Ask {}: {}. {then}", and(&names), and(&parts)), rows, answer }
    }
}

pub fn traceback() -> Result<Vec<Step>> {
    let graph = Graph::new(5, &[(0, 1, 1), (0, 2, 1), (1, 3, 1), (1, 4, 1)])?;
    // The positions of p at each router.
    let p = [[2, 7], [0, 4], [3, 9], [1, 8], [5, 6]];
    let mut routers = Routers { pages: ROUTER_LABELS.map(|label| Cells::new(label, 10)) };
    let mut steps = vec![Step::new(
        "A victim is at router V, with A and B behind it, and C and D behind A. Every router sets two \
         bits for each packet, by hash functions of its own. The network and the positions are ours.",
        routers.pages.iter().map(Cells::row).collect(),
    )];
    steps.push(Step::new(
        "The packet p comes through C, A and V.",
        routers.forward("p", &[(3, p[3]), (1, p[1]), (0, p[0])]),
    ));
    routers.forward("q", &[(2, [3, 5]), (0, [4, 9])]);
    routers.forward("r", &[(4, [5, 0]), (1, [7, 9])]);
    routers.forward("s", &[(4, [2, 6]), (1, [2, 7])]);
    let rows = [2, 0, 4, 1].map(|router| routers.pages[router].row()).into();
    steps.push(Step::new("Other packets follow: q through B and V, and r and s through D and A.", rows));
    steps.push(routers.ask(&[0], &p, "The packet came through V, so its neighbours are asked."));
    steps.push(routers.ask(&[1, 2], &p, "B is ruled out; the neighbours of A are asked."));
    steps.push(routers.ask(&[3, 4], &p, "Behind them there are no more routers."));
    let found = walk(&graph, 0, (), |router, ()| {
        let yes = routers.pages[router].query("p", &p[router]).answer.is_some_and(|answer| answer.is_yes());
        yes.then_some(())
    });
    let found = found.routers;
    let values = (0..ROUTERS.len()).map(|router| if found.contains(&router) { "yes" } else { "no" });
    let set = routers.pages[4].values().iter().filter(|bit| **bit > 0).count() as f64 / 10.0;
    let rate = set * set;
    let expected = false_branches(2, rate).map_or(String::new(), |branches| format!("{branches:.2}"));
    steps.push(Step::new(
        format!(
            "The search ends with {} routers, of which one is innocent. If all pages were as full as \
             that of D, a stranger would be found with the rate {set}^2 = {rate:.2}, and 2 * {rate:.2} / \
             (1 - 2 * {rate:.2}) = {expected} routers would be suspected for each one on the path.",
            found.len()
        ),
        vec![Row::new("suspected", values).under(ROUTERS)],
    ));
    Ok(steps)
}
