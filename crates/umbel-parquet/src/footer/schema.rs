//! Limits of the tree of columns, whose nodes come in depth-first order with the number of their
//! children.

use super::thrift::Problem;

/// The maximum depth of a column. Decoders recurse once for each level.
const MAX_DEPTH: usize = 128;

/// The memory of a name in a path, besides its bytes.
const BYTES_PER_NAME: u64 = 40;

/// The maximum length of all paths for each byte of the footer. Each column stores its whole path,
/// so that a few long names around many columns would take memory beyond measure. The footer of a
/// file with rows has all paths at least once.
const MAX_PATH_BYTES_PER_BYTE: u64 = 16;

/// The length of all paths that is always allowed.
const FREE_PATH_BYTES: u64 = 1 << 20;

/// The part of a tree that has been seen.
pub struct Tree {
    /// The nodes on the way to the next one: the number of their children that are missing, and the
    /// length of their paths.
    open: Vec<(u64, u64)>,
    /// The number of nodes that have not been seen.
    left: u64,
    /// The number of children that were announced and not seen.
    announced: u64,
    /// The length that is left for the paths of columns.
    path_bytes: u64,
}

impl Tree {
    /// Creates a tree with this number of nodes, for a footer of this length.
    pub fn new(nodes: usize, footer_bytes: usize) -> Tree {
        let path_bytes = (footer_bytes as u64).saturating_mul(MAX_PATH_BYTES_PER_BYTE) + FREE_PATH_BYTES;
        Tree { open: Vec::new(), left: nodes as u64, announced: 1, path_bytes }
    }

    /// Adds the next node, with the length of its name.
    pub fn add(&mut self, name: usize, children: i64) -> Result<(), Problem> {
        while self.open.pop_if(|(missing, _)| *missing == 0).is_some() {}
        let above = match self.open.last_mut() {
            Some((missing, path)) => {
                *missing -= 1;
                *path
            }
            None => 0,
        };
        let Some(announced) = self.announced.checked_sub(1) else {
            return Err("a column is outside of the tree of columns");
        };
        self.left -= 1;
        let children = u64::try_from(children).map_err(|_| "a group has fewer than no columns")?;
        self.announced = announced.saturating_add(children);
        if self.announced > self.left {
            return Err("a group has more columns than there are");
        }
        let path = above + name as u64 + BYTES_PER_NAME;
        if children == 0 {
            let left = self.path_bytes.checked_sub(path);
            self.path_bytes = left.ok_or("the names of the columns are too long")?;
        } else if self.open.len() >= MAX_DEPTH {
            return Err("groups of columns are nested more than 128 times");
        } else {
            self.open.push((children, path));
        }
        Ok(())
    }
}
