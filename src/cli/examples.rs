//! Two real command lines for each command: for its help and its manual page.

use clap::Command;

/// A command, and command lines that use the command.
pub(super) type Example = (&'static str, &'static [&'static str]);

pub(super) const EXAMPLES: &[Example] = &[
    ("inspect", &["idemctl inspect order-10008", "idemctl inspect pay-1 --watch 1s --until completed"]),
    (
        "list",
        &["idemctl list --finding no-expiry", "idemctl list --schema express --status 5xx --newer-than 1h -o csv"],
    ),
    ("stats", &["idemctl stats", "idemctl stats --by owner --state in-progress"]),
    ("check", &["idemctl --context prod check", "idemctl check --warning 1 --critical 10"]),
    ("force-unlock", &["idemctl force-unlock order-1", "idemctl force-unlock order-1 --yes --reason INC-1"]),
    ("extend", &["idemctl extend pay-1 --for 1h --reason INC-5", "idemctl extend --key-file keys.txt --for 30m --yes"]),
    (
        "complete",
        &[
            "idemctl complete order-1 --schema express --status 201 --body @charge.json",
            "idemctl complete order-1 --schema express --status 201 --body '{}' --create",
        ],
    ),
    (
        "release",
        &["idemctl release order-1 --schema go-chi", "idemctl release pay-1 --schema reference --owner worker-7"],
    ),
    ("begin", &["idemctl begin order-1 --schema express", "idemctl begin order-1 --schema express --dry-run"]),
    ("sweep", &["idemctl sweep --orphaned --dry-run", "idemctl sweep --orphaned --yes --reason cron"]),
    (
        "purge",
        &[
            "idemctl purge order-5 --reason INC-3",
            "idemctl purge --schema express --result-ttl 24h --status 5xx --newer-than 1h --max 100",
        ],
    ),
    ("restore", &["idemctl restore backup.jsonl --dry-run", "idemctl restore backup.jsonl --only order-5 --yes"]),
    ("audit", &["idemctl audit --limit 20", "idemctl audit -o json"]),
    ("race", &["idemctl race --concurrency 50", "idemctl race --schema express --sandbox -o json"]),
    ("simulate", &["idemctl simulate --all", "idemctl simulate zombie-releases --schema express,reference --timeline"]),
    ("sandbox", &["idemctl sandbox --seed 20", "idemctl sandbox --seed 20 -- idemctl list"]),
    ("schema", &["idemctl schema list", "idemctl schema check lua/payments"]),
    ("schema list", &["idemctl schema list", "idemctl schema list --schema-dir lua -o json"]),
    ("schema show", &["idemctl schema show express", "idemctl schema show express -o json"]),
    ("schema check", &["idemctl schema check lua/payments", "idemctl schema check ~/.config/idemctl/schemas/payments"]),
    ("context", &["idemctl context list", "idemctl context use staging"]),
    ("context list", &["idemctl context list", "idemctl context list -o json"]),
    ("context show", &["idemctl context show", "idemctl context show prod"]),
    ("context use", &["idemctl context use staging", "idemctl context use prod --config ops.toml"]),
    ("config", &["idemctl config show", "idemctl --context prod config show --origin"]),
    ("config show", &["idemctl config show", "idemctl --context prod config show --origin"]),
    (
        "completions",
        &[
            "idemctl completions bash > ~/.local/share/bash-completion/completions/idemctl",
            "idemctl completions fish > ~/.config/fish/completions/idemctl.fish",
        ],
    ),
    ("man", &["idemctl man ~/.local/share/man/man1", "idemctl man /tmp/pages"]),
];

/// The command lines for a command, by its name behind `idemctl`.
pub(super) fn of(command: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(name, _)| *name == command).map_or(&[], |(_, lines)| lines)
}

/// The command with its examples, and so each command in it; `name` is its name behind `idemctl`.
pub(super) fn added_to(command: Command, name: &str) -> Command {
    let lines: String = of(name).iter().map(|line| format!("\n  {line}")).collect();
    let command = if lines.is_empty() { command } else { command.before_help(format!("\nExamples:{lines}\n")) };
    command.mut_subcommands(|inner| {
        let name = format!("{name} {}", inner.get_name());
        added_to(inner, name.trim())
    })
}
