//! The checksum at the end of what DUMP gives: CRC-64 with Jones's polynomial, little-endian.

const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// True when the bytes are as DUMP gave them.
pub(super) fn holds(dump: &[u8]) -> bool {
    let Some((payload, sum)) = dump.split_last_chunk::<8>() else { return false };
    let crc = payload.iter().fold(0_u64, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        TABLE[usize::from(low ^ byte)] ^ (crc >> 8)
    });
    crc == u64::from_le_bytes(*sum)
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
