//! Takes what nobody reads out of answers as they arrive, so that all who handle them further handle less.
//!
//! What a watch tells is split into lines, copied, checked and read, by others than us. The greater part of each line is
//! of no use to us, so it is cut before all that.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame};
use kube::Client;
use tower::service_fn;

use crate::unread::{Unread, cut};

/// The same client, whose answers lack what `U` names.
pub(crate) fn cutting<U: Unread>(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await.map(|answer| answer.map(Cutting::<_, U>::new)) }
    });
    Client::new(service, namespace)
}

/// A body of lines of JSON that lack what `U` names.
struct Cutting<B, U> {
    body: B,
    /// The line whose end has not come yet.
    begun: Vec<u8>,
    unread: PhantomData<fn() -> U>,
}

impl<B, U> Body for Cutting<B, U>
where
    B: Body<Data = Bytes> + Unpin,
    U: Unread,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        loop {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(self.rest().map(|rest| Ok(Frame::data(rest)))),
            };
            let arrived = match frame.into_data() {
                Ok(arrived) => arrived,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            };
            if let Some(lines) = self.take_in(&arrived) {
                return Poll::Ready(Some(Ok(Frame::data(lines))));
            }
        }
    }
}

impl<B, U: Unread> Cutting<B, U> {
    fn new(body: B) -> Self {
        Self { body, begun: Vec::new(), unread: PhantomData }
    }

    /// The lines that are complete now, cut.
    fn take_in(&mut self, arrived: &[u8]) -> Option<Bytes> {
        let Some(last) = arrived.iter().rposition(|byte| *byte == b'\n') else {
            self.begun.extend_from_slice(arrived);
            return None;
        };
        let (complete, begun) = arrived.split_at(last + 1);
        let lines = if self.begun.is_empty() {
            shortened::<U>(complete)
        } else {
            self.begun.extend_from_slice(complete);
            shortened::<U>(&std::mem::take(&mut self.begun))
        };
        self.begun.extend_from_slice(begun);
        Some(lines)
    }

    /// What came after the last whole line, when nothing follows.
    fn rest(&mut self) -> Option<Bytes> {
        let rest = std::mem::take(&mut self.begun);
        (!rest.is_empty()).then(|| shortened::<U>(&rest))
    }
}

/// The lines without what is not read; as they are if they are no text.
fn shortened<U: Unread>(lines: &[u8]) -> Bytes {
    let Ok(text) = std::str::from_utf8(lines) else { return Bytes::copy_from_slice(lines) };
    let mut kept = String::with_capacity(text.len());
    text.split_inclusive('\n').for_each(|line| cut(line, U::fields(line), &mut kept));
    kept.into()
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::{BodyExt, StreamBody};
    use proptest::prelude::*;

    use super::*;
    use crate::unread::Managers;

    const EVENT: &str = r#"{"type":"ADDED","object":{"metadata":{"managedFields":[{"a":"\n"}],"name":"é"}}}"#;
    const SHORT: &str = r#"{"type":"ADDED","object":{"metadata":{"managedFields":null,"name":"é"}}}"#;

    /// What becomes of a body that arrives in pieces.
    fn cut_in_pieces(pieces: Vec<Vec<u8>>) -> Vec<Bytes> {
        let frames = pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Frame::data(Bytes::from(piece))));
        let mut body = Cutting::<_, Managers>::new(StreamBody::new(stream::iter(frames)));
        let mut all = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        while let Some(frame) = runtime.block_on(body.frame()) {
            all.push(frame.unwrap().into_data().unwrap());
        }
        all
    }

    #[test]
    fn a_line_is_passed_on_as_soon_as_it_is_whole() {
        let (begin, end) = EVENT.as_bytes().split_at(20);
        let pieces = vec![begin.to_vec(), [end, b"\n", begin].concat(), [end, b"\n"].concat()];
        let line = format!("{SHORT}\n");
        assert_eq!(cut_in_pieces(pieces), [line.clone(), line]);
    }

    #[test]
    fn what_is_no_text_is_passed_on_as_it_is() {
        assert_eq!(cut_in_pieces(vec![vec![0xff, b'\n', 0xfe]]), [&[0xff, b'\n'][..], &[0xfe]]);
        assert_eq!(cut_in_pieces(vec![]), Vec::<Bytes>::new());
    }

    proptest! {
        #[test]
        fn however_it_arrives_the_same_is_passed_on(
            lines in 0_usize..5,
            closed in any::<bool>(),
            size in 1_usize..200,
        ) {
            let (mut told, mut expected) = (format!("{EVENT}\n").repeat(lines), format!("{SHORT}\n").repeat(lines));
            if !closed {
                told += EVENT;
                expected += SHORT;
            }
            let pieces = told.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(cut_in_pieces(pieces).concat(), expected.as_bytes());
        }
    }
}
