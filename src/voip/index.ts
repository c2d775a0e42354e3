/** Calls: what clients need to connect to each other. */
export { type CallOptions, callRoutes } from './routes.ts';
