//! How many schedules the states stand for.

/// The ways from the first `roots` states to the states that lead nowhere, where `leads` holds for each state where its
/// successors end in `edges`. No way comes back to a state: each step uses up a part of a worker's program or a fault.
pub(super) fn count(roots: usize, leads: &[u32], edges: &[u32]) -> f64 {
    let successors = |state: usize| {
        let start = if state == 0 { 0 } else { leads[state - 1] };
        &edges[start as usize..leads[state] as usize]
    };
    let mut to_come = vec![0u32; leads.len()];
    edges.iter().for_each(|next| to_come[*next as usize] += 1);
    let mut ways = vec![0f64; leads.len()];
    ways[..roots].fill(1.0);
    let mut ready: Vec<usize> = (0..roots).filter(|root| to_come[*root] == 0).collect();
    let mut whole = 0.0;
    while let Some(state) = ready.pop() {
        if successors(state).is_empty() {
            whole += ways[state];
        }
        for next in successors(state).iter().map(|next| *next as usize) {
            ways[next] += ways[state];
            to_come[next] -= 1;
            if to_come[next] == 0 {
                ready.push(next);
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_that_meet_are_counted_each() {
        // 0 leads to 1 and 2, both of which lead to 3; 1 leads to 3 in two ways.
        assert_eq!(count(1, &[2, 4, 5, 5], &[1, 2, 3, 3, 3]), 3.0);
        assert_eq!(count(1, &[0], &[]), 1.0);
    }
}
