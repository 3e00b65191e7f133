//! The service: takes connections, and executes the steps of its schema for each payment.

use std::collections::{HashMap, HashSet};
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Meaning, Schema};
use idemctl::domain::step::inputs::StepInputs;
use redis::RedisResult;
use uuid::Uuid;

use super::contract::{AfterFailure, Contract, StoredValue, created};
use super::http::{self, Answer, Request};
use super::request::{Fail, Payment, fingerprint, idempotency_key};
use super::store::Store;
use super::variant::Variant;

/// The time between the look and the lock of `check-then-lock`, as in a store that is not local.
const CHECK_TO_LOCK: Duration = Duration::from_millis(5);

/// How long after its answer `stores-after-answering` stores the result.
const ANSWER_TO_STORE: Duration = Duration::from_millis(300);

/// The lock TTL of `short-lock`, and how long its handler takes at least.
const SHORT_LOCK: Duration = Duration::from_millis(200);
const LONG_HANDLER: Duration = Duration::from_millis(400);

/// The result TTL of `forgets-results`.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(2);

/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(60);

/// What the service is started with.
pub struct Config {
    pub schema: Schema,
    /// The mistake that the service makes; `None` for the correct service.
    pub variant: Option<Variant>,
    /// The URL of the Redis server.
    pub redis: String,
    /// How long the handler takes.
    pub delay: Duration,
    /// The port on the loopback; 0 for any that is free.
    pub port: u16,
    pub answers: Answers,
    /// True if the service's database refuses a second payment of a key, whatever Redis says.
    pub is_unique: bool,
    pub late: Late,
}

/// What the answer to a payment contains.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Answers {
    /// The payment as JSON, with 201.
    #[default]
    Payment,
    /// Nothing, with 204.
    Empty,
    /// The payment and a receipt of 1 MiB.
    Large,
    /// Bytes that are not UTF-8.
    Binary,
}

/// Effects that show only after the answer.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Late {
    #[default]
    Nothing,
    /// A worker executes the payment after this time.
    Effect(Duration),
    /// Each retry of a payment executes it again after this time.
    SecondEffect(Duration),
}

impl Config {
    /// The correct service with this schema on this Redis.
    pub fn correct(schema: Schema, redis: String, delay: Duration) -> Self {
        Self {
            schema,
            variant: None,
            redis,
            delay,
            port: 0,
            answers: Answers::default(),
            is_unique: false,
            late: Late::default(),
        }
    }
}

/// A running service. It stops when it is dropped.
pub struct ProbeService {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    service: Arc<Service>,
}

impl ProbeService {
    /// Starts a service.
    ///
    /// # Errors
    /// The port is taken, or the URL is not one of Redis.
    pub fn start(config: Config) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", config.port))?;
        let address = listener.local_addr()?;
        let service = Arc::new(Service::new(config).map_err(std::io::Error::other)?);
        let is_over = Arc::new(AtomicBool::new(false));
        let (serving, ends) = (Arc::clone(&service), Arc::clone(&is_over));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let serving = Arc::clone(&serving);
                if let Ok(stream) = stream {
                    thread::spawn(move || serving.serve(stream));
                }
            }
        });
        Ok(Self { address, is_over, service })
    }

    /// The URL of this path, such as `/payments`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many payments were executed.
    pub fn effects(&self) -> u64 {
        self.service.database.lock().unwrap().payments
    }

    /// How many keys have more than one payment.
    pub fn keys_paid_twice(&self) -> usize {
        let database = self.service.database.lock().unwrap();
        database.payments_of.values().filter(|payments| **payments > 1).count()
    }
}

