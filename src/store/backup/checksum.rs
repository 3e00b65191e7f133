//! The checksum at the end of what DUMP gives.

use crc::{CRC_64_REDIS, Crc};

static OF_DUMP: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);

/// True when the bytes are as DUMP gave them.
pub(super) fn holds(dump: &[u8]) -> bool {
    let Some((payload, sum)) = dump.split_last_chunk::<8>() else { return false };
    OF_DUMP.checksum(payload) == u64::from_le_bytes(*sum)
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn knows_a_damaged_dump() {
        // The check value every implementation of this CRC is held against.
        let check = 0xe9c6_d914_c4b8_d9ca_u64.to_le_bytes();
        let mut bytes = [b"123456789", &check[..]].concat();
        assert!(holds(&bytes));
        bytes[3] ^= 1;
        assert!(!holds(&bytes));
        assert!(!holds(b"short"));
    }
}
