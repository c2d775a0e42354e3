/** Rooms between servers: what other servers send, are asked for, and read; joins, invites and leaves across servers. */

export { ComplexityLimit, complexityOf } from './handshakes/joining/room-complexity.ts';
export { StateCompletion } from './handshakes/joining/state-completion.ts';
export { PendingLeaves } from './handshakes/leaving/pending-leaves.ts';
export { RescindedInvites } from './handshakes/leaving/rescinded-invites.ts';
export type { MembershipPeers } from './handshakes/peers.ts';
export { prejoinPdus, readPrejoinState } from './handshakes/prejoin-state.ts';
export { RemoteMemberships } from './handshakes/remote-memberships.ts';
export { storedStrippedState } from './handshakes/shown-state.ts';
export { Incoming, type VerificationResult } from './incoming.ts';
export { noOtherServers } from './no-other-servers.ts';
export type { TimestampQuery } from './older-history/timestamp-to-event.ts';
export type { EventKeys, OtherServers, RemoteEvents, ServerHealth } from './remote-servers.ts';
export { type Gap, ServedHistory } from './serving/served-history.ts';
export { ServedState } from './serving/served-state.ts';
export { ServerView } from './serving/server-view.ts';
export { openServing, type Serving } from './serving/serving.ts';
export { roomFederationMigrations } from './staging/migration.ts';
export type { PduOutcome } from './staging/pdu-receiver.ts';