impl Drop for ProbeService {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The listener waits for one more connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// The service's own database.
#[derive(Default)]
struct Database {
    /// How many payments were executed.
    payments: u64,
    /// The same by key.
    payments_of: HashMap<String, u64>,
    /// The fingerprint of the first request of each key.
    first: HashMap<String, String>,
    /// The answers of payments that were made, by key.
    answers: HashMap<String, Answer>,
    /// The keys whose first execution was to fail, and has failed.
    failed: HashSet<String>,
}

/// How a request began.
enum Begun {
    Acquired,
    InProgress,
    Replay(Answer),
    Mismatch,
    Fails,
}

/// An answer, and what the service does after it was sent.
type Answered<'a> = (Answer, Option<Box<dyn FnOnce() + 'a>>);

/// One request with a key.
struct Attempt<'a> {
    request: &'a Request,
    stream: &'a TcpStream,
    key: String,
    payment: Payment,
    owner: String,
    fingerprint: String,
}

struct Service {
    contract: &'static Contract,
    schema: Schema,
    variant: Option<Variant>,
    delay: Duration,
    answers: Answers,
    is_unique: bool,
    late: Late,
    store: Store,
    database: Arc<Mutex<Database>>,
}

impl Service {
    fn new(config: Config) -> RedisResult<Self> {
        let Config { mut schema, variant, redis, mut delay, answers, is_unique, late, .. } = config;
        let contract = Contract::of(&schema.name).expect("one of the seven schemas");
        if variant == Some(Variant::ShortResult) {
            schema.result_ttl = schema.lock_ttl;
        }
        if variant == Some(Variant::ForgetsResults) {
            schema.result_ttl = FORGOTTEN_AFTER;
        }
        if variant == Some(Variant::ShortLock) {
            delay = delay.max(LONG_HANDLER);
        }
        let store = Store::at(&redis)?;
        Ok(Self {
            contract,
            schema,
            variant,
            delay,
            answers,
            is_unique,
            late,
            store,
            database: Arc::default(),
        })
    }

    fn is(&self, variant: Variant) -> bool {
        self.variant == Some(variant)
    }

