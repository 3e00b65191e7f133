//! The payment service of the tests of `idemctl probe`, to probe by hand:
//!
//!     cargo run --example probe-service -- --schema go-middleware --variant no-lock --redis 6390
//!
//! It prints its URL, and runs until it is stopped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for tests, which says by panicking that it cannot go on"
)]

mod support;

use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use support::probe_service::{Answers, CONTRACTS, Config, Late, ProbeService, VARIANTS, Variant};

/// A payment service that executes the steps of a schema, correctly or with one mistake
#[derive(Parser)]
struct Args {
    /// The schema whose steps the service executes
    #[arg(long, value_parser = schemas())]
    schema: String,
    /// The mistake that it makes
    #[arg(long, value_parser = variants())]
    variant: Option<String>,
    /// The port on the loopback; any that is free if omitted
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The Redis server: a port on the loopback or a URL
    #[arg(long)]
    redis: String,
    /// How long the handler takes, in milliseconds
    #[arg(long, default_value_t = 50)]
    delay: u64,
    /// What the answer to a payment contains
    #[arg(long, default_value = "payment", value_parser = ["payment", "empty", "large", "binary"])]
    answers: String,
    /// Let the service's database refuse a second payment of a key
    #[arg(long)]
    unique: bool,
}

fn schemas() -> PossibleValuesParser {
    PossibleValuesParser::new(CONTRACTS.iter().map(|contract| contract.schema))
}

fn variants() -> PossibleValuesParser {
    PossibleValuesParser::new(
        VARIANTS
            .iter()
            .map(|(_, name, mistake)| clap::builder::PossibleValue::new(*name).help(*mistake)),
    )
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let redis = match args.redis.parse::<u16>() {
        Ok(port) => format!("redis://127.0.0.1:{port}"),
        Err(_) => args.redis,
    };
    let service = ProbeService::start(Config {
        schema: support::wire::schema(&args.schema),
        variant: args.variant.as_deref().and_then(Variant::named),
        redis,
        delay: Duration::from_millis(args.delay),
        port: args.port,
        answers: match args.answers.as_str() {
            "empty" => Answers::Empty,
            "large" => Answers::Large,
            "binary" => Answers::Binary,
            _ => Answers::Payment,
        },
        is_unique: args.unique,
        late: Late::Nothing,
    })?;
    println!("{}", service.url("/payments"));
    loop {
        std::thread::park();
    }
}
