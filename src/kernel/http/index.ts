/** HTTP: listeners, routes as data, and the checks of every request. */
export {
  administratorRight,
  trackAdministratorRights,
  useAdministratorRight,
} from './administrator-rights.ts';
export { type HttpConfig, httpSection } from './config.ts';
export { type CookieOptions, clearCookie, setCookie } from './cookies.ts';
export type { ErrorPage, RequestTracing } from './endpoints/endpoint.ts';
export { listenersOf } from './listeners/configured-listeners.ts';
export type { ListenerConfig } from './listeners/listener-options.ts';
export type { ListenerOptions, TcpBinding, TlsFiles, UnixBinding } from './listeners/listeners.ts';
export type { ListenerResource, ResourceName } from './listeners/resources.ts';
export { LongText, TextBuilder } from './long-text.ts';
export { healthRoute, healthRouteWith } from './monitoring/health.ts';
export { metricsRoute } from './monitoring/metrics-route.ts';
export { Readiness, readinessRoute } from './monitoring/readiness.ts';
export { RequestCounts } from './monitoring/request-counts.ts';
export { FilePart, OpenFile } from './open-file.ts';
export { redirect } from './redirect.ts';
export type {
  AuthenticationContext,
  Authenticator,
  Requester,
  RequestSignature,
  ServerAdmission,
  ServerAuthenticator,
  SignedRequestHead,
} from './requester.ts';
export { acceptTokens, type TokenKind } from './requests/accept-tokens.ts';
export type { Exchange } from './requests/exchange.ts';
export { checkedRoutes, type UserRequest } from './routing/checked-routes.ts';
export { toDeclaredSpelling, toMatrixSpelling } from './routing/namespaces.ts';
export {
  type AccessCheck,
  type Auth,
  type Authenticate,
  type Handler,
  type Method,
  type Params,
  pathsOf,
  type RateCheck,
  Reply,
  type Route,
  type RouteContract,
  type RouteRequest,
  route,
} from './routing/route.ts';
export { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts';
