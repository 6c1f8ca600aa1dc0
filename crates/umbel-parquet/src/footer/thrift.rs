//! Bytes in the compact protocol of Thrift: numbers, fields of structs, and lists.
//!
//! A field starts with a byte: the type of its value in the low half, and in the high half the
//! distance of its number from that of the field before it, or 0 if the number follows. A struct
//! ends with a zero byte.
//!
//! # References
//!
//! - Thrift compact protocol encoding,
//!   <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// A problem with a footer, as a clause.
pub type Problem = &'static str;

/// The clause for a footer that is too short for what it announces.
pub const ENDS_EARLY: Problem = "an element is longer than what is left";

/// The type of a value as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The value of a Boolean field is its type.
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    /// A set is stored like a list.
    List,
    Map,
    Struct,
    Uuid,
}

impl Wire {
    pub fn from_code(code: u8) -> Result<Wire, Problem> {
        Ok(match code {
            1 | 2 => Wire::Bool,
            3 => Wire::Byte,
            4 => Wire::I16,
            5 => Wire::I32,
            6 => Wire::I64,
            7 => Wire::Double,
            8 => Wire::Binary,
            9 | 10 => Wire::List,
            11 => Wire::Map,
            12 => Wire::Struct,
            13 => Wire::Uuid,
            _ => return Err("a value has an unknown type"),
        })
    }
}

/// The bytes that are left.
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// Takes the next byte.
    pub fn byte(&mut self) -> Result<u8, Problem> {
        Ok(self.bytes(1)?[0])
    }

    /// Takes the next bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(ENDS_EARLY)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Takes a number of at most 64 bits: seven in each byte, the lowest first.
    pub fn unsigned(&mut self) -> Result<u64, Problem> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number has more than 64 bits")
    }

    /// Takes a signed number, whose sign is its lowest bit.
    pub fn signed(&mut self) -> Result<i64, Problem> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Takes a length of bytes, and these bytes.
    pub fn binary(&mut self) -> Result<&'a [u8], Problem> {
        let length = self.unsigned()?;
        self.bytes(usize::try_from(length).map_err(|_| ENDS_EARLY)?)
    }

    /// Takes the start of a field, given the number of the field before it. Returns its number and
    /// type, or `None` at the end of the struct.
    pub fn field(&mut self, before: i16) -> Result<Option<(i16, Wire)>, Problem> {
        let byte = self.byte()?;
        if byte & 0x0f == 0 {
            return Ok(None);
        }
        let wire = Wire::from_code(byte & 0x0f)?;
        let number = match byte >> 4 {
            0 => i16::try_from(self.signed()?).ok(),
            distance => before.checked_add(distance.into()),
        };
        Ok(Some((number.ok_or("a field has a number beyond 32767")?, wire)))
    }

    /// Passes over a value, whose parts are nested at most `depth` times.
    pub fn pass_over(&mut self, wire: Wire, depth: u32) -> Result<(), Problem> {
        let Some(depth) = depth.checked_sub(1) else { return Err("values are nested too deep") };
        match wire {
            // The value is in the type.
            Wire::Bool => {}
            Wire::Byte => drop(self.byte()?),
            Wire::I16 | Wire::I32 | Wire::I64 => drop(self.signed()?),
            Wire::Double => drop(self.bytes(8)?),
            Wire::Uuid => drop(self.bytes(16)?),
            Wire::Binary => drop(self.binary()?),
            Wire::Struct => {
                let mut before = 0;
                while let Some((number, wire)) = self.field(before)? {
                    self.pass_over(wire, depth)?;
                    before = number;
                }
            }
            Wire::List => {
                let (count, wire) = self.list()?;
                (0..count).try_for_each(|_| self.pass_over_element(wire, depth))?;
            }
            Wire::Map => {
                let count = self.unsigned()?;
                if count > self.0.len() as u64 {
                    return Err("a map has more elements than there are bytes left");
                }
                // The types of a map take a byte, which an empty one does not have.
                let types = if count > 0 { self.byte()? } else { return Ok(()) };
                let (key, value) = (Wire::from_code(types >> 4)?, Wire::from_code(types & 0x0f)?);
                for _ in 0..count {
                    self.pass_over_element(key, depth)?;
                    self.pass_over_element(value, depth)?;
                }
            }
        }
        Ok(())
    }

    /// Passes over an element of a list or map. Readers do not agree on the length of Booleans
    /// there, and the format has none.
    fn pass_over_element(&mut self, wire: Wire, depth: u32) -> Result<(), Problem> {
        if wire == Wire::Bool { Err("a list has Booleans") } else { self.pass_over(wire, depth) }
    }

    /// Takes the start of a list: the number and the type of its elements.
    pub fn list(&mut self) -> Result<(usize, Wire), Problem> {
        let byte = self.byte()?;
        // Some writers give no type for an empty list.
        if byte == 0 {
            return Ok((0, Wire::Byte));
        }
        let wire = Wire::from_code(byte & 0x0f)?;
        let count = match byte >> 4 {
            15 => self.unsigned()?,
            count => count.into(),
        };
        // Each element takes a byte or more.
        let count = usize::try_from(count).ok().filter(|count| *count <= self.0.len());
        Ok((count.ok_or("a list has more elements than there are bytes left")?, wire))
    }
}
