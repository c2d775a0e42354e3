/** Signed requests to other servers, and the keys that verify responses and events. */

export { EventsApi } from './api/events-api.ts';
export { KeysApi } from './api/keys-api.ts';
export { MediaApi, type MediaDownload } from './api/media-api.ts';
export { MembershipApi } from './api/membership-api.ts';
export { PolicyApi } from './api/policy-api.ts';
export {
  type AliasResponse,
  type PublicRoomsQuery,
  type PublicRoomsResponse,
  QueriesApi,
} from './api/queries-api.ts';
export { TransactionsApi } from './api/transactions-api.ts';
export { type FederationClientConfig, federationClientSection } from './config.ts';
export { Destinations } from './destinations/destinations.ts';
export type { Destination } from './destinations/store.ts';
export type { DestinationTables } from './destinations/tables.ts';
export { trimDestinationsRegularly } from './destinations/trim-destinations.ts';
export { Discovery } from './discovery/discovery.ts';
export type { Endpoint } from './discovery/endpoint.ts';
export type { KeyPurpose } from './keys/key-fetcher.ts';
export { KeyRing } from './keys/key-ring.ts';
export { OwnKeys } from './keys/own-keys.ts';
export type { WantedKey } from './keys/wanted-key.ts';
export { federationClientMigrations } from './migrations.ts';
export { type FederationClientSlice, type FederationClientSliceDeps, openFederationClient } from './open.ts';
export {
  errorForClient,
  FederationError,
  MalformedResponse,
  RemoteError,
  ServerUnavailable,
} from './requests/errors.ts';
export { type FederationRequest, federationPath, type Query } from './requests/request.ts';
export type { RetryMode } from './requests/retry-delay.ts';
export type { Spelling } from './spelling.ts';
