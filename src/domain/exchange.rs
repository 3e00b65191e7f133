//! A command and its reply, as `--debug` shows them to the operator.

/// One command that idemctl sent, and the size or the error of its reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The address of the server.
    pub server: String,
    /// The words of the command, raw. A value or an owner token is replaced by its length and its
    /// hash, and a password is left out.
    pub words: Vec<Vec<u8>>,
    /// The time until the reply, in microseconds.
    pub micros: u64,
    /// The size of the reply in bytes.
    pub bytes: usize,
    /// The text of an error reply; `None` for any other reply.
    pub error: Option<Vec<u8>>,
}
