//! The bytes of shapes, questions and answers, which `docs/format.md` describes.

use super::{Answer, PublicShape, Question};
use crate::file::FormatError;
use crate::file::fields::{Fields, sum};
use crate::sizing::MAX_BITS;
use crate::sizing::space_code::{MAX_GROUPS, MAX_HASHES, MAX_LEVELS, sampling};
use crate::space_code::LevelInfo;
use crate::space_code::array::noise;
use crate::{Digest, Result};
use std::sync::OnceLock;

const MAGIC: &[u8; 8] = b"UMBELASK";
const VERSION: u32 = 1;
/// The size of the header: magic, version, type and length.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8;
const CHECKSUM_BYTES: usize = 8;

const SHAPE: u32 = 1;
const QUESTION: u32 = 2;
const ANSWER: u32 = 3;

/// One of the three messages between those who ask and those who keep the counts.
///
/// ```
/// use umbel::space_code::private::{Message, PublicShape, is_message};
/// use umbel::{AnyCount, Kind, Spec};
/// let counts = AnyCount::build(Kind::SpaceCode, &Spec::new(1000, 0.005)?)?;
/// let shape = PublicShape::from_counts(&counts)?;
/// let bytes = Message::from(shape).to_bytes();
/// assert!(is_message(&bytes));
/// assert!(matches!(Message::from_bytes(&bytes)?, Message::Shape(read) if read == shape));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub enum Message {
    /// The public facts about a multiset.
    Shape(PublicShape),
    /// A question.
    Question(Question),
    /// An answer.
    Answer(Answer),
}

/// Returns whether bytes start like those of a message.
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl Message {
    /// Encodes the message as the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (what, numbers, found): (u32, Vec<u64>, &[u8]) = match self {
            Message::Shape(shape) => (SHAPE, vec![shape.hash_seed, shape.keys], &[]),
            Message::Question(question) => (QUESTION, question.numbers(), &[]),
            Message::Answer(answer) => (ANSWER, answer.numbers(), &answer.found),
        };
        let length = HEADER_BYTES + 8 * numbers.len() + found.len() + CHECKSUM_BYTES;
        let mut out = Vec::with_capacity(length);
        out.extend(MAGIC);
        out.extend([VERSION, what].map(u32::to_le_bytes).as_flattened());
        out.extend((length as u64).to_le_bytes());
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(found);
        out.extend(sum(&out).to_le_bytes());
        out
    }

    /// Decodes and verifies the bytes of a file. Takes memory in proportion to their length.
    ///
    /// # Errors
    ///
    /// If the bytes are not a message, have an unknown version, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Message> {
        let short = || invalid("it is shorter than its header");
        if !is_message(bytes) {
            return Err(invalid("it is not a shape, a question or an answer of `umbel count ask`").into());
        }
        let mut header = Fields(&bytes[MAGIC.len()..]);
        let (version, what) = (header.u32().ok_or_else(short)?, header.u32().ok_or_else(short)?);
        let expected = header.u64().ok_or_else(short)?;
        if expected != bytes.len() as u64 {
            return Err(FormatError::Length { expected, found: bytes.len() as u64 }.into());
        }
        let (before, end) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(short)?;
        if sum(before) != u64::from_le_bytes(*end) {
            return Err(FormatError::Damaged { part: "the message".into() }.into());
        }
        if version != VERSION {
            let version = u16::try_from(version).unwrap_or(u16::MAX);
            return Err(FormatError::Newer { version }.into());
        }
        let mut fields = Fields(before.get(HEADER_BYTES..).ok_or_else(short)?);
        let message = match what {
            SHAPE => shape(&mut fields).map(Message::Shape),
            QUESTION => question(&mut fields).map(Message::Question),
            ANSWER => answer(&mut fields).map(Message::Answer),
            other => return Err(FormatError::Unknown { what: format!("messages of type {other}") }.into()),
        };
        let message = message.filter(|_| fields.0.is_empty());
        Ok(message.ok_or_else(|| invalid("its numbers are out of range, or do not fit its length"))?)
    }
}

