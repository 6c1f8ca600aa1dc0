//! The commands of the module, one row each.
//!
//! The arity includes the name of the command; a negative arity is a minimum. The flags also
//! determine the ACL categories: `@write` or `@read`, `@fast` or `@slow`, `@dangerous` for commands
//! that hand out the contents of a key, and the category before the braces.

use crate::any::{Any, algebra, commands as any, files};
use crate::bloom::{BloomValue, commands as bf};
use crate::cuckoo::{CuckooValue, commands as cf};
use crate::dump;
use crate::server::{CommandSpec, command_table};
use crate::sketch::{Sketch, commands as cms};
use crate::top::{Top, commands as topk};
use std::ffi::CStr;

/// The ACL categories that the module adds.
pub const ACL_CATEGORIES: [&CStr; 4] = [c"bloom", c"cuckoo", c"cms", c"topk"];

/// All commands.
#[rustfmt::skip]
pub const COMMANDS: &[CommandSpec] = command_table! {
    // name, arity, keys, flags, handler,
    //     summary;

    // Bloom filters.
    c"bloom" {
        c"BF.RESERVE"       -4  One        [Write DenyOom]       bf::reserve,
            c"Creates a Bloom filter";
        c"BF.ADD"            3  One        [Write DenyOom Fast]  bf::add,
            c"Adds an item to a Bloom filter, creating it if it does not exist";
        c"BF.MADD"          -3  One        [Write DenyOom]       bf::add_many,
            c"Adds items to a Bloom filter, creating it if it does not exist";
        c"BF.INSERT"        -4  One        [Write DenyOom]       bf::insert,
            c"Adds items to a Bloom filter, creating it with the options if it does not exist";
        c"BF.EXISTS"         3  One        [ReadOnly Fast]       bf::exists,
            c"Checks whether a Bloom filter may contain an item";
        c"BF.MEXISTS"       -3  One        [ReadOnly]            bf::exists_many,
            c"Checks which items a Bloom filter may contain";
        c"BF.INFO"          -2  One        [ReadOnly Fast]       bf::info,
            c"Describes a Bloom filter";
        c"BF.CARD"           2  One        [ReadOnly Fast]       bf::card,
            c"Returns the number of items added to a Bloom filter";
        c"BF.DEBUG"          2  One        [ReadOnly]            bf::debug,
            c"Describes the stages of a Bloom filter";
        c"BF.SCANDUMP"       3  One        [ReadOnly Export]     dump::scan::<BloomValue>,
            c"Returns a chunk of a Bloom filter";
        c"BF.LOADCHUNK"      4  One        [Write DenyOom]       dump::load::<BloomValue>,
            c"Loads a chunk of a Bloom filter";
    }

    // Cuckoo filters.
    c"cuckoo" {
        c"CF.RESERVE"       -3  One        [Write DenyOom]       cf::reserve,
            c"Creates a cuckoo filter";
        c"CF.ADD"            3  One        [Write DenyOom Fast]  cf::add,
            c"Adds an item to a cuckoo filter, creating it if it does not exist";
        c"CF.ADDNX"          3  One        [Write DenyOom Fast]  cf::add_absent,
            c"Adds an item to a cuckoo filter if it is not present";
        c"CF.INSERT"        -4  One        [Write DenyOom]       cf::insert,
            c"Adds items to a cuckoo filter, creating it with the options if it does not exist";
        c"CF.INSERTNX"      -4  One        [Write DenyOom]       cf::insert_absent,
            c"Adds items to a cuckoo filter that are not present";
        c"CF.EXISTS"         3  One        [ReadOnly Fast]       cf::exists,
            c"Checks whether a cuckoo filter may contain an item";
        c"CF.MEXISTS"       -3  One        [ReadOnly]            cf::exists_many,
            c"Checks which items a cuckoo filter may contain";
        c"CF.DEL"            3  One        [Write Fast]          cf::delete,
            c"Deletes one occurrence of an item from a cuckoo filter";
        c"CF.COUNT"          3  One        [ReadOnly Fast]       cf::count,
            c"Returns how often an item may have been added to a cuckoo filter";
        c"CF.INFO"           2  One        [ReadOnly Fast]       cf::info,
            c"Describes a cuckoo filter";
        c"CF.DEBUG"          2  One        [ReadOnly Fast]       cf::debug,
            c"Describes the levels of a cuckoo filter";
        c"CF.COMPACT"        2  One        [Write]               cf::compact,
            c"Moves the items of a cuckoo filter into fewer levels";
        c"CF.SCANDUMP"       3  One        [ReadOnly Export]     dump::scan::<CuckooValue>,
            c"Returns a chunk of a cuckoo filter";
        c"CF.LOADCHUNK"      4  One        [Write DenyOom]       dump::load::<CuckooValue>,
            c"Loads a chunk of a cuckoo filter";
    }

    // Count-min sketches.
    c"cms" {
        c"CMS.INITBYDIM"    -4  One        [Write DenyOom]       cms::init_by_dimensions,
            c"Creates a count-min sketch with a width and a depth";
        c"CMS.INITBYPROB"   -4  One        [Write DenyOom]       cms::init_by_probability,
            c"Creates a count-min sketch for an error and its probability";
        c"CMS.INCRBY"       -4  One        [Write DenyOom]       cms::increment,
            c"Counts items in a count-min sketch";
        c"CMS.QUERY"        -3  One        [ReadOnly]            cms::query,
            c"Estimates how often items were counted";
        c"CMS.MERGE"        -4  Counted    [Write DenyOom]       cms::merge,
            c"Adds up count-min sketches";
        c"CMS.INFO"          2  One        [ReadOnly Fast]       cms::info,
            c"Describes a count-min sketch";
        c"CMS.SCANDUMP"      3  One        [ReadOnly Export]     dump::scan::<Sketch>,
            c"Returns a chunk of a count-min sketch";
        c"CMS.LOADCHUNK"     4  One        [Write DenyOom]       dump::load::<Sketch>,
            c"Loads a chunk of a count-min sketch";
    }

    // Lists of the most frequent items.
    c"topk" {
        c"TOPK.RESERVE"     -3  One        [Write DenyOom]       topk::reserve,
            c"Creates a list of the most frequent items";
        c"TOPK.ADD"         -3  One        [Write DenyOom]       topk::add,
            c"Adds items and returns the items they displaced from the list";
        c"TOPK.INCRBY"      -4  One        [Write DenyOom]       topk::increment,
            c"Adds items several times and returns the items they displaced from the list";
        c"TOPK.QUERY"       -3  One        [ReadOnly]            topk::query,
            c"Checks which items are in the list";
        c"TOPK.COUNT"       -3  One        [ReadOnly]            topk::count,
            c"Estimates how often items were added";
        c"TOPK.LIST"        -2  One        [ReadOnly]            topk::list,
            c"Lists the most frequent items";
        c"TOPK.INFO"         2  One        [ReadOnly Fast]       topk::info,
            c"Describes a list of the most frequent items";
        c"TOPK.SCANDUMP"     3  One        [ReadOnly Export]     dump::scan::<Top>,
            c"Returns a chunk of a list of the most frequent items";
        c"TOPK.LOADCHUNK"    4  One        [Write DenyOom]       dump::load::<Top>,
            c"Loads a chunk of a list of the most frequent items";
    }

    // Filters of every kind.
    c"bloom" {
        c"UMBEL.RESERVE"    -5  One        [Write DenyOom]       any::reserve,
            c"Creates a filter of any kind";
        c"UMBEL.ADD"        -3  One        [Write DenyOom]       any::add,
            c"Adds items to a filter of any kind";
        c"UMBEL.ADDAT"      -4  One        [Write DenyOom]       any::add_at,
            c"Adds items to an aging filter at a given time";
        c"UMBEL.EXISTS"     -3  One        [ReadOnly]            any::exists,
            c"Checks which items a filter of any kind may contain";
        c"UMBEL.REMOVE"     -3  One        [Write]               any::remove,
            c"Removes items from a filter";
        c"UMBEL.GET"        -3  One        [ReadOnly]            any::get,
            c"Looks up items in a map or multiset";
        c"UMBEL.INFO"        2  One        [ReadOnly]            any::info,
            c"Describes a filter, its fill and its rate";
        c"UMBEL.MERGE"      -3  IntoFirst  [Write DenyOom]       algebra::merge,
            c"Adds all items of filters to another filter";
        c"UMBEL.INTERSECT"  -3  OverFirst  [Write DenyOom]       algebra::intersect,
            c"Creates a filter of the items that several filters have in common";
        c"UMBEL.JACCARD"     3  Two        [ReadOnly]            algebra::jaccard,
            c"Estimates the similarity of two filters";
        c"UMBEL.CARD"       -2  All        [ReadOnly]            algebra::card,
            c"Estimates the number of items in the union of filters";
        c"UMBEL.EXPORT"     -3  One        [ReadOnly Export]     files::export,
            c"Returns a piece of the file of a filter";
        c"UMBEL.IMPORT"     -5  One        [Write DenyOom]       files::import,
            c"Loads a piece of the file of a filter";
        c"UMBEL.SCANDUMP"    3  One        [ReadOnly Export]     dump::scan::<Any>,
            c"Returns a chunk of a filter of any kind";
        c"UMBEL.LOADCHUNK"   4  One        [Write DenyOom]       dump::load::<Any>,
            c"Loads a chunk of a filter of any kind";
    }
};
