//! The messages of private counts: a shape, a question or an answer.
//!
//! No input may cause a panic. A message that was read gives the same bytes when it is written. An
//! answer to any question has no more keys than its limit.

use crate::seal;
use umbel::space_code::private::{Answer, Message, Question};
use umbel::{AnyCount, Kind, Spec};

/// The largest number of keys that a question is answered for.
const MAX_KEYS: u64 = 100;

/// Tests any bytes, as they are and with a matching checksum.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::private_count(&mut sealed);
    loads(&sealed);
}

/// Returns the multiset that is asked.
pub fn counts() -> AnyCount {
    let spec = Spec::new(1000, 0.01).expect("valid numbers");
    let mut counts = AnyCount::build(Kind::MultiResolution, &spec).expect("a valid kind");
    (0..300u64).for_each(|key| counts.insert(&(key % 40)));
    counts
}

/// Tries to read a message, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Ok(message) = Message::from_bytes(bytes) else { return false };
    assert!(message.to_bytes() == bytes, "a message has one form");
    match message {
        Message::Shape(shape) => {
            let question =
                Question::new(&shape, 1, &[shape.hash_key("key")], None).expect("a valid question");
            assert!(question.fits(shape.hash_key("key")));
        }
        Message::Question(question) => {
            if let Ok(answer) = Answer::new(&counts(), &question, None, MAX_KEYS) {
                assert!(answer.keys() as u64 <= MAX_KEYS);
            }
        }
        Message::Answer(answer) => {
            let counted = (0..100u64).filter_map(|key| answer.count(&key));
            assert!(counted.into_iter().all(|count| count.value >= 0.0 && count.low <= count.high));
        }
    }
    true
}
