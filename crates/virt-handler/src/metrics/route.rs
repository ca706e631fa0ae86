//! The answer to prometheus: what the handler counts, and what its launchers measure just then.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::Metrics;

use super::{Families, Gpus, Scraper, collect, text};
use crate::launchers::folders::Opened;

/// Says which instances there are and where their launchers listen. Sockets are open, since their paths are too long to
/// be called by them.
pub type Launchers = Arc<dyn Fn() -> Vec<(Arc<VirtualMachineInstance>, Opened)> + Send + Sync>;

/// `/metrics` of the handler. `node` is what was found out once about the node itself.
pub fn route(metrics: Metrics, scraper: Scraper, launchers: Launchers, gpus: Gpus, node: Families) -> Router {
    let answer = move || {
        let (metrics, scraper, launchers) = (metrics.clone(), scraper.clone(), launchers.clone());
        let (gpus, node) = (gpus.clone(), node.clone());
        async move { answer(&metrics, &scraper, &launchers, &gpus, node).await }
    };
    Router::new().route("/metrics", get(answer))
}

async fn answer(
    metrics: &Metrics,
    scraper: &Scraper,
    launchers: &Launchers,
    gpus: &Gpus,
    node: Families,
) -> Response {
    let Some(turn) = scraper.turn() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many ask for metrics at once\n").into_response();
    };
    let here = launchers();
    let sockets = here.iter().map(|(vmi, socket)| (vmi.clone(), socket.path())).collect();
    let (measured, cards) = tokio::join!(turn.scrape(sockets), gpus.collect());
    let mut told = metrics.text();
    told.push_str(&text([collect(&measured), cards, node]));
    ([(CONTENT_TYPE, kubevirt_component::metrics::CONTENT_TYPE)], told).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;

    use super::*;

    #[tokio::test]
    async fn answers_unless_too_many_ask() {
        let scraper = Scraper::new(1);
        let router = route(
            Metrics::new(),
            scraper.clone(),
            Arc::new(Vec::new),
            Gpus::new(std::path::Path::new("/nowhere"), "node01"),
            Families::default(),
        );
        let ask = async || {
            use tower::ServiceExt;
            let request = Request::builder().uri("/metrics").body(Body::empty()).unwrap();
            router.clone().oneshot(request).await.unwrap()
        };
        let answer = ask().await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()[CONTENT_TYPE], kubevirt_component::metrics::CONTENT_TYPE);
        let _turn = scraper.turn().unwrap();
        assert_eq!(ask().await.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
