import { type EventSigner, roomVersions } from '../../protocol/index.ts';
import type { RoomWriter } from '../../room-engine/index.ts';
import type { Incoming } from '../incoming.ts';
import type { EventKeys } from '../remote-servers.ts';
import type { MembershipPeers } from './peers.ts';
import type { EventBuildDeps } from './templates/event-from-template.ts';

/** The dependencies of every handshake with a remote server. */
export interface HandshakeDeps extends EventBuildDeps {
  readonly engine: RoomWriter;
  readonly incoming: Pick<Incoming, 'verify' | 'process'>;
  readonly peers: MembershipPeers;
  readonly keys: EventKeys;
  readonly signer: EventSigner;
}

/** The room versions that this server supports. */
export const supportedVersions: readonly string[] = [...roomVersions.keys()];

/** The response of a remote server in a handshake is invalid or cannot be used. */
export class HandshakeFailure extends Error {
  override readonly name = 'HandshakeFailure';
  readonly server: string;

  constructor(server: string, problem: string, options?: ErrorOptions) {
    super(`Invalid response from ${server}: ${problem}`, options);
    this.server = server;
  }
}
