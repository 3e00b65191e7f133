//! Parts of the TOML that a protocol stands for.

/// A `when` that holds if the Redis key of a role is in this state.
pub(super) fn is(role: &str, state: &str) -> String {
    format!("{{ {role} = \"{state}\" }}")
}

/// A `when` that holds if a script that reads `read_first`, and then `role`, meets this state.
pub(super) fn is_met(role: &str, read_first: Option<&str>, state: &str) -> String {
    match read_first {
        None => is(role, state),
        Some(first) => {
            let behind = format!("{{ {role} = \"{state}\", {first} = \"absent\" }}");
            format!("[{}, {behind}]", is(first, state))
        }
    }
}

/// A plain command as a line of TOML.
pub(super) fn command(words: &[&str]) -> String {
    format!("command = {}", list(words))
}

/// A script as lines of TOML.
pub(super) fn script(name: &str, keys: &[&str], args: &[&str]) -> String {
    format!("script = {}\nkeys = {}\nargs = {}", text(name), list(keys), list(args))
}

fn list(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| text(word)).collect();
    format!("[{}]", words.join(", "))
}

/// A text as TOML.
pub(super) fn text(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

pub(super) fn placeholder(role: &str) -> String {
    format!("{{{role}}}")
}
