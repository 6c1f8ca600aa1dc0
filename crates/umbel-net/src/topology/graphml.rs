//! GraphML, the XML format for graphs.
//!
//! # References
//!
//! * U. Brandes, M. Eiglsperger, I. Herman, M. Himsolt and M. S. Marshall. *GraphML progress
//!   report: structural layer proposal.* Graph Drawing 2001. `GraphML01`

use super::draft::{Draft, Mistake, parse_length};
use crate::network::quoted;
use roxmltree::{Document, Node, ParsingOptions};

/// The keys that hold the length of an edge. The first one that a file declares counts.
const LENGTH_KEYS: [&str; 5] = ["length", "weight", "distance", "latency", "cost"];

/// The keys that hold the label of a node. The first one that a file declares counts.
const LABEL_KEYS: [&str; 2] = ["label", "name"];

/// Reads GraphML.
pub(super) fn parse(text: &str) -> Result<Draft, Mistake> {
    // Without document types there are no entities beyond those of XML itself, so the tree is never
    // larger than the text justifies.
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| malformed(text, &error))?;
    let root = document.root_element();
    if root.tag_name().name() != "graphml" {
        let problem = format!(
            "it is XML, but begins with <{}> instead of <graphml>; a network is GraphML or an edge list",
            root.tag_name().name().escape_debug()
        );
        return Err(Mistake::at(root.range().start, problem));
    }
    let mut graphs = elements(root, "graph");
    let Some(graph) = graphs.next() else {
        return Err(Mistake::at(root.range().start, "there is no <graph> in <graphml>"));
    };
    if let Some(second) = graphs.next() {
        let problem = "a second <graph> begins here; put each network into a file of its own";
        return Err(Mistake::at(second.range().start, problem));
    }
    let mut draft = Draft::default();
    let label_key = Key::declared(root, "node", &LABEL_KEYS);
    let mut labels = Vec::new();
    for node in elements(graph, "node") {
        let at = node.range().start;
        refuse_nested(node)?;
        let id = required(node, "id")?;
        if draft.node(id, at)? != labels.len() {
            return Err(Mistake::at(at, format!("the node {} is declared twice", quoted(id))));
        }
        labels.push(label(node, label_key.as_ref()));
    }
    if let Some(hyperedge) = elements(graph, "hyperedge").next() {
        let problem = "a <hyperedge> joins any number of nodes; write it as an <edge> for each pair";
        return Err(Mistake::at(hyperedge.range().start, problem));
    }
    let length_key = Key::declared(root, "edge", &LENGTH_KEYS);
    for edge in elements(graph, "edge") {
        let at = edge.range().start;
        refuse_nested(edge)?;
        let mut ends = [0; 2];
        for (end, attribute) in ends.iter_mut().zip(["source", "target"]) {
            let id = required(edge, attribute)?;
            *end = draft.find(id).ok_or_else(|| {
                let problem =
                    format!("the edge leads to the unknown node {}; declare it with <node>", quoted(id));
                Mistake::at(at, problem)
            })?;
        }
        let length = match length_key.as_ref().and_then(|key| key.value(edge)) {
            Some(length) => parse_length(&length, at)?,
            None => 1.0,
        };
        draft.link(text, ends, length, at)?;
    }
    draft.label(&labels);
    Ok(draft)
}

/// Returns the mistake of a text that is not well-formed.
fn malformed(text: &str, error: &roxmltree::Error) -> Mistake {
    let position = error.pos();
    let lines = text.split_inclusive('\n').take((position.row as usize).saturating_sub(1));
    let at = lines.map(str::len).sum();
    if matches!(error, roxmltree::Error::DtdDetected) {
        return Mistake::at(at, "document types are not supported; remove the declaration <!DOCTYPE ...>");
    }
    // The message ends with the position, which the error of this crate states in its own way.
    let message = error.to_string();
    let cause = message.rsplit_once(" at ").map_or(message.as_str(), |(cause, _)| cause);
    Mistake::at(at, format!("it is not well-formed XML: {}", cause.escape_debug()))
}

/// Returns the children with this name in the namespace of the element itself. Editors put elements
/// of their own into other namespaces.
fn elements<'a, 'input: 'a>(
    parent: Node<'a, 'input>,
    name: &'a str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    let namespace = parent.tag_name().namespace();
    let is_own = move |node: &Node<'_, '_>| node.tag_name().namespace() == namespace;
    parent.children().filter(move |node| node.is_element() && node.tag_name().name() == name && is_own(node))
}

/// Fails if a node or an edge contains a graph of its own.
fn refuse_nested(owner: Node<'_, '_>) -> Result<(), Mistake> {
    match elements(owner, "graph").next() {
        None => Ok(()),
        Some(inner) => {
            let problem = format!(
                "the {} {} contains a <graph>; nested graphs are not supported, so put all nodes into one",
                owner.tag_name().name(),
                quoted(owner.attribute("id").unwrap_or_default())
            );
            Err(Mistake::at(inner.range().start, problem))
        }
    }
}

/// Returns an attribute that the element must have.
fn required<'a>(node: Node<'a, '_>, attribute: &str) -> Result<&'a str, Mistake> {
    node.attribute(attribute).ok_or_else(|| {
        let problem = format!("<{}> lacks the attribute {attribute:?}", node.tag_name().name());
        Mistake::at(node.range().start, problem)
    })
}

/// A kind of data that nodes or edges have.
struct Key<'a> {
    id: &'a str,
    default: Option<String>,
}

impl<'a> Key<'a> {
    /// Returns the first of these keys that the file declares for nodes or for edges.
    fn declared(root: Node<'a, '_>, owner: &str, names: &[&str]) -> Option<Key<'a>> {
        let of_owner = |key: &Node<'_, '_>| {
            matches!(key.attribute("for"), None | Some("all")) || key.attribute("for") == Some(owner)
        };
        let rank = |key: &Node<'_, '_>| {
            let name = key.attribute("attr.name")?;
            names.iter().position(|own| own.eq_ignore_ascii_case(name))
        };
        let keys = elements(root, "key").filter(of_owner);
        let (_, key) = keys.filter_map(|key| Some((rank(&key)?, key))).min_by_key(|(rank, _)| *rank)?;
        let default = elements(key, "default").next().map(text_of);
        Some(Key { id: key.attribute("id")?, default })
    }

    /// Returns the value of a node or an edge.
    fn value(&self, owner: Node<'_, '_>) -> Option<String> {
        self.own_value(owner).or_else(|| self.default.clone())
    }

    /// Returns the value of a node or an edge, unless it is the default.
    fn own_value(&self, owner: Node<'_, '_>) -> Option<String> {
        let data = elements(owner, "data").find(|data| data.attribute("key") == Some(self.id));
        data.map(text_of)
    }
}

/// Returns the label of a node: of its key, or else the one that yEd draws.
fn label(node: Node<'_, '_>, key: Option<&Key<'_>>) -> Option<String> {
    let drawn = || {
        let mut parts = elements(node, "data").flat_map(|data| data.descendants());
        parts.find(|part| part.is_element() && part.tag_name().name() == "NodeLabel").map(text_of)
    };
    // A default label would be that of every node, and stored for each of them. A label may be set in
    // several lines.
    let label = key.and_then(|key| key.own_value(node)).or_else(drawn)?;
    let words = label.split(|char: char| char.is_whitespace() || char.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the text directly within an element, without the spaces around it.
fn text_of(element: Node<'_, '_>) -> String {
    let parts = element.children().filter(Node::is_text).filter_map(|part| part.text());
    parts.collect::<String>().trim().to_owned()
}
