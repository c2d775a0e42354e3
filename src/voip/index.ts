/** Calls: TURN credentials and transports for clients. */
export { type CallOptions, callRoutes } from './routes.ts';
