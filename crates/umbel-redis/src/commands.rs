//! The commands of the module, one row each.
//!
//! The arity includes the name of the command and is the least one if it is negative. The flags also decide the ACL
//! categories: `@write` or `@read`, `@fast` or `@slow`, and the category before the braces.

use crate::any::{Any, algebra, commands as any, files};
use crate::bloom::{Bloom, commands as bf};
use crate::cuckoo::{CuckooChain, commands as cf};
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
            c"Makes a Bloom filter";
        c"BF.ADD"            3  One        [Write DenyOom Fast]  bf::add,
            c"Adds an item to a Bloom filter, which is made if it is missing";
        c"BF.MADD"          -3  One        [Write DenyOom]       bf::add_many,
            c"Adds items to a Bloom filter, which is made if it is missing";
        c"BF.INSERT"        -4  One        [Write DenyOom]       bf::insert,
            c"Adds items to a Bloom filter, which is made as the options say";
        c"BF.EXISTS"         3  One        [ReadOnly Fast]       bf::exists,
            c"Tells whether a Bloom filter may have an item";
        c"BF.MEXISTS"       -3  One        [ReadOnly]            bf::exists_many,
            c"Tells which items a Bloom filter may have";
        c"BF.INFO"          -2  One        [ReadOnly Fast]       bf::info,
            c"Describes a Bloom filter";
        c"BF.CARD"           2  One        [ReadOnly Fast]       bf::card,
            c"Tells how many items were added to a Bloom filter";
        c"BF.DEBUG"          2  One        [ReadOnly]            bf::debug,
            c"Describes the stages of a Bloom filter";
        c"BF.SCANDUMP"       3  One        [ReadOnly]            dump::scan::<Bloom>,
            c"Gives a chunk of a Bloom filter";
        c"BF.LOADCHUNK"      4  One        [Write DenyOom]       dump::load::<Bloom>,
            c"Takes a chunk of a Bloom filter";
    }

    // Cuckoo filters.
    c"cuckoo" {
        c"CF.RESERVE"       -3  One        [Write DenyOom]       cf::reserve,
            c"Makes a cuckoo filter";
        c"CF.ADD"            3  One        [Write DenyOom Fast]  cf::add,
            c"Adds an item to a cuckoo filter, which is made if it is missing";
        c"CF.ADDNX"          3  One        [Write DenyOom Fast]  cf::add_absent,
            c"Adds an item to a cuckoo filter if it is not there";
        c"CF.INSERT"        -4  One        [Write DenyOom]       cf::insert,
            c"Adds items to a cuckoo filter, which is made as the options say";
        c"CF.INSERTNX"      -4  One        [Write DenyOom]       cf::insert_absent,
            c"Adds items to a cuckoo filter that are not there";
        c"CF.EXISTS"         3  One        [ReadOnly Fast]       cf::exists,
            c"Tells whether a cuckoo filter may have an item";
        c"CF.MEXISTS"       -3  One        [ReadOnly]            cf::exists_many,
            c"Tells which items a cuckoo filter may have";
        c"CF.DEL"            3  One        [Write Fast]          cf::delete,
            c"Deletes an item from a cuckoo filter once";
        c"CF.COUNT"          3  One        [ReadOnly Fast]       cf::count,
            c"Tells how often a cuckoo filter may have an item";
        c"CF.INFO"           2  One        [ReadOnly Fast]       cf::info,
            c"Describes a cuckoo filter";
        c"CF.COMPACT"        2  One        [Write]               cf::compact,
            c"Brings the items of a cuckoo filter into fewer levels";
        c"CF.SCANDUMP"       3  One        [ReadOnly]            dump::scan::<CuckooChain>,
            c"Gives a chunk of a cuckoo filter";
        c"CF.LOADCHUNK"      4  One        [Write DenyOom]       dump::load::<CuckooChain>,
            c"Takes a chunk of a cuckoo filter";
    }

    // Count-min sketches.
    c"cms" {
        c"CMS.INITBYDIM"    -4  One        [Write DenyOom]       cms::init_by_dimensions,
            c"Makes a count-min sketch of a width and a depth";
        c"CMS.INITBYPROB"   -4  One        [Write DenyOom]       cms::init_by_probability,
            c"Makes a count-min sketch with an error";
        c"CMS.INCRBY"       -4  One        [Write DenyOom]       cms::increment,
            c"Counts items in a count-min sketch";
        c"CMS.QUERY"        -3  One        [ReadOnly]            cms::query,
            c"Estimates how often items were counted";
        c"CMS.MERGE"        -4  Counted    [Write DenyOom]       cms::merge,
            c"Adds up count-min sketches";
        c"CMS.INFO"          2  One        [ReadOnly Fast]       cms::info,
            c"Describes a count-min sketch";
        c"CMS.SCANDUMP"      3  One        [ReadOnly]            dump::scan::<Sketch>,
            c"Gives a chunk of a count-min sketch";
        c"CMS.LOADCHUNK"     4  One        [Write DenyOom]       dump::load::<Sketch>,
            c"Takes a chunk of a count-min sketch";
    }

    // Lists of the most frequent items.
    c"topk" {
        c"TOPK.RESERVE"     -3  One        [Write DenyOom]       topk::reserve,
            c"Makes a list of the most frequent items";
        c"TOPK.ADD"         -3  One        [Write DenyOom]       topk::add,
            c"Adds items, and tells which left the list for them";
        c"TOPK.INCRBY"      -4  One        [Write DenyOom]       topk::increment,
            c"Adds items several times, and tells which left the list for them";
        c"TOPK.QUERY"       -3  One        [ReadOnly]            topk::query,
            c"Tells which items are in the list";
        c"TOPK.COUNT"       -3  One        [ReadOnly]            topk::count,
            c"Estimates how often items came";
        c"TOPK.LIST"        -2  One        [ReadOnly]            topk::list,
            c"Lists the most frequent items";
        c"TOPK.INFO"         2  One        [ReadOnly Fast]       topk::info,
            c"Describes a list of the most frequent items";
        c"TOPK.SCANDUMP"     3  One        [ReadOnly]            dump::scan::<Top>,
            c"Gives a chunk of a list of the most frequent items";
        c"TOPK.LOADCHUNK"    4  One        [Write DenyOom]       dump::load::<Top>,
            c"Takes a chunk of a list of the most frequent items";
    }

    // Filters of every kind.
    c"bloom" {
        c"UMBEL.RESERVE"    -5  One        [Write DenyOom]       any::reserve,
            c"Makes a filter of any kind";
        c"UMBEL.ADD"        -3  One        [Write DenyOom]       any::add,
            c"Adds items to a filter of any kind";
        c"UMBEL.ADDAT"      -4  One        [Write DenyOom]       any::add_at,
            c"Adds items to a filter that forgets, at a time";
        c"UMBEL.EXISTS"     -3  One        [ReadOnly]            any::exists,
            c"Tells which items a filter of any kind may have";
        c"UMBEL.REMOVE"     -3  One        [Write]               any::remove,
            c"Takes items out of a filter";
        c"UMBEL.GET"        -3  One        [ReadOnly]            any::get,
            c"Looks items up in a map";
        c"UMBEL.INFO"        2  One        [ReadOnly]            any::info,
            c"Describes a filter, its fill and its rate";
        c"UMBEL.MERGE"      -3  IntoFirst  [Write DenyOom]       algebra::merge,
            c"Adds all items of filters to another";
        c"UMBEL.INTERSECT"  -3  OverFirst  [Write DenyOom]       algebra::intersect,
            c"Makes a filter of the items that all of several have";
        c"UMBEL.JACCARD"     3  Two        [ReadOnly]            algebra::jaccard,
            c"Estimates how alike two filters are";
        c"UMBEL.CARD"       -2  All        [ReadOnly]            algebra::card,
            c"Estimates how many items filters have together";
        c"UMBEL.EXPORT"     -3  One        [ReadOnly]            files::export,
            c"Gives a piece of a filter as a file";
        c"UMBEL.IMPORT"     -5  One        [Write DenyOom]       files::import,
            c"Takes a piece of a filter as a file";
        c"UMBEL.SCANDUMP"    3  One        [ReadOnly]            dump::scan::<Any>,
            c"Gives a chunk of a filter of any kind";
        c"UMBEL.LOADCHUNK"   4  One        [Write DenyOom]       dump::load::<Any>,
            c"Takes a chunk of a filter of any kind";
    }
};
