//! The SQL ports: pgwire, plain or with TLS, with the listener's way to authenticate.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{Sink, stream};
use pgwire::api::auth::cleartext::CleartextPasswordAuth;
use pgwire::api::auth::mechanism::{AuthMechanism, AuthMechanismFactory as _, AuthState};
use pgwire::api::auth::sasl::SaslMechanisms;
use pgwire::api::auth::sasl::scram::{ScramAuth, gen_salted_password};
use pgwire::api::auth::{
    AuthDriver, AuthOutcome, AuthSource, DefaultServerParameterProvider, LoginInfo, Password, StartupHandler,
    protocol_negotiation, save_startup_parameters_to_metadata,
};
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::results::{DataRowEncoder, FieldFormat, FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::stmt::QueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PgWireServerHandlers, Type};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::startup::PasswordMessageFamily;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::process_socket;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::listeners::{Authenticator, Sql};
use super::state::State;
use super::statements::{Answer, Facts, Value, answer, split};
use super::users::is_internal;

const SCRAM_ITERATIONS: usize = 4096;

/// What one port needs to answer.
struct Session {
    state: Arc<State>,
    listener: Sql,
    driver: AuthDriver<DefaultServerParameterProvider>,
}

/// Passwords, as pgwire asks for them.
struct Passwords(Arc<State>);

/// Lets everybody in.
struct Trust;

/// Answers until `stop`; open connections end with it.
pub(crate) async fn serve(
    socket: TcpListener,
    listener: Sql,
    tls: Option<TlsAcceptor>,
    state: Arc<State>,
    stop: CancellationToken,
) {
    let parameters = DefaultServerParameterProvider::default();
    let session = Arc::new(Session {
        state,
        listener,
        driver: AuthDriver::new(parameters),
    });
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else { continue };
        connections.spawn(process_socket(stream, tls.clone(), Handlers(Arc::clone(&session))));
    }
}

/// One port's session for all four kinds of handlers.
struct Handlers(Arc<Session>);

// === impl Handlers ===

impl PgWireServerHandlers for Handlers {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::clone(&self.0)
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::clone(&self.0)
    }

    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        Arc::clone(&self.0)
    }
}

// === impl Session ===

impl Session {
    fn mechanism(&self) -> Option<Box<dyn AuthMechanism>> {
        let passwords = Arc::new(Passwords(Arc::clone(&self.state)));
        match self.listener.authenticator {
            Authenticator::None => Some(Box::new(Trust)),
            Authenticator::Password | Authenticator::Oidc => Some(CleartextPasswordAuth::new(passwords).create()),
            Authenticator::Sasl => {
                let mut scram = ScramAuth::new(passwords);
                scram.set_iterations(SCRAM_ITERATIONS);
                Some(SaslMechanisms::new(vec![Arc::new(scram)]).create())
            }
            // There is no service here that could tell.
            Authenticator::Frontegg => None,
        }
    }

    /// Why a client may not even begin to authenticate.
    fn refuse<C: ClientInfo>(&self, client: &C) -> Option<PgWireError> {
        let user = user(client);
        if self.listener.tls && !client.is_secure() {
            return Some(fatal("08004", "TLS encryption is required".to_owned()));
        }
        if !self.listener.roles.admit(is_internal(user)) {
            return Some(fatal(
                "28000",
                format!("user {user:?} may not use the listener sql.{}", self.listener.name),
            ));
        }
        None
    }

    fn facts<C: ClientInfo>(&self, client: &C) -> Facts {
        self.state.facts(user(client))
    }
}

#[async_trait]
impl StartupHandler for Session {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let outcome = match message {
            PgWireFrontendMessage::Startup(ref startup) => {
                protocol_negotiation(client, startup).await?;
                save_startup_parameters_to_metadata(client, startup);
                if let Some(refusal) = self.refuse(client) {
                    return Err(refusal);
                }
                let mechanism = self
                    .mechanism()
                    .ok_or_else(|| fatal("28000", "nobody can log in here".to_owned()))?;
                self.driver.begin_authentication(client, mechanism).await?
            }
            PgWireFrontendMessage::PasswordMessageFamily(message) => {
                self.driver.advance_authentication(client, message).await?
            }
            _ => return Ok(()),
        };
        if let AuthOutcome::Authenticated { final_message, .. } = outcome {
            self.driver.complete_authentication(client, final_message).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl SimpleQueryHandler for Session {
    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let facts = self.facts(client);
        let mut responses = Vec::new();
        for statement in split(query) {
            let response = respond(answer(statement, &facts), FieldFormat::Text)?;
            let failed = matches!(response, Response::Error(_));
            responses.push(response);
            if failed {
                break;
            }
        }
        Ok(responses)
    }
}

#[async_trait]
impl ExtendedQueryHandler for Session {
    type Statement = Answer;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        Arc::new(Parser(Arc::clone(&self.state)))
    }

