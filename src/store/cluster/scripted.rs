//! Calls a script many times by its digest, because its text is usually longer than the data that
//! it reads.

use redis::Cmd;

use super::client::{Client, ClientReply};
use crate::store::error::StoreError;

/// How a call refers to its script.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum ScriptRef<'a> {
    /// By its text, which every server accepts.
    Text,
    /// By its digest, which only a server that has loaded the script accepts.
    Digest(&'a str),
}

impl ScriptRef<'_> {
    /// The beginning of a call by EVAL or EVAL_RO.
    pub(in crate::store) fn command(self, eval: &str, script: &str) -> Cmd {
        match self {
            Self::Text => redis::cmd(eval).arg(script).to_owned(),
            Self::Digest(digest) => {
                redis::cmd(&eval.replace("EVAL", "EVALSHA")).arg(digest).to_owned()
            }
        }
    }
}

impl Client {
    /// Calls a script by its digest and returns a reply or an error for each call. A node that
    /// answers NOSCRIPT has not executed the call, so idemctl sends it again with the text.
    ///
    /// # Errors
    /// No master could be asked.
    pub(in crate::store) async fn ask_script_each(
        &self,
        script: &'static str,
        calls: impl Fn(ScriptRef<'_>) -> Vec<Cmd>,
    ) -> Result<Vec<ClientReply>, StoreError> {
        let digest = self.digest(script).await?;
        // There is no digest if the Redis user may not load scripts.
        let script_ref = match &digest {
            Some(digest) => ScriptRef::Digest(digest),
            None => ScriptRef::Text,
        };
        let mut replies = self.send_each(calls(script_ref)).await;
        let mut forgotten = Vec::new();
        for (index, reply) in replies.iter().enumerate() {
            if let Err(StoreError::ErrorReply { code, .. }) = reply
                && code == "NOSCRIPT"
            {
                forgotten.push(index);
            }
        }
        if forgotten.is_empty() {
            return Ok(replies);
        }
        let with_text = calls(ScriptRef::Text);
        let commands = forgotten.iter().map(|index| with_text[*index].clone()).collect();
        for (index, reply) in forgotten.into_iter().zip(self.send_each(commands).await) {
            replies[index] = reply;
        }
        Ok(replies)
    }

    /// Sends commands in one write per node, and returns a reply or an error for each.
    pub(in crate::store) async fn send_each(&self, commands: Vec<Cmd>) -> Vec<ClientReply> {
        let mut pipeline = redis::pipe();
        for command in commands {
            pipeline.add_command(command);
        }
        self.ask_each(&pipeline).await
    }
}
