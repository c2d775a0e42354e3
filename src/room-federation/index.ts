/** Rooms between servers: what other servers send, are asked for, and read; joins, invites and leaves across servers. */

export { ComplexityLimit, complexityOf } from './handshakes/joining/room-complexity.ts';
export { StateCompletion } from './handshakes/joining/state-completion.ts';
export { EndedInvites } from './handshakes/leaving/ended-invites.ts';
export { UntoldLeaves } from './handshakes/leaving/untold-leaves.ts';
export type { MembershipPeers } from './handshakes/peers.ts';
export { prejoinPdus, readPrejoinState } from './handshakes/prejoin-state.ts';
export { RemoteMemberships } from './handshakes/remote-memberships.ts';
export { shownState } from './handshakes/shown-state.ts';
export { Incoming, type Verification } from './incoming.ts';
export { noOtherServers } from './no-other-servers.ts';
export type { TimeQuestion } from './older-history/remote-event-by-time.ts';
export type { EventKeys, OtherServers, RemoteEvents, ServerHealth } from './remote-servers.ts';
export { type Gap, ServedHistory } from './serving/served-history.ts';
export { ServedState } from './serving/served-state.ts';
export { ServerView } from './serving/server-view.ts';
export { openServing, type Serving } from './serving/serving.ts';
export { roomFederationMigrations } from './staging/migration.ts';
export type { PduOutcome } from './staging/receiving.ts';
