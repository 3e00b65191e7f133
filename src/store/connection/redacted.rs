//! Formats a command for `--debug`, without passwords, values and owner tokens.
//!
//! A word is shown only if its position in a known command makes it a command word, a Redis key, a
//! field name, or the number of an option. Every other word is replaced by its length and its hash,
//! which are enough to see whether two commands contain the same word.

use sha2::{Digest as _, Sha256};

/// How many words of a command are shown, and how many bytes of a word. A command may have hundreds
/// of Redis keys, and clients choose how long they are.
const MAX_WORDS: usize = 12;
const MAX_BYTES: usize = 64;

/// Options of SET and RESTORE. A word after an unlisted option may be a value.
const OPTIONS: [&str; 10] =
    ["NX", "XX", "GET", "KEEPTTL", "REPLACE", "ABSTTL", "PX", "EX", "PXAT", "EXAT"];

/// A command as `--debug` shows it.
pub(super) fn redacted_words(words: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let name = name_of(words);
    // HELLO may contain the log-in after its option AUTH.
    let mut login = None;
    if name == "AUTH" || name == "HELLO" {
        login = words.iter().position(|word| word.eq_ignore_ascii_case(b"AUTH"));
    }
    let mut redacted = Vec::new();
    for (index, word) in words.iter().enumerate().take(MAX_WORDS) {
        redacted.push(match login {
            Some(login) if index > login => b"(hidden)".to_vec(),
            _ if word.len() <= MAX_BYTES && is_shown(&name, words, index) => word.clone(),
            _ => print(word),
        });
    }
    if words.len() > MAX_WORDS {
        redacted.push(format!("(and {} more)", words.len() - MAX_WORDS).into_bytes());
    }
    redacted
}

/// An error of the server, without the words of the command that it repeats.
pub(super) fn redacted_error(error: &[u8], words: &[Vec<u8>]) -> Vec<u8> {
    const REPEATS: &str = "with args beginning with";
    let mut text = String::from_utf8_lossy(error).into_owned();
    if let Some(at) = text.find(REPEATS) {
        text.truncate(at + REPEATS.len());
        text.push_str(" (hidden)");
    }
    let name = name_of(words);
    for (index, word) in words.iter().enumerate() {
        // Shorter words are skipped, because they often occur by coincidence.
        if word.len() >= 4
            && !is_shown(&name, words, index)
            && let Ok(word) = std::str::from_utf8(word)
        {
            text = text.replace(word, &String::from_utf8_lossy(&print(word.as_bytes())));
        }
    }
    text.into_bytes()
}

/// The command's name in capitals.
fn name_of(words: &[Vec<u8>]) -> String {
    match words.first() {
        Some(name) => String::from_utf8_lossy(&name.to_ascii_uppercase()).into_owned(),
        None => String::new(),
    }
}

/// A word's length and hash.
fn print(word: &[u8]) -> Vec<u8> {
    let hash = Sha256::digest(word);
    format!(
        "<{} B sha256:{:02x}{:02x}{:02x}{:02x}>",
        word.len(),
        hash[0],
        hash[1],
        hash[2],
        hash[3]
    )
    .into_bytes()
}

/// True if the word at this position cannot be a client's value.
fn is_shown(name: &str, words: &[Vec<u8>], index: usize) -> bool {
    if index == 0 {
        return true;
    }
    match name {
        // These take only command words, addresses, key patterns and numbers.
        "PING" | "TIME" | "INFO" | "DBSIZE" | "ROLE" | "SCAN" | "CLUSTER" | "READONLY"
        | "ASKING" | "MULTI" | "EXEC" | "DISCARD" | "UNWATCH" | "WAIT" | "SELECT" | "CLIENT"
        | "COMMAND" | "HELLO" | "SENTINEL" | "MEMORY" | "OBJECT" => true,
        // These take only Redis keys, field names and numbers.
        "GET" | "MGET" | "GETRANGE" | "STRLEN" | "EXISTS" | "TYPE" | "TTL" | "PTTL"
        | "EXPIRETIME" | "PEXPIRETIME" | "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT"
        | "PERSIST" | "DEL" | "UNLINK" | "DUMP" | "WATCH" | "TOUCH" | "HGET" | "HMGET"
        | "HGETALL" | "HLEN" | "HKEYS" | "HEXISTS" | "HSTRLEN" | "HDEL" | "HPTTL"
        | "HPEXPIRETIME" | "HSCAN" | "LLEN" | "SCARD" | "ZCARD" | "XLEN" => true,
        "CONFIG" => index <= 2,
        "SCRIPT" => index == 1,
        "SET" => index == 1 || index >= 3 && is_option(words, index),
        "SETEX" | "PSETEX" => index <= 2,
        "RESTORE" => index <= 2 || index >= 4 && is_option(words, index),
        "HSET" | "HMSET" | "HSETNX" => index == 1 || index.is_multiple_of(2),
        "EVAL" | "EVAL_RO" | "FCALL" => index == 2 || is_script_key(words, index),
        "EVALSHA" | "EVALSHA_RO" => index <= 2 || is_script_key(words, index),
        // Only the Redis key of these commands is shown.
        "SETNX" | "GETSET" | "GETDEL" | "GETEX" | "APPEND" | "INCR" | "INCRBY" => index == 1,
        _ => false,
    }
}

