//! The search: what it leaves out changes nothing, and schedules that chance makes show no harm that it excludes.

mod alike;
mod chance;
mod leftover;
mod performer;
