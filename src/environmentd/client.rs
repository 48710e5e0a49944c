//! The requests of the leader API.

use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Endpoint, Error, LeaderStatus};

/// How long one request may take, from the connection to the last byte of the answer.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest body that is read, in bytes. The answers of the API are shorter than a hundred.
const LARGEST_BODY: usize = 64 * 1024;

/// The longest part of a body that is quoted in an error, in characters.
const LONGEST_QUOTE: usize = 200;

/// Speaks the leader API of one generation's environmentd.
///
/// Each request opens a connection of its own. So an answer comes from whatever is behind the Service when it is
/// asked, never from a pod that has been replaced since (decision R15).
#[derive(Clone, Debug)]
pub struct LeaderClient {
    http: Client,
    base_url: String,
}

#[derive(Deserialize)]
struct StatusBody {
    status: LeaderStatus,
}

#[derive(Deserialize)]
struct PromoteBody {
    result: PromoteResult,
}

#[derive(Deserialize)]
enum PromoteResult {
    Success,
    Failure { message: String },
}

#[derive(Default, Deserialize)]
struct MessageBody {
    message: String,
}

// === impl LeaderClient ===

impl LeaderClient {
    /// A client for `endpoint`, logged in if there is a password.
    ///
    /// # Errors
    /// If the login fails. Nothing is sent without a password.
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, Error> {
        let http = Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .redirect(redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .tcp_nodelay(true)
            .no_proxy()
            .cookie_store(true)
            // environmentd's certificate is issued for the names that SQL clients use, by an issuer of the user's.
            .tls_danger_accept_invalid_certs(true)
            .build()
            .map_err(|error| Error::Address(format!("{}: {error}", endpoint.base_url)))?;
        let client = LeaderClient {
            http,
            base_url: endpoint.base_url.clone(),
        };
        if let Some(password) = &endpoint.password {
            client.login(password.reveal()).await?;
        }
        Ok(client)
    }

    /// `GET /api/leader/status`.
    pub async fn status(&self) -> Result<LeaderStatus, Error> {
        let response = self.send(Method::GET, "/api/leader/status", None).await?;
        let body: StatusBody = json(success(response).await?).await?;
        Ok(body.status)
    }

    /// `POST /api/leader/promote`. Success only means that the promotion has begun; it may be repeated.
    ///
    /// # Errors
    /// [`Error::Refused`] with environmentd's message while it can't be promoted.
    pub async fn promote(&self) -> Result<(), Error> {
        let response = self.send(Method::POST, "/api/leader/promote", None).await?;
        let status = response.status();
        if !status.is_success() && status != StatusCode::BAD_REQUEST {
            return Err(unexpected(response).await);
        }
        match json::<PromoteBody>(response).await.map(|body| body.result) {
            Ok(PromoteResult::Success) if status.is_success() => Ok(()),
            Ok(PromoteResult::Failure { message }) => Err(Error::Refused(message)),
            // Says that it went well and that it did not.
            Ok(PromoteResult::Success) => Err(Error::Status {
                code: status.as_u16(),
                message: String::new(),
            }),
            Err(Error::Unreadable(message)) if status == StatusCode::BAD_REQUEST => Err(Error::Status {
                code: status.as_u16(),
                message,
            }),
            Err(error) => Err(error),
        }
    }

    /// `POST /api/leader/skip-catchup`.
    ///
    /// # Errors
    /// [`Error::Refused`] with environmentd's message on HTTP status 400. Every other status is accepted, because
    /// environmentd older than this call, or already ready, needs no skipping.
    pub async fn skip_catchup(&self) -> Result<(), Error> {
        let response = self.send(Method::POST, "/api/leader/skip-catchup", None).await?;
        if response.status() != StatusCode::BAD_REQUEST {
            return Ok(());
        }
        let text = body(response).await?;
        let message = match serde_json::from_slice::<MessageBody>(&text) {
            Ok(body) => body.message,
            Err(_) => quote(&text),
        };
        Err(Error::Refused(message))
    }

    /// `POST /api/login` as `mz_system`. The session cookie goes with every later request.
    async fn login(&self, password: &str) -> Result<(), Error> {
        let body = serde_json::json!({ "username": "mz_system", "password": password });
        let response = self.send(Method::POST, "/api/login", Some(&body)).await?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(Error::LoginRefused(response.status().as_u16()))
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&serde_json::Value>) -> Result<Response, Error> {
        let url = format!("{}{path}", self.base_url);
        let mut request = self.http.request(method, &url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let request = request.build().map_err(|_| Error::Address(url))?;
        let response = self
            .http
            .execute(request)
            .await
            .map_err(|error| Error::sending(&error, REQUEST_TIMEOUT))?;
        if response.status().is_redirection() {
            return Err(Error::Redirected(response.status().as_u16()));
        }
        Ok(response)
    }
}

/// The response if its status is 2xx.
async fn success(response: Response) -> Result<Response, Error> {
    if response.status().is_success() {
        Ok(response)
    } else {
        Err(unexpected(response).await)
    }
}

/// The error for a status that the call does not allow. A body that can't be read adds nothing to it.
async fn unexpected(response: Response) -> Error {
    let code = response.status().as_u16();
    let text = body(response).await.unwrap_or_default();
    let message = match serde_json::from_slice::<MessageBody>(&text) {
        Ok(body) => body.message,
        Err(_) if is_web_page(&text) => String::new(),
        Err(_) => quote(&text),
    };
    Error::Status { code, message }
}

async fn json<T: DeserializeOwned>(response: Response) -> Result<T, Error> {
    let text = body(response).await?;
    if is_web_page(&text) {
        return Err(Error::WebPage);
    }
    serde_json::from_slice(&text).map_err(|error| Error::Unreadable(format!("{error} in {:?}", quote(&text))))
}

/// The whole body, as far as the limit goes.
async fn body(mut response: Response) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| Error::receiving(&error, REQUEST_TIMEOUT))?
    {
        if text.len() + chunk.len() > LARGEST_BODY {
            return Err(Error::TooLarge(LARGEST_BODY));
        }
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}

fn is_web_page(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"<")
}

/// The beginning of a body, fit for a message.
fn quote(text: &[u8]) -> String {
    String::from_utf8_lossy(text)
        .trim()
        .chars()
        .take(LONGEST_QUOTE)
        .collect()
}
