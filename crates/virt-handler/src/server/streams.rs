//! Streams: consoles, displays, USB devices of users, and sockets of guests.

use std::future::Future;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{Response, StatusCode};
use kubevirt_streams::{Accepted, Ended, Farewell, Pulse, Stream, Upgraded, accept, relay};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answers::{Answer, Refusal};
use super::find::{Socket, uid};
use super::parameters::{Subject, flag, port};
use super::seats::{Occupied, Seat, Seats};
use super::{Shared, console, vsock};

/// How long a client may take to hear why a stream ends.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

/// How much is carried at a time: there may be hundreds of streams.
const PIECE: usize = 8 << 10;

/// How bytes are carried.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manner {
    /// The guest never waits for the client; some output may be lost.
    Console,
    /// Nothing is lost; the side that reads sets the pace.
    Whole,
}

/// What has one viewer at a time.
pub(super) struct View<'a> {
    pub(super) seats: &'a Seats,
    pub(super) uid: &'a str,
    pub(super) what: &'a str,
    pub(super) manner: Manner,
    pub(super) pulse: Pulse,
    pub(super) streams: &'a TaskTracker,
    pub(super) stop: &'a CancellationToken,
}

/// The serial console.
pub(super) async fn console(
    State(desk): State<Shared>,
    Path(subject): Path<Subject>,
    request: Request,
) -> Answer {
    let vmi = desk.vmi(&subject)?;
    let (seats, streams, stop) = (&desk.consoles, &desk.streams, &desk.server.stop);
    let (manner, pulse) = (Manner::Console, Pulse::default());
    let view = View { seats, uid: uid(&vmi), what: "console", manner, pulse, streams, stop };
    view.open(request, desk.socket(&vmi, "virt-serial0")).await
}

/// The display.
pub(super) async fn vnc(
    State(desk): State<Shared>,
    Path(subject): Path<Subject>,
    request: Request,
) -> Answer {
    let vmi = desk.vmi(&subject)?;
    let (seats, streams, stop) = (&desk.displays, &desk.streams, &desk.server.stop);
    let (manner, pulse) = (Manner::Whole, Pulse::default());
    let view = View { seats, uid: uid(&vmi), what: "VNC", manner, pulse, streams, stop };
    view.open(request, desk.socket(&vmi, "virt-vnc")).await
}

impl View<'_> {
    /// Connects a client to a socket. Whoever is connected must leave, but only for a request that makes sense.
    pub(super) async fn open(
        &self,
        request: Request,
        socket: impl Future<Output = Result<Socket, Refusal>>,
    ) -> Answer {
        let only_if_free = flag(request.uri(), "preserveSession")?;
        let (answer, accepted) = upgrade(request)?;
        let socket = socket.await?;
        let seat = self.seats.take(self.uid, only_if_free).await.map_err(|Occupied| {
            let why = format!("Active {} connection. Request denied.", self.what);
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })?;
        let connection = connected(socket.connect()).await?;
        let accepted = accepted.with_pulse(self.pulse);
        self.streams.spawn(carry(accepted, connection, self.manner, seat, self.stop.clone()));
        Ok(answer)
    }
}

/// A USB device of the user.
pub(super) async fn usb(
    State(desk): State<Shared>,
    Path(subject): Path<Subject>,
    request: Request,
) -> Answer {
    let vmi = desk.vmi(&subject)?;
    let (answer, accepted) = upgrade(request)?;
    let Some(slot) = desk.usb.take(uid(&vmi)) else {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "All USB devices are in use."));
    };
    let socket = desk.socket(&vmi, &format!("virt-usbredir-{}", slot.number())).await?;
    let connection = connected(socket.connect()).await?;
    desk.streams.spawn(carry(accepted, connection, Manner::Whole, slot, desk.server.stop.clone()));
    Ok(answer)
}

