//! Private counts: the answer has the estimates of the multiset, a question hides a key among as
//! many others as wished, and asking again reveals nothing more.

use std::path::PathBuf;
use umbel::file::FormatError;
use umbel::sizing::space_code::Rule;
use umbel::space_code::private::{Answer, HashedKey, Message, PublicShape, Question, Universe, is_message};
use umbel::space_code::{Estimator, Options};
use umbel::spec::KindOptions;
use umbel::{AnyCount, Error, Hasher, Key, Kind, Spec};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Returns an empty multiset.
fn multiset(kind: Kind, recordings: u64, noise: f64, options: Options, hasher: Hasher) -> AnyCount {
    let mut kind_options = KindOptions::default();
    kind_options.space_code = options;
    let spec = Spec::new(recordings, noise).unwrap().with_options(kind_options).with_hasher(hasher);
    AnyCount::build(kind, &spec).unwrap()
}

/// Returns a multiset in which key i of `keys` was recorded i times.
fn triangle(kind: Kind, keys: u64, options: Options) -> AnyCount {
    let recordings = keys * (keys - 1) / 2;
    let mut counts = multiset(kind, recordings.max(1), 0.01, options, Hasher::fast(7));
    (0..keys).for_each(|key| (0..key).for_each(|_| counts.insert(&key)));
    counts
}

fn decoded<T>(message: impl Into<Message>, read: impl Fn(Message) -> Option<T>) -> T {
    read(Message::from_bytes(&message.into().to_bytes()).unwrap()).expect("a message of the same type")
}

fn sent_question(question: Question) -> Question {
    decoded(question, |message| if let Message::Question(question) = message { Some(question) } else { None })
}

fn sent_answer(answer: Answer) -> Answer {
    decoded(answer, |message| if let Message::Answer(answer) = message { Some(answer) } else { None })
}

#[test]
fn an_answer_has_the_estimates_of_the_multiset() {
    for kind in [Kind::SpaceCode, Kind::MultiResolution] {
        for (groups, epoch) in [(8, 0), (32, 3), (64, 0)] {
            let counts = triangle(kind, 300, Options { groups, epoch, ..Options::default() });
            let shape = PublicShape::from_counts(&counts).unwrap();
            // Keys that were never recorded are in the universe, too.
            let universe: Universe = (0..400u64).map(|key| shape.hash_key(&key)).collect();
            for key in (0..400u64).step_by(3) {
                let question = Question::new(&shape, 50, &[shape.hash_key(&key)], Some(&universe)).unwrap();
                let question = sent_question(question);
                let answer = sent_answer(Answer::new(&counts, &question, None, 400).unwrap());
                assert_eq!(
                    answer.count(&key),
                    Some(counts.count(&key)),
                    "{kind}, {groups} groups, key {key}"
                );
                let digest = key.digest(counts.hasher());
                let most_likely = match &counts {
                    AnyCount::SpaceCode(counts) => counts.estimate(digest, Estimator::Mle),
                    AnyCount::MultiResolution(counts) => {
                        counts.estimate(digest, Estimator::Mle, Rule::Guarded)
                    }
                    other => panic!("{other:?}"),
                };
                assert_eq!(answer.estimate(&key, Estimator::Mle), Some(most_likely));
                // A list on the other side gives the same answer to the class alone.
                let bare = Question::new(&shape, 50, &[shape.hash_key(&key)], None).unwrap();
                assert!(bare.digests().is_empty());
                let answer = Answer::new(&counts, &sent_question(bare), Some(&universe), 400).unwrap();
                assert_eq!(answer.count(&key), Some(counts.count(&key)));
                assert_eq!(answer.count("no key of the universe"), None);
            }
        }
    }
}

/// A million keys of which an observer knows all.
const MANY: u64 = 1_000_000;

/// Returns the shape of a multiset with a million different keys, all of them, and their hashes.
fn many(seed: u64) -> (PublicShape, Vec<HashedKey>) {
    let options = Options { keys: Some(MANY), ..Options::default() };
    let mut counts = multiset(Kind::SpaceCode, MANY, 0.05, options, Hasher::fast(seed));
    let keys: Vec<u64> = (0..MANY).collect();
    counts.insert_batch(&keys[..]);
    let shape = PublicShape::from_counts(&counts).unwrap();
    // The number of keys is estimated, and never above the number that was planned.
    assert!((0.99 * MANY as f64..=MANY as f64).contains(&(shape.keys() as f64)), "{}", shape.keys());
    (shape, keys.iter().map(|key| shape.hash_key(key)).collect())
}

