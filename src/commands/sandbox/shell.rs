//! The operator's own shell, in which every idemctl command uses the temporary server.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The text before the shell's prompt.
const MARK: &str = "(idemctl sandbox) ";

/// The program and the arguments of the shell in the environment, with a marked prompt. The files
/// that it needs are written to `folder`, which is deleted with the server.
///
/// The shell reads the operator's own startup files. The variables that name the server are set
/// after them, because such a file may name another server.
///
/// # Errors
/// The files cannot be written.
pub(super) fn command(
    shell: &str,
    folder: &Path,
    url: &str,
) -> io::Result<(OsString, Vec<OsString>)> {
    let name = Path::new(shell).file_name().unwrap_or_default().to_string_lossy();
    // A socket's URL has no special characters of a shell, so single quotes are enough.
    let set = format!(
        "export IDEMCTL_URL='{url}' REDIS_URL='{url}'; unset IDEMCTL_CONTEXT REDISCLI_AUTH"
    );
    let arguments: Vec<OsString> = match name.as_ref() {
        "bash" => {
            let file = folder.join("bashrc");
            let text = format!("[ ! -f ~/.bashrc ] || . ~/.bashrc\n{set}\nPS1=\"{MARK}$PS1\"\n");
            std::fs::write(&file, text)?;
            vec!["--rcfile".into(), file.into(), "-i".into()]
        }
        // zsh has no option for another startup file, and reads .zshrc in ZDOTDIR.
        "zsh" => {
            let text = format!(
                "ZDOTDIR=$HOME\n[[ ! -f ~/.zshrc ]] || . ~/.zshrc\n{set}\n\
                PROMPT=\"{MARK}$PROMPT\"\n"
            );
            std::fs::write(folder.join(".zshrc"), text)?;
            let zsh = [
                OsString::from(format!("ZDOTDIR={}", folder.display())),
                shell.into(),
                "-i".into(),
            ];
            return Ok(("env".into(), zsh.into()));
        }
        "fish" => {
            let text = format!(
                "set -gx IDEMCTL_URL '{url}'; set -gx REDIS_URL '{url}'; set -e IDEMCTL_CONTEXT; \
                 set -e REDISCLI_AUTH; \
                 functions -c fish_prompt idemctl_prompt; \
                 function fish_prompt; echo -n '{MARK}'; idemctl_prompt; end"
            );
            vec!["--init-command".into(), text.into(), "-i".into()]
        }
        // A POSIX shell reads the file that ENV names.
        _ => {
            let file = folder.join("shrc");
            std::fs::write(&file, format!("{set}\nPS1='{MARK}$ '\n"))?;
            return Ok((
                "env".into(),
                vec![format!("ENV={}", file.display()).into(), shell.into(), "-i".into()],
            ));
        }
    };
    Ok((shell.into(), arguments))
}
