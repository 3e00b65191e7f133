//! A service and idemctl on the same key: what one writes, the other takes for what it is.

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Meaning, Schema};
use idemctl::domain::step::inputs::StepInputs;
use redis::Connection;

use crate::services::{Begun, SERVICES, Service};
use crate::support::Server;
use crate::support::wire::{self, Played};

const OURS: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
const THEIRS: &str = "7f8f3f5c-97a9-4d2e-8a37-2b8b7a0c4c22";
const KEY: &str = "order-1";

/// One service, its schema, and an empty server.
struct Meeting {
    service: &'static Service,
    schema: Schema,
    _server: Server,
    connection: Connection,
}

impl Meeting {
    fn of(service: &'static Service) -> Self {
        let server = Server::start();
        let connection = server.connect();
        Self { service, schema: wire::schema(service.schema), _server: server, connection }
    }

    fn we_begin(&mut self) -> Played<'_> {
        let step = self.schema.begin.as_ref().unwrap();
        wire::play(&mut self.connection, step, &request(&self.schema, &response()))
    }

    fn we_complete(&mut self) -> Meaning {
        wire::play(
            &mut self.connection,
            self.schema.complete.as_ref().unwrap(),
            &request(&self.schema, &response()),
        )
        .means()
    }

    fn they_begin(&mut self) -> Begun {
        (self.service.begin)(&mut self.connection, KEY, THEIRS)
    }

    fn they_complete(&mut self) -> bool {
        (self.service.complete)(&mut self.connection, KEY, THEIRS)
    }
}

fn request<'a>(schema: &'a Schema, response: &'a Response) -> StepInputs<'a> {
    StepInputs::new(schema, KEY.as_bytes(), OURS, response)
}

fn response() -> Response {
    Response { status: Some(201), body: br#"{"id":7}"#.to_vec(), ..Response::default() }
}

#[test]
fn our_lock_turns_the_service_away() {
    for mut meeting in SERVICES.iter().map(Meeting::of) {
        assert_eq!(meeting.we_begin().means(), Meaning::Acquired);
        assert_eq!(meeting.they_begin(), Begun::Held, "{}", meeting.service.schema);
    }
}

#[test]
fn the_services_lock_turns_us_away() {
    for mut meeting in SERVICES.iter().map(Meeting::of) {
        assert_eq!(meeting.they_begin(), Begun::Took);
        assert_eq!(meeting.we_begin().means(), Meaning::Conflict, "{}", meeting.service.schema);
    }
}

#[test]
fn the_service_replays_our_result() {
    for mut meeting in SERVICES.iter().map(Meeting::of) {
        meeting.we_begin();
        assert_eq!(meeting.we_complete(), Meaning::Stored);
        let ours = request(&meeting.schema, &response()).result_value();
        assert_eq!(meeting.they_begin(), Begun::Stored(ours), "{}", meeting.service.schema);
    }
}

#[test]
fn we_replay_the_services_result() {
    for mut meeting in SERVICES.iter().map(Meeting::of) {
        assert_eq!(meeting.they_begin(), Begun::Took);
        assert!(meeting.they_complete());
        let result = meeting.service.result;
        let (means, stored) = {
            let played = meeting.we_begin();
            (played.means(), played.reply.stored().map(<[u8]>::to_vec))
        };
        assert_eq!(means, Meaning::Replay);
        // The consumer only asks whether a result is there.
        let carried =
            (meeting.service.schema != "event-consumer").then(|| result.as_bytes().to_vec());
        assert_eq!(stored, carried, "{}", meeting.service.schema);
    }
}

#[test]
fn a_late_service_and_a_late_we_do_the_same_to_the_others_lock() {
    for service in &SERVICES {
        let mut theirs_late = Meeting::of(service);
        theirs_late.we_begin();
        let they_store = theirs_late.they_complete();
        let mut ours_late = Meeting::of(service);
        assert_eq!(ours_late.they_begin(), Begun::Took);
        let we_store = ours_late.we_complete() == Meaning::Stored;
        assert_eq!(we_store, they_store, "{}", service.schema);
        assert_eq!(
            they_store,
            service.schema != "event-driven",
            "only the fenced one checks the owner"
        );
    }
}

#[test]
fn completing_what_is_not_locked_does_the_same_for_both() {
    for service in &SERVICES {
        let they_store = Meeting::of(service).they_complete();
        let we_store = Meeting::of(service).we_complete() == Meaning::Stored;
        assert_eq!(we_store, they_store, "{}", service.schema);
    }
}

#[test]
fn either_can_begin_anew_after_the_others_release() {
    for mut meeting in SERVICES.iter().map(Meeting::of) {
        assert_eq!(
            meeting.schema.release.is_some(),
            meeting.service.release.is_some(),
            "{}",
            meeting.service.schema
        );
        let (Some(release), Some(step)) = (meeting.service.release, meeting.schema.release.clone())
        else {
            continue;
        };
        meeting.we_begin();
        release(&mut meeting.connection, KEY);
        assert_eq!(meeting.they_begin(), Begun::Took);
        let played =
            wire::play(&mut meeting.connection, &step, &request(&meeting.schema, &response()));
        assert_eq!(played.means(), Meaning::Released);
        assert_eq!(meeting.we_begin().means(), Meaning::Acquired);
    }
}