#[test]
fn as_many_keys_as_wished_fit_a_question_and_fewer_than_twice_as_many() {
    let (shape, keys) = many(1);
    let universe: Universe = keys.iter().copied().collect();
    for cover in [1u64, 30, 1000, 4000, 100_000, 499_000] {
        for key in [3, 500_000, MANY - 1] {
            let asked = keys[key as usize];
            let question = Question::new(&shape, cover, &[asked], None).unwrap();
            let expected = question.expected_keys(MANY);
            assert!((0.99..2.02).contains(&(expected / cover as f64)), "{expected} for {cover}");
            assert!(question.fits(asked));
            // The number of others is binomial. Five standard deviations and two keys are exceeded
            // with a probability below one in a hundred thousand.
            let fit = keys.iter().filter(|key| question.fits(**key)).count();
            let slack = 2.0 + 5.0 * expected.sqrt();
            assert!((fit as f64 - expected).abs() <= slack, "{fit} for a cover of {cover}, not {expected}");
            // Exactly these are listed, so that the list reveals no more than the class.
            let listed = Question::new(&shape, cover, &[asked], Some(&universe)).unwrap();
            if listed.class_bits() == question.class_bits() {
                assert_eq!(listed.digests().len(), fit);
            }
        }
    }
}

#[test]
fn asking_again_reveals_nothing_more() {
    let (shape, keys) = many(1);
    let (other, others) = many(2);
    let listed: Universe = keys.iter().take(10_000).copied().collect();
    let reversed: Universe = keys.iter().take(10_000).rev().copied().collect();
    for key in [7usize, 4711] {
        let ask = |cover| Question::new(&shape, cover, &[keys[key]], None).unwrap();
        // The same question every time, whatever the order of the list.
        let bytes = |universe| {
            let question = Question::new(&shape, 1000, &[keys[key]], Some(universe)).unwrap();
            Message::from(question).to_bytes()
        };
        assert_eq!(bytes(&listed), bytes(&listed));
        assert_eq!(bytes(&listed), bytes(&reversed));
        // Every other key of the class has the same question, byte for byte.
        let finest = ask(1000);
        let fit: Vec<usize> = (0..keys.len()).filter(|other| finest.fits(keys[*other])).collect();
        for other in &fit {
            assert_eq!(Question::new(&shape, 1000, &[keys[*other]], None).unwrap(), finest);
        }
        // All questions for this key together, with other covers and to another multiset, leave
        // as many keys as the finest one alone.
        let questions: Vec<Question> = (1000..40_000).step_by(977).map(ask).collect();
        let elsewhere = Question::new(&other, 1000, &[others[key]], None).unwrap();
        let all = |key: usize| {
            questions.iter().all(|question| question.fits(keys[key])) && elsewhere.fits(others[key])
        };
        assert_eq!((0..keys.len()).filter(|key| all(*key)).collect::<Vec<_>>(), fit);
    }
}

#[test]
fn a_question_to_few_keys_names_the_class_of_all() {
    let counts = triangle(Kind::MultiResolution, 20, Options::default());
    let shape = PublicShape::from_counts(&counts).unwrap();
    let question = Question::new(&shape, 1000, &[shape.hash_key(&3u64)], None).unwrap();
    assert_eq!((question.class_bits(), question.classes()), (0, 1));
    assert!((0..1000u64).all(|key| question.fits(shape.hash_key(&key))));
    // Without a planned number of keys, the estimate is a lower limit.
    assert!((1..=20).contains(&shape.keys()), "{}", shape.keys());
}

