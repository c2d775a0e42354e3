/**
 * Rooms across servers: receives, fetches and serves events; joins, knocks, invites and leaves through other servers.
 */

export { ComplexityLimit, complexityOf } from './handshakes/joining/room-complexity.ts';
export { StateCompletion } from './handshakes/joining/state-completion.ts';
export { InviteChecks } from './handshakes/leaving/invite-check.ts';
export { PendingLeaves } from './handshakes/leaving/pending-leaves.ts';
export { RescindedInvites } from './handshakes/leaving/rescinded-invites.ts';
export type { MembershipPeers } from './handshakes/peers.ts';
export { prejoinPdus, readPrejoinState, storedStrippedState } from './handshakes/prejoin-state.ts';
export { RemoteMemberships } from './handshakes/remote-memberships.ts';
export { buildFromTemplate, graphReferences } from './handshakes/templates/event-from-template.ts';
export { Incoming, type VerificationResult } from './incoming.ts';
export type { TimestampQuery } from './older-history/timestamp-to-event.ts';
export {
  type EventKeys,
  noOtherServers,
  type OtherServers,
  type RemoteEvents,
  type ServerHealth,
} from './remote-servers.ts';
export { type Gap, ServedHistory } from './serving/served-history.ts';
export { ServedState } from './serving/served-state.ts';
export { ServerView } from './serving/server-view.ts';
export { openServing, type Serving } from './serving/serving.ts';
export { roomFederationMigrations } from './staging/migration.ts';
export type { PduOutcome } from './staging/pdu-receiver.ts';
