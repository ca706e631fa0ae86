//! A serial console as a person would use it: wait for a text, log in, run commands.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Long enough for a guest to boot on a busy machine without hardware support.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long a silent guest is waited for before Enter is pressed: its prompt may have been printed long ago.
const NUDGE: Duration = Duration::from_secs(3);
/// How much of a command goes in one line; shells on small systems take no more than about a thousand bytes.
const CHUNK: usize = 600;

/// How much of what was said is shown.
const TRANSCRIPT: usize = 8 << 10;

/// Why a conversation failed. Each tells what was said so far.
#[derive(thiserror::Error)]
pub enum ConsoleError {
    /// Nobody listens.
    #[error("cannot connect to the console {}: {error}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The last try's error.
        error: io::Error,
    },
    /// The other end hung up.
    #[error("the console ended while waiting for {waiting}; it said:\n{transcript}")]
    Closed {
        /// What was waited for.
        waiting: String,
        /// All that was received.
        transcript: String,
    },
    /// It did not come.
    #[error("nothing came of waiting for {waiting}; the console said:\n{transcript}")]
    TimedOut {
        /// What was waited for.
        waiting: String,
        /// All that was received.
        transcript: String,
    },
    /// Wrong name or password.
    #[error("{user} may not log in; the console said:\n{transcript}")]
    Refused {
        /// Who.
        user: String,
        /// All that was received.
        transcript: String,
    },
    /// A command ended with a status other than zero.
    #[error("{command:?} ended with {status}:\n{output}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: i32,
        /// What it printed.
        output: String,
    },
}

/// As readable as the message itself, since it is what `unwrap` shows.
impl std::fmt::Debug for ConsoleError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

/// A conversation over a serial console.
pub struct Console {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// All that was received; the other end of this channel is gone when the connection is.
    received: watch::Receiver<Vec<u8>>,
    /// Reads all the time, whether or not somebody waits for it: a guest that cannot get rid of its output stands
    /// still.
    reader: JoinHandle<()>,
    path: Option<PathBuf>,
    /// How much of what was received has been taken by an expectation.
    taken: usize,
    patience: Duration,
    commands: u32,
}

impl Drop for Console {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Console {
    /// Connects to a socket, which may not be there yet.
    pub async fn connect(path: &Path) -> Result<Self, ConsoleError> {
        let mut console = Self::over(connect(path, PATIENCE).await?);
        console.path = Some(path.to_owned());
        Ok(console)
    }

    /// Talks over a connection that is there, within a runtime of tokio.
    pub fn over(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (writer, received, reader) = attach(stream, Vec::new());
        Self { writer, received, reader, path: None, taken: 0, patience: PATIENCE, commands: 0 }
    }

    /// The longest that any single step may take.
    #[must_use]
    pub fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Connects again, for example after QEMU was started anew. What was said before stays in the transcript.
    pub async fn reconnect(&mut self) -> Result<(), ConsoleError> {
        let Some(path) = &self.path else { return Ok(()) };
        // The old connection first: a console takes one at a time.
        self.writer = Box::new(tokio::io::sink());
        self.reader.abort();
        let _ = (&mut self.reader).await;
        let stream = connect(path, self.patience).await?;
        let before = self.received.borrow().clone();
        self.taken = before.len();
        (self.writer, self.received, self.reader) = attach(stream, before);
        Ok(())
    }

    /// All that was received, at most the last few pages.
    pub fn transcript(&self) -> String {
        let received = self.received.borrow();
        let start = received.len().saturating_sub(TRANSCRIPT);
        String::from_utf8_lossy(&received[start..]).replace('\r', "")
    }

    /// Waits for a text, and returns what came before it.
    pub async fn expect(&mut self, text: &str) -> Result<String, ConsoleError> {
        self.expect_any(&[text]).await.map(|(_, before)| before)
    }

    /// Waits for the first of some texts, and returns which it was and what came before it.
    pub async fn expect_any(&mut self, texts: &[&str]) -> Result<(usize, String), ConsoleError> {
        let until = Instant::now() + self.patience;
        match self.look_for(texts, until).await? {
            Some(found) => Ok(found),
            None => Err(self.timed_out(texts)),
        }
    }

