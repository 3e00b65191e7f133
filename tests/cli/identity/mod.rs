//! What changes, was looked at: a lock that was renewed, or released and taken anew with the same bytes, is another lock, and
//! so is a result that was written anew. Each test names the rule it guards: without the rule the test fails.

mod sweeps;
mod touched;
