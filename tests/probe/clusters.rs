//! A service whose store is a cluster of three masters.

use std::time::Duration;

use crate::faults::FAULTS;
use crate::stage::{PAYMENT, verdicts};
use crate::support::cluster::Cluster;
use crate::support::probe_service::{Config, ProbeService};
use crate::support::{Runs as _, wire};

/// Long enough for a change on a busy machine while the handler runs.
const HANDLER: Duration = Duration::from_millis(600);

/// A key of another program, on each master.
const OTHERS: [&str; 3] = ["other:{a}", "other:{b}", "other:{c}"];

/// The faults are made and the records removed on whichever master has the key.
#[test]
fn faults_are_made_and_records_removed_on_a_cluster() {
    let cluster = Cluster::start(3);
    let mut masters: Vec<_> = OTHERS.map(|key| cluster.owner(key)).to_vec();
    masters.sort_unstable();
    assert_eq!(masters, [0, 1, 2]);
    for key in OTHERS {
        cluster.set(key, "x", 600_000);
    }
    let redis = format!("redis://127.0.0.1:{}", cluster.port(0));
    let config = Config::correct(wire::schema("express"), redis, HANDLER);
    let service = ProbeService::start(config).unwrap();

    let mut command = cluster.command();
    command.args(["probe", &service.url("/payments"), "-d", PAYMENT, "--schema", "express"]);
    command.args(["--effects", &service.url("/effects"), "--faults", "-o", "json"]);
    let run = command.args(["--only", &format!("{FAULTS},concurrent-keys")]).run();

    let found = verdicts(&run);
    for id in ["fault-lock-expires", "fault-lock-deleted", "fault-result-expires"] {
        let (verdict, message) = &found[id];
        assert_eq!(verdict, "reported", "{id}: {}", run.all());
        assert!(message.contains("executed 2 times"), "{id}: {message}");
    }
    let (_, message) = &found["fault-foreign-value"];
    assert!(message.contains("kept the value"), "{message}");
    assert_eq!(found["concurrent-keys"].0, "pass", "{}", run.all());
    let records = run.json()["records"].clone();
    assert_eq!(records["kept"], serde_json::json!([]), "{}", run.all());
    assert_eq!(records["not_found"], serde_json::json!([]), "{}", run.all());
    assert_eq!(cluster.size(), OTHERS.len(), "{}", run.all());
}
