/** HTTP: listeners, routes as data, and the checks that every request goes through. */
export { type HttpConfig, httpSection } from './config.ts';
export { listenersOf } from './configured-listeners.ts';
export { healthRoute } from './health.ts';
export type { ListenerOptions, TcpBinding, TlsFiles, UnixBinding } from './listeners.ts';
export { metricsRoute } from './metrics-route.ts';
export { toDocumentsSpelling, toEcosystemSpelling } from './namespaces.ts';
export type {
  AuthenticationContext,
  Authenticator,
  Requester,
  ServerAdmission,
  ServerAuthenticator,
  SignedRequest,
} from './requester.ts';
export type { ListenerResource, ResourceName } from './resources.ts';
export {
  type Auth,
  type Handler,
  type Method,
  type Params,
  Reply,
  type Route,
  type RouteContract,
  type RouteRequest,
  route,
} from './route.ts';
export { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts';