/// Returns the message of an error about a parameter.
fn refused<T>(result: umbel::Result<T>) -> String {
    match result {
        Err(error @ Error::Parameter { .. }) => error.to_string(),
        Err(other) => panic!("not about a parameter: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn questions_that_reveal_a_key_or_too_many_counts_are_refused() {
    let counts = triangle(Kind::SpaceCode, 100, Options::default());
    let shape = PublicShape::from_counts(&counts).unwrap();
    let universe: Universe = (0..100u64).map(|key| shape.hash_key(&key)).collect();
    let (asked, stranger) = (shape.hash_key(&3u64), shape.hash_key("a stranger"));
    assert!(refused(Question::new(&shape, 10, &[asked, stranger], Some(&universe))).contains("number 2"));
    assert!(refused(Question::new(&shape, 0, &[asked], None)).contains("at least 1"));
    assert!(refused(Question::new(&shape, 10, &[], None)).contains("at least one key"));
    let all = Question::new(&shape, 100, &[asked], Some(&universe)).unwrap();
    assert!(refused(Answer::new(&counts, &all, None, 99)).contains("at most 99"));
    assert_eq!(Answer::new(&counts, &all, None, 100).unwrap().keys(), 100);
    let bare = Question::new(&shape, 100, &[asked], None).unwrap();
    assert!(refused(Answer::new(&counts, &bare, None, 100)).contains("a list of the keys"));
    assert!(refused(Answer::new(&counts, &bare, Some(&universe), 99)).contains("at most 99"));
    // Another multiset has other digests, and a secret hash has none that others know.
    let other = multiset(Kind::SpaceCode, 100, 0.01, Options::default(), Hasher::fast(8));
    assert!(refused(Answer::new(&other, &all, None, 100)).contains("another one"));
    let secret = multiset(Kind::SpaceCode, 100, 0.01, Options::default(), Hasher::keyed([1; 16]));
    assert!(refused(PublicShape::from_counts(&secret)).contains("secret"));
    assert!(refused(Answer::new(&secret, &all, None, 100)).contains("secret"));
}

/// Returns a message of each type, with its name.
fn messages() -> [(&'static str, Vec<u8>); 3] {
    let counts = triangle(Kind::MultiResolution, 30, Options { levels: 2, ..Options::default() });
    let shape = PublicShape::from_counts(&counts).unwrap();
    let universe: Universe = (0..40u64).map(|key| shape.hash_key(&key)).collect();
    let keys = [3u64, 17].map(|key| shape.hash_key(&key));
    let question = Question::new(&shape, 5, &keys, Some(&universe)).unwrap();
    let answer = Answer::new(&counts, &question, None, 40).unwrap();
    [
        ("shape", Message::from(shape).to_bytes()),
        ("question", Message::from(question).to_bytes()),
        ("answer", Message::from(answer).to_bytes()),
    ]
}

#[test]
fn messages_are_those_of_the_golden_files() {
    for (name, bytes) in messages() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden_messages").join(name);
        if std::env::var_os("UMBEL_BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == bytes, "{name}");
    }
}

#[test]
fn every_bit_flip_truncation_and_extension_of_a_message_is_detected() {
    for (name, bytes) in messages() {
        assert!(is_message(&bytes));
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Message::from_bytes(&flipped).is_err(), "{name}, bit {bit}");
        }
        for end in 0..bytes.len() {
            assert!(Message::from_bytes(&bytes[..end]).is_err(), "{name}, {end} bytes");
        }
        assert!(Message::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
    let text = Message::from_bytes(b"not a message").unwrap_err();
    assert!(format!("{text:#}").contains("not a shape"), "{text:#}");
}

/// Writes a valid length and checksum, as a hostile writer would.
fn reseal(bytes: &mut [u8]) {
    let content = bytes.len() - 8;
    let len = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&len.to_le_bytes());
    let sum = xxh3_64_with_seed(&bytes[..content], 0);
    bytes[content..].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn hostile_messages_are_refused_or_answered_without_a_panic() {
    let values = [0, 1, 2, 31, 33, 63, 64, 65, 255, 1 << 32, 1 << 61, u64::MAX / 2, u64::MAX];
    let counts = triangle(Kind::MultiResolution, 30, Options { levels: 2, ..Options::default() });
    for (name, bytes) in messages() {
        for start in (8..bytes.len() - 8).filter(|start| start % 8 == 0) {
            for value in values {
                let mut hostile = bytes.clone();
                hostile[start..start + 8].copy_from_slice(&value.to_le_bytes());
                reseal(&mut hostile);
                match Message::from_bytes(&hostile) {
                    Ok(Message::Question(question)) => drop(Answer::new(&counts, &question, None, 10)),
                    Ok(Message::Answer(answer)) => {
                        let counted = (0..40u64).filter_map(|key| answer.count(&key)).count();
                        assert!(counted <= answer.keys(), "{name}");
                    }
                    Ok(Message::Shape(shape)) => {
                        let question = Question::new(&shape, 1, &[shape.hash_key("key")], None).unwrap();
                        assert_eq!(sent_question(question.clone()), question);
                    }
                    Err(Error::Format { problem, .. }) => assert_ne!(problem, FormatError::NotAFilter),
                    Err(other) => panic!("{name}: {other}"),
                }
            }
        }
    }
}
