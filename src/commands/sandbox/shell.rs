//! A shell of the operator's own in which every idemctl works on the temporary server.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// What stands before the shell's prompt.
const MARK: &str = "(idemctl sandbox) ";

/// The shell that the environment names, with its prompt marked, as a program and its arguments. Files that it needs are
/// written into `folder`, which ends with the server.
///
/// The shell reads the files in which the operator set it up. The variables that name the server are set after them, because
/// such a file may name another server.
///
/// # Errors
/// The files cannot be written.
pub(super) fn command(
    shell: &str,
    folder: &Path,
    url: &str,
) -> io::Result<(OsString, Vec<OsString>)> {
    let name = Path::new(shell).file_name().unwrap_or_default().to_string_lossy();
    // The URL of a socket has no character that a shell takes for anything else.
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
        "zsh" => {
            let text = format!(
                "ZDOTDIR=$HOME\n[[ ! -f ~/.zshrc ]] || . ~/.zshrc\n{set}\nPROMPT=\"{MARK}$PROMPT\"\n"
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
                "set -gx IDEMCTL_URL '{url}'; set -gx REDIS_URL '{url}'; set -e IDEMCTL_CONTEXT; set -e REDISCLI_AUTH; \
                 functions -c fish_prompt idemctl_prompt; \
                 function fish_prompt; echo -n '{MARK}'; idemctl_prompt; end"
            );
            vec!["--init-command".into(), text.into(), "-i".into()]
        }
        // A plain shell reads the file that ENV names.
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
