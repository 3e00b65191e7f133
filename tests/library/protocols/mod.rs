//! Small protocols, correct and broken, judged by `explore` and by a second checker, which is naive
//! on purpose: where the two differ, one of them does not do what `docs/explore.md` says.

mod calls;
mod crossed;
mod event;
mod fence;
mod format;
mod judged;
mod naive;
mod protocol;
mod request;
