//! Replies that arrive late, in pieces, or after their caller gave up.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::*;
use crate::store::connection::Address;

fn connection(here: UnixStream, timeout: Duration) -> Connection {
    let target = Target { timeout, ..Target::new(Address::Unix("s".into())) };
    let transport = Transport::new(Box::new(here));
    Connection {
        transport,
        target,
        log_in_number: 0,
        reopened_at: None,
        patience: Patience::default(),
        bounds: Bounds::default(),
        owed: 0,
        has_answered: false,
        mark: 0,
        marks: VecDeque::new(),
    }
}

/// Rule: all replies to one write share the timeout, however many pieces they arrive in.
#[tokio::test]
async fn a_reply_that_comes_byte_by_byte_is_given_up_at_the_timeout() {
    for is_scan in [false, true] {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut connection = connection(here, Duration::from_millis(400));
        let trickle = tokio::spawn(async move {
            for byte in b"$100\r\n".iter().chain(&[b'x'; 100]) {
                there.write_all(&[*byte]).await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            io::Result::Ok(())
        });
        let given_up = if is_scan {
            connection.queue(&[b"GET", b"k"]);
            connection.send().await.unwrap();
            connection.token().await.map(drop)
        } else {
            connection.call(&pack(["GET", "k"])).await.map(drop)
        };
        assert!(matches!(given_up, Err(StoreError::TimedOut { .. })), "{given_up:?}");
        trickle.abort();
    }
}

/// Rule: a long reply is read to its end while its bytes keep arriving, even if it takes longer
/// than the timeout.
#[tokio::test]
async fn a_long_reply_has_the_time_that_its_bytes_need() {
    const PIECE: usize = 128 * 1024;
    for is_scan in [false, true] {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut connection = connection(here, Duration::from_secs(1));
        // Each piece gives two seconds more, so only the first one has to be there in time.
        there.write_all(format!("${}\r\n", 5 * PIECE).as_bytes()).await.unwrap();
        there.write_all(&vec![b'x'; PIECE]).await.unwrap();
        let flow = tokio::spawn(async move {
            for _ in 1..5 {
                tokio::time::sleep(Duration::from_millis(300)).await;
                there.write_all(&vec![b'x'; PIECE]).await.unwrap();
            }
            there.write_all(b"\r\n").await.unwrap();
        });
        if is_scan {
            connection.queue(&[b"GET", b"k"]);
            connection.send().await.unwrap();
            assert!(
                matches!(connection.token().await.unwrap(), Token::Text(text) if text.len() == 5 * PIECE)
            );
        } else {
            connection.call(&pack(["GET", "k"])).await.unwrap();
        }
        flow.await.unwrap();
    }
}

/// Rule: a reply is matched to its request, even if the caller of an earlier request has given up.
#[tokio::test]
async fn the_reply_to_a_request_that_was_given_up_is_not_that_of_the_next_one() {
    let (here, mut there) = UnixStream::pair().unwrap();
    let mut connection = connection(here, Duration::from_millis(50));
    there.write_all(b"+the fir").await.unwrap();
    assert!(matches!(connection.call(&pack(["FIRST"])).await, Err(StoreError::TimedOut { .. })));
    connection.target.timeout = Duration::from_secs(60);
    there.write_all(b"st\r\n+the second\r\n").await.unwrap();
    assert_eq!(
        connection.call(&pack(["SECOND"])).await.unwrap(),
        Value::SimpleString("the second".to_owned())
    );
}

/// Rule: unrequested bytes end the connection before the next request is sent.
#[tokio::test]
async fn a_byte_that_nobody_asked_for_ends_the_connection() {
    for extra in [&b"+twice\r\n"[..], b"+", b"\n"] {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut connection = connection(here, Duration::from_secs(60));
        there.write_all(b"+one\r\n").await.unwrap();
        connection.call(&pack(["FIRST"])).await.unwrap();
        there.write_all(extra).await.unwrap();
        for _ in 0..2 {
            let refused = connection.call(&pack(["SECOND"])).await;
            assert!(matches!(refused, Err(StoreError::Unasked { .. })), "{refused:?}");
        }
        drop(connection);
        let mut sent = Vec::new();
        there.read_buf(&mut sent).await.unwrap();
        let sent = String::from_utf8(sent).unwrap();
        assert!(sent.contains("FIRST") && !sent.contains("SECOND"), "{sent}");
    }
}

/// Rule: if there are more replies than requests, none of them can be matched to a request.
#[tokio::test]
async fn one_reply_too_many_spoils_all_that_were_asked_for_together() {
    let (here, mut there) = UnixStream::pair().unwrap();
    let mut connection = connection(here, Duration::from_secs(60));
    there.write_all(b":1\r\n:1\r\n:2\r\n").await.unwrap();
    let spoiled = connection.call_all(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", 2).await;
    assert!(matches!(spoiled, Err(StoreError::NotRedis { .. })), "{spoiled:?}");
}

/// Rule: a duplicated reply is detected even if the last reply has not arrived, because the reply
/// to the marker is wrong.
#[tokio::test]
async fn a_reply_that_came_twice_is_known_by_the_mark_behind_it() {
    let requests = b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n";
    let mark = &b"$24\r\nidemctl-0000000000000001\r\n"[..];
    for (first, later, is_sound) in [
        ("", [b":1\r\n:2\r\n", mark].concat(), true),
        (":1\r\n:1\r\n", [b":2\r\n", mark].concat(), false),
    ] {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut connection = connection(here, Duration::from_secs(60));
        there.write_all(first.as_bytes()).await.unwrap();
        let rest = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            there.write_all(&later).await.unwrap();
            there
        });
        let exchanged = connection.call_all(requests, 2).await;
        assert_eq!(exchanged.is_ok(), is_sound, "{exchanged:?}");
        assert!(is_sound || matches!(exchanged, Err(StoreError::NotRedis { .. })), "{exchanged:?}");
        drop(rest.await.unwrap());
    }
}

/// Rule: if the server refuses the marker, as for a Redis user who may not send PING, the replies
/// before it are still valid.
#[tokio::test]
async fn a_refused_mark_is_no_reply_of_another_request() {
    let (here, mut there) = UnixStream::pair().unwrap();
    let mut connection = connection(here, Duration::from_secs(60));
    there
        .write_all(
            b":1\r\n:2\r\n-NOPERM this user has no permissions to run the 'ping' command\r\n",
        )
        .await
        .unwrap();
    let replies =
        connection.call_all(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", 2).await.unwrap();
    assert_eq!(replies, [Value::Int(1), Value::Int(2)]);
}
