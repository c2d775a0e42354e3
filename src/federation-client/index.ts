/** Requests to other servers, signed, and the keys that check what servers say. */
export { type FederationClientConfig, federationClientSection } from './config.ts';
export { Destinations } from './destinations/destinations.ts';
export { destinationMigrations } from './destinations/migrations.ts';
export type { Destination } from './destinations/store.ts';
export {
  type FederationClientSliceDeps,
  type FederationRequests,
  openFederationRequests,
} from './open-requests.ts';
export { DomainWhitelist } from './requests/domain-whitelist.ts';
export {
  errorForClient,
  FederationError,
  MalformedAnswer,
  RemoteError,
  ServerUnavailable,
} from './requests/errors.ts';
export { FederationClient } from './requests/federation-client.ts';
export { type FederationRequest, federationPath, type Query } from './requests/request.ts';
export type { RetryMode } from './requests/retry-delay.ts';
export type { Spelling } from './spelling.ts';
