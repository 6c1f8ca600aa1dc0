//! The shape of a footer: the types of its fields, and lists that hold the elements they announce.
//!
//! The fields are those of `FileMetaData` in `parquet.thrift`. Fields that are not listed here are
//! passed over by their types, as any reader does.
//!
//! # References
//!
//! - The format of Parquet, `parquet.thrift`,
//!   <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use super::schema::Tree;
use super::thrift::{Cursor, Problem, Wire};

/// The maximum number of elements of a list. A reader reserves memory for all of them at once.
const MAX_LIST_ELEMENTS: usize = 1_000_000;

/// The maximum depth of structs, lists and maps in fields that are not listed.
const MAX_UNLISTED_DEPTH: u32 = 32;

/// What a value consists of.
#[derive(Clone, Copy)]
enum Shape {
    /// A value without parts.
    Plain(Wire),
    List(&'static Shape),
    /// A struct with these numbered fields, and others.
    Struct(&'static [(i16, Shape)]),
    /// A struct with one field, which is a struct itself.
    Union(&'static [(i16, Shape)]),
    /// The list of the nodes of the tree of columns.
    Schema,
}

const BOOL: Shape = Shape::Plain(Wire::Bool);
const BYTE: Shape = Shape::Plain(Wire::Byte);
const I16: Shape = Shape::Plain(Wire::I16);
const I32: Shape = Shape::Plain(Wire::I32);
const I64: Shape = Shape::Plain(Wire::I64);
const DOUBLE: Shape = Shape::Plain(Wire::Double);
const BINARY: Shape = Shape::Plain(Wire::Binary);
const EMPTY: Shape = Shape::Struct(&[]);

const FILE_META_DATA: &[(i16, Shape)] = &[
    (1, I32),
    (2, Shape::Schema),
    (3, I64),
    (4, Shape::List(&Shape::Struct(ROW_GROUP))),
    (5, KEY_VALUES),
    (6, BINARY),
    (7, Shape::List(&Shape::Union(&[]))),
    (8, Shape::Union(&[])),
    (9, BINARY),
];

const KEY_VALUES: Shape = Shape::List(&Shape::Struct(&[(1, BINARY), (2, BINARY)]));

/// The fields of a node of the tree of columns.
const SCHEMA_ELEMENT: &[(i16, Shape)] = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, BINARY),
    (5, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, Shape::Union(LOGICAL_TYPE)),
];

/// The field of a node with its name.
const NAME: i16 = 4;

/// The field of a node with the number of its children.
const CHILDREN: i16 = 5;

const LOGICAL_TYPE: &[(i16, Shape)] = &[
    (5, Shape::Struct(&[(1, I32), (2, I32)])),
    (7, Shape::Struct(&[(1, BOOL), (2, Shape::Union(&[]))])),
    (8, Shape::Struct(&[(1, BOOL), (2, Shape::Union(&[]))])),
    (10, Shape::Struct(&[(1, BYTE), (2, BOOL)])),
    (16, Shape::Struct(&[(1, BYTE)])),
    (17, Shape::Struct(&[(1, BINARY)])),
    (18, Shape::Struct(&[(1, BINARY), (2, I32)])),
];

const ROW_GROUP: &[(i16, Shape)] = &[
    (1, Shape::List(&Shape::Struct(COLUMN_CHUNK))),
    (2, I64),
    (3, I64),
    (4, Shape::List(&Shape::Struct(&[(1, I32), (2, BOOL), (3, BOOL)]))),
    (5, I64),
    (6, I64),
    (7, I16),
];

const COLUMN_CHUNK: &[(i16, Shape)] = &[
    (1, BINARY),
    (2, I64),
    (3, Shape::Struct(COLUMN_META_DATA)),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
    (8, Shape::Union(&[])),
    (9, BINARY),
];

const COLUMN_META_DATA: &[(i16, Shape)] = &[
    (1, I32),
    (2, Shape::List(&I32)),
    (3, Shape::List(&BINARY)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, KEY_VALUES),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, Shape::Struct(STATISTICS)),
    (13, Shape::List(&Shape::Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (14, I64),
    (15, I32),
    (16, Shape::Struct(&[(1, I64), (2, Shape::List(&I64)), (3, Shape::List(&I64))])),
    (17, Shape::Struct(&[(1, Shape::Struct(BOUNDING_BOX)), (2, Shape::List(&I32))])),
];

const STATISTICS: &[(i16, Shape)] =
    &[(1, BINARY), (2, BINARY), (3, I64), (4, I64), (5, BINARY), (6, BINARY), (7, BOOL), (8, BOOL), (9, I64)];

const BOUNDING_BOX: &[(i16, Shape)] =
    &[(1, DOUBLE), (2, DOUBLE), (3, DOUBLE), (4, DOUBLE), (5, DOUBLE), (6, DOUBLE), (7, DOUBLE), (8, DOUBLE)];

/// Checks that a footer is whole, and that its fields have the types of the format.
pub fn check(footer: &[u8]) -> Result<(), Problem> {
    let mut walk = Walk { cursor: Cursor(footer), footer_bytes: footer.len() };
    walk.fields(FILE_META_DATA, |_, _| ())
}

/// A way through a footer.
struct Walk<'a> {
    cursor: Cursor<'a>,
    footer_bytes: usize,
}

impl Walk<'_> {
    /// Passes over a value of a known shape. Returns it if it is an integer, and the length of it if
    /// it is binary.
    fn value(&mut self, shape: Shape, wire: Wire) -> Result<i64, Problem> {
        const OTHER_TYPE: Problem = "a field has a value of another type";
        let expected = match shape {
            Shape::Plain(plain) => plain,
            Shape::List(_) | Shape::Schema => Wire::List,
            Shape::Struct(_) | Shape::Union(_) => Wire::Struct,
        };
        if wire != expected {
            return Err(OTHER_TYPE);
        }
        match shape {
            Shape::Plain(wire) => return self.plain(wire),
            Shape::Struct(fields) => self.fields(fields, |_, _| ())?,
            Shape::Union(variants) => self.union(variants)?,
            Shape::List(element) => {
                let (count, wire) = self.list()?;
                for _ in 0..count {
                    self.value(*element, wire)?;
                }
            }
            Shape::Schema => {
                let (count, wire) = self.list()?;
                let mut tree = Tree::new(count, self.footer_bytes);
                for _ in 0..count {
                    if wire != Wire::Struct {
                        return Err(OTHER_TYPE);
                    }
                    let (mut name, mut children) = (0, 0);
                    self.fields(SCHEMA_ELEMENT, |number, value| match number {
                        NAME => name = value,
                        CHILDREN => children = value,
                        _ => {}
                    })?;
                    tree.add(name as usize, children)?;
                }
            }
        }
        Ok(0)
    }

