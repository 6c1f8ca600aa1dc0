//! Real networks whose links are published.

use super::{Graph, Link};
use std::sync::Arc;

/// The nodes of the Internet2 backbone from 2000 to 2007.
const ABILENE: [&str; 11] = [
    "Seattle",
    "Sunnyvale",
    "Los Angeles",
    "Denver",
    "Kansas City",
    "Houston",
    "Chicago",
    "Indianapolis",
    "Atlanta",
    "Washington",
    "New York",
];

/// The links of Abilene, with the metric by which it routed.
const ABILENE_LINKS: [(usize, usize, u32); 14] = [
    (0, 1, 861),
    (0, 3, 2095),
    (1, 2, 366),
    (1, 3, 1295),
    (2, 5, 1893),
    (3, 4, 639),
    (4, 5, 902),
    (4, 7, 548),
    (5, 8, 1176),
    (6, 7, 260),
    (6, 10, 700),
    (7, 8, 587),
    (8, 9, 846),
    (9, 10, 233),
];

/// The nodes of the T1 backbone of the National Science Foundation in 1991, by state.
const NSFNET: [&str; 14] = [
    "Washington",
    "California (Palo Alto)",
    "California (San Diego)",
    "Utah",
    "Colorado",
    "Texas",
    "Nebraska",
    "Illinois",
    "Pennsylvania",
    "Georgia",
    "Michigan",
    "New York",
    "New Jersey",
    "Maryland",
];

/// The links of NSFNET, with their length in kilometres.
const NSFNET_LINKS: [(usize, usize, u32); 21] = [
    (0, 1, 1100),
    (0, 2, 1600),
    (0, 7, 2800),
    (1, 2, 600),
    (1, 3, 1000),
    (2, 5, 2000),
    (3, 4, 600),
    (3, 10, 2400),
    (4, 5, 1100),
    (4, 6, 800),
    (5, 9, 1200),
    (5, 12, 2000),
    (6, 7, 700),
    (7, 8, 700),
    (8, 9, 900),
    (8, 11, 500),
    (8, 13, 500),
    (10, 11, 800),
    (10, 13, 800),
    (11, 12, 300),
    (12, 13, 300),
];

impl Graph {
    /// Returns Abilene, the research backbone of the United States from 2000 to 2007: 11 nodes, 14
    /// links.
    pub fn abilene() -> Graph {
        typed(&ABILENE, &ABILENE_LINKS)
    }

    /// Returns NSFNET, the T1 backbone of 1991 as it is usually drawn: 14 nodes, 21 links.
    pub fn nsfnet() -> Graph {
        typed(&NSFNET, &NSFNET_LINKS)
    }
}

fn typed(names: &[&str], links: &[(usize, usize, u32)]) -> Graph {
    let own: Arc<[String]> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut graph = Graph { names: own, links: vec![Vec::<Link>::new(); names.len()] };
    links.iter().for_each(|(a, b, length)| graph.join(*a, *b, *length));
    graph
}
