//! JSON pointers that contain no data: what is not certainly the name of a field is a star.

use std::fmt;

use super::text_findings;

/// The longest name that is shown.
const LONGEST: usize = 40;

/// A step of the way to a text. It has no `Debug`, because a name may be sensitive itself.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum PathStep {
    /// An index of an array, or a name that is not shown.
    Any,
    /// A name that has the form of a field's.
    Name(String),
}

impl PathStep {
    /// The step to the member of this name.
    pub(super) fn to_member(name: &str) -> Self {
        if has_form_of_field(name) { Self::Name(name.to_owned()) } else { Self::Any }
    }
}

/// Where something was found: a JSON pointer with stars. Only [`MaskedPointer::new`] creates one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MaskedPointer(String);

impl MaskedPointer {
    /// Masks a path. `is_known` says whether the schema's file has a name.
    pub(super) fn new(path: &[PathStep], is_known: impl Fn(&str) -> bool) -> Self {
        let mut pointer = String::new();
        for step in path {
            pointer.push('/');
            match step {
                PathStep::Name(name) if has_usual_words(name) || is_known(name) => {
                    pointer.push_str(name);
                }
                PathStep::Name(_) | PathStep::Any => pointer.push('*'),
            }
        }
        Self(pointer)
    }
}

impl MaskedPointer {
    /// True if a name in it says that a card's number is there.
    pub(crate) fn names_card(&self) -> bool {
        let mut words = self.0.split('/').flat_map(words);
        words.any(|word| matches!(word.as_str(), "card" | "cardnumber" | "pan" | "cc"))
    }
}

impl fmt::Display for MaskedPointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            formatter.write_str("the value")
        } else {
            formatter.write_str(&self.0)
        }
    }
}

/// True if this may be the name of a field: a short identifier of a few words, with few digits, in
/// which no detector finds anything.
fn has_form_of_field(name: &str) -> bool {
    let is_identifier = name.len() <= LONGEST
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_identifier || name.bytes().filter(u8::is_ascii_digit).count() > 3 {
        return false;
    }
    let words = words(name);
    let letters: usize = words.iter().map(String::len).sum();
    // Chance makes many short words of letters in both cases.
    let is_scrambled = words.len() > 2 && letters < 3 * words.len();
    let are_words = words.iter().all(|word| is_pronounceable(word));
    are_words && !is_scrambled && !text_findings::of(name).is_sensitive()
}

/// The words of `cardNumber`, `card_number` and `Card-Number`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for letter in name.chars() {
        let ends = !letter.is_ascii_alphabetic() || letter.is_ascii_uppercase() && was_lower;
        if ends && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        was_lower = letter.is_ascii_lowercase();
        if letter.is_ascii_alphabetic() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// True if the letters may be a word: not too long, with a vowel and few consonants in a row.
fn is_pronounceable(word: &str) -> bool {
    if word.len() > 16 {
        return false;
    }
    let mut consonants = 0;
    let mut longest = 0;
    for letter in word.bytes() {
        let is_vowel = matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
        consonants = if is_vowel { 0 } else { consonants + 1 };
        longest = longest.max(consonants);
    }
    longest <= 4
}

fn has_usual_words(name: &str) -> bool {
    let words = words(name);
    words.iter().all(|word| USUAL.binary_search(&word.as_str()).is_ok())
}

