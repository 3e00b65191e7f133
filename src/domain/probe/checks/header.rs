//! A key that is missing.

use super::judging::{Executions, answer_of, executions, statuses};
use crate::domain::probe::probe_check::{
    Judged, ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult,
};
use crate::domain::probe::task::ProbeTask;
use crate::domain::probe::template::KeyPlace;

pub(in crate::domain::probe) const MISSING: ProbeCheck = ProbeCheck {
    id: "key-missing",
    group: ProbeGroup::Header,
    title: "a request without a key is rejected",
    steps: without_key,
    judge: judge_missing,
};

fn without_key(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    if task.template.place == KeyPlace::Mark {
        return Err("the key is a part of the request".to_owned());
    }
    let key = task.new_key();
    let request = task.template.without_key(&key).map_err(|why| why.to_string())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn judge_missing(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let answer = answer_of(results[1].exchanges.first())?;
    let status = answer.status;
    let wanted = statuses(&task.profile.statuses.missing_key);
    let executed = executions(task, &results[0], &results[2]);
    let judged = if let Executions::Times(1..) = executed {
        ProbeJudgement::fail(format!("it was executed, and answered {status}")).by_number()
    } else if task.profile.statuses.missing_key.contains(&status) {
        ProbeJudgement::pass(format!("it got {status}"))
    } else if answer.is_overload() {
        ProbeJudgement::inconclusive(format!("it got {status}"))
    } else {
        ProbeJudgement::fail(format!("it got {status}, and not {wanted}"))
    };
    Ok(judged.showing(&[(1, 0)]))
}
