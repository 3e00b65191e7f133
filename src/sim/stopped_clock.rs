//! A clock for scripts that stands still, so that a script sees the time that a caller chooses.

use crate::domain::schema::Action;
use crate::domain::step::StepCall;

/// The words of a call, whose script sees this time, in milliseconds since the epoch.
pub(super) fn words_at(call: StepCall<'_>, now_ms: u64) -> Vec<Vec<u8>> {
    let mut words = call.words();
    if matches!(call.call.action, Action::Script { .. }) {
        let script = String::from_utf8_lossy(&words[1]);
        words[1] = with_stopped_clock(&script, now_ms).into_bytes();
    }
    words
}

/// The script with a clock that is stopped at `ms`. The code is added to the first line, so that
/// errors show the script's own line numbers.
fn with_stopped_clock(script: &str, ms: u64) -> String {
    let clock = format!(
        "local __t={{'{}','{}'}} \
         local function __f(f) return function(c,...) \
         if string.upper(c)=='TIME' then return __t end \
         return f(c,...) end end \
         local redis=setmetatable(\
         {{call=__f(redis.call),pcall=__f(redis.pcall)}},{{__index=redis}}) \
         local server=redis ",
        ms / 1_000,
        ms % 1_000 * 1_000
    );
    // The first line must remain first if it names the engine.
    match script.split_once('\n') {
        Some((first, rest)) if first.starts_with("#!") => format!("{first}\n{clock}{rest}"),
        _ => clock + script,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_script_keep_their_numbers() {
        for script in ["return 1\nreturn 2", "#!lua\nreturn 1"] {
            assert_eq!(with_stopped_clock(script, 1_500).lines().count(), script.lines().count());
        }
        assert!(with_stopped_clock("#!lua\nreturn 1", 0).starts_with("#!lua\n"));
        assert!(with_stopped_clock("x", 1_500).contains("{'1','500000'}"));
    }
}
