//! The HTTP/1.1 client of `probe`: one connection per request, and a gate that releases several
//! requests at the same time.

mod gate;
mod http_client;
mod io;

pub(crate) use self::http_client::{HttpClient, check};