    /// Types a text.
    pub async fn send(&mut self, text: &str) -> Result<(), ConsoleError> {
        let sent = timeout(self.patience, self.writer.write_all(text.as_bytes())).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.closed(&[text])),
            Err(_) => Err(self.timed_out(&[text])),
        }
    }

    /// Types a text and presses Enter.
    pub async fn send_line(&mut self, text: &str) -> Result<(), ConsoleError> {
        self.send(&format!("{text}\n")).await
    }

    /// Waits for the prompt, however long ago it was printed, and logs in. Whoever is logged in stays so.
    pub async fn login(&mut self, user: &str, password: &str) -> Result<(), ConsoleError> {
        const PROMPTS: [&str; 3] = ["login: ", "# ", "$ "];
        let until = Instant::now() + self.patience;
        let prompt = loop {
            let nudge = (Instant::now() + NUDGE).min(until);
            if let Some((prompt, _)) = self.look_for(&PROMPTS, nudge).await? {
                break prompt;
            }
            if Instant::now() >= until {
                return Err(self.timed_out(&PROMPTS));
            }
            self.send("\n").await?;
        };
        if prompt == 0 {
            self.send_line(user).await?;
            self.expect("assword: ").await?;
            self.send_line(password).await?;
            let (answer, _) = self.expect_any(&["incorrect", "# ", "$ "]).await?;
            if answer == 0 {
                return Err(ConsoleError::Refused { user: user.to_owned(), transcript: self.transcript() });
            }
        }
        // What Enter brought besides is out of the way once a command was answered.
        self.run("true").await.map(drop)
    }

    /// Runs a shell script, which must succeed, and returns what it printed on both ways, without blanks around
    /// it. Each runs in a shell of its own: what it sets is gone afterwards.
    pub async fn run(&mut self, script: &str) -> Result<String, ConsoleError> {
        match self.try_run(script).await? {
            (0, output) => Ok(output),
            (status, output) => Err(ConsoleError::Failed { command: script.to_owned(), status, output }),
        }
    }

    /// Runs a shell script, and returns its status and what it printed.
    pub async fn try_run(&mut self, script: &str) -> Result<(i32, String), ConsoleError> {
        self.commands += 1;
        let number = self.commands;
        // Whatever the script is, what is typed is harmless and short, and its echo has none of the texts that
        // are waited for: those are put together by the guest.
        let encoded = BASE64_STANDARD.encode(script);
        let file = format!("/tmp/.console-{number}");
        let mut arrow = ">";
        for chunk in encoded.as_bytes().chunks(CHUNK) {
            let chunk = String::from_utf8_lossy(chunk);
            self.send_line(&format!("printf %s {chunk} {arrow}{file}")).await?;
            arrow = ">>";
        }
        let (begin, end) = (format!("begin-{number}-"), format!("end-{number}-"));
        let line = format!(
            "printf '%s-%s-\\n' begin {number}; base64 -d {file} | sh 2>&1; \
             printf '%s-%s-%s-\\n' end {number} $?; rm -f {file}"
        );
        self.send_line(&line).await?;
        self.expect(&begin).await?;
        let output = self.expect(&end).await?;
        let status = self.expect("-").await?;
        Ok((status.trim().parse().unwrap_or(-1), output.trim().to_owned()))
    }

    /// Runs a shell script again and again until it prints what is expected.
    pub async fn until(&mut self, given: &str, expected: &str) -> Result<(), ConsoleError> {
        // The guest repeats it by itself, so that the transcript stays readable.
        let script = BASE64_STANDARD.encode(given);
        let expected = BASE64_STANDARD.encode(expected);
        let seconds = self.patience.as_secs().max(2) - 1;
        let repeat = format!(
            "expected=$(echo {expected} | base64 -d); read -r start rest </proc/uptime
             while :; do
                 said=$(echo {script} | base64 -d | sh 2>&1)
                 [ \"$said\" = \"$expected\" ] && exit
                 read -r now rest </proc/uptime
                 [ $((${{now%.*}} - ${{start%.*}})) -lt {seconds} ] || break
                 sleep 0.2
             done
             echo \"$said\"; echo \"is not:\"; echo \"$expected\"; exit 1"
        );
        match self.try_run(&repeat).await? {
            (0, _) => Ok(()),
            (status, output) => Err(ConsoleError::Failed { command: given.to_owned(), status, output }),
        }
    }

    async fn look_for(
        &mut self,
        texts: &[&str],
        until: Instant,
    ) -> Result<Option<(usize, String)>, ConsoleError> {
        loop {
            let found = {
                let received = self.received.borrow_and_update();
                let rest = &received[self.taken..];
                first(rest, texts).map(|(which, start)| {
                    (which, start, String::from_utf8_lossy(&rest[..start]).replace('\r', ""))
                })
            };
            if let Some((which, start, before)) = found {
                self.taken += start + texts[which].len();
                return Ok(Some((which, before)));
            }
            match timeout_at(until, self.received.changed()).await {
                Err(_) => return Ok(None),
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(self.closed(texts)),
            }
        }
    }

    fn closed(&self, texts: &[&str]) -> ConsoleError {
        ConsoleError::Closed { waiting: format!("{texts:?}"), transcript: self.transcript() }
    }

    fn timed_out(&self, texts: &[&str]) -> ConsoleError {
        ConsoleError::TimedOut { waiting: format!("{texts:?}"), transcript: self.transcript() }
    }
}

