//! .NET's ticks: units of 100 nanoseconds since the beginning of the year 1.
//! <https://learn.microsoft.com/dotnet/api/system.datetime.ticks>

/// The ticks at the beginning of 1970, which .NET calls `DateTime.UnixEpoch.Ticks`.
const AT_EPOCH: u64 = 621_355_968_000_000_000;

/// The number of ticks in a millisecond.
const IN_MS: u64 = 10_000;

/// The ticks for a time in milliseconds since 1970.
pub(crate) fn from_ms(ms: u64) -> u64 {
    ms.saturating_mul(IN_MS).saturating_add(AT_EPOCH)
}

/// The time in milliseconds since 1970; zero for any earlier time.
pub(crate) fn to_ms(ticks: u64) -> u64 {
    ticks.saturating_sub(AT_EPOCH) / IN_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What .NET Core 3.1 wrote as the expiry of a key at 2026-11-24 15:40:04.040 UTC.
    #[test]
    fn ticks_are_those_of_dotnet() {
        assert_eq!(to_ms(639_311_316_040_402_013), 1_795_534_804_040);
        assert_eq!(from_ms(1_795_534_804_040), 639_311_316_040_400_000);
        assert_eq!((to_ms(0), to_ms(from_ms(u64::MAX)) > 0), (0, true));
    }
}
