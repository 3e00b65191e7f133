//! The binary from the outside: stdout, stderr and exit code of each command, on a real server. A command's tests stand in the
//! file of its name, what several commands share in a file named after the concern.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]
#![allow(clippy::print_stderr, reason = "a test that cannot be run here says so")]

#[path = "../support/mod.rs"]
mod support;

mod acl;
mod address_map;
mod addresses;
mod adopt;
mod advice;
mod apply;
mod audit_command;
mod audit_files;
mod backups;
mod begin_release;
mod by_hand;
mod check;
mod ci_action;
mod claims;
mod client_side;
mod complete;
mod completing;
mod completions;
mod config_check;
mod consoles;
mod context_set;
mod context_test;
mod contexts;
mod debug;
mod delivery;
mod detect;
mod diff;
mod doctor;
mod doctor_schemas;
mod duplicates;
mod endless_locks;
mod evidence;
mod explore;
mod extend;
mod familiar;
mod far_fields;
mod field_cases;
mod force_unlock;
mod format_two;
mod history;
mod hostile_keys;
mod identity;
mod incidents;
mod inspect;
mod json;
mod junit;
mod keeping;
mod kept_hashes;
mod layouts;
mod library_layouts;
mod list;
mod locks_alone;
mod log_prune;
mod log_records;
mod named_schemas;
mod names;
mod near_misses;
mod new_schema;
mod no_scripts;
mod observed;
mod other_layouts;
mod own_end;
mod own_expiry;
mod own_expiry_leases;
mod own_schema;
mod own_steps;
mod pairs;
mod password_command;
mod payload_use;
mod prefix;
mod printed;
mod progress;
mod prompts;
mod protected;
mod protocols;
mod purge;
mod race;
mod reassurance;
mod recipes;
mod restore;
mod sandbox;
mod schema;
mod schema_check;
mod seldom_states;
mod select;
mod sent_times;
mod shells;
mod show;
mod signals;
mod simulate;
mod starts_over;
mod states;
mod stats;
mod sweep;
mod tls;
mod true_reasons;
mod unclear_values;
mod undecodable;
mod undo;
mod unwritten;
mod version_0_2;
mod watch;
mod without_begin;
mod written;
