//! The page of `probe`, its JSON and test cases, and the curl commands that repeat it.

mod curl;
mod probe_cases;
mod probe_json;
mod probe_page;
mod shown_answer;

pub(crate) use self::curl::{masked_url, url};
pub(crate) use self::probe_cases::suites;
pub(crate) use self::probe_json::{check_json, difference};
pub(crate) use self::probe_page::{ProbeRun, dry_run, list, page, summary};
pub(crate) use self::shown_answer::shown_body;
