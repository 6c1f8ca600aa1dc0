//! The chapters of the report.

/// A chapter: the subject that a group of experiments shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chapter {
    /// Bits, hash functions and the false-positive rate of the standard filter.
    Sizing,
    /// Kinds of sets: counting, growing, deletable, cuckoo and others.
    Kinds,
    /// Values for keys, and estimates of counts.
    Counts,
    /// Hash functions, and the time of operations.
    Hashing,
    /// Packets, routers and payloads.
    Networks,
    /// Documents, dictionaries and word lists.
    Documents,
    /// Web caches and tables on disk.
    Caches,
    /// What a filter reveals, and to whom.
    Privacy,
}

impl Chapter {
    /// Every chapter, in the order of the report.
    pub const ALL: [Chapter; 8] = [
        Chapter::Sizing,
        Chapter::Kinds,
        Chapter::Counts,
        Chapter::Hashing,
        Chapter::Networks,
        Chapter::Documents,
        Chapter::Caches,
        Chapter::Privacy,
    ];

    /// Returns the name that links use.
    pub fn id(self) -> &'static str {
        match self {
            Chapter::Sizing => "sizing",
            Chapter::Kinds => "kinds",
            Chapter::Counts => "counts",
            Chapter::Hashing => "hashing",
            Chapter::Networks => "networks",
            Chapter::Documents => "documents",
            Chapter::Caches => "caches",
            Chapter::Privacy => "privacy",
        }
    }

    /// Returns the title.
    pub fn title(self) -> &'static str {
        match self {
            Chapter::Sizing => "Sizing and rates",
            Chapter::Kinds => "Kinds of sets",
            Chapter::Counts => "Maps and counts",
            Chapter::Hashing => "Hashing and speed",
            Chapter::Networks => "Networks",
            Chapter::Documents => "Documents and words",
            Chapter::Caches => "Caches and tables",
            Chapter::Privacy => "Privacy and security",
        }
    }

    /// Returns the question that the chapter answers.
    pub fn question(self) -> &'static str {
        match self {
            Chapter::Sizing => "How many bits and hash functions does a rate take, and do filters keep it?",
            Chapter::Kinds => "What do removal, growth and a smaller size cost?",
            Chapter::Counts => "How well can values and counts be read from a few bits per key?",
            Chapter::Hashing => "Which hash functions are good enough, and where does the time go?",
            Chapter::Networks => "What can filters tell about packets, paths and payloads?",
            Chapter::Documents => "What does a filter in front of a word list or a document save?",
            Chapter::Caches => "How many messages and disk reads does a filter avoid?",
            Chapter::Privacy => "What does a filter reveal, and what protects its keys?",
        }
    }
}
