//! Personal data in stored records.

use crate::domain::doctor::data::{DataPlace, NumberVerdict, SchemaData, SensitiveKind, verdict};
use crate::domain::doctor::data_judgement::{PlacesOf, nothing_found, sample_of};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "personal-data",
    group: CheckGroup::Data,
    title: "whether records contain account numbers or e-mail addresses",
    reads: "with --data: the values of the sampled records, up to 1 MiB each, and their keys",
    rule: "A warning for an IBAN with its country's structure and valid check digits, and for an \
           e-mail address in a key; a note for an e-mail address in a value, and if chance explains \
           the valid check digits.",
    source: "https://eur-lex.europa.eu/eli/reg/2016/679/oj (article 5); \
             https://www.swift.com/resource/iban-registry-pdf",
    consequence: "The data stays as long as the record, also after the person's account is deleted. \
                  Keys also appear in logs, and in the output of idemctl.",
    remedy: "Store only what a retry needs, with a short result TTL. Do not make keys from personal \
             data: use a random key, or a hash with a secret.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match sample_of(facts) {
        Ok(sample) => sample,
        Err(judgements) => return judgements,
    };
    let mut judgements = Vec::new();
    for data in &sample.schemas {
        judgements.extend(of_schema(data));
        judgements.extend(by_chance(data));
    }
    if judgements.is_empty() {
        return nothing_found(sample, "no IBAN and no e-mail address");
    }
    judgements
}

/// Texts like account numbers that chance explains. IBANs may be among them.
fn by_chance(data: &SchemaData) -> Option<CheckJudgement> {
    let mut valid = 0;
    let mut fitting = 0;
    for counts in &data.numbers {
        let is_iban = counts.kind == SensitiveKind::Iban;
        if is_iban && counts.valid > 0 && verdict(counts) == NumberVerdict::Chance {
            valid += counts.valid;
            fitting += counts.fitting;
        }
    }
    if valid == 0 {
        return None;
    }
    let (have, whether) = match valid {
        1 => ("has", "it is one"),
        _ => ("have", "some are"),
    };
    let fact = format!(
        "{}: {valid} of {fitting} different texts of an IBAN's form {have} valid check digits, as \
         chance gives one of 97; whether {whether} is unknown",
        data.schema
    );
    Some(CheckJudgement::note(fact).for_schemas(vec![data.schema.clone()]))
}

fn of_schema(data: &SchemaData) -> Option<CheckJudgement> {
    let mut ibans = PlacesOf::new(SensitiveKind::Iban);
    for counts in &data.numbers {
        if counts.kind == SensitiveKind::Iban && verdict(counts) != NumberVerdict::Chance {
            ibans.add(&counts.place, counts.records);
        }
    }
    let mut emails = PlacesOf::new(SensitiveKind::Email);
    let mut is_in_key = false;
    for found in &data.found {
        if found.kind == SensitiveKind::Email {
            is_in_key |= found.place == DataPlace::Key;
            emails.add(&found.place, found.records);
        }
    }
    let is_warning = !ibans.is_empty() || is_in_key;
    let mut sentences = Vec::new();
    for mut kind in [ibans, emails] {
        if !kind.is_empty() {
            sentences.push(kind.sentence(data.records));
        }
    }
    if sentences.is_empty() {
        return None;
    }
    let fact = format!("{} stores {}", data.schema, sentences.join("; "));
    let judgement =
        if is_warning { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
    Some(judgement.for_schemas(vec![data.schema.clone()]))
}
