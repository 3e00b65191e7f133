//! The limit: a raw socket, SCAN with the reads of the page before it, next to no parsing.

use std::io;
use std::path::Path;

use crate::resp::{Connection, Item, pack};

/// Reads 65 bytes and the expiry of every `idempotency:*` key, two pages under way; how many there were.
pub fn scan(socket: &Path) -> io::Result<usize> {
    let mut connection = Connection::open(socket)?;
    let mut out = Vec::new();
    let (mut reading, mut records) = (0, 0);
    ask_page(&mut out, b"0");
    connection.send(&out)?;
    loop {
        connection.item()?;
        let Item::Text(start, end) = connection.item()? else { return Err(io::Error::other("no cursor")) };
        let cursor = connection.bytes((start, end)).to_vec();
        let Item::Number(count) = connection.item()? else { return Err(io::Error::other("no keys")) };
        out.clear();
        if cursor != b"0" {
            ask_page(&mut out, &cursor);
        }
        for _ in 0..count {
            if let Item::Text(start, end) = connection.item()? {
                let key = connection.bytes((start, end));
                pack(&mut out, &[b"GETRANGE", key, b"0", b"64"]);
                pack(&mut out, &[b"PTTL", key]);
            }
        }
        connection.send(&out)?;
        records += read(&mut connection, reading)?;
        reading = usize::try_from(count).unwrap_or(0);
        if cursor == b"0" {
            return Ok(records + read(&mut connection, reading)?);
        }
    }
}

fn ask_page(out: &mut Vec<u8>, cursor: &[u8]) {
    pack(out, &[b"SCAN", cursor, b"MATCH", b"idempotency:*", b"COUNT", b"500"]);
}

fn read(connection: &mut Connection, records: usize) -> io::Result<usize> {
    for _ in 0..records * 2 {
        connection.item()?;
    }
    Ok(records)
}
