//! What services write is claimed, in every form.

use idemctl::domain::diagnosis::Thresholds;
use idemctl::domain::record::FieldSet;
use idemctl::domain::record::Record;
use idemctl::domain::record::author::Author;
use idemctl::domain::record::decode::{self, Reading};
use idemctl::domain::record::observation::Observation;
use idemctl::domain::record::response::Response;
use idemctl::domain::schema::Meaning;
use idemctl::domain::schema::catalog::Catalog;
use idemctl::domain::select::coverage::Coverage;
use idemctl::domain::step::inputs::StepInputs;
use idemctl::store::{KeyspaceScan, ReadLimit, RecordDecoder};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::Server;
use crate::support::library::Library;
use crate::support::wire;

/// Every record of a scan for the schema that is named, and what was left alone.
fn scanned(library: &Library, name: &str) -> (Vec<Record>, Coverage) {
    let catalog = Catalog::new(wire::built_in(), &[name.to_owned()]).unwrap();
    let (mut records, mut coverage) = (Vec::new(), Coverage::default());
    library.wait(async {
        let reader = library.client().reader();
        let mut scan = KeyspaceScan::start(reader, &catalog, ReadLimit::Bytes(0)).await.unwrap();
        let thresholds = Thresholds::default();
        loop {
            let decoding = RecordDecoder {
                catalog: &catalog,
                thresholds: &thresholds,
                needed: FieldSet::default(),
                coverage: &mut coverage,
            };
            let Some(page) = scan.next_records(decoding, &|_| true).await.unwrap() else { break };
            records.extend(page);
        }
    });
    (records, coverage)
}

fn response() -> impl Strategy<Value = Response> {
    let header = ("[A-Za-z-]{1,12}", "[ -~\u{e9}\u{2028}]{0,20}");
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..3_000),
        "\\PC{0,40}".prop_map(String::into_bytes),
        prop::sample::select(vec!["null", "{\"status\":0}", "[1e400,{}]", "", "1"])
            .prop_map(|text| text.into()),
    ];
    (100..600_i64, prop::collection::vec(header, 0..5), body).prop_map(|(status, headers, body)| {
        Response { status: Some(status), headers, body, whole: true }
    })
}

/// Rule: whatever a service's own steps store of a response is the service's own record, as a lock
/// and as a result.
#[test]
fn what_each_schemas_own_steps_store_is_claimed() {
    let server = Server::start();
    let library = Library::on(&server);
    let strategy = prop::collection::vec((response(), prop::option::of("\\PC{0,20}")), 12);
    let config =
        Config { cases: 12, max_shrink_iters: 40, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&strategy, |operations| {
            let mut connection = server.connect();
            for schema in wire::built_in() {
                for (index, (response, error)) in operations.iter().enumerate() {
                    let key = format!("k{index}");
                    let mut request =
                        StepInputs::new(&schema, key.as_bytes(), "0d3f6f2e-58f5", response);
                    (request.error, request.fingerprint) = (error.as_deref(), "f00d");
                    prop_assert_eq!(
                        wire::play(&mut connection, schema.begin.as_ref().unwrap(), &request)
                            .means(),
                        Meaning::Acquired
                    );
                    // Every third stays a lock.
                    if index % 3 > 0 {
                        let stored = wire::play(
                            &mut connection,
                            schema.complete.as_ref().unwrap(),
                            &request,
                        )
                        .means();
                        prop_assert_eq!(stored, Meaning::Stored, "{}", &schema.name);
                    }
                }
                let (records, coverage) = scanned(&library, &schema.name);
                let lost: Vec<_> = operations.iter().map(|(response, _)| response).collect();
                prop_assert_eq!(coverage, Coverage::default(), "{}: {:?}", &schema.name, lost);
                prop_assert_eq!(records.len(), operations.len(), "{}", &schema.name);
                let whole =
                    records.iter().map(|record| schema.redis_keys(&record.key)).collect::<Vec<_>>();
                for (record, seen) in records.iter().zip(library.observe(&whole)) {
                    let whole = Record::new(
                        record.schema.clone(),
                        record.key.clone(),
                        seen.clone(),
                        readings(record, &seen),
                    );
                    prop_assert_eq!(
                        whole.author,
                        Author::NotForeign,
                        "{}: {:?}",
                        &schema.name,
                        seen
                    );
                }
                for redis_key in whole.iter().flatten() {
                    wire::ask(&mut connection, &[b"DEL", &redis_key[..]]);
                }
            }
            Ok(())
        })
        .unwrap();
}

fn readings(record: &Record, seen: &Observation) -> Vec<Reading> {
    let keys = seen.keys.iter().enumerate();
    keys.map(|(role, seen)| decode::decode_value(&record.schema, role, &seen.content)).collect()
}