impl From<PublicShape> for Message {
    fn from(shape: PublicShape) -> Message {
        Message::Shape(shape)
    }
}

impl From<Question> for Message {
    fn from(question: Question) -> Message {
        Message::Question(question)
    }
}

impl From<Answer> for Message {
    fn from(answer: Answer) -> Message {
        Message::Answer(answer)
    }
}

fn invalid(what: &str) -> FormatError {
    FormatError::invalid(what)
}

impl Question {
    fn numbers(&self) -> Vec<u64> {
        let counts = [self.classes.len() as u64, self.digests.len() as u64];
        let mut numbers = vec![self.hash_seed, self.class_bits.into()];
        numbers.extend(counts);
        numbers.extend(&self.classes);
        numbers.extend(self.digests.iter().map(|digest| digest.get()));
        numbers
    }
}

impl Answer {
    fn numbers(&self) -> Vec<u64> {
        let counts = [self.levels.len() as u64, self.digests.len() as u64];
        let mut numbers = vec![self.hash_seed, self.groups.into()];
        numbers.extend(counts);
        numbers.extend(self.levels.iter().flat_map(|level| [level.bits, level.hashes.into(), level.ones]));
        numbers.extend(self.digests.iter().map(|digest| digest.get()));
        numbers
    }
}

fn shape(fields: &mut Fields) -> Option<PublicShape> {
    Some(PublicShape { hash_seed: fields.u64()?, keys: fields.u64()? })
}

fn question(fields: &mut Fields) -> Option<Question> {
    let (hash_seed, class_bits) = (fields.u64()?, u32::try_from(fields.u64()?).ok()?);
    let (classes, digests) = (fields.u64()?, fields.u64()?);
    let classes = ascending(fields, classes)?;
    let in_range = |class: &u64| class_bits < 64 && class >> class_bits == 0;
    let digests = ascending(fields, digests)?.into_iter().map(Digest::from_hash).collect();
    let valid = !classes.is_empty() && classes.iter().all(in_range);
    valid.then_some(Question { hash_seed, class_bits, classes, digests })
}

fn answer(fields: &mut Fields) -> Option<Answer> {
    let (hash_seed, groups) = (fields.u64()?, u32::try_from(fields.u64()?).ok()?);
    let (levels, keys) = (fields.u64()?, fields.u64()?);
    if !(1..=MAX_GROUPS).contains(&groups) || !(1..=u64::from(MAX_LEVELS)).contains(&levels) {
        return None;
    }
    let levels: Vec<LevelInfo> =
        (0..levels as u32).map(|number| level(fields, number)).collect::<Option<_>>()?;
    let digests = ascending(fields, keys)?.into_iter().map(Digest::from_hash).collect();
    let found = fields.bytes(keys.checked_mul(levels.len() as u64)?)?.to_vec();
    let valid = found.iter().all(|found| u32::from(*found) <= groups);
    valid.then_some(Answer { hash_seed, groups, levels, digests, found, intervals: OnceLock::new() })
}

fn level(fields: &mut Fields, number: u32) -> Option<LevelInfo> {
    let (bits, hashes, ones) = (fields.u64()?, u32::try_from(fields.u64()?).ok()?, fields.u64()?);
    let valid = (1..=MAX_BITS).contains(&bits) && (1..=MAX_HASHES).contains(&hashes) && ones <= bits;
    let level =
        LevelInfo { sampling: sampling(number), bits, hashes, ones, noise: noise(ones, bits, hashes) };
    valid.then_some(level)
}

/// Takes numbers, each of which must be larger than the one before.
fn ascending(fields: &mut Fields, count: u64) -> Option<Vec<u64>> {
    let numbers: Vec<u64> = fields
        .records(count, size_of::<u64>())?
        .filter_map(|bytes| bytes.try_into().ok().map(u64::from_le_bytes))
        .collect();
    numbers.is_sorted_by(|a, b| a < b).then_some(numbers)
}
