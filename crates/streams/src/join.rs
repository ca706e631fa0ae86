//! Two streams made one.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

/// How much is carried at a time, in each direction: there may be hundreds of streams.
const BUFFER: usize = 8 << 10;
/// How long the other direction may go on once one has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Carries bytes both ways until one side ends; what is on the way still arrives.
pub async fn join<A, B>(one: A, other: B) -> io::Result<()>
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (from_one, to_one) = tokio::io::split(one);
    let (from_other, to_other) = tokio::io::split(other);
    let mut there = std::pin::pin!(carry(from_one, to_other));
    let mut back = std::pin::pin!(carry(from_other, to_one));
    let (ended, rest) = tokio::select! {
        ended = &mut there => (ended, tokio::time::timeout(LAST_WORDS, back).await),
        ended = &mut back => (ended, tokio::time::timeout(LAST_WORDS, there).await),
    };
    ended.and(rest.unwrap_or(Ok(())))
}

async fn carry<R: AsyncRead, W: AsyncWrite>(mut from: ReadHalf<R>, mut to: WriteHalf<W>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let result = loop {
        match from.read(&mut buffer).await {
            Ok(0) => break Ok(()),
            Ok(length) => {
                if let Err(error) = to.write_all(&buffer[..length]).await {
                    break Err(error);
                }
                if let Err(error) = to.flush().await {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    // The other side learns of the end, whatever the reason.
    let farewell = to.shutdown().await;
    result.and(farewell)
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;
    use crate::Stream;

    /// A client and a server that have shaken hands.
    async fn pair(room: usize) -> (Stream<DuplexStream>, Stream<DuplexStream>) {
        let (one, other) = duplex(room);
        tokio::join!(Stream::new(one, Role::Client), Stream::new(other, Role::Server))
    }

    #[tokio::test]
    async fn bytes_arrive_whole_and_in_order_through_two_hops() {
        let ((mut user, api_in), (api_out, mut machine)) = (pair(100).await, pair(100).await);
        let relay = tokio::spawn(join(api_in, api_out));
        let sent: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let expected = sent.clone();
        let reader = tokio::spawn(async move {
            let mut got = Vec::new();
            machine.read_to_end(&mut got).await.map(|_| got)
        });
        user.write_all(&sent).await.unwrap();
        user.shutdown().await.unwrap();
        assert!(reader.await.unwrap().unwrap() == expected);
        relay.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_slow_stops_the_writer_and_not_the_memory() {
        let (mut user, mut machine) = pair(1000).await;
        let writer = tokio::spawn(async move {
            let mut written = 0_usize;
            let flood = async {
                while machine.write_all(&[0; 1000]).await.is_ok() {
                    written += 1000;
                }
            };
            let _ = tokio::time::timeout(Duration::from_secs(5), flood).await;
            written
        });
        let mut first = [0; 1];
        user.read_exact(&mut first).await.unwrap();
        assert!(writer.await.unwrap() < 50_000);
    }
}
