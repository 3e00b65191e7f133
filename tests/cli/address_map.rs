//! Servers that are reached elsewhere than at the addresses that they announce, as through forwarded ports.

use crate::support::cluster::Cluster;
use crate::support::proxy::{Hook, hooked};
use crate::support::sentinel::Watched;
use crate::support::{Home, Run, free_port, until};

const DONE: &str = r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#;

/// A cluster whose second and third node announce ports on which nobody listens, and these ports.
fn unreachable() -> (Cluster, [u16; 2]) {
    let cluster = Cluster::start(3);
    let entries = (0..30).map(|number| (format!("idempotency:k{number}"), DONE));
    cluster.fill(entries, 80_000_000);
    let announced = [free_port(), free_port()];
    cluster.announce(1, announced[0]);
    cluster.announce(2, announced[1]);
    for (node, other) in [(1, 2), (2, 1)] {
        until("the others hear of the ports", || {
            let nodes: String = cluster.node(node).send(&[b"CLUSTER", b"NODES"]);
            nodes.contains(&format!(":{}@", announced[other - 1]))
        });
    }
    (cluster, announced)
}

/// The binary in a context with the first address, and with what else it says.
fn run(home: &Home, port: u16, says: &str, words: &[&str]) -> Run {
    let url = format!("url = \"redis://127.0.0.1:{port}\"");
    let name = home.write("map.toml", &format!("[contexts.far]\n{url}\n{says}\n"));
    home.run(&[&["--config", &name, "--context", "far", "--debug"], words].concat())
}

/// Rule: whatever idemctl names, it names by the announced address, and opens a socket where the map leads.
#[test]
fn a_cluster_is_read_and_changed_where_the_map_leads() {
    let (cluster, announced) = unreachable();
    let home = Home::with("");
    let pair = |index: usize| {
        format!("\"127.0.0.1:{}\" = \"127.0.0.1:{}\"", announced[index - 1], cluster.port(index))
    };
    let map = format!("address_map = {{ {}, {} }}", pair(1), pair(2));

    let nowhere = run(&home, cluster.port(0), "", &["list"]).exits(3);
    let refused = |port| format!("Redis at 127.0.0.1:{port}/0: connection refused");
    nowhere.says(refused(announced[0])).says(refused(announced[1]));

    let here = |words: &[&str]| {
        let run = run(&home, cluster.port(0), &map, words).exits(0);
        for index in [1, 2] {
            assert!(
                !run.all().contains(&format!("127.0.0.1:{}", cluster.port(index))),
                "{}",
                run.all()
            );
        }
        run
    };
    let listed = here(&["list", "-o", "name"]);
    assert_eq!(listed.text().lines().count(), 30, "{}", listed.all());
    for port in announced {
        listed.says(format!("debug: 127.0.0.1:{port}/0"));
    }
    let mut keys = (0..30).map(|number| format!("k{number}"));
    let far = keys.find(|key| cluster.owner(&format!("idempotency:{key}")) == 2).unwrap();
    here(&["inspect", &far, "--schema", "go-middleware"]).says("MOVED").shows(&far);
    here(&["purge", "--all", "--yes"]).says("30 of 30 records purged");
    assert_eq!(cluster.size(), 0);
    run(&home, announced[0], &map, &["list"]).exits(0);
}

#[test]
fn sentinels_and_the_master_that_they_name_are_reached_where_the_map_leads() {
    let watched = Watched::start(1);
    watched.server(0).put("idempotency:a", DONE);
    let master = format!("127.0.0.1:{}", watched.port(0));
    let way = hooked(watched.server(0), |_| Hook::Pass);
    let home = Home::with(&format!(
        "[contexts.far]\nurl = \"redis-sentinel://sentinel.internal:26379/payments\"\n[contexts.far.address_map]\n\
         \"sentinel.internal:26379\" = \"127.0.0.1:{}\"\n\"{master}\" = \"127.0.0.1:{way}\"\n",
        watched.sentinel_port(0)
    ));
    let words = ["--context", "far", "--timeout", "20s", "--debug", "list", "-o", "name"];
    let run = home.run(&words).exits(0);
    run.shows("go-middleware/\"a\"").says(format!("debug: {master}/0"));
    let before = watched.server(0).calls("scan");
    // Where nobody listens at the end of the way, the master is not asked at its own address either.
    let text = std::fs::read_to_string(home.config()).unwrap();
    home.write(
        ".config/idemctl/config.toml",
        &text.replace(&way.to_string(), &free_port().to_string()),
    );
    let run = home.run(&words).exits(5);
    run.says(&master).says("address_map: 127.0.0.1:");
    assert_eq!(watched.server(0).calls("scan"), before);
}

#[test]
fn the_map_is_shown_and_its_mistakes_have_a_line() {
    let map = "address_map = { \"10.0.3.17:6379\" = \"[::1]:16379\" }";
    let home = Home::with(&format!("[contexts.far]\nurl = \"redis://10.0.3.17:6379\"\n{map}\n"));
    let (value, origin) = home.setting(&[], &["--context", "far"], "address_map");
    assert_eq!(value.as_deref(), Some("10.0.3.17:6379 = [::1]:16379"));
    assert!(origin.ends_with("config.toml:3"), "{origin}");
    for wrong in ["\"10.0.3.17\" = \"h:1\"", "\"h:1\" = \"2\"", "\"h:1\" = 2"] {
        home.write(
            ".config/idemctl/config.toml",
            &format!("[contexts.far]\naddress_map = {{ {wrong} }}\n"),
        );
        home.run(&["config", "show"]).exits(2).says("config.toml:2: ");
    }
}
