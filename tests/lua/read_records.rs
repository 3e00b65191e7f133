//! admin/read_records

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::support::wire::STRAY;

fn bench() -> Bench {
    Bench::of("admin/read_records")
}

/// The reply's parts: the time, and a row for each key.
fn parts(reply: StepReply) -> (i64, Vec<[StepReply; 10]>) {
    let StepReply::Array(items) = reply else { panic!("{reply:?}") };
    let mut items = items.into_iter();
    let Some(StepReply::Integer(time)) = items.next() else { panic!("no time") };
    let rows = items.map(|row| match row {
        StepReply::Array(row) => row.try_into().expect("ten elements"),
        other => panic!("{other:?}"),
    });
    (time, rows.collect())
}

fn number(reply: &StepReply) -> i64 {
    let StepReply::Integer(number) = reply else { panic!("{reply:?}") };
    *number
}

fn text(text: impl AsRef<[u8]>) -> StepReply {
    StepReply::Text(text.as_ref().to_vec())
}

#[test]
fn tells_type_expiry_memory_length_and_bytes_of_each_key() {
    let mut bench = bench();
    for value in STRAY {
        bench.put_expiring("a", value);
        bench.put("b", value);
        let (time, rows) = parts(bench.reply(&["a", "b"], &["-1", "0"]));
        assert!(time > 1_600_000_000_000, "milliseconds since 1970");
        for [kind, _, _, _, idle, memory, length, _, head, _] in &rows {
            assert_eq!((kind, head), (&text("string"), &text(value)));
            assert_eq!(number(length), i64::try_from(value.len()).unwrap());
            assert!(number(idle) >= 0 && number(memory) > 0);
        }
        assert!((58_000..=60_000).contains(&number(&rows[0][1])));
        assert_eq!(number(&rows[1][1]), -1);
    }
}

#[test]
fn an_absent_key_is_none() {
    let (_, rows) = parts(bench().reply(&["a"], &["-1", "0"]));
    let minus = |number| StepReply::Integer(number);
    let none = text("none");
    let minus_one = || minus(-1);
    let expected = [
        none,
        minus(-2),
        minus(-2),
        minus(1),
        minus_one(),
        minus_one(),
        minus_one(),
        text(""),
        text(""),
        minus_one(),
    ];
    assert_eq!(rows, [expected]);
}

#[test]
fn another_type_is_named_and_only_fields_of_a_hash_are_returned() {
    let mut kinds = Vec::new();
    bench().each_type("a", |bench| {
        let (_, rows) = parts(bench.reply(&["a"], &["-1", "0"]));
        let [kind, pttl, deadline, _, _, memory, length, _, head, _] = &rows[0];
        kinds.push(kind.clone());
        assert_eq!((number(pttl), number(deadline)), (-1, -1));
        assert!(number(length) > 0);
        if *kind == text("hash") {
            assert!(matches!(head, StepReply::Array(fields) if fields.len() == 3), "{head:?}");
        } else {
            assert_eq!(head, &text(""));
        }
        assert!(number(memory) > 0);
    });
    assert_eq!(kinds, ["hash", "list", "set", "zset", "stream"].map(text));
}

#[test]
fn returns_no_more_bytes_than_asked_for() {
    let mut bench = bench();
    bench.put("a", b"\xff\x00\r\nlonger");
    for (asked, head) in
        [("0", &b""[..]), ("1", b"\xff"), ("4", b"\xff\x00\r\n"), ("99", b"\xff\x00\r\nlonger")]
    {
        let (_, rows) = parts(bench.reply(&["a"], &[asked, "0"]));
        assert_eq!((number(&rows[0][6]), &rows[0][8]), (10, &text(head)), "{asked}");
    }
}

#[test]
fn a_length_that_is_no_number_of_bytes_is_an_error() {
    for wrong in ["", "-2", "1.5", "all", "nan"] {
        assert_eq!(bench().run(&["a"], &[wrong, "0"]), "error ERR", "{wrong}");
    }
    let none: [&str; 0] = [];
    assert_eq!(bench().run(&["a"], &none), "error ERR");
}

