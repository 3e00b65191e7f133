//! What `-o json` and `-o jsonl` write is what `docs/schema/` says, field for field, of every command that has the option.

mod closed;
mod documented;
mod outputs;
mod stage;
mod validator;
mod written;
