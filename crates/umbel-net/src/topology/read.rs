//! Reading a network from a file, in the format that its contents show.

use super::draft::Mistake;
use super::{Graph, edge_list, graphml};
use crate::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest file that is read as a network.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

impl Graph {
    /// Reads a network from a file with an edge list or GraphML; see [`Graph::parse`].
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, has more than [`MAX_FILE_BYTES`] bytes, or is not a
    /// network.
    pub fn open(path: impl AsRef<Path>) -> Result<Graph> {
        let path = path.as_ref();
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let mut bytes = Vec::new();
        // One byte more shows that the file is too long.
        let length =
            file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
        if length as u64 > MAX_FILE_BYTES {
            let problem = format!("it has more than {} MiB, the largest size", MAX_FILE_BYTES >> 20);
            return Err(Error::Topology { path: path.to_owned(), line: None, problem });
        }
        Graph::parse(&bytes).map_err(|error| error.at(path))
    }

    /// Reads a network from text: GraphML if the first character is `<`, otherwise an edge list.
    ///
    /// A line of an **edge list** is a link: the names of two nodes, and perhaps its length. A line
    /// with one name is a node, which may have no links. Names contain no spaces. A word that
    /// begins with `#` starts a comment.
    ///
    /// In **GraphML**, an edge must lead to nodes that the file declares. The name of a node is its
    /// label (the key `label` or `name`, or the label that yEd draws), or its `id` if it has no
    /// label or shares it with other nodes. The length of an edge is the key `length`, `weight`,
    /// `distance`, `latency` or `cost`, the first of these that the file declares. Nested graphs,
    /// hyperedges and document types are not supported.
    ///
    /// In both formats, links have no direction, and their length is 1 unless the file states it.
    /// Lengths are above 0. If one has decimals, all are stored in thousandths. A link may be
    /// repeated, in both directions too, if its length is the same. Nodes are numbered in the order
    /// in which the file names them.
    ///
    /// ```
    /// use umbel_net::topology::Graph;
    ///
    /// let graph = Graph::parse(b"# routers, and kilometres\nR1 R2 30\nR2 R3 45\nR7\n")?;
    /// assert_eq!((graph.len(), graph.links()), (4, 2));
    /// assert_eq!((graph.name(1), graph.find("R7")), ("R2", Some(3)));
    ///
    /// let text = r#"<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">
    ///     <node id="R1"/><node id="R2"/>
    ///     <edge source="R1" target="R9"/>
    /// </graph></graphml>"#;
    /// let error = Graph::parse(text.as_bytes()).unwrap_err();
    /// assert!(error.to_string().contains("line 3") && error.to_string().contains("R9"));
    /// # Ok::<(), umbel_net::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the text is neither format, or describes a network that cannot be: with a link from
    /// a node to itself, a length that is not a number above 0, no nodes, or more than
    /// [`MAX_NODES`](super::MAX_NODES) nodes. The error has the number of the line.
    pub fn parse(bytes: &[u8]) -> Result<Graph> {
        // Mistakes are counted from the first byte after the mark.
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let draft = match std::str::from_utf8(bytes) {
            Ok(text) if text.trim_start().starts_with('<') => graphml::parse(text),
            Ok(text) => edge_list::parse(text),
            Err(error) => {
                let problem = "it is not text in UTF-8; a network is an edge list or GraphML";
                Err(Mistake::at(error.valid_up_to(), problem))
            }
        };
        draft.and_then(|draft| draft.finish()).map_err(|mistake| mistake.in_file(bytes))
    }
}
