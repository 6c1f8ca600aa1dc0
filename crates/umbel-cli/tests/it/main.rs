//! The integration tests of `umbel-cli`, linked into one binary: a module for each promise, and the
//! fixtures that they share.
//!
//! `cargo test -p umbel-cli --test it bad_input::` runs the tests of one module.

// Fixtures.
mod chromium;
mod markdown;
mod shell;
mod words;
mod writers;

// Fixtures of other crates. Only parts of them are used here.
#[allow(dead_code)]
#[path = "../../../umbel-net/tests/it/common.rs"]
mod captures;
#[allow(dead_code)]
#[path = "../../../umbel-cache/tests/it/client.rs"]
mod client;
#[path = "../../../umbel-net/tests/it/debian.rs"]
mod debian;
#[allow(dead_code)]
#[path = "../../../umbel-cache/tests/it/origin.rs"]
mod origin;
#[allow(dead_code)]
#[path = "../../../umbel-redis/tests/it/support.rs"]
mod support;

// Promises.
mod bad_input;
mod build;
mod check;
mod combining;
mod compressed;
mod count;
mod count_private;
mod crash;
mod csv;
mod distinct;
mod errors;
mod escapes;
mod estimates;
mod examples;
mod explore;
mod explore_files;
mod facts;
mod failing_calls;
mod foreign;
mod full_disk;
mod fuse;
mod grep;
mod growing;
mod hyphenate;
mod index;
mod keys;
mod kinds;
mod lab;
mod lab_fpr;
mod lab_report;
mod lab_trace;
mod lab_words;
mod locking;
mod long_lines;
mod manual;
mod map;
#[cfg(target_os = "linux")]
mod memory;
mod net_attribute;
mod net_block;
mod net_flows;
mod net_record;
mod net_scan;
mod net_scan_streams;
mod net_simulate;
mod net_stores;
mod net_trace;
#[cfg(target_os = "linux")]
mod net_trace_network;
mod options;
mod pages;
mod parquet;
mod parquet_write;
mod password;
mod pipes;
mod planning;
mod proxy;
#[cfg(unix)]
mod python;
mod real_passwords;
mod real_words;
mod remote;
mod remote_cluster;
mod remote_hostile;
mod remote_shards;
mod remote_transport;
mod scale;
mod secrets;
mod shaping;
mod shards;
mod short_reads;
mod shortened;
mod similar;
mod sparse;
mod spell;
mod streaming;
mod supply_chain;
mod table;
mod terminal;
mod textbook;
mod top;
mod traps;
mod url;
mod vault;
mod vault_changes;
