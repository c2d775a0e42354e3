/** Application services. */
export { thirdPartyNetworkRoutes } from './routes.ts';
