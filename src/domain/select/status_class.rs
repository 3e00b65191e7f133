//! HTTP statuses as operators write them: a single status, or a class of a hundred.

use std::str::FromStr;

/// The HTTP statuses that `201` or `5xx` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatusClass {
    least: i64,
    most: i64,
}

impl StatusClass {
    /// True for a status code of this class.
    pub(crate) fn contains(self, status: i64) -> bool {
        (self.least..=self.most).contains(&status)
    }
}

impl FromStr for StatusClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, size) = match text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
            Some(class) => (class, 100),
            None => (text, 1),
        };
        // Rust would also parse a sign.
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(no_status(text));
        }
        let Ok(number) = digits.parse::<i64>() else { return Err(no_status(text)) };
        let Some(least) = number.checked_mul(size) else { return Err(no_status(text)) };
        if !(100..1_000).contains(&least) {
            return Err(no_status(text));
        }
        Ok(Self { least, most: least + size - 1 })
    }
}

fn no_status(text: &str) -> String {
    format!("`{text}` is not an HTTP status: write one such as 201, or a class such as 5xx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_or_a_class_of_a_hundred() {
        let has = |text: &str, status| text.parse::<StatusClass>().unwrap().contains(status);
        assert!(has("201", 201) && !has("201", 200) && !has("201", 202));
        assert!(has("5xx", 500) && has("5XX", 599) && !has("5xx", 499) && !has("5xx", 600));
        for odd in [
            "",
            "x",
            "xx",
            "5x",
            "+5xx",
            "-200",
            "20",
            "0xx",
            "10xx",
            "2000",
            "99999999999999999999xx",
        ] {
            assert!(odd.parse::<StatusClass>().is_err(), "{odd}");
        }
    }
}
