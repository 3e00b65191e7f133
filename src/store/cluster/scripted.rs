//! Many calls of one script, by its digest: the text of a script is longer than most of what it reads.

use redis::Cmd;

use super::client::{Client, ClientReply};
use crate::store::error::StoreError;

/// How a script is named to the server.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum ScriptRef<'a> {
    Text,
    /// By its digest, for a server that has it.
    Digest(&'a str),
}

impl Client {
    /// Sends calls of a script by its digest; once more in full where a node has forgotten the script, which means that it
    /// has done nothing.
    ///
    /// # Errors
    /// When no master could be asked.
    pub(in crate::store) async fn ask_script_each(
        &self,
        script: &'static str,
        calls: impl Fn(ScriptRef<'_>) -> Vec<Cmd>,
    ) -> Result<Vec<ClientReply>, StoreError> {
        let digest = self.digest(script).await?;
        let mut replies = self
            .send_each(calls(digest.as_deref().map_or(ScriptRef::Text, ScriptRef::Digest)))
            .await;
        let forgotten = |reply: &ClientReply| matches!(reply, Err(StoreError::Refused { code, .. }) if code == "NOSCRIPT");
        let again: Vec<_> =
            (0..replies.len()).filter(|index| forgotten(&replies[*index])).collect();
        if again.is_empty() {
            return Ok(replies);
        }
        let whole = calls(ScriptRef::Text);
        let commands = again.iter().map(|index| whole[*index].clone()).collect();
        for (index, reply) in again.iter().zip(self.send_each(commands).await) {
            replies[*index] = reply;
        }
        Ok(replies)
    }

    async fn send_each(&self, commands: Vec<Cmd>) -> Vec<ClientReply> {
        let mut pipeline = redis::pipe();
        for command in commands {
            pipeline.add_command(command);
        }
        self.ask_each(&pipeline).await
    }
}