/// A socket of the guest. How many clients it takes is the guest's affair.
pub(super) async fn vsock(
    State(desk): State<Shared>,
    Path(subject): Path<Subject>,
    request: Request,
) -> Answer {
    let vmi = desk.vmi(&subject)?;
    if vmi.spec.domain.devices.autoattach_vsock != Some(true) {
        return Err(Refusal::bad("VM doesn't have VSOCK enabled"));
    }
    let cid = vmi.status.as_ref().and_then(|status| status.vsockcid);
    let cid = cid.and_then(|cid| u32::try_from(cid).ok());
    let cid = cid.ok_or_else(|| Refusal::failed("VSOCK CID is nil"))?;
    let (port, tls) = (port(request.uri())?, flag(request.uri(), "tls")?);
    let (answer, accepted) = upgrade(request)?;
    let connection = connected(vsock::connect(cid, port)).await?;
    let stop = desk.server.stop.clone();
    if tls {
        let connection = connected(vsock::secure(connection, &desk.server.to_guests)).await?;
        desk.streams.spawn(carry(accepted, connection, Manner::Whole, (), stop));
    } else {
        desk.streams.spawn(carry(accepted, connection, Manner::Whole, (), stop));
    }
    Ok(answer)
}

/// The answer that opens a stream. It is sent only if there is something to connect to.
fn upgrade(mut request: Request) -> Result<(Response<Body>, Accepted), Refusal> {
    let (answer, accepted) = accept(&mut request).map_err(Refusal::bad)?;
    Ok((answer.map(|()| Body::empty()), accepted))
}

async fn connected<T>(connecting: impl Future<Output = io::Result<T>>) -> Result<T, Refusal> {
    connecting.await.map_err(|error| Refusal::failed(format!("the guest cannot be connected to: {error}")))
}

/// What a stream occupies, and until when.
pub(super) trait Hold: Send + 'static {
    /// Waits until it must be given up.
    fn wanted(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

impl Hold for () {}
impl Hold for super::seats::Slot {}
impl Hold for Seat {
    async fn wanted(&self) {
        Self::wanted(self).await;
    }
}

/// Carries a stream to its end, and tells the client why it ends.
async fn carry<G, H>(accepted: Accepted, guest: G, manner: Manner, hold: H, stop: CancellationToken)
where
    G: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Hold,
{
    let mut client: Stream<Upgraded> = match accepted.stream().await {
        Ok(client) => client,
        Err(error) => return tracing::debug!(%error, "a client has left before its stream began"),
    };
    let relayed = async {
        let mut guest = guest;
        match manner {
            Manner::Console => console::relay(&mut client, guest).await,
            Manner::Whole => {
                let ended = relay(&mut client, &mut guest, PIECE).await;
                if let Ended::One(_) = ended {
                    // A guest that speaks TLS must know that nothing was cut off.
                    let _ = timeout(FAREWELL, guest.shutdown()).await;
                }
                ended
            }
        }
    };
    let why = tokio::select! {
        () = hold.wanted() => Some(Farewell::TAKEN_OVER),
        () = stop.cancelled() => Some(Farewell::HANDLER_ENDS),
        ended = relayed => farewell(&ended),
    };
    // The connection to the guest is closed by now: whoever waits for it need not wait for our client.
    drop(hold);
    if let Some(why) = why {
        let _ = timeout(FAREWELL, client.end(why)).await;
    }
}

/// What the client is told at the end; nothing if it was the client who ended, unless by a mistake.
pub(super) fn farewell(ended: &Ended) -> Option<Farewell> {
    match ended {
        Ended::One(None) => None,
        Ended::One(Some(error)) => {
            let words = Farewell::after(error);
            match &words {
                Some(_) => tracing::warn!("ended the stream of a client: {error}"),
                None => tracing::debug!("the stream of a client broke: {error}"),
            }
            words
        }
        Ended::Other(error) => {
            if let Some(error) = error {
                tracing::debug!("the stream of a guest broke: {error}");
            }
            Some(Farewell::MACHINE_ENDED)
        }
    }
}
