use super::*;
use crate::domain::record::{Deadline, RecordName, TimeLeft};
use crate::store::backup::RecordLabel;

/// A change to the first of these Redis keys, each with a value of so many bytes, of which the
/// first was read.
fn change(redis_keys: &[&str], bytes: u64) -> Change {
    let content = || Content::Text { head: b"x".to_vec(), length: Some(bytes) };
    let seen = |key: &&str| KeyState {
        checksum: Some([0; 8]),
        ..KeyState::new(key.as_bytes(), content(), TimeLeft::NoExpiry, Deadline::Never)
    };
    let seen = Observation {
        server_ms: Some(1),
        keys: redis_keys.iter().map(seen).collect(),
        atomic: true,
    };
    let label = RecordLabel {
        name: RecordName::parse(b"express/k").unwrap(),
        state: "completed",
        roles: Vec::new(),
    };
    Change::new(vec![0], seen, label)
}

fn changes(count: usize, bytes: u64) -> Vec<Change> {
    (0..count).map(|index| change(&[&format!("k{index}")], bytes)).collect()
}

fn lengths(changes: &[Change], max_keys: usize) -> Vec<usize> {
    batches(changes, max_keys).into_iter().map(<[Change]>::len).collect()
}

/// Rule: a call names so many Redis keys at most, the others of a record among them.
#[test]
fn a_call_names_so_many_redis_keys() {
    assert_eq!(lengths(&changes(5, 1), 2), [2, 2, 1]);
    assert_eq!(lengths(&changes(4, 1), 2), [2, 2]);
    assert_eq!(lengths(&[], 2), [0; 0]);
    let two: Vec<_> =
        (0..3).map(|index| change(&[&format!("a{index}"), &format!("b{index}")], 1)).collect();
    assert_eq!(lengths(&two, 4), [2, 1]);
    assert_eq!(lengths(&two, 3), [1, 1, 1]);
    assert_eq!(lengths(&two, 1), [1, 1, 1], "a record goes as a whole");
}

/// Rule: a call deals with so many bytes at most, unless a single value is larger.
#[test]
fn a_call_deals_with_so_many_bytes() {
    let half = MAX_BYTES / 2;
    assert_eq!(lengths(&changes(4, half), 100), [2, 2]);
    assert_eq!(lengths(&changes(4, half + 1), 100), [1, 1, 1, 1]);
    assert_eq!(lengths(&changes(2, 3 * MAX_BYTES), 100), [1, 1]);
}

/// Rule: a Redis key changes once a call, or the second change would go by what the first left.
#[test]
fn no_call_changes_a_redis_key_twice() {
    let twice = [change(&["a"], 1), change(&["b"], 1), change(&["a"], 1), change(&["c"], 1)];
    assert_eq!(lengths(&twice, 100), [2, 2]);
    let alike = [change(&["a"], 1), change(&["a"], 1)];
    assert_eq!(lengths(&alike, 100), [1, 1]);
}

/// Rule: what is backed up at a time is bounded by Redis keys and bytes, and holds none twice.
#[test]
fn a_group_is_what_is_backed_up_at_a_time() {
    let sizes = |changes: &[Change], max_keys| -> Vec<Vec<usize>> {
        groups(changes, max_keys)
            .iter()
            .map(|group| group.iter().map(Batch::len).collect())
            .collect()
    };
    assert_eq!(sizes(&changes(MAX_SAVED + 1, 1), MAX_SAVED / 2), [vec![MAX_SAVED / 2; 2], vec![1]]);
    assert_eq!(sizes(&changes(3, MAX_BYTES / 2), 1), [vec![1, 1], vec![1]]);
    let twice = [change(&["a"], 1), change(&["b"], 1), change(&["a"], 1)];
    assert_eq!(sizes(&twice, 1), [vec![1, 1], vec![1]]);
}

/// Rule: a change that cannot be compared is never sent, and counts as changed.
#[test]
fn what_cannot_be_compared_is_not_asked_for() {
    let approximate = |change: &mut Change| change.seen.keys[0].checksum = None;
    let absent = |change: &mut Change| change.seen.keys[0].content = Content::Absent;
    for spoil in [approximate, absent] as [fn(&mut Change); 2] {
        let mut some = changes(2, 9);
        spoil(&mut some[0]);
        let batch = Batch::new(&some);
        assert!(matches!(batch.changes().as_slice(), [only] if only.redis_key() == b"k1"));
        assert_eq!(batch.outcomes(), [Outcome::ChangedMeanwhile; 2]);
    }
}

/// Rule: the backup keeps what was changed, and what may have been; it takes back all else.
#[test]
fn what_was_left_alone_is_taken_back_from_the_backup() {
    let some = changes(4, 9);
    let mut batch = Batch::new(&some);
    assert_eq!(batch.save().len(), 4);
    batch.dumped(&mut (0..4).map(|_| Some([0; 8].to_vec())));
    assert_eq!(batch.entries().count(), 4);
    batch.set_backed_up();
    assert_eq!(batch.entries().count(), 0, "no entry is written twice");
    batch.set_outcomes(vec![
        Outcome::Done,
        Outcome::ChangedMeanwhile,
        Outcome::Unknown,
        Outcome::NotMade,
    ]);
    assert_eq!(batch.left_alone(), [b"k1", b"k3"]);
}

/// Rule: a record is withdrawn from the backup only if the backup has an entry of it.
#[test]
fn what_was_left_out_before_the_backup_is_not_taken_back_from_it() {
    let some = changes(3, 9);
    let mut batch = Batch::new(&some);
    assert_eq!(batch.save().len(), 3);
    batch.dumped(&mut (0..3).map(|_| Some([0; 8].to_vec())));
    batch.leave_out_on(|redis_key| redis_key == b"k0");
    batch.set_backed_up();
    batch.leave_out_on(|redis_key| redis_key == b"k1");
    assert_eq!(batch.left_alone(), [b"k1", b"k2"]);
}

/// Rule: all Redis keys of a record that change go in one call, and into the backup as one entry.
#[test]
fn a_record_of_two_keys_is_one_change() {
    let two = change(&["lock", "result"], 9);
    let two = [Change { changed_indexes: vec![0, 1], backed_up: vec![0, 1], ..two }];
    let mut batch = Batch::new(&two);
    assert_eq!(batch.save(), [b"lock".as_slice(), b"result"]);
    batch.dumped(&mut (0..2).map(|_| Some([0; 8].to_vec())));
    assert_eq!(batch.entries().count(), 1);
    let packed = batch.command(KeyAction::Remove).unwrap().get_packed_command();
    let packed = String::from_utf8_lossy(&packed);
    assert!(packed.contains("=9d,-1") && packed.contains("*9d,-1"), "{packed}");
}

/// Rule: what a reply says of each record, and at which moment the changed ones expire.
#[test]
fn a_reply_has_a_letter_for_each_record() {
    use Outcome::{ChangedMeanwhile, Done, Expires, Gone, Kept};
    assert_eq!(parse_letters(b"DCA", KeyAction::Remove), Some(vec![Done, ChangedMeanwhile, Gone]));
    assert_eq!(parse_letters(b"DK@1700", KeyAction::Prolong(5)), Some(vec![Expires(1_700), Kept]));
    assert_eq!(parse_letters(b"DK", KeyAction::Shorten(5)), Some(vec![Done, Kept]));
    for odd in [&b"DX"[..], b"DK", b"D@1", b"D@"] {
        assert_eq!(parse_letters(odd, KeyAction::Remove), None);
    }
    assert_eq!(parse_letters(b"D@x", KeyAction::Prolong(5)), None);
}
