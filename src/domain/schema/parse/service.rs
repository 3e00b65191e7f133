//! What the service writes, and what it does around its steps.

use std::ops::RangeInclusive;

use super::template;
use crate::domain::schema::conduct::{Conduct, OnFailure, OnHangUp, WithoutRedis};
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::model::{HeaderNames, WriteFormat};
use crate::domain::schema::raw::{RawConduct, RawHeaderNames, RawOnFailure, RawOnHangUp, RawWithoutRedis, RawWrite};
use crate::domain::step::request::Template;

pub(super) fn write_format(raw: RawWrite) -> Checked<WriteFormat> {
    let value = |name: &str, text: &str| template(text, Template::of_value).at(name);
    let response = raw.response.map(|text| template(&text, Template::of_response).at("response")).transpose()?;
    Ok(WriteFormat {
        lock_value: value("lock_value", &raw.lock_value)?,
        result_value: value("result_value", &raw.result_value)?,
        failed_value: raw.failed_value.map(|text| value("failed_value", &text)).transpose()?,
        response,
        no_body: raw.no_body,
        header_names: match raw.header_names {
            RawHeaderNames::AsGiven => HeaderNames::AsGiven,
            RawHeaderNames::Canonical => HeaderNames::Canonical,
            RawHeaderNames::Lower => HeaderNames::Lower,
        },
        escape_html: raw.escape_html,
    })
}

pub(super) fn conduct(raw: RawConduct) -> Checked<Conduct> {
    Ok(Conduct {
        on_failure: raw.on_failure.map(|given| match given {
            RawOnFailure::Store => OnFailure::Store,
            RawOnFailure::Release => OnFailure::Release,
            RawOnFailure::Keep => OnFailure::Keep,
        }),
        on_hang_up: raw.on_hang_up.map(|given| match given {
            RawOnHangUp::Release => OnHangUp::Release,
            RawOnHangUp::GoOn => OnHangUp::GoOn,
        }),
        without_redis: raw.without_redis.map(|given| match given {
            RawWithoutRedis::Refuse => WithoutRedis::Refuse,
            RawWithoutRedis::Execute => WithoutRedis::Execute,
        }),
        stores: raw.stores.map(|text| status_codes(&text).at("stores")).transpose()?,
    })
}

/// `200-299`: the first and the last status code.
fn status_codes(text: &str) -> Checked<RangeInclusive<i64>> {
    let codes = text.split_once('-').and_then(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?));
    match codes {
        Some(codes) if !codes.is_empty() => Ok(codes),
        _ => wrong(format!("`{text}` is no range of status codes: write 200-299")),
    }
}