/// Words in the names of fields and headers, in alphabetical order.
const USUAL: [&str; 306] = [
    "accept",
    "access",
    "account",
    "action",
    "additional",
    "address",
    "agent",
    "alg",
    "allow",
    "allowed",
    "amount",
    "api",
    "app",
    "args",
    "array",
    "attempt",
    "attributes",
    "auth",
    "authentication",
    "authorization",
    "b",
    "back",
    "balance",
    "bank",
    "base",
    "bearer",
    "bic",
    "billing",
    "bin",
    "birth",
    "blob",
    "body",
    "brand",
    "buyer",
    "by",
    "bytes",
    "cache",
    "callback",
    "card",
    "cardholder",
    "cardnumber",
    "cause",
    "cc",
    "channel",
    "charge",
    "charges",
    "charset",
    "city",
    "client",
    "code",
    "company",
    "config",
    "contact",
    "content",
    "context",
    "control",
    "cookie",
    "cookies",
    "count",
    "country",
    "created",
    "creator",
    "credential",
    "credentials",
    "credit",
    "creditor",
    "csrf",
    "currency",
    "customer",
    "cvc",
    "cvv",
    "data",
    "date",
    "debit",
    "debtor",
    "default",
    "description",
    "detail",
    "details",
    "device",
    "digest",
    "display",
    "document",
    "domain",
    "duration",
    "email",
    "emails",
    "encoding",
    "end",
    "error",
    "errors",
    "etag",
    "event",
    "events",
    "exp",
    "expires",
    "expiry",
    "extra",
    "failure",
    "field",
    "fields",
    "file",
    "filename",
    "fingerprint",
    "first",
    "form",
    "format",
    "from",
    "full",
    "given",
    "group",
    "hash",
    "header",
    "headers",
    "holder",
    "host",
    "html",
    "http",
    "iban",
    "id",
    "idempotency",
    "identifier",
    "image",
    "in",
    "index",
    "info",
    "input",
    "instance",
    "instrument",
    "intent",
    "invoice",
    "ip",
    "is",
    "issuer",
    "item",
    "items",
    "job",
    "json",
    "jwt",
    "key",
    "keys",
    "kind",
    "label",
    "language",
    "last",
    "length",
    "line",
    "lines",
    "link",
    "links",
    "list",
    "location",
    "lock",
    "login",
    "mail",
    "mandate",
    "masked",
    "match",
    "max",
    "merchant",
    "message",
    "messages",
    "meta",
    "metadata",
    "method",
    "mode",
    "model",
    "modified",
    "month",
    "msg",
    "name",
    "names",
    "nested",
    "next",
    "nonce",
    "note",
    "notes",
    "number",
    "object",
    "of",
    "old",
    "on",
    "operation",
    "option",
    "options",
    "order",
    "orders",
    "origin",
    "original",
    "output",
    "owner",
    "page",
    "pan",
    "parameters",
    "params",
    "parent",
    "part",
    "parts",
    "password",
    "path",
    "payee",
    "payer",
    "payload",
    "payment",
    "payments",
    "person",
    "phone",
    "pin",
    "place",
    "postal",
    "private",
    "problem",
    "product",
    "profile",
    "properties",
    "proxy",
    "public",
    "query",
    "raw",
    "reason",
    "receipt",
    "recipient",
    "record",
    "records",
    "redirect",
    "ref",
    "refresh",
    "remote",
    "reply",
    "request",
    "requested",
    "res",
    "resource",
    "response",
    "result",
    "results",
    "return",
    "role",
    "safe",
    "scheme",
    "scope",
    "secret",
    "secure",
    "security",
    "sender",
    "server",
    "service",
    "session",
    "set",
    "settings",
    "setup",
    "shipping",
    "short",
    "sid",
    "signature",
    "signed",
    "source",
    "state",
    "statement",
    "status",
    "step",
    "store",
    "stored",
    "street",
    "sub",
    "subject",
    "subscription",
    "success",
    "summary",
    "surname",
    "system",
    "target",
    "tax",
    "tel",
    "text",
    "time",
    "timestamp",
    "title",
    "to",
    "token",
    "tokens",
    "total",
    "trace",
    "track",
    "transaction",
    "transfer",
    "type",
    "unit",
    "updated",
    "uri",
    "url",
    "user",
    "username",
    "users",
    "uuid",
    "value",
    "values",
    "version",
    "via",
    "webhook",
    "www",
    "x",
    "xml",
    "xsrf",
    "year",
    "zip",
];
