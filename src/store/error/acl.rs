//! Which right a Redis user lacks, in the syntax of an ACL rule.

/// The missing right if the server does not name it.
pub(in crate::store) const OF_SCRIPT: &str = "the commands that the script runs";

/// The server's message, with the missing right appended if the server named it.
pub(in crate::store) fn named(why: String) -> String {
    match missing(&why) {
        Some(right) => format!("{}; the user needs {right}", why.trim_end_matches(['.', ' '])),
        None => why,
    }
}

fn missing(why: &str) -> Option<String> {
    // For example "User ops has no permissions to run the 'config|get' command", also inside a
    // script.
    if let Some((_, rest)) = why.split_once("permissions to run the '") {
        let command = rest.split('\'').next()?;
        return Some(format!("+{command}"));
    }
    let of_keys = ["access one of the keys", "access a key", "access at least one of the keys"];
    if of_keys.iter().any(|words| why.contains(words)) {
        return Some("a ~PATTERN that matches the Redis key".to_owned());
    }
    // Redis 6.2 and 7.0 do not name the command.
    if why.contains("can't run this command") { Some(OF_SCRIPT.to_owned()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_read_from_the_servers_words() {
        for (why, right) in [
            ("this user has no permissions to run the 'eval' command or its subcommand", "+eval"),
            ("User r has no permissions to run the 'config|get' command", "+config|get"),
            (
                "ACL failure in script: User r has no permissions to run the 'set' command script: on @user_script:1.",
                "+set",
            ),
            ("No permissions to access a key", "a ~PATTERN that matches the Redis key"),
            (
                "The user executing the script can't run this command or subcommand",
                "the commands that the script runs",
            ),
        ] {
            assert!(named(why.to_owned()).ends_with(&format!("; the user needs {right}")), "{why}");
        }
        assert_eq!(named("no".to_owned()), "no");
    }
}