#[test]
fn idle_time_is_that_before_it_was_read() {
    let mut bench = bench();
    bench.put("a", "value");
    std::thread::sleep(std::time::Duration::from_millis(1_300));
    let idle = |bench: &mut Bench| number(&parts(bench.reply(&["a"], &["-1", "0"])).1[0][4]);
    assert!(idle(&mut bench) >= 1);
}

#[test]
fn idle_time_is_unknown_under_an_lfu_policy() {
    let mut bench = bench();
    bench.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"]);
    bench.put("a", "value");
    let (_, rows) = parts(bench.reply(&["a"], &["-1", "0"]));
    assert_eq!((number(&rows[0][4]), &rows[0][8]), (-1, &text("value")));
}

#[test]
fn what_the_user_may_not_ask_is_unknown_and_the_rest_is_told() {
    let mut bench = bench();
    bench.put_expiring("a", "value");
    bench.log_in_with("+eval +type +pttl +strlen +getrange +ping");
    let (time, rows) = parts(bench.reply(&["a"], &["-1", "0"]));
    let [kind, pttl, deadline, _, idle, memory, length, _, head, _] = &rows[0];
    assert_eq!((time, number(deadline), number(idle), number(memory)), (-1, -3, -1, -1));
    assert_eq!((kind, number(length), head), (&text("string"), 5, &text("value")));
    assert!(number(pttl) > 30_000);
}

#[test]
fn the_deadline_is_exact_where_the_server_tells_it() {
    let mut bench = bench();
    bench.put("a", "value");
    assert_eq!(bench.ask(&["PEXPIREAT", "a", "4000000000000"]), StepReply::Integer(1));
    let knows = matches!(bench.ask(&["PEXPIRETIME", "a"]), StepReply::Integer(_));
    for _ in 0..100 {
        let (_, rows) = parts(bench.reply(&["a"], &["-1", "0"]));
        let (deadline, exact) = (number(&rows[0][2]), number(&rows[0][3]));
        assert_eq!(exact == 1, knows);
        assert!((deadline - 4_000_000_000_000).abs() <= if knows { 0 } else { 1 }, "{deadline}");
    }
}

/// A server whose script has no PEXPIRETIME, and which the system stops for 5 ms after each of the first `stops` PTTLs.
fn bench_that_stops(stops: u32) -> Bench {
    let prelude = format!(
        "local real, stops = redis, {stops}
         local function micros() local t = real.call('TIME'); return t[1] * 1000000 + t[2] end
         local function call(name, ...)
           local reply = real.call(name, ...)
           if name == 'PTTL' and stops > 0 then
             stops = stops - 1
             local began = micros()
             while micros() - began < 5000 do end
           end
           return reply
         end
         local function pcall(name, ...)
           if name == 'PEXPIRETIME' then return {{err = 'ERR unknown command'}} end
           return real.pcall(name, ...)
         end
         local redis = {{call = call, pcall = pcall, error_reply = real.error_reply}}"
    );
    Bench::behind(&prelude, "admin/read_records")
}

#[test]
fn a_server_that_is_stopped_between_two_readings_tells_the_same_deadline() {
    let mut bench = bench_that_stops(4);
    bench.put("a", "value");
    assert_eq!(bench.ask(&["PEXPIREAT", "a", "4000000000000"]), StepReply::Integer(1));
    // Servers from 7.2 on tell PTTL by the moment at which the script began; all of them have PEXPIRETIME.
    if matches!(bench.ask(&["PEXPIRETIME", "a"]), StepReply::Integer(_)) {
        return;
    }
    let (_, rows) = parts(bench.reply(&["a"], &["-1", "0"]));
    assert!((number(&rows[0][2]) - 4_000_000_000_000).abs() <= 1, "{rows:?}");
}

#[test]
fn a_clock_that_leaps_at_each_reading_ends_the_readings() {
    let mut bench = bench_that_stops(1_000);
    bench.put_expiring("a", "value");
    let (_, rows) = parts(bench.reply(&["a"], &["-1", "0"]));
    assert_eq!(number(&rows[0][3]), 0);
}