/// True for an option, and for the number after an option that takes one.
fn is_option(words: &[Vec<u8>], index: usize) -> bool {
    let is_number = words[index].iter().all(u8::is_ascii_digit);
    let is_expiry = index > 1 && is_one_of(&words[index - 1], &["PX", "EX", "PXAT", "EXAT"]);
    is_one_of(&words[index], &OPTIONS) || is_number && is_expiry
}

fn is_one_of(word: &[u8], options: &[&str]) -> bool {
    options.iter().any(|option| word.eq_ignore_ascii_case(option.as_bytes()))
}

/// True if the word is one of a script's keys, by the script's number of keys.
fn is_script_key(words: &[Vec<u8>], index: usize) -> bool {
    let Some(count) = words.get(2) else { return false };
    let Ok(count) = std::str::from_utf8(count) else { return false };
    let Ok(count) = count.parse::<usize>() else { return false };
    index >= 3 && index - 3 < count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[&str]) -> String {
        let words: Vec<_> = line.iter().map(|word| word.as_bytes().to_vec()).collect();
        String::from_utf8(redacted_words(&words).join(&b' ')).unwrap()
    }

    /// Rule: no password, stored value or owner token is shown, however short it is.
    #[test]
    fn passwords_and_values_are_not_told() {
        let of_v = "<1 B sha256:4c94485e>";
        assert_eq!(shown(&["AUTH", "s3cret"]), "AUTH (hidden)");
        assert_eq!(shown(&["auth", "ana", "s3cret"]), "auth (hidden) (hidden)");
        assert_eq!(
            shown(&["HELLO", "3", "AUTH", "ana", "s3cret"]),
            "HELLO 3 AUTH (hidden) (hidden)"
        );
        assert_eq!(shown(&["GET", "auth"]), "GET auth");
        assert_eq!(shown(&["SET", "k", "v", "NX", "px", "60"]), format!("SET k {of_v} NX px 60"));
        assert_eq!(shown(&["SET", "k", "v", "IFEQ", "v"]).matches(of_v).count(), 2);
        assert_eq!(shown(&["HSET", "k", "f", "v", "g", "v"]), format!("HSET k f {of_v} g {of_v}"));
        assert_eq!(shown(&["EVALSHA", "abc", "1", "k", "v"]), format!("EVALSHA abc 1 k {of_v}"));
        assert_eq!(
            shown(&["RESTORE", "k", "0", "v", "ABSTTL"]),
            format!("RESTORE k 0 {of_v} ABSTTL")
        );
        assert_eq!(
            shown(&["CONFIG", "SET", "requirepass", "v"]),
            format!("CONFIG SET requirepass {of_v}")
        );
        assert_eq!(shown(&["UNHEARD", "v"]), format!("UNHEARD {of_v}"));
        assert!(shown(&["GET", &"k".repeat(65)]).starts_with("GET <65 B sha256:"));
        assert_eq!(shown(&["DEL"; 20]), format!("{}(and 8 more)", "DEL ".repeat(12)));
    }

    #[test]
    fn an_error_repeats_no_value() {
        let words: Vec<_> =
            ["FOO", "k", "4111111111111111"].iter().map(|word| word.as_bytes().to_vec()).collect();
        let error = b"ERR unknown command 'FOO', with args beginning with: 'k' '4111111111111111' ";
        let redacted = String::from_utf8(redacted_error(error, &words)).unwrap();
        assert_eq!(redacted, "ERR unknown command 'FOO', with args beginning with (hidden)");
        let redacted =
            String::from_utf8(redacted_error(b"ERR no such 4111111111111111", &words)).unwrap();
        assert!(redacted.starts_with("ERR no such <16 B sha256:"), "{redacted}");
    }
}
