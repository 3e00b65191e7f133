//! A script that sees the time of the exploration, in which nothing passes by itself.

use crate::domain::schema::{Action, Call, Schema};

/// True when a script of the schema asks for the time, or a call sends it: then the same call in the same state can get
/// another reply later.
pub(super) fn sees_time(schema: &Schema) -> bool {
    if schema.steps().flat_map(|step| &step.calls).any(Call::sends_time) {
        return true;
    }
    let calls = schema.steps().flat_map(|step| &step.calls);
    let names = calls.filter_map(|call| match &call.action {
        Action::Script { name, .. } => schema.scripts.get(name),
        Action::Command(_) => None,
    });
    names.into_iter().any(|script| asks_time(&script.text))
}

fn asks_time(script: &str) -> bool {
    let script = script.to_ascii_lowercase();
    script.contains("'time'") || script.contains("\"time\"")
}

/// The script with a clock that stands at `ms`. The line is put before the script's first one, so that errors name the lines
/// of the script.
pub(super) fn at(script: &str, ms: u64) -> String {
    let clock = format!(
        "local __t={{'{}','{}'}} local function __f(f) return function(c,...) if string.upper(c)=='TIME' then return __t end \
         return f(c,...) end end local redis=setmetatable({{call=__f(redis.call),pcall=__f(redis.pcall)}},{{__index=redis}}) \
         local server=redis ",
        ms / 1_000,
        ms % 1_000 * 1_000
    );
    // Where a script names its engine, the name stands in the first line.
    match script.split_once('\n').filter(|(first, _)| first.starts_with("#!")) {
        Some((engine, rest)) => format!("{engine}\n{clock}{rest}"),
        None => clock + script,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_script_keep_their_numbers() {
        for script in ["return 1\nreturn 2", "#!lua\nreturn 1"] {
            assert_eq!(at(script, 1_500).lines().count(), script.lines().count());
        }
        assert!(at("#!lua\nreturn 1", 0).starts_with("#!lua\n"));
        assert!(at("x", 1_500).contains("{'1','500000'}"));
    }

    #[test]
    fn a_script_that_asks_for_the_time_is_known() {
        assert!(asks_time("redis.call('TIME')") && asks_time("redis.pcall(\"time\")"));
        assert!(!asks_time("-- the time of a lock"));
    }
}
