//! Card numbers in stored records.

use crate::domain::doctor::data::{DataPlace, NumberVerdict, SchemaData, SensitiveKind, verdict};
use crate::domain::doctor::data_judgement::{PlacesOf, nothing_found, sample_of};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, CheckSeverity};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "card-numbers",
    group: CheckGroup::Data,
    title: "whether records contain numbers or verification codes of payment cards",
    reads: "with --data: the values of the sampled records, up to 1 MiB each, and their keys",
    rule: "A number counts if it has the prefix and the length of an issuer and a valid check digit, \
           unless chance explains it: one of ten numbers has a valid check digit. An error; a warning \
           if chance is unlikely or the field is named after a card; a note if there are too few \
           numbers to tell, or if chance explains the valid ones, because cards may be among them. \
           Published test numbers and card verification codes are errors.",
    source: "https://www.pcisecuritystandards.org/standards/pci-dss/ (requirements 3.3.1 and 3.5.1)",
    consequence: "Everyone who may read this Redis, its backups or its replicas can read the card \
                  numbers. The Redis then falls under PCI DSS.",
    remedy: "Store only what a retry needs: leave the number out of the response, or replace it by \
             a token or its last four digits. Then remove the records, or wait until they expire.",
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
        return nothing_found(sample, "no card number and no verification code");
    }
    judgements
}

/// Numbers that chance explains. Cards may be among them.
fn by_chance(data: &SchemaData) -> Option<CheckJudgement> {
    let mut valid = 0;
    let mut fitting = 0;
    for counts in &data.numbers {
        let is_card = counts.kind == SensitiveKind::CardNumber;
        if is_card && counts.valid > 0 && verdict(counts) == NumberVerdict::Chance {
            valid += counts.valid;
            fitting += counts.fitting;
        }
    }
    if valid == 0 {
        return None;
    }
    let (have, whether) = match valid {
        1 => ("has", "it is a card"),
        _ => ("have", "some are cards"),
    };
    let fact = format!(
        "{}: {valid} of {fitting} different numbers of a card's form {have} a valid check digit, as \
         chance gives one of ten; whether {whether} is unknown",
        data.schema
    );
    Some(CheckJudgement::note(fact).for_schemas(vec![data.schema.clone()]))
}

fn of_schema(data: &SchemaData) -> Option<CheckJudgement> {
    let mut severity = CheckSeverity::Ok;
    let mut tests = 0;
    let mut valid = 0;
    let mut numbers = 0;
    let mut found = PlacesOf::new(SensitiveKind::CardNumber);
    for counts in &data.numbers {
        if counts.kind != SensitiveKind::CardNumber {
            continue;
        }
        let names_card = match &counts.place {
            DataPlace::Key => false,
            DataPlace::At(pointer) => pointer.names_card(),
        };
        let of_place = match verdict(counts) {
            NumberVerdict::Chance => continue,
            NumberVerdict::Possible if !names_card => CheckSeverity::Note,
            NumberVerdict::Possible | NumberVerdict::Likely => CheckSeverity::Warning,
            NumberVerdict::Certain => CheckSeverity::Error,
        };
        severity = severity.max(of_place);
        tests += counts.test_numbers;
        valid += counts.valid;
        numbers += counts.numbers;
        if counts.is_grouped {
            found.add_grouped(&counts.place, counts.records);
        } else {
            found.add(&counts.place, counts.records);
        }
    }
    let mut sentences = Vec::new();
    if !found.is_empty() {
        let mut sentence = found.sentence(data.records);
        if tests == valid {
            sentence.push_str("; all are published test numbers");
        } else if tests > 0 {
            sentence.push_str(&format!("; {tests} of {valid} are published test numbers"));
        } else if severity < CheckSeverity::Error {
            sentence.push_str(&format!(
                "; {valid} of {numbers} different numbers there, and one of ten is valid by chance"
            ));
        }
        sentences.push(sentence);
    }
    let mut codes = PlacesOf::new(SensitiveKind::CardCode);
    for found in &data.found {
        if found.kind == SensitiveKind::CardCode {
            codes.add(&found.place, found.records);
            severity = CheckSeverity::Error;
        }
    }
    if !codes.is_empty() {
        sentences.push(codes.sentence(data.records));
    }
    if sentences.is_empty() {
        return None;
    }
    let fact = format!("{} stores {}", data.schema, sentences.join("; "));
    let judgement = match severity {
        CheckSeverity::Error => CheckJudgement::error(fact),
        CheckSeverity::Warning => CheckJudgement::warning(fact),
        _ => CheckJudgement::note(fact),
    };
    Some(judgement.for_schemas(vec![data.schema.clone()]))
}
