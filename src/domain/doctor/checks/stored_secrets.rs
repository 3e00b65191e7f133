//! Credentials in stored records.

use crate::domain::doctor::data::{SchemaData, SensitiveKind};
use crate::domain::doctor::data_judgement::{PlacesOf, nothing_found, sample_of};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "stored-secrets",
    group: CheckGroup::Data,
    title: "whether records contain keys, tokens, passwords or cookies",
    reads: "with --data: the values of the sampled records, up to 1 MiB each, and their keys",
    rule: "An error for a private key (PEM) and for a key of a known provider; a warning for a JSON \
           web token, the credentials of an Authorization header or a URL, a cookie, and the value \
           of a header or member with a name that ends like password, secret, token or api-key, if \
           the value looks like one. Tokens of pages, of repeated requests and of payment methods do not count.",
    source: "https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html; the \
             formats of providers: src/domain/doctor/data/provider_keys.rs",
    consequence: "Everyone who may read this Redis, its backups or its replicas can use them. A \
                  replay sends a stored cookie or token to whoever repeats the key.",
    remedy: "Leave these headers and fields out of what is stored. Replace the keys and tokens: they \
             may have been read already. To remove the records before they expire lets retries execute \
             again.",
    judge,
};

/// What was looked for.
const NOTHING: &str = "no secret of a known form, and no value under a known name that looks like a \
                       secret";

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match sample_of(facts) {
        Ok(sample) => sample,
        Err(judgements) => return judgements,
    };
    let mut judgements = Vec::new();
    for data in &sample.schemas {
        judgements.extend(of_schema(data));
    }
    if judgements.is_empty() {
        return nothing_found(sample, NOTHING);
    }
    judgements
}

fn of_schema(data: &SchemaData) -> Option<CheckJudgement> {
    let mut kinds: Vec<PlacesOf> = Vec::new();
    let mut is_error = false;
    for found in &data.found {
        match found.kind {
            SensitiveKind::PrivateKey | SensitiveKind::ProviderKey(_) => is_error = true,
            SensitiveKind::Jwt
            | SensitiveKind::Bearer
            | SensitiveKind::Password
            | SensitiveKind::Cookie => {}
            SensitiveKind::CardNumber
            | SensitiveKind::CardCode
            | SensitiveKind::Iban
            | SensitiveKind::Email => continue,
        }
        // They are in the order of their kinds.
        if kinds.last().is_none_or(|last| last.kind != found.kind) {
            kinds.push(PlacesOf::new(found.kind));
        }
        if let Some(last) = kinds.last_mut() {
            last.add(&found.place, found.records);
        }
    }
    if kinds.is_empty() {
        return None;
    }
    let sentences: Vec<_> = kinds.iter_mut().map(|kind| kind.sentence(data.records)).collect();
    let fact = format!("{} stores {}", data.schema, sentences.join("; "));
    let judgement =
        if is_error { CheckJudgement::error(fact) } else { CheckJudgement::warning(fact) };
    Some(judgement.for_schemas(vec![data.schema.clone()]))
}
