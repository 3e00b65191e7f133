//! All checks, in the order of the page.

use super::{cluster, keys_and_schemas, memory, rights, server_state, ttl, ttl_observed};
use crate::domain::doctor::doctor_check::{CheckGroup, CheckJudge, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::statement::Statement;

/// The check that judges what `explore` finds in the schemas.
const EXPLORING: &str = "schema-violations";

/// Every check.
pub(crate) static CHECKS: [DoctorCheck; 24] = [
    check(
        "writes",
        CheckGroup::Server,
        SampleNeed::Nothing,
        "whether the server accepts writes now",
        "Requests fail, or are executed without a lock. A worker that had its effect \
         cannot store its response.",
        "READONLY: use the master. NOREPLICAS: start the replicas. MISCONF: make room on \
         the disk, and look at the server's log. OOM: raise maxmemory, or move other data \
         away. CLUSTERDOWN: start the nodes that are down.",
        CheckJudge::EachNode(server_state::writes),
    ),
    check(
        "eviction-policy",
        CheckGroup::Server,
        SampleNeed::Schemas,
        "whether Redis may delete locks and results to free memory",
        "Redis deletes a lock while its worker runs, or a result before the retry \
         comes. The next request with the key executes again.",
        "Move these keys to a server of their own with maxmemory-policy noeviction. Or set \
         it here, on each server and replica: `CONFIG SET maxmemory-policy noeviction`, and \
         in redis.conf. Without CONFIG, as on a managed service, use the console of the \
         provider. Then Redis refuses all writes when its memory is full, so make sure first \
         that it does not fill.",
        CheckJudge::EachNode(memory::eviction_policy),
    ),
    check(
        "memory-headroom",
        CheckGroup::Server,
        SampleNeed::Nothing,
        "memory in use, against maxmemory",
        "When memory is full, Redis evicts keys, or refuses SET and scripts with OOM. \
         A worker that had its effect then cannot store its response.",
        "Raise maxmemory, shorten the result TTL, store smaller responses, or move other \
         data to another server.",
        CheckJudge::EachNode(memory::headroom),
    ),
    check(
        "evictions",
        CheckGroup::Server,
        SampleNeed::Nothing,
        "keys that Redis has evicted since it started",
        "Locks and results may be among them. Redis does not record which keys it \
         evicted.",
        "Move these keys to a server of their own with maxmemory-policy noeviction. Do not \
         set it here before there is room: a full server would refuse all writes. Look for \
         operations that were executed twice.",
        CheckJudge::EachNode(memory::evictions),
    ),
    check(
        "persistence",
        CheckGroup::Server,
        SampleNeed::Schemas,
        "what a crash or a restart of the server loses",
        "A crash of the server loses what is not on disk: all locks and results \
         without persistence, those since the last snapshot with RDB alone, those of \
         about one second with appendfsync everysec, and usually of up to 30 seconds \
         with no. The next request with such a key executes again.",
        "Do not edit redis.conf first: a restart with a new, empty AOF loses all data. On \
         each running server and replica, `CONFIG SET appendfsync everysec` (or always, to \
         lose nothing), then `CONFIG SET appendonly yes`. Wait until INFO persistence shows \
         aof_rewrite_in_progress:0 and aof_last_bgrewrite_status:ok. Then write both \
         settings into redis.conf.",
        CheckJudge::EachNode(server_state::persistence),
    ),
    check(
        "replication",
        CheckGroup::Server,
        SampleNeed::Nothing,
        "the role, the number of replicas, and their lag",
        "A failover to a replica that lags loses all locks and results that it has \
         not received.",
        "Look for the reason in the replica's log, and at the network between both \
         servers.",
        CheckJudge::EachNode(server_state::replication),
    ),
    check(
        "failover-loss",
        CheckGroup::Server,
        SampleNeed::Schemas,
        "whether a failover can lose acknowledged locks and results",
        "The replica that takes over may lack the last locks and results, although \
         their writers got OK. The next request with such a key executes again.",
        "Set min-replicas-to-write 1 and min-replicas-max-lag 10 in redis.conf, which \
         bounds the time in which an isolated master accepts writes. With a single \
         replica, the master then refuses writes while that replica is away, so add a \
         second one first. Let the service send WAIT 1 after it has taken the lock, and \
         let the system that has the effect reject a second one with the same key.",
        CheckJudge::EachNode(server_state::failover_loss),
    ),
    check(
        "clock-local",
        CheckGroup::Server,
        SampleNeed::Schemas,
        "the server's clock against this machine's clock",
        "A host with this machine's clock takes the times in values for earlier or \
         later than they are. It may treat a lock as expired while its worker runs.",
        "Synchronise both clocks (NTP), or run doctor on a host of the service to compare \
         its clock.",
        CheckJudge::EachNode(server_state::clock_local),
    ),
    check(
        "commands",
        CheckGroup::Server,
        SampleNeed::Schemas,
        "commands that were renamed or disabled",
        "The step fails. If complete fails, the worker has had its effect and cannot \
         store its response.",
        "Remove the rename-command line, and restrict the command with ACL rules.",
        CheckJudge::EachNode(server_state::commands),
    ),
    check(
        "user-rights",
        CheckGroup::Server,
        SampleNeed::Schemas,
        "what the user of this run may do",
        "The commands of idemctl that need it do not work with this user.",
        "Use the ready-made users of docs/connecting.md, which have the least rights.",
        CheckJudge::EachNode(rights::of_user),
    ),
    check(
        "service-rights",
        CheckGroup::Server,
        SampleNeed::Schemas,
        "whether the services' user may send what the steps send",
        "The step fails. If complete fails, the worker has had its effect and cannot \
         store its response: after the lock TTL, a retry executes again.",
        "Add the command and the key pattern to the ACL rules of the user.",
        CheckJudge::Whole(rights::of_service),
    ),
    check(
        "cluster-state",
        CheckGroup::Cluster,
        SampleNeed::Nothing,
        "whether every slot of the cluster is served, and stays where it is",
        "Requests fail, or are executed without a lock, at least for keys in slots \
         that are not served.",
        "Start the nodes that are down, and assign the slots that no node serves \
         (redis-cli --cluster check). Run doctor again after a few seconds, because a \
         server that is starting reports this, too.",
        CheckJudge::Whole(cluster::state),
    ),
    check(
        "sentinels",
        CheckGroup::Sentinel,
        SampleNeed::Nothing,
        "whether the Sentinels can agree on a failover",
        "If the Sentinels cannot agree when the master fails, no replica is promoted. \
         Requests fail, or are executed without a lock, until an operator acts.",
        "Run at least 3 Sentinels on different machines, with a quorum of 2.",
        CheckJudge::Whole(cluster::sentinels),
    ),
    check(
        "sentinel-down-after",
        CheckGroup::Sentinel,
        SampleNeed::Schemas,
        "whether locks outlive the time until Sentinels begin a failover",
        "While the master is down, no worker can renew its lock or store its \
         response. The locks expire before a replica takes over, and retries then \
         execute again.",
        "Use a lock TTL that is longer than down-after-milliseconds and the failover \
         together, or lower that time on each Sentinel with SENTINEL SET.",
        CheckJudge::Whole(cluster::down_after),
    ),
    check(
        "endless-locks",
        CheckGroup::Ttl,
        SampleNeed::AllKeys,
        "whether locks never expire",
        "If the worker of such a lock dies, every retry is rejected until an operator \
         removes the lock.",
        "List them with `idemctl list --finding no-expiry`, and find out which workers are \
         gone. `idemctl force-unlock KEY` removes one lock. Find out which code sets a \
         lock without a TTL. If no worker is running any more, `idemctl sweep --orphaned` \
         shows the orphaned locks, asks, and removes all of them.",
        CheckJudge::Whole(ttl::endless_locks),
    ),
    check(
        "observed-ttls",
        CheckGroup::Ttl,
        SampleNeed::AllKeys,
        "the stated TTLs, against the times left of all locks and of sampled results",
        "Either the TTL is not the one that the service sets, so that ages and \
         selections by age are wrong, or some records have a wrong TTL. A lock with a \
         result's TTL rejects retries for that long if its worker dies.",
        "List these locks with `idemctl list --finding excess-ttl`. If the service sets \
         another TTL, state it: `idemctl context set NAME --lock-ttl SCHEMA=DURATION`, or \
         --result-ttl for results.",
        CheckJudge::Whole(ttl::observed),
    ),
    check(
        "retry-window",
        CheckGroup::Ttl,
        SampleNeed::Records,
        "whether results outlive the time in which a request can come again",
        "A retry or a redelivery that comes after the result expired is executed \
         again.",
        "Use a result TTL that is longer than the time in which the request can come \
         again. When the service uses it, state it: `idemctl context set NAME --result-ttl \
         SCHEMA=DURATION`.",
        CheckJudge::Whole(ttl::retry_window),
    ),
    check(
        "hold-times",
        CheckGroup::Ttl,
        SampleNeed::Records,
        "how many locks expire before their result is stored",
        "Either the worker died, or its handler runs for longer than the lock TTL, \
         and a retry starts the same operation a second time.",
        "Use a lock TTL that is well above the slowest run of the handler, or let the \
         service renew its locks.",
        CheckJudge::Whole(ttl_observed::hold_times),
    ),
    check(
        "renewed-locks",
        CheckGroup::Ttl,
        SampleNeed::Records,
        "locks that are renewed for longer than a request runs",
        "If the handler hangs or is gone, and only its timer renews the lock, every \
         retry is rejected until the process ends.",
        "Look at the process that holds the lock. `idemctl list --state in-progress` shows \
         the locks with their owners. Let services stop renewing after the longest run.",
        CheckJudge::Whole(ttl_observed::renewed_locks),
    ),
    check(
        "capacity",
        CheckGroup::Capacity,
        SampleNeed::Records,
        "the memory that results will need, against maxmemory",
        "When memory is full, Redis evicts keys, or refuses SET and scripts with OOM. \
         A worker that had its effect then cannot store its response.",
        "Raise maxmemory, shorten the result TTL, store smaller responses, or move other \
         data to another server.",
        CheckJudge::Whole(memory::capacity),
    ),
    check(
        "keys-in-slots",
        CheckGroup::Cluster,
        SampleNeed::Schemas,
        "whether the Redis keys of a record are in one slot",
        "No step can change the Redis keys together. A failover or crash between two \
         commands leaves a lock without its result, or the reverse.",
        "Put the same hash tag into both templates, for example lock:{KEY} and \
         result:{KEY}.",
        CheckJudge::Whole(cluster::keys_in_slots),
    ),
    check(
        EXPLORING,
        CheckGroup::Schema,
        SampleNeed::Records,
        "whether the steps of each schema in use keep the invariants of explore",
        "Requests at the same time or ordinary faults are enough, such as a handler \
         that fails, or a call that a client library sends again. No setting of the \
         server prevents it.",
        "`idemctl explore --sandbox --schema SCHEMA` shows every violation on a temporary \
         Redis, and suggests a change of the scripts.",
        CheckJudge::Whole(keys_and_schemas::violations),
    ),
    check(
        "guessable-keys",
        CheckGroup::Keys,
        SampleNeed::Records,
        "whether keys are constants, bare numbers, or too short",
        "Two clients choose the same key sooner or later. The second one gets the \
         response of the first one, and its own operation is not executed.",
        "Let clients send a random key with 128 bits for each operation, such as a UUID of \
         version 4, and repeat it in each retry. The identifier of a message or an order \
         is a good key if nobody else can have the same.",
        CheckJudge::Whole(keys_and_schemas::guessable),
    ),
    check(
        "quoted-keys",
        CheckGroup::Keys,
        SampleNeed::Records,
        "whether some keys have quotation marks and others have none",
        "The header's value is a quoted string, and some clients and proxies leave \
         out the quotation marks or change them. A retry in the other form is another \
         key, and executes again.",
        "Let the service parse the header as a structured field, so that both forms are \
         one key.",
        CheckJudge::Whole(keys_and_schemas::quoted),
    ),
];

/// A check: its code, what it is about, what it needs, its question, what can happen, what to do, and
/// how it judges.
const fn check(
    code: &'static str,
    group: CheckGroup,
    needs: SampleNeed,
    title: &'static str,
    consequence: &'static str,
    remedy: &'static str,
    judge: CheckJudge,
) -> DoctorCheck {
    DoctorCheck { code, group, needs, title, consequence, remedy, judge }
}

/// What the chosen checks say of these facts.
pub(crate) fn judge(
    facts: &DeploymentFacts,
    is_chosen: impl Fn(&DoctorCheck) -> bool,
) -> Vec<Statement> {
    let mut statements = Vec::new();
    for check in CHECKS.iter().filter(|check| is_chosen(check)) {
        let judgements = match check.judge {
            CheckJudge::EachNode(judge) => of_each_node(facts, |node| judge(node, facts)),
            CheckJudge::Whole(judge) => {
                judge(facts).unwrap_or_else(|refusal| vec![CheckJudgement::unknown(refusal)])
            }
        };
        statements.extend(judgements.into_iter().map(|judgement| Statement::new(check, judgement)));
    }
    statements
}

/// True if one of the chosen checks judges what `explore` finds in the schemas.
pub(crate) fn explores_schemas(is_chosen: impl Fn(&DoctorCheck) -> bool) -> bool {
    CHECKS.iter().any(|check| check.code == EXPLORING && is_chosen(check))
}