    /// Passes over the fields of a struct, and calls `seen` with the number and the
    /// [value](Walk::value) of each listed one.
    fn fields(&mut self, listed: &[(i16, Shape)], mut seen: impl FnMut(i16, i64)) -> Result<(), Problem> {
        let (mut before, mut seen_fields) = (0, 0_u32);
        while let Some((number, wire)) = self.cursor.field(before)? {
            match listed.iter().find(|(listed, _)| *listed == number) {
                Some((_, shape)) => {
                    // Listed numbers are below 32.
                    if seen_fields >> number & 1 == 1 {
                        return Err("a field is there twice");
                    }
                    seen_fields |= 1 << number;
                    seen(number, self.value(*shape, wire)?);
                }
                None => self.cursor.pass_over(wire, MAX_UNLISTED_DEPTH)?,
            }
            before = number;
        }
        Ok(())
    }

    /// Passes over a union: its variant, and the end of it.
    fn union(&mut self, variants: &[(i16, Shape)]) -> Result<(), Problem> {
        let Some((number, wire)) = self.cursor.field(0)? else { return Err("a union has no variant") };
        let listed = variants.iter().find(|(listed, _)| *listed == number);
        self.value(listed.map_or(EMPTY, |(_, shape)| *shape), wire)?;
        match self.cursor.field(number)? {
            Some(_) => Err("a union has two variants"),
            None => Ok(()),
        }
    }

    /// Takes the start of a list of a length that is expected of a footer.
    fn list(&mut self) -> Result<(usize, Wire), Problem> {
        let (count, wire) = self.cursor.list()?;
        if count > MAX_LIST_ELEMENTS {
            return Err("a list has more than a million elements");
        }
        Ok((count, wire))
    }