    /// Serves one connection until the client closes it.
    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(IDLE));
        let Ok(reading) = stream.try_clone() else { return };
        let mut reader = BufReader::new(reading);
        loop {
            let request = match http::read(&mut reader) {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(answer) => {
                    let _ = answer.with("Connection", "close").write(&stream);
                    return;
                }
            };
            let (answer, later) = self.answer(&request, &stream);
            let is_written = answer.write(&stream).is_ok();
            if let Some(later) = later {
                later();
            }
            if !is_written || !request.keeps_alive() {
                return;
            }
        }
    }

    fn answer<'a>(&'a self, request: &'a Request, stream: &'a TcpStream) -> Answered<'a> {
        match (&*request.method, request.path()) {
            ("GET", "/effects") => {
                let database = self.database.lock().unwrap();
                let count = match request.target.split_once("?key=") {
                    Some((_, key)) => database.payments_of.get(key).copied().unwrap_or_default(),
                    None => database.payments,
                };
                (Answer::new(200, "text/plain", format!("{count}\n")), None)
            }
            // Two paths, so that one key can be sent to both.
            ("POST" | "PUT", "/payments" | "/refunds") => match self.pay(request, stream) {
                Ok(answered) => answered,
                Err(_) => (Answer::problem(503, "Redis cannot be reached"), None),
            },
            (_, "/effects" | "/payments" | "/refunds") => {
                (Answer::problem(405, "This method is not allowed here"), None)
            }
            _ => (Answer::problem(404, "There is nothing here"), None),
        }
    }

    fn pay<'a>(&'a self, request: &'a Request, stream: &'a TcpStream) -> RedisResult<Answered<'a>> {
        let is_missing = request.values("idempotency-key").is_empty();
        let key = match idempotency_key(request) {
            Ok(key) => key,
            Err(_) if is_missing && self.is(Variant::AcceptsMissingKey) => {
                return Ok((self.pay_without_key(request), None));
            }
            Err(problem) => return Ok((problem, None)),
        };
        let payment = match Payment::of(request) {
            Ok(payment) => payment,
            Err(problem) => return Ok((problem, None)),
        };
        let fingerprint = fingerprint(request, self.variant);
        let owner = match self.is(Variant::SameOwner) {
            true => "worker-1".to_owned(),
            false => Uuid::new_v4().to_string(),
        };
        let attempt = Attempt { request, stream, key, payment, owner, fingerprint };
        let begun = self.begin(&attempt)?;
        if let (Begun::Replay(_), Late::SecondEffect(after)) = (&begun, self.late) {
            self.count(&attempt.key, after);
        }
        let answer = match begun {
            Begun::Acquired => return self.execute(attempt),
            Begun::Replay(answer) => return Ok((self.replay(answer), None)),
            Begun::InProgress => Answer::problem(409, "A request with this key is in progress")
                .with("Retry-After", "1"),
            Begun::Mismatch => Answer::problem(422, "The key was used for another request"),
            Begun::Fails => Answer::problem(500, "The record of this key cannot be read"),
        };
        if self.is(Variant::ReleasesOthersLock) {
            self.store.delete(&self.lock_key(&attempt))?;
        }
        Ok((answer, None))
    }

    fn pay_without_key(&self, request: &Request) -> Answer {
        thread::sleep(self.delay);
        match Payment::of(request) {
            Ok(payment) => self.make_payment(&Uuid::new_v4().to_string(), &payment),
            Err(problem) => problem,
        }
    }
    /// Acquires the lock of a key, or learns what the key is used for.
    fn begin(&self, attempt: &Attempt<'_>) -> RedisResult<Begun> {
        let begun = match self.variant {
            Some(Variant::NoLock | Variant::CheckThenLock) => self.look(attempt)?,
            _ => self.begin_as_the_schema_says(attempt)?,
        };
        if self.is(Variant::ShortLock) && matches!(begun, Begun::Acquired) {
            self.store.expire(&self.lock_key(attempt), SHORT_LOCK)?;
        }
        let mut database = self.database.lock().unwrap();
        match begun {
            Begun::Acquired => {
                database.first.insert(attempt.key.clone(), attempt.fingerprint.clone());
            }
            Begun::InProgress | Begun::Replay(_) => {
                if let Some(fingerprint) = database.first.get(&attempt.key)
                    && *fingerprint != attempt.fingerprint
                {
                    return Ok(Begun::Mismatch);
                }
            }
            Begun::Mismatch | Begun::Fails => {}
        }
        Ok(begun)
    }

    fn begin_as_the_schema_says(&self, attempt: &Attempt<'_>) -> RedisResult<Begun> {
        let response = Response::default();
        let inputs = self.inputs(attempt, &response);
        let step = self.schema.begin.as_ref().expect("each of the seven describes begin");
        let (meaning, stored) = self.store.execute(step, &inputs)?;
        Ok(match meaning {
            Some(Meaning::Acquired) => Begun::Acquired,
            Some(Meaning::Conflict) => Begun::InProgress,
            Some(Meaning::Mismatch) => Begun::Mismatch,
            // EXISTS of event-consumer returns no value.
            Some(Meaning::Replay) => match stored {
                Some(stored) => self.stored(attempt, &stored),
                None => {
                    let result = self.store.get(&self.result_key(attempt))?;
                    self.stored(attempt, &result.unwrap_or_default())
                }
            },
            _ => Begun::Fails,
        })
    }

    /// Reads what is there. If nothing is, `check-then-lock` takes the lock in a second call, and
    /// `no-lock` takes none.
    fn look(&self, attempt: &Attempt<'_>) -> RedisResult<Begun> {
        for redis_key in self.schema.redis_keys(attempt.key.as_bytes()) {
            if let Some(value) = self.store.get(&redis_key)? {
                return Ok(self.stored(attempt, &value));
            }
        }
        if self.is(Variant::CheckThenLock) {
            thread::sleep(CHECK_TO_LOCK);
            let response = Response::default();
            let lock = self.inputs(attempt, &response).lock_value();
            let ttl = self.schema.lock_ttl.as_secs();
            self.store.set(&self.lock_key(attempt), &lock, Some(ttl))?;
        }
        Ok(Begun::Acquired)
    }

    fn stored(&self, attempt: &Attempt<'_>, value: &[u8]) -> Begun {
        match self.contract.read(value) {
            StoredValue::Lock => Begun::InProgress,
            StoredValue::Result(answer) => Begun::Replay(answer),
            StoredValue::ResultElsewhere => {
                let database = self.database.lock().unwrap();
                match database.answers.get(&attempt.key) {
                    Some(answer) => Begun::Replay(answer.clone()),
                    None => Begun::Fails,
                }
            }
        }
    }

    /// Executes the payment whose lock this request has.
    fn execute<'a>(&'a self, attempt: Attempt<'a>) -> RedisResult<Answered<'a>> {
        self.work(&attempt)?;
        let fail = self.fails(&attempt);
        if fail == Some(Fail::Before) {
            return Ok((self.fail(&attempt, 503, "The bank cannot be reached")?, None));
        }
        let answer = self.make_payment(&attempt.key, &attempt.payment);
        if fail == Some(Fail::After) {
            return Ok((self.fail(&attempt, 500, "The bank accepted, then this failed")?, None));
        }
        self.database.lock().unwrap().answers.insert(attempt.key.clone(), answer.clone());
        if self.is(Variant::StoresAfterAnswering) {
            let stored = answer.clone();
            let later = move || {
                thread::sleep(ANSWER_TO_STORE);
                let _ = self.complete(&attempt, &stored, None);
            };
            return Ok((answer, Some(Box::new(later))));
        }
        self.complete(&attempt, &answer, None)?;
        Ok((answer, None))
    }

    /// Waits as long as the handler takes. `releases-on-hang-up` gives its lock up meanwhile if the
    /// client hangs up.
    fn work(&self, attempt: &Attempt<'_>) -> RedisResult<()> {
        let ends = Instant::now() + self.delay;
        if self.is(Variant::ReleasesOnHangUp) && !self.delay.is_zero() {
            // A client that hangs up leaves an end of file to be read.
            attempt.stream.set_read_timeout(Some(self.delay))?;
            let is_gone = matches!(attempt.stream.peek(&mut [0]), Ok(0));
            attempt.stream.set_read_timeout(Some(IDLE))?;
            if is_gone {
                self.store.delete(&self.lock_key(attempt))?;
            }
        }
        thread::sleep(ends.saturating_duration_since(Instant::now()));
        Ok(())
    }

    /// The failure that this execution is asked for. Only the first execution of a key fails.
    fn fails(&self, attempt: &Attempt<'_>) -> Option<Fail> {
        let fail = attempt.payment.fail?;
        let is_first = self.database.lock().unwrap().failed.insert(attempt.key.clone());
        is_first.then_some(fail)
    }

    fn make_payment(&self, key: &str, payment: &Payment) -> Answer {
        if self.is_unique
            && let Some(answer) = self.database.lock().unwrap().answers.get(key)
        {
            return answer.clone();
        }
        let id = format!("pay_{}", Uuid::new_v4().simple());
        let Payment { order, amount, .. } = payment;
        let mut body = serde_json::json!({ "id": id, "order": order, "amount": amount });
        let answer = match self.answers {
            Answers::Payment => created(201, body.to_string().into_bytes()),
            Answers::Empty => Answer { status: 204, headers: Vec::new(), body: Vec::new() },
            Answers::Large => {
                body["receipt"] = "x".repeat(1 << 20).into();
                created(201, body.to_string().into_bytes())
            }
            Answers::Binary => {
                let mut bytes = vec![0xff, 0x00, 0x80];
                bytes.extend(Uuid::new_v4().into_bytes());
                Answer::new(201, "application/octet-stream", bytes)
            }
        };
        // In one step with the number, so that the database never has two payments of a key.
        let mut database = self.database.lock().unwrap();
        if self.is_unique
            && let Some(answer) = database.answers.get(key)
        {
            return answer.clone();
        }
        database.answers.insert(key.to_owned(), answer.clone());
        drop(database);
        match self.late {
            Late::Effect(after) => self.count(key, after),
            Late::Nothing | Late::SecondEffect(_) => self.count(key, Duration::ZERO),
        }
        answer
    }

    /// Counts a payment of this key after this time.
    fn count(&self, key: &str, after: Duration) {
        let (database, key) = (Arc::clone(&self.database), key.to_owned());
        let count = move || {
            let mut database = database.lock().unwrap();
            database.payments += 1;
            *database.payments_of.entry(key).or_default() += 1;
        };
        if after.is_zero() {
            count();
            return;
        }
        thread::spawn(move || {
            thread::sleep(after);
            count();
        });
    }

    /// Ends a failed execution as the service's contract says.
    fn fail(&self, attempt: &Attempt<'_>, status: i64, error: &str) -> RedisResult<Answer> {
        let answer = Answer::problem(status, error);
        if self.is(Variant::KeepsFailures) {
            let response = self.response(&answer);
            let result = self.inputs(attempt, &response).result_value();
            self.database.lock().unwrap().answers.insert(attempt.key.clone(), answer.clone());
            self.store.set(&self.result_key(attempt), &result, None)?;
            return Ok(answer);
        }
        if self.is(Variant::ReplaysAnotherError) {
            let stored = Answer::problem(500, error);
            self.complete(attempt, &stored, None)?;
            return Ok(Answer::problem(422, error));
        }
        if self.is(Variant::ReleasesAfterFailure) {
            self.store.delete(&self.lock_key(attempt))?;
            return Ok(answer);
        }
        match self.contract.after_failure {
            AfterFailure::Stores => self.complete(attempt, &answer, Some(error))?,
            AfterFailure::Releases => {
                let response = Response::default();
                let release = self.schema.release.as_ref().expect("the schema describes release");
                self.store.execute(release, &self.inputs(attempt, &response))?;
            }
            AfterFailure::Keeps => {}
        }
        Ok(answer)
    }

    fn complete(
        &self,
        attempt: &Attempt<'_>,
        answer: &Answer,
        error: Option<&str>,
    ) -> RedisResult<()> {
        let response = self.response(answer);
        let inputs = StepInputs { error, ..self.inputs(attempt, &response) };
        if self.is(Variant::NoLock) {
            let ttl = self.schema.result_ttl.as_secs();
            return self.store.set(&self.result_key(attempt), &inputs.result_value(), Some(ttl));
        }
        let step = self.schema.complete.as_ref().expect("each of the seven describes complete");
        // A refusal changes nothing for this client: the payment was made.
        self.store.execute(step, &inputs)?;
        Ok(())
    }

    fn replay(&self, mut answer: Answer) -> Answer {
        if self.is(Variant::ReplaysWithoutHeaders) {
            answer.headers.clear();
        }
        if self.is(Variant::ReplaysAnotherStatus) && answer.status == 201 {
            answer.status = 200;
        }
        answer.with("Idempotent-Replayed", "true")
    }

    fn inputs<'a>(&'a self, attempt: &'a Attempt<'_>, response: &'a Response) -> StepInputs<'a> {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap();
        StepInputs {
            fingerprint: &attempt.fingerprint,
            now_ms: u64::try_from(now.as_millis()).unwrap(),
            ..StepInputs::new(&self.schema, attempt.key.as_bytes(), &attempt.owner, response)
        }
    }

    fn response(&self, answer: &Answer) -> Response {
        let Answer { status, headers, body } = answer.clone();
        Response { status: Some(status), headers, body, whole: true }
    }
    fn lock_key(&self, attempt: &Attempt<'_>) -> Vec<u8> {
        self.schema.redis_keys(attempt.key.as_bytes()).swap_remove(self.schema.lock_key_index())
    }

    fn result_key(&self, attempt: &Attempt<'_>) -> Vec<u8> {
        self.schema.redis_keys(attempt.key.as_bytes()).swap_remove(self.schema.result_key_index())
    }
}
