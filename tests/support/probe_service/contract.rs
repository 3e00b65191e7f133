//! What the seven services do with a failure, and where their stored values hold a response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::http::Answer;

/// What a service does if its handler fails.
#[derive(Clone, Copy, PartialEq)]
pub enum AfterFailure {
    /// It stores the failure as a result.
    Stores,
    /// It gives up the lock.
    Releases,
    /// It keeps the lock until its TTL ends.
    Keeps,
}

/// How a value holds the body.
#[derive(Clone, Copy)]
enum BodyAs {
    Base64,
    Json,
    Text,
}

/// Where a value holds a response.
#[derive(Clone, Copy)]
enum StoredAs {
    /// JSON pointers to the status, the headers (`None` if the service stores none) and the body.
    Json(&'static str, Option<&'static str>, &'static str, BodyAs),
    /// The value is the body of a 201.
    Body,
    /// The value is this word. The response is in the service's own database.
    Word(&'static [u8]),
}

/// The contract of a service, as far as its schema's steps do not contain it.
pub struct Contract {
    pub schema: &'static str,
    pub after_failure: AfterFailure,
    stored_as: StoredAs,
}

/// A stored value.
pub enum StoredValue {
    Lock,
    Result(Answer),
    /// A result whose response the service has in its database.
    ResultElsewhere,
}

/// The services.
pub const CONTRACTS: [Contract; 7] = [
    Contract {
        schema: "event-driven",
        after_failure: AfterFailure::Stores,
        stored_as: StoredAs::Json("/statusCode", None, "/body", BodyAs::Text),
    },
    // A consumer of messages. The steps serve HTTP requests as well.
    Contract {
        schema: "event-consumer",
        after_failure: AfterFailure::Releases,
        stored_as: StoredAs::Body,
    },
    Contract {
        schema: "express",
        after_failure: AfterFailure::Releases,
        stored_as: StoredAs::Json("/statusCode", Some("/headers"), "/body", BodyAs::Json),
    },
    Contract {
        schema: "go-chi",
        after_failure: AfterFailure::Releases,
        stored_as: StoredAs::Json(
            "/response/StatusCode",
            Some("/response/Header"),
            "/response/Body",
            BodyAs::Base64,
        ),
    },
    Contract {
        schema: "go-middleware",
        after_failure: AfterFailure::Keeps,
        stored_as: StoredAs::Json("/code", Some("/headers"), "/body", BodyAs::Base64),
    },
    Contract {
        schema: "go-middleware-v1",
        after_failure: AfterFailure::Keeps,
        stored_as: StoredAs::Word(b"completed"),
    },
    Contract {
        schema: "reference",
        after_failure: AfterFailure::Stores,
        stored_as: StoredAs::Json("/status", Some("/headers"), "/body", BodyAs::Base64),
    },
];

impl Contract {
    /// The contract of the service with this schema.
    pub fn of(schema: &str) -> Option<&'static Self> {
        CONTRACTS.iter().find(|contract| contract.schema == schema)
    }

    /// What a stored value, or the stored response in a reply, is to this service.
    pub fn read(&self, value: &[u8]) -> StoredValue {
        let (status, headers, body, body_as) = match self.stored_as {
            StoredAs::Body if value == b"1" => return StoredValue::Lock,
            StoredAs::Body => return StoredValue::Result(created(201, value.to_vec())),
            StoredAs::Word(word) if value == word => return StoredValue::ResultElsewhere,
            StoredAs::Word(_) => return StoredValue::Lock,
            StoredAs::Json(status, headers, body, body_as) => (status, headers, body, body_as),
        };
        let Ok(mut json) = serde_json::from_slice::<Value>(value) else { return StoredValue::Lock };
        // The reference returns only the response; its Redis key holds it as a member.
        if let Some(response) = json.get_mut("response")
            && !status.starts_with("/response")
        {
            json = response.take();
        }
        let Some(status) = json.pointer(status).and_then(Value::as_i64) else {
            return StoredValue::Lock;
        };
        let body = match (json.pointer(body), body_as) {
            (Some(Value::String(text)), BodyAs::Base64) => STANDARD.decode(text).unwrap(),
            (Some(Value::String(text)), BodyAs::Text | BodyAs::Json) => text.clone().into_bytes(),
            (Some(value), BodyAs::Json) => value.to_string().into_bytes(),
            _ => Vec::new(),
        };
        let Some(headers) = headers else { return StoredValue::Result(created(status, body)) };
        let mut answer = Answer { status, headers: Vec::new(), body };
        for (name, value) in json.pointer(headers).and_then(Value::as_object).into_iter().flatten()
        {
            let first = value.as_array().and_then(|values| values.first()).unwrap_or(value);
            answer = answer.with(name, first.as_str().unwrap());
        }
        StoredValue::Result(answer)
    }
}

/// The answer of the handler. Its headers follow from the body, so a service that stores only the
/// body can replay them.
pub fn created(status: i64, body: Vec<u8>) -> Answer {
    let payment: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = Answer::new(status, "application/json", body);
    match payment["id"].as_str() {
        Some(id) => {
            answer.with("Location", &format!("/payments/{id}")).with("ETag", &format!("\"{id}\""))
        }
        None => answer,
    }
}
