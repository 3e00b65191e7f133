//! Keys of well-known providers, which have fixed beginnings.

/// The key of a provider, as the provider writes it.
struct ProviderKey {
    /// What it is, for people.
    label: &'static str,
    prefix: &'static str,
    /// The fewest letters after the prefix.
    least: usize,
    /// The letters besides letters and digits.
    others: &'static [u8],
    /// True if all letters are upper case.
    is_upper: bool,
}

const fn key(label: &'static str, prefix: &'static str, least: usize) -> ProviderKey {
    ProviderKey { label, prefix, least, others: b"_-", is_upper: false }
}

const fn upper(label: &'static str, prefix: &'static str, least: usize) -> ProviderKey {
    ProviderKey { label, prefix, least, others: b"", is_upper: true }
}

/// The formats, each with its source.
const KEYS: [ProviderKey; 33] = [
    // https://docs.stripe.com/keys
    key("Stripe live key", "sk_live_", 16),
    key("Stripe restricted live key", "rk_live_", 16),
    key("Stripe test key", "sk_test_", 16),
    key("Stripe restricted test key", "rk_test_", 16),
    key("Stripe webhook secret", "whsec_", 24),
    // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    upper("AWS access key", "AKIA", 16),
    upper("AWS temporary access key", "ASIA", 16),
    // https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github
    key("GitHub token", "ghp_", 30),
    key("GitHub token", "gho_", 30),
    key("GitHub token", "ghu_", 30),
    key("GitHub token", "ghs_", 30),
    key("GitHub token", "ghr_", 30),
    key("GitHub token", "github_pat_", 30),
    // https://docs.slack.dev/authentication/tokens
    key("Slack token", "xoxb-", 20),
    key("Slack token", "xoxp-", 20),
    key("Slack token", "xoxa-", 20),
    key("Slack token", "xoxr-", 20),
    key("Slack token", "xoxs-", 20),
    key("Slack token", "xapp-", 20),
    // https://cloud.google.com/docs/authentication/api-keys
    key("Google API key", "AIza", 35),
    key("Google client secret", "GOCSPX-", 24),
    // https://docs.gitlab.com/security/tokens/
    key("GitLab token", "glpat-", 20),
    // https://docs.npmjs.com/about-access-tokens
    key("npm token", "npm_", 36),
    // https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys
    ProviderKey {
        label: "SendGrid key",
        prefix: "SG.",
        least: 60,
        others: b"_-.",
        is_upper: false,
    },
    // https://shopify.dev/docs/apps/build/authentication-authorization
    key("Shopify token", "shpat_", 32),
    key("Shopify secret", "shpss_", 32),
    // https://developer.squareup.com/docs/build-basics/access-tokens
    key("Square secret", "sq0csp-", 22),
    key("Square token", "sq0atp-", 22),
    // https://platform.openai.com/docs/api-reference/authentication
    key("OpenAI key", "sk-proj-", 40),
    // https://docs.claude.com/en/api/overview
    key("Anthropic key", "sk-ant-", 40),
    // https://docs.digitalocean.com/reference/api/create-personal-access-token/
    key("DigitalOcean token", "dop_v1_", 60),
    // https://huggingface.co/docs/hub/security-tokens
    key("Hugging Face token", "hf_", 30),
    // https://developer.hashicorp.com/vault/docs/concepts/tokens
    key("Vault token", "hvs.", 24),
];

/// Placeholders of documents, such as `sk_test_xxxxxxxxxxxxxxxx`, have fewer different letters.
const MIN_DIFFERENT: u32 = 5;

/// No key is shorter.
const SHORTEST: usize = 20;

/// Passes what each key in the text is.
pub(super) fn find(text: &[u8], mut found: impl FnMut(&'static str)) {
    if text.len() < SHORTEST {
        return;
    }
    let mut is_inside = false;
    for (at, byte) in text.iter().enumerate() {
        let was_inside = is_inside;
        is_inside = is_word(*byte);
        if was_inside || !FIRST_BYTES[usize::from(*byte)] {
            continue;
        }
        for key in &KEYS {
            let rest = text[at..].strip_prefix(key.prefix.as_bytes());
            if rest.is_some_and(|rest| key.fits(rest)) {
                found(key.label);
            }
        }
    }
}

/// True for each byte with which a key begins. Most bytes of a text are none of them.
const FIRST_BYTES: [bool; 256] = {
    let mut are_first = [false; 256];
    let mut index = 0;
    while index < KEYS.len() {
        are_first[KEYS[index].prefix.as_bytes()[0] as usize] = true;
        index += 1;
    }
    are_first
};

impl ProviderKey {
    /// True if the bytes after the prefix are those of a key.
    fn fits(&self, rest: &[u8]) -> bool {
        let mut length = 0;
        let mut seen: u128 = 0;
        // Longer texts need not be read to their end.
        for byte in rest.iter().take(512) {
            let is_letter = byte.is_ascii_alphanumeric() || self.others.contains(byte);
            if !is_letter || self.is_upper && byte.is_ascii_lowercase() {
                break;
            }
            seen |= 1 << u32::from(*byte);
            length += 1;
        }
        let is_whole = !self.is_upper
            || length == self.least && !rest.get(length).is_some_and(|next| is_word(*next));
        length >= self.least && seen.count_ones() >= MIN_DIFFERENT && is_whole
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
