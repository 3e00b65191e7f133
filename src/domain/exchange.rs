//! A command and its reply, as they are told to an operator who looks over idemctl's shoulder.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub server: String,
    /// The words of the command, raw; a value or an owner token is told by its length and its hash, a password not at all.
    pub words: Vec<Vec<u8>>,
    pub micros: u64,
    /// Bytes of the reply.
    pub bytes: usize,
    /// The error, where the reply is one.
    pub error: Option<Vec<u8>>,
}
