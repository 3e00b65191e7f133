//! The built-in services, and what they store, as many tests put it on a server.

/// The names of the built-in schemas, in the order in which they are told.
pub const BUILT_IN: [&str; 7] = [
    "event-consumer",
    "event-driven",
    "express",
    "go-chi",
    "go-middleware",
    "go-middleware-v1",
    "reference",
];

/// A lock of go-middleware.
pub const PENDING: &str = r#"{"status":"PENDING"}"#;

/// A result of go-middleware.
pub const DONE: &str = r#"{"status":"COMPLETED","code":201,"headers":{},"body":""}"#;

/// A lock of express.
pub const LOCK: &str = r#"{"status":"IN_PROGRESS"}"#;