#[test]
fn a_value_that_is_longer_than_its_head_has_a_checksum_where_asked_for() {
    let mut bench = bench();
    bench.put("a", "value");
    let StepReply::Text(dump) = bench.ask(&["DUMP", "a"]) else { panic!("no dump") };
    let sum = &dump[dump.len() - 8..];
    for (asked, told) in
        [(["2", "1"], sum), (["2", "0"], b""), (["5", "1"], b""), (["-1", "1"], b"")]
    {
        let (_, rows) = parts(bench.reply(&["a"], &asked));
        assert_eq!(rows[0][7], text(told), "{asked:?}");
    }
}

#[test]
fn changes_nothing() {
    let mut bench = bench();
    bench.put_expiring("a", "value");
    let before = bench.left("a");
    bench.reply(&["a", "b"], &["-1", "0"]);
    assert_eq!(bench.left("a"), before);
    assert_eq!(bench.pttl("b"), -2);
}

/// The fields of a hash as they are told: names, lengths, heads.
fn fields(bench: &mut Bench, most: &str) -> Vec<StepReply> {
    let (_, rows) = parts(bench.reply(&["a"], &[most, "0"]));
    let StepReply::Array(fields) = &rows[0][8] else { panic!("{:?}", rows[0]) };
    fields.clone()
}

/// Rule: of a large hash no more comes than is asked for, and short values, which tell states, come first.
#[test]
fn the_fields_of_a_hash_come_within_a_budget_short_ones_first() {
    let mut bench = bench();
    let long = "x".repeat(2_000_000);
    bench.ask(&["HSET", "a", "body", "y".repeat(900).as_str(), "status", "done", "huge", &long]);
    let whole = fields(&mut bench, "-1");
    assert_eq!((whole.len(), &whole[8]), (9, &text(&long)));
    let some = fields(&mut bench, "100");
    let length = |length: usize| StepReply::Integer(i64::try_from(length).unwrap());
    assert_eq!(some[..3], [text("status"), length(4), text("done")]);
    assert_eq!(some[3..6], [text("body"), length(900), text("y".repeat(96))]);
    assert_eq!(some[6..], [text("huge"), length(2_000_000), text("")]);
    let none = fields(&mut bench, "0");
    assert_eq!((&none[2], &none[5], &none[8]), (&text(""), &text(""), &text("")));
    bench.ask(&["EVAL", "for i = 1, 257 do redis.call('HSET', 'a', i, i) end", "0"]);
    assert_eq!(fields(&mut bench, "-1"), []);
}

#[test]
fn what_is_no_string_has_a_checksum_where_all_of_it_or_checksums_are_asked_for() {
    let mut bench = bench();
    bench.ask(&["HSET", "a", "status", "done"]);
    let sum =
        |bench: &mut Bench, args: [&str; 2]| parts(bench.reply(&["a"], &args)).1[0][7].clone();
    let whole = sum(&mut bench, ["-1", "0"]);
    assert!(matches!(&whole, StepReply::Text(sum) if sum.len() == 8), "{whole:?}");
    assert_eq!(sum(&mut bench, ["64", "1"]), whole);
    assert_eq!(sum(&mut bench, ["64", "0"]), text(""));
    bench.ask(&["HSET", "a", "status", "gone"]);
    assert_ne!(sum(&mut bench, ["-1", "0"]), whole);
}

/// Rule: no value of many elements is dumped, which would keep every other client waiting. Without a checksum no change compares
/// such a value, and leaves the value alone.
#[test]
fn a_value_of_too_many_elements_has_no_checksum() {
    let mut bench = bench();
    for (members, bytes) in [(10_000, 8), (10_001, 0)] {
        bench.ask(&[
            "EVAL",
            &format!("for i = 1, {members} do redis.call('SADD', 'a', i) end"),
            "0",
        ]);
        let (_, rows) = parts(bench.reply(&["a"], &["-1", "1"]));
        assert!(
            matches!(&rows[0][7], StepReply::Text(sum) if sum.len() == bytes),
            "{members}: {:?}",
            rows[0]
        );
    }
}