    /// Passes over a value without parts, and returns it if it is an integer, and the length of it
    /// if it is binary.
    fn plain(&mut self, wire: Wire) -> Result<i64, Problem> {
        const TOO_LARGE: Problem = "a number is too large for its type";
        let integer = |number: i64, bits: u32| {
            let spare = i64::BITS - bits;
            (number << spare >> spare == number).then_some(number).ok_or(TOO_LARGE)
        };
        match wire {
            Wire::I16 => integer(self.cursor.signed()?, 16),
            Wire::I32 => integer(self.cursor.signed()?, 32),
            Wire::I64 => self.cursor.signed(),
            Wire::Byte => Ok(self.cursor.byte()?.into()),
            Wire::Binary => Ok(self.cursor.binary()?.len() as i64),
            Wire::Double => self.cursor.bytes(8).map(|_| 0),
            Wire::Uuid => self.cursor.bytes(16).map(|_| 0),
            Wire::Bool | Wire::List | Wire::Map | Wire::Struct => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest footer that passes: a version and a schema with a root.
    const FOOTER: &[u8] = &[0x15, 2, 0x19, 0x1c, 0x48, 1, b'r', 0, 0];

    #[test]
    fn a_short_footer_passes_and_every_cut_of_it_fails() {
        assert_eq!(check(FOOTER), Ok(()));
        for end in 0..FOOTER.len() {
            assert!(check(&FOOTER[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn groups_cannot_announce_columns_that_are_missing() {
        for (children, what) in
            [(&[2][..], "more columns"), (&[0xfe, 0xff, 0xff, 0xff, 0x0f], "more columns"), (&[1], "fewer")]
        {
            let footer = [&[0x15, 2, 0x19, 0x1c, 0x48, 1, b'r', 0x15][..], children, &[0, 0]].concat();
            assert!(check(&footer).unwrap_err().contains(what), "{children:?}");
        }
    }

    #[test]
    fn columns_cannot_be_nested_without_end() {
        let nested = |depth: usize| {
            let mut footer = vec![0x15, 2, 0x19, 0xfc, depth as u8 | 0x80, (depth >> 7) as u8];
            for level in 0..depth {
                footer.extend([0x48, 1, b'g', 0x15, if level + 1 < depth { 2 } else { 0 }, 0]);
            }
            footer.push(0);
            check(&footer)
        };
        assert_eq!(nested(100), Ok(()));
        assert!(nested(1000).unwrap_err().contains("nested"));
    }

    #[test]
    fn long_names_cannot_multiply() {
        // A group with a name of 100 000 bytes around `columns` columns.
        let footer = |columns: usize| {
            let mut footer = vec![0x15, 2, 0x19, 0xfc];
            let nodes = columns + 2;
            footer.extend([nodes as u8 | 0x80, (nodes >> 7) as u8 | 0x80, (nodes >> 14) as u8]);
            footer.extend([0x48, 1, b'r', 0x15, 2, 0]);
            footer.extend([0x48, 0xa0, 0x8d, 0x06]);
            footer.extend([b'n'; 100_000]);
            footer.push(0x15);
            let children = 2 * columns;
            footer.extend([children as u8 | 0x80, (children >> 7) as u8 | 0x80, (children >> 14) as u8, 0]);
            for _ in 0..columns {
                footer.extend([0x48, 1, b'c', 0]);
            }
            footer.push(0);
            check(&footer)
        };
        assert_eq!(footer(10), Ok(()));
        assert!(footer(10_000).unwrap_err().contains("names"));
    }

    #[test]
    fn fields_have_the_types_of_the_format() {
        // The version as a binary value, twice, and as a number of 33 bits.
        for footer in [&[0x18, 0, 0][..], &[0x15, 2, 0x05, 2, 2, 0], &[0x15, 0xfe, 0xff, 0xff, 0xff, 0x1f, 0]]
        {
            assert!(check(footer).is_err(), "{footer:?}");
        }
        // Unknown fields are passed over, but not with lists of Booleans.
        assert_eq!(check(&[0xe5, 2, 0xeb, 0, 0]), Ok(()));
        assert!(check(&[0xe9, 0x21, 1, 1, 0]).is_err());
    }
}