type Attached = (Box<dyn AsyncWrite + Send + Unpin>, watch::Receiver<Vec<u8>>, JoinHandle<()>);

/// Starts to read; what is received comes after `before`.
fn attach(stream: impl AsyncRead + AsyncWrite + Send + 'static, before: Vec<u8>) -> Attached {
    let (mut reader, writer) = tokio::io::split(stream);
    let (sender, received) = watch::channel(before);
    let reader = tokio::spawn(async move {
        let mut buffer = vec![0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            sender.send_modify(|received| received.extend_from_slice(&buffer[..count]));
        }
    });
    (Box::new(writer), received, reader)
}

async fn connect(path: &Path, patience: Duration) -> Result<UnixStream, ConsoleError> {
    let until = Instant::now() + patience;
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= until => {
                return Err(ConsoleError::Connect { path: path.to_owned(), error });
            }
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Which of some texts comes first, and where.
fn first(bytes: &[u8], texts: &[&str]) -> Option<(usize, usize)> {
    let found = texts.iter().enumerate().filter_map(|(which, text)| {
        let start = bytes.windows(text.len()).position(|window| window == text.as_bytes())?;
        Some((which, start))
    });
    found.min_by_key(|(_, start)| *start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Console, tokio::io::DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        (Console::over(ours).patient(Duration::from_secs(20)), theirs)
    }

    #[tokio::test]
    async fn expects_in_order_and_keeps_the_rest() {
        let (mut console, mut guest) = pair();
        guest.write_all(b"one\r\ntwo log").await.unwrap();
        assert_eq!(console.expect("one").await.unwrap(), "");
        guest.write_all(b"in: three").await.unwrap();
        assert_eq!(console.expect_any(&["three", "login: "]).await.unwrap(), (1, "\ntwo ".to_owned()));
        drop(guest);
        let error = console.expect("four").await.unwrap_err();
        assert!(
            matches!(&error, ConsoleError::Closed { transcript, .. } if transcript == "one\ntwo login: three")
        );
    }

    #[tokio::test]
    async fn says_what_was_received_when_nothing_comes() {
        let (console, mut guest) = pair();
        let mut console = console.patient(Duration::from_millis(10));
        guest.write_all(b"nonsense").await.unwrap();
        let error = console.expect("sense of it").await.unwrap_err().to_string();
        assert!(error.contains("sense of it") && error.contains("nonsense"), "{error}");
    }

    #[tokio::test]
    async fn an_echo_is_no_answer() {
        let (mut console, mut guest) = pair();
        let guest = async move {
            let mut typed = Vec::new();
            while !typed.ends_with(b"rm -f /tmp/.console-1\n") {
                let read = guest.read_buf(&mut typed).await.unwrap();
                guest.write_all(&typed[typed.len() - read..]).await.unwrap();
            }
            guest.write_all(b"# begin-1-\r\n  a\r\n b\r\nend-1-3-\r\n# ").await.unwrap();
            guest
        };
        let (answer, _guest) = tokio::join!(console.try_run("false"), guest);
        assert_eq!(answer.unwrap(), (3, "a\n b".to_owned()));
    }
}