    async fn do_query<C>(&self, _client: &mut C, portal: &Portal<Answer>, _max_rows: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Answer>,
        C::Error: fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        respond(
            portal.statement.statement.clone(),
            portal.result_column_format.format_for(0),
        )
    }
}

/// Answers a statement as soon as it is prepared: the answers are of that kind.
struct Parser(Arc<State>);

// === impl Parser ===

#[async_trait]
impl QueryParser for Parser {
    type Statement = Answer;

    async fn parse_sql<C>(&self, client: &C, sql: &str, _types: &[Option<Type>]) -> PgWireResult<Option<Answer>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        match answer(sql, &self.0.facts(user(client))) {
            Answer::Error(code, message) => Err(error(code, message)),
            answer => Ok(Some(answer)),
        }
    }

    fn get_parameter_types(&self, _: &Answer) -> PgWireResult<Vec<Type>> {
        Ok(Vec::new())
    }

    fn get_result_schema(&self, statement: &Answer, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        let format = format.map_or(FieldFormat::Text, |format| format.format_for(0));
        Ok(match statement {
            Answer::Row { column, value } => vec![field(column, value, format)],
            _ => Vec::new(),
        })
    }
}

// === impl Passwords ===

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passwords")
    }
}

impl Passwords {
    fn of<'a>(&'a self, login: &LoginInfo<'_>) -> PgWireResult<&'a str> {
        let user = login.user().unwrap_or_default();
        self.0
            .users
            .password(user)
            .ok_or_else(|| PgWireError::InvalidPassword(user.to_owned()))
    }
}

#[async_trait]
impl AuthSource for Passwords {
    async fn get_password(&self, login: &LoginInfo) -> PgWireResult<Password> {
        let password = self.of(login)?;
        let salt = uuid::Uuid::new_v4().into_bytes().to_vec();
        let salted = gen_salted_password(password, &salt, SCRAM_ITERATIONS);
        Ok(Password::new(Some(salt), salted))
    }

    async fn verify_password(&self, login: &LoginInfo, presented: &[u8]) -> PgWireResult<Option<()>> {
        if self.of(login)?.as_bytes() == presented {
            Ok(None)
        } else {
            Err(PgWireError::InvalidPassword(
                login.user().unwrap_or_default().to_owned(),
            ))
        }
    }
}

// === impl Trust ===

#[async_trait]
impl AuthMechanism for Trust {
    async fn begin(&mut self, _: &(dyn ClientInfo + Send + Sync)) -> PgWireResult<AuthState> {
        Ok(AuthState::Ok {
            final_message: None,
            identity: None,
        })
    }

    async fn next(&mut self, _: &(dyn ClientInfo + Send + Sync), _: PasswordMessageFamily) -> PgWireResult<AuthState> {
        Ok(AuthState::Ok {
            final_message: None,
            identity: None,
        })
    }
}

fn user<C: ClientInfo>(client: &C) -> &str {
    client.metadata().get("user").map_or("", String::as_str)
}

fn fatal(code: &str, message: String) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new("FATAL".to_owned(), code.to_owned(), message)))
}

fn error(code: &str, message: String) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new("ERROR".to_owned(), code.to_owned(), message)))
}

fn field(column: &str, value: &Value, format: FieldFormat) -> FieldInfo {
    let datatype = match value {
        Value::Int(_) => Type::INT4,
        Value::Text(_) => Type::TEXT,
    };
    FieldInfo::new(column.to_owned(), None, None, datatype, format)
}

fn respond(answer: Answer, format: FieldFormat) -> PgWireResult<Response> {
    Ok(match answer {
        Answer::Row { column, value } => {
            let schema = Arc::new(vec![field(&column, &value, format)]);
            let mut encoder = DataRowEncoder::new(Arc::clone(&schema));
            match value {
                Value::Int(number) => encoder.encode_field(&number)?,
                Value::Text(text) => encoder.encode_field(&text)?,
            }
            Response::Query(QueryResponse::new(schema, stream::iter([Ok(encoder.take_row())])))
        }
        Answer::Done(tag) => Response::Execution(Tag::new(tag)),
        Answer::Begin => Response::TransactionStart(Tag::new("BEGIN")),
        Answer::End(tag) => Response::TransactionEnd(Tag::new(tag)),
        Answer::Error(code, message) => {
            Response::Error(Box::new(ErrorInfo::new("ERROR".to_owned(), code.to_owned(), message)))
        }
    })
}
