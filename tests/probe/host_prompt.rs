//! The name of another machine is asked for on a terminal.

use std::process::Command;

use crate::outside::{FixedService, created};
use crate::stage::PAYMENT;
use crate::support::terminal::{answered, on_terminal, press};
use crate::support::{Home, idemctl};

/// A service of this machine under an address that is not a loopback one.
fn other_machine(service: &FixedService) -> String {
    service.url.replace("127.0.0.1", "0.0.0.0")
}

fn probe(home: &Home) -> Command {
    idemctl(home.path())
}

#[test]
fn a_probe_goes_ahead_only_when_the_name_of_the_machine_is_typed() {
    let home = Home::with("");
    let service = FixedService::start(|number| created(&format!("{{\"id\":\"pay-{number}\"}}")));
    let url = other_machine(&service);
    let words = ["probe", &url, "-d", PAYMENT, "--only", "replay-status"];
    let question = "probe sends real requests to 0.0.0.0. Type `0.0.0.0` to continue";
    for typed in ["\r", "y\r", "127.0.0.1\r", "\x04"] {
        let run = answered(on_terminal(probe(&home), &words), question, typed);
        run.exits(2).shows("nothing was sent");
    }
    answered(on_terminal(probe(&home), &words), question, "\x03").exits(130);
    assert_eq!(service.connections(), 0);
    let run = answered(on_terminal(probe(&home), &words), question, "0.0.0.0\r");
    run.exits(0).shows("replay-status");
    assert!(service.connections() > 0);
}

/// A second machine, which counts, is asked for as well.
#[test]
fn a_machine_that_counts_effects_is_asked_for_as_well() {
    let home = Home::with("");
    let service = FixedService::start(|_| created("{}"));
    let counts = FixedService::start(|_| created("1"));
    let (url, effects) = (other_machine(&service), other_machine(&counts));
    let words = ["probe", &url, "-d", PAYMENT, "--effects", &effects, "--only", "replay-status"];
    let question = "Type `0.0.0.0` to continue";
    let mut session = on_terminal(probe(&home), &words);
    press(&mut session, question, "0.0.0.0\r");
    answered(session, question, "no\r").exits(2).shows("nothing was sent");
    assert_eq!((service.connections(), counts.connections()), (0, 0));
}
