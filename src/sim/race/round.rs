//! One round: everybody begins on one fresh key, the winner finishes, the losers retry.

use std::time::Instant;

use futures_util::future::join_all;

use super::worker::{Seat, Turn, Worker};
use crate::domain::race::{Answer, Plan, Round};
use crate::interrupt::Interrupt;
use crate::sim::service::Service;
use crate::store::StoreError;

/// Plays a round; `None` after Ctrl-C.
///
/// Between two phases no request is in flight. With `overlap` a winner finishes within the phase in which it won.
pub(super) async fn play(
    workers: &mut [Worker],
    service: &Service<'_>,
    plan: &Plan,
    number: usize,
    key: &[u8],
    interrupt: &Interrupt,
) -> Result<Option<Round>, StoreError> {
    let fails = plan.fail_every > 0 && number.is_multiple_of(plan.fail_every);
    let mut seats = seats(workers, service, plan, number, key);
    let mut round = Round::default();
    let asking = Turn { asks: true, finishes: plan.overlap, fails };
    let finishing = Turn { asks: false, finishes: true, fails };

    release(&mut seats, &mut round, |_| true, asking).await?;
    if !seats.iter().any(answered) {
        // No worker got a reply: the error of any of them will do.
        return match seats.iter_mut().find_map(|seat| seat.trouble.take()) {
            Some(error) => Err(error),
            None => Ok(None),
        };
    }
    if interrupt.is_raised() {
        return Ok(None);
    }
    release(&mut seats, &mut round, |seat| seat.holds, finishing).await?;
    release(&mut seats, &mut round, |seat| !seat.won && seat.is_connected(), Turn { fails: false, ..asking }).await?;
    release(&mut seats, &mut round, |seat| seat.holds, Turn { fails: false, ..finishing }).await?;
    round.events = seats.into_iter().flat_map(|seat| seat.events).collect();
    Ok((!interrupt.is_raised()).then_some(round))
}

/// A seat for each worker; in every round another worker is first.
fn seats<'r, 's>(
    workers: &'r mut [Worker],
    service: &'r Service<'s>,
    plan: &Plan,
    number: usize,
    key: &'r [u8],
) -> Vec<Seat<'r, 's>> {
    let count = u32::try_from(workers.len()).unwrap_or(u32::MAX);
    let mut seats: Vec<_> = workers.iter_mut().map(|worker| Seat::new(worker, service, key)).collect();
    let first = number % seats.len().max(1);
    seats.rotate_left(first);
    let clock = Instant::now();
    // The pauses differ, for workers that all think equally long would meet again behind the pause.
    for (place, seat) in (1..).zip(&mut seats) {
        seat.sit(plan.think_time * place / count, clock);
    }
    seats
}

/// Releases some of the workers at one moment and waits for all of them.
async fn release(
    seats: &mut [Seat<'_, '_>],
    round: &mut Round,
    who: impl Fn(&Seat<'_, '_>) -> bool,
    turn: Turn,
) -> Result<(), StoreError> {
    let mut ready: Vec<_> = seats.iter_mut().filter(|seat| who(seat)).collect();
    if ready.is_empty() {
        return Ok(());
    }
    let seen = ready.iter().map(|seat| seat.events.len()).sum::<usize>();
    let released = Instant::now();
    // Unconstrained, so that every worker has sent its request before the first reply is read: that is the barrier.
    tokio::task::unconstrained(join_all(ready.iter_mut().map(|seat| seat.play(turn)))).await;
    if turn.asks {
        round.released += released.elapsed();
        round.raced += (ready.iter().map(|seat| seat.events.len()).sum::<usize>() - seen) as u64;
    }
    let refused = |error: &StoreError| !error.lost_the_reply();
    match ready.into_iter().find_map(|seat| seat.trouble.take_if(|error| refused(error))) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn answered(seat: &Seat<'_, '_>) -> bool {
    seat.events.iter().any(|event| !matches!(event.answer, Answer::Lost(_)))
}
